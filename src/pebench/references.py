"""What to cite for an encoding, a task, a suite, a table, and pebench itself, as BibTeX. No torch here."""

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pebench.errors import UserError, unknown_name
from pebench.registry import encoding_card, encoding_cards, parse_encoding, plugin_cards
from pebench.results.tables import Table
from pebench.suites import load_suite, shipped, suite_files
from pebench.tasks import TASKS

OWN = "pebench"
"""The key of pebench itself, which its own encodings and data sets name too."""


@functools.cache
def bibliography() -> dict[str, str]:
    """Every entry, by key: those of ``references.bib``, and pebench's own."""
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=@)", text.strip())
    return {_key(entry): entry.strip() for entry in entries} | {OWN: _own()}


def _key(entry: str) -> str:
    return entry.partition("{")[2].partition(",")[0].strip()


def _own() -> str:
    """The entry of pebench, from the file by which repositories say how to cite them."""
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
    """The entries of what is named, each once.

    Args:
        names: Of encodings (also with options, as in ``"stack(first='rope')"``), tasks and suites, or ``pebench``.

    Raises:
        UserError: For a name that does not exist, or an encoding that names nothing to cite.
    """
    keys = {key for name in names for key in keys_of(name)}
    return "\n\n".join(bibliography()[key] for key in sorted(keys)) + "\n"


def keys_of(name: str) -> set[str]:
    """Keys of what to cite for an encoding, a task, or a suite: what it consists of, and pebench.

    Raises:
        UserError: For a name that does not exist, or an encoding that names nothing to cite.
    """
    if name == OWN:
        return {OWN}
    if name in TASKS:
        return set(TASKS[name].cite)
    if name in suite_files() or name.endswith(".py"):
        kinds = load_suite(name).kinds()
        tasks = {key for config in kinds for key in keys_of(config.task)}
        return {OWN} | tasks | {key for config in kinds for key in _of_encoding(config.encoding, config.encoding_args)}
    plain = name.partition("(")[0]
    if plain not in encoding_cards() and ":" not in name and plain not in plugin_cards()[0]:
        raise unknown_name("encoding, task or suite", name, [*encoding_cards(), *TASKS, *suite_files(), OWN])
    return _of_encoding(*parse_encoding(name))


def _of_encoding(name: str, options: Mapping[str, Any]) -> set[str]:
    keys = {key for part in encodings_in(name, options) for key in encoding_card(part).declared["cite"]}
    if not keys:
        raise UserError(f"encoding {name!r} names nothing to cite: its class has no attribute `cite`.")
    if unknown := keys - set(bibliography()):
        raise UserError(f"encoding {name!r} cites {min(unknown)!r}, which is not in pebench's bibliography.")
    return keys


def encodings_in(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    """The encoding called `name`, and those that it changes or joins, by their names.

    Example:
        >>> list(encodings_in("stack", {"second": "alibi"}))
        ['stack', 'add', 'alibi']
    """
    yield name
    card = encoding_card(name)
    for value in {**card.options, **options}.values() if card.declared["wraps"] else ():
        if isinstance(value, str):
            with contextlib.suppress(UserError):  # an option that names no encoding
                yield from encodings_in(*parse_encoding(value))


def cited(tables: Sequence[Table]) -> str:
    """What the results of tables stand on, in a line: the keys, and the command that prints their entries.

    Encodings that are not ours are left out: a page must not depend on which packages its reader has.
    """
    rows = [row for table in tables for row in table.rows if row.config.encoding in encoding_cards()]
    parts = {part for row in rows for part in encodings_in(row.config.encoding, row.config.encoding_args)}
    ours = sorted(parts & set(encoding_cards()))
    tasks = {table.task.name: table.task for table in tables}
    keys = {OWN}.union(*(task.cite for task in tasks.values()), *(encoding_cards()[n].declared["cite"] for n in ours))
    return f"{', '.join(sorted(keys))}; as BibTeX: `pebench cite {' '.join([OWN, *tasks, *ours])}`"
