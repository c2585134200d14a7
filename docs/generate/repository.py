"""Files of the repository outside docs/ that the site shows, and the links that lead to them."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from generate.markdown import code, front_matter
from generate.published import ROOT, published

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
TAG = re.compile(r"^- \[(\w+)\] ", re.MULTILINE)
"""A tag before an entry of the changelog, which Markdown would take for a link where a link follows."""

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "reference/contributing.md",
    "benchmarks/README.md": "reference/protocol.md",
    "results/README.md": "results/index.md",
    "examples/plugin/README.md": "examples/plugin.md",
}
"""Addresses of the pages that are files of the repository, by path; those of results/ are found."""

FOLDERS = {
    "benchmarks/suites": "results/suites.md",
    "src/pebench/encodings": "encodings.md",
    "src/pebench/tasks": "tasks/index.md",
}
"""Addresses of the pages that are made of what is declared in a folder, by its path."""

LANGUAGES = {
    ".py": "python", ".toml": "toml", ".sh": "bash", ".yml": "yaml", ".cff": "yaml", ".bib": "bibtex", ".txt": "text",
}  # fmt: skip
"""Suffixes of files that are shown as text, with the language that they are highlighted as."""


def pages() -> dict[str, str]:
    """Return the address of every file of the repository that is a page of the site, by its path."""
    found = {path: address for path, address in PAGES.items() if (ROOT / path).is_file()}
    for path in sorted((ROOT / "results").rglob("*.md")):
        found.setdefault(path.relative_to(ROOT).as_posix(), _address_of_results(path))
    taken = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    return {path: address for path, address in found.items() if path == "README.md" or address not in taken}


def _address_of_results(path: Path) -> str:
    """Return the address of a page in results/: ``core/page.md`` and ``core.md`` both are ``results/core.md``."""
    place = path.relative_to(ROOT)
    if place.name == "page.md":
        return f"{place.parent.as_posix()}.md"
    if place.name == "notes.md":
        return f"{place.parent.as_posix()}-notes.md"
    return place.as_posix()


def is_table(path: str) -> bool:
    """Return True for the page of a suite, whose many figures only get in the way of a search."""
    place = PurePosixPath(path)
    return place.stem in published() or place.name == "page.md"


def text_of(path: str) -> str:
    """Return a file of the repository as a page: Markdown as it is, a notebook's cells, other text as code."""
    file = ROOT / path
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        # GitHub reads Markdown within these, mkdocs only if told
        text = TAG.sub(r"- \\[\1\\] ", text).replace("<details>", "<details markdown>")
        return front_matter(_title(text), "exclude: true" if is_table(path) else "boost: 1") + text
    if file.suffix == ".ipynb":
        return front_matter(file.name) + f"# {file.name}\n\n" + "\n".join(_cells(json.loads(text)))
    heading = f"# {file.name}\n\n`{path}`\n\n"
    return front_matter(file.name, "exclude: true") + heading + code(text, LANGUAGES.get(file.suffix, "text"))


def _title(text: str) -> str:
    """Return the first heading of a page."""
    match = re.search(r"^# (.*)$", text, re.MULTILINE)
    return match[1].replace('"', "'") if match else ""


def _cells(notebook: dict) -> Iterator[str]:
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        yield code(source, "python") if cell["cell_type"] == "code" else f"{source}\n"


class Site:
    """The addresses of all files that the site shows: its own pages, and what their links lead to.

    Args:
        documents: Addresses of the files in docs/.
    """

    def __init__(self, documents: set[str]) -> None:
        self.addresses = FOLDERS | pages() | {f"docs/{address}": address for address in documents}
        self.paths = {address: path for path, address in pages().items() if path != "README.md"}
        self.assets: dict[str, Path] = {}

    def follow(self) -> None:
        """Find what the pages link to that is no page yet, and give it an address too."""
        for path in list(self.addresses):
            if path.endswith(".md") and path != "README.md":
                text = (ROOT / path).read_text(encoding="utf-8")
                for match in LINK.finditer(text):
                    self._add(_target(path, match[3]))

    def _add(self, path: str) -> None:
        file = ROOT / path
        hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)  # which mkdocs leaves out
        if path in self.addresses or not file.is_file() or hidden:
            return
        if file.suffix in LANGUAGES or file.suffix == ".ipynb":
            self.addresses[path] = f"source/{path}.md"
            self.paths[f"source/{path}.md"] = path
        else:
            self.addresses[path] = path.removeprefix("docs/")
            self.assets[path.removeprefix("docs/")] = file

    def rewritten(self, text: str, address: str) -> str:
        """Return a page whose links to files of the repository lead to their addresses.

        A link to a folder that no page tells of becomes its text; one that leads nowhere stays, for mkdocs to report.

        Args:
            text: The page.
            address: Its address.
        """
        here = self.paths.get(address, f"docs/{address}")

        def rewrite(match: re.Match[str]) -> str:
            target = _target(here, match[3])
            found = self.addresses.get(target) or self.addresses.get(f"{target}/README.md")
            label = self.rewritten(match[2], address)
            if found is None:
                return label if (ROOT / target).exists() else match[0]
            there = os.path.relpath(found, PurePosixPath(address).parent)
            return f"{match[1]}[{label}]({there}{match[4] or ''})"

        return LINK.sub(rewrite, text)


def _target(path: str, link: str) -> str:
    """Return the path of the file that a link in a file leads to."""
    return os.path.normpath(PurePosixPath(path).parent / link)
