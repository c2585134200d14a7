"""Works to cite for an encoding, a task, a suite, a table, and pebench itself, as BibTeX. No torch here."""

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pebench.encodings.registry import (
    encoding_card,
    encoding_cards,
    our_parts,
    parse_encoding,
    parts_of,
    plugin_cards,
    unknown_encoding,
)
from pebench.errors import UserError
from pebench.results.prose import Link, Prose
from pebench.results.tables import Table
from pebench.runs.suite import load_suite, shipped, suite_files
from pebench.tasks import TASKS, Task, find_task
from pebench.tasks.registry import is_task

OWN = "pebench"
"""The key of pebench itself, which its own encodings and data sets name too."""

LETTERS = {"O": "Ø", "o": "ø", "L": "Ł", "l": "ł"}
"""Letters that LaTeX has a command for."""
ACCENTS = {"'": "\u0301", '"': "\u0308", "v": "\u030c"}
"""Combining characters by LaTeX's command."""

# A mark of ours in the file, taken out of what is printed.
IMAGES = "  keywords = {images},\n"
"""The line of an entry that took an encoding to images."""


@functools.cache
def bibliography() -> dict[str, str]:
    """Return every entry by key: those of ``references.bib``, and pebench's own."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    # An entry begins with an @ at the beginning of a line, which no field does.
    entries = re.split(r"\n(?=@)", text.strip())
    return {_key(entry): entry.strip() for entry in entries} | {OWN: _own()}


def _key(entry: str) -> str:
    return entry.partition("{")[2].partition(",")[0].strip()


def fields_of(entry: str) -> dict[str, str]:
    """Return the fields of an entry by name."""
    return dict(re.findall(r"^  (\w+) = \{(.*)\},$", entry, re.MULTILINE))


def _own() -> str:
    """Return the entry of pebench, made from ``CITATION.cff``."""
    import yaml

    facts = yaml.safe_load(shipped("CITATION.cff").read_text(encoding="utf-8"))
    authors = [
        author.get("name") or f"{author['family-names']}, {author['given-names']}" for author in facts["authors"]
    ]
    fields = {
        "author": " and ".join(f"{{{name}}}" if "," not in name else name for name in authors),
        "title": facts["title"],
        "version": facts["version"],
        "year": str(facts["date-released"])[:4],
        "url": facts.get("repository-code"),
    }
    lines = [f"  {name} = {{{value}}},\n" for name, value in fields.items() if value]
    return f"@software{{{OWN},\n{''.join(lines)}}}"


def bibtex(names: Iterable[str]) -> str:
    """Return the entries of encodings, tasks and suites, each once; with tasks of text alone, no works on images.

    Args:
        names: Names of encodings (also with options: ``"stack(first='rope')"``), tasks and suites, or ``pebench``.

    Raises:
        UserError: For a name that does not exist, or an encoding that names nothing to cite.
    """
    names = list(names)
    images = _images(find_task(name) for name in names if is_task(name))
    keys = {key for name in names for key in keys_of(name, images)}
    return "\n\n".join(bibliography()[key].replace(IMAGES, "") for key in sorted(keys)) + "\n"


def _images(tasks: Iterable[Task]) -> bool:
    """Return True if one of the tasks is of images, or if there is none."""
    named = list(tasks)
    return not named or any(task.image for task in named)


def keys_of(name: str, images: bool = True) -> set[str]:
    """Return the keys of the works to cite for an encoding, a task or a suite.

    Args:
        name: Name of the encoding, task or suite, or ``pebench``.
        images: Cite an encoding's use on images too; a suite's tasks decide that themselves.

    Raises:
        UserError: For a name that does not exist, or an encoding that names nothing to cite.
    """
    if name == OWN:
        return {OWN}
    if is_task(name):
        return _of_task(name)
    if name in suite_files() or name.endswith(".py"):
        kinds = replace(load_suite(name), regime="width").kinds()  # without counting costs
        tasks = {config.task for config in kinds}
        used = [(config.encoding, config.encoding_args) for config in kinds]
        ours = {key for name, options in used for key in _of_encoding(name, options, _images(map(find_task, tasks)))}
        return {OWN}.union(ours, *map(keys_of, tasks))
    plain = name.partition("(")[0]
    # Here, as the error below is about an encoding alone, and a task or suite may have been meant.
    if plain not in encoding_cards() and ":" not in name and plain not in plugin_cards()[0]:
        raise unknown_encoding("encoding, task or suite", name, [*encoding_cards(), *TASKS, *suite_files(), OWN])
    return _of_encoding(*parse_encoding(name), images)


def _of_task(name: str) -> set[str]:
    """Keys that a task names; one that is not ours may name none."""
    keys = set(find_task(name).cite)
    if unknown := keys - set(bibliography()):
        raise UserError(f"task {name!r} cites {min(unknown)!r}, which is not in pebench's bibliography.")
    return keys


def _of_encoding(name: str, options: Mapping[str, Any], images: bool) -> set[str]:
    keys = {key for part, _ in parts_of(name, options) for key in _own_keys(part, images)}
    if not keys:
        raise UserError(
            f"encoding {name!r} names nothing to cite: its class has no attribute `cite` with keys of pebench's "
            "bibliography. Leave it out."
        )
    if unknown := keys - set(bibliography()):
        raise UserError(f"encoding {name!r} cites {min(unknown)!r}, which is not in pebench's bibliography.")
    return keys


def _own_keys(name: str, images: bool) -> set[str]:
    """Return the keys that an encoding names itself; without images none on images, if it names others."""
    named = set(encoding_card(name).declared["cite"])
    # If all its works are on images, they are what it has.
    return named if images else named - _on_images() or named


@functools.cache
def _on_images() -> frozenset[str]:
    """Return the keys of the works that took an encoding to images, on which results on texts are not based."""
    return frozenset(key for key, entry in bibliography().items() if IMAGES in entry)


@dataclass(frozen=True)
class Sources:
    """The works that results are based on.

    Args:
        keys: Keys of the entries.
        command: The command that prints them.
    """

    keys: tuple[str, ...]
    command: str

    @property
    def links(self) -> Prose:
        """The works by authors and year, in a list."""
        listed = [part for key in self.keys for part in (link(key), ", ")]
        return tuple(listed[:-1])


def sources(tables: Sequence[Table]) -> Sources:
    """Return the works that the results of tables are based on."""
    ours = sorted(our_parts(row.config for table in tables for row in table.rows))
    images = _images(table.task for table in tables)
    # tasks of others are left out, as their encodings are: a page must not depend on what its reader has
    tasks = {table.task.name: table.task for table in tables if table.task.name in TASKS}
    keys = {OWN}.union(*(task.cite for task in tasks.values()), *(_own_keys(name, images) for name in ours))
    return Sources(tuple(sorted(keys)), f"pebench cite {' '.join([OWN, *tasks, *ours])}")


def link(key: str) -> Link:
    """Return an entry by its authors and year, as a link if it says where it is to be had; other words as they are.

    Args:
        key: The key of an entry of the bibliography, or words that name another source.
    """
    if key not in bibliography():
        return Link(key, "")
    title, address = title_and_link(key)
    return Link(authors_and_year(key), address, title)


def title_and_link(key: str) -> tuple[str, str]:
    """Return the title of an entry and its address; empty where it has none."""
    fields = fields_of(bibliography()[key])
    link = f"https://arxiv.org/abs/{fields['eprint']}" if "eprint" in fields else fields.get("url", "")
    return without_latex(fields["title"]), link


def authors_and_year(key: str) -> str:
    """Return the authors and year of an entry, as a text would name it.

    Example:
        >>> authors_and_year("vaswani2017attention")
        'Vaswani et al. 2017'
    """
    fields = fields_of(bibliography()[key])
    first, *others = [name.partition(",")[0].strip() for name in without_latex(fields["author"]).split(" and ")]
    return f"{first}{' et al.' if len(others) > 1 else ''.join(f' and {name}' for name in others)} {fields['year']}"


def without_latex(words: str) -> str:
    r"""Return words of an entry as a page writes them: letters instead of commands, and no braces.

    Example:
        >>> without_latex(r"{\O}hrstr{\o}m and {Cabral Muchacho}, and Doll{\'a}r")
        'Øhrstrøm and Cabral Muchacho, and Dollár'
    """
    for command, letter in LETTERS.items():
        words = words.replace(f"{{\\{command}}}", letter)
    # LaTeX puts an accent before its letter, {\'a} or {\v{c}}; Unicode puts it after.
    words = re.sub(r"""\\(['"v])\{?(\w)\}?""", lambda found: found[2] + ACCENTS[found[1]], words)
    return unicodedata.normalize("NFC", re.sub(r"[{}]|\\(?=\W)", "", words))
