"""Hooks of mkdocs: pages made from the code and the records, files of the repository, links and formulas."""

import re
from collections.abc import Mapping
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from generate import encodings, home, repository, suites, tasks
from generate.markdown import with_formulas

ENCODINGS = re.compile(r"<!-- groups.*<!-- /encodings -->", re.DOTALL)
RESULTS = "<!-- results -->"

site: repository.Site


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as GitHub does, so that a link to one leads there on both."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are generated, and the files of the repository that the site shows."""
    global site
    site = repository.Site({file.src_uri for file in files if file.src_uri.endswith(".md")})
    site.follow()
    generated = {**encodings.pages(), **tasks.pages(), "results/suites.md": suites.page()}
    for address, path in site.paths.items():
        generated.setdefault(address, repository.text_of(path))
    for address, text in generated.items():
        files.append(File.generated(config, address, content=text))
    for address, picture in encodings.pictures().items():
        files.append(File.generated(config, address, content=picture))
    for address, asset in site.assets.items():
        if files.get_file_from_path(address) is None:
            files.append(File.generated(config, address, abs_src_path=str(asset)))
    config.nav = _menu(config.nav or [], {file.src_uri for file in files})
    return files


def _menu(nav: list[Any], addresses: set[str]) -> list[Any]:
    """Return the menu of mkdocs.yml with the pages that are generated, without pages that are not there."""
    made: Mapping[str, list[Any]] = {
        "Encodings": encodings.menu(),
        "Tasks": tasks.menu(),
        "Results": [{"Suites by name": suites.menu()}, {"Studies": _below(addresses, "results/studies/")}],
        "Answers": _linked("answers/"),
    }
    menu: list[Any] = []
    for entry in nav:
        ((title, pages),) = entry.items()
        if isinstance(pages, list):
            known = [page for page in pages if _address(page) in addresses]
            menu.append({title: known + made.get(title, [])})
        elif pages in addresses:
            menu.append(entry)
    return [entry for entry in menu if [*entry.values()] != [[]]]


def _address(page: Any) -> str:
    return page if isinstance(page, str) else next(iter(page.values()))


def _below(addresses: set[str], folder: str) -> list[str]:
    """Return the pages of a folder beside its first."""
    pages = (address for address in addresses if address.startswith(folder) and address.endswith(".md"))
    return sorted(page for page in pages if not page.endswith("/index.md"))


def _linked(folder: str) -> list[str]:
    """Return the pages of a folder in docs/ that its first page links, in that order."""
    text = (repository.ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    return [f"{folder}{name}" for name in dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)\)", text))]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put generated tables, links and formulas into a page that a person wrote."""
    address = page.file.src_uri
    if address in site.paths or page.file.generated_by is None:
        markdown = site.rewritten(markdown, address)
    if address == "encodings.md":
        markdown = ENCODINGS.sub(lambda _: encodings.overview(), markdown)
    if RESULTS in markdown:
        markdown = markdown.replace(RESULTS, home.results())
    return with_formulas(markdown)
