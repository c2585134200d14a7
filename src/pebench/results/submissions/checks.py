"""The checks of a submission: its rows are as the shared suite makes them, and hold nothing of anyone's machine."""

import getpass
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.encodings.registry import encoding_cards
from pebench.errors import UserError
from pebench.formatting import counted, seeds_text
from pebench.runs.plan import Plan
from pebench.runs.records import Record, without_places
from pebench.runs.suite import Suite

SHARED = "core"
"""Name of the suite whose protocol submissions share, and whose published rows they are compared with."""


@dataclass(frozen=True, eq=False)
class Shared:
    """The shared suite and its published records.

    Args:
        suite: The suite.
        records: The published records.
    """

    suite: Suite
    records: Sequence[Record]

    @cached_property
    def rows(self) -> set[tuple[str, str]]:
        """Task and label of every published row."""
        return {(record.config.task, record.config.label) for record in self.records}

    @cached_property
    def fingerprints(self) -> dict[str, set[Any]]:
        """The fingerprints that published runs of each task have of its data."""
        found: dict[str, set[Any]] = {}
        for record in filter(lambda record: record.ok, self.records):
            found.setdefault(record.config.task, set()).add(record.dataset.get("fingerprint"))
        return found

    def plan(self, config: RunConfig) -> Plan:
        """Return the runs that the suite asks of a row, by any of its runs; the encoding itself need not be here."""
        part = self.suite.part([config.task])
        (kind,) = replace(part, encodings=[self.suite.reference], contrasts=()).kinds()
        return Plan(part, [replace(kind, encoding=config.encoding, encoding_args=config.encoding_args)])


def check_submission(records: Iterable[Record], shared: Shared) -> list[Record]:
    """Return the records of a submission: the runs of its own rows, without published ones that lie beside them.

    Args:
        records: Records of a user's runs.
        shared: The shared suite.

    Raises:
        UserError: With everything that keeps them from being accepted, a line each.
    """
    rows: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        rows.setdefault((record.config.task, record.config.label), []).append(record)
    own = {place: found for place, found in rows.items() if place not in shared.rows}
    if not own:
        raise UserError(
            f"there is nothing to submit: all {counted(len(rows), 'row')} here are published in results/{SHARED}. "
            f"Run yours: pebench run --suite {SHARED} --pe {shared.suite.reference} --pe my_module:MyEncoding"
        )
    refused, kept = list[str](), list[Record]()
    for (task, label), found in sorted(own.items()):
        row = _Row(found, shared)
        refused += [f"{task} {label}: {why}" for why in row.refusals()]
        kept += row.kept
    if refused:
        raise UserError(f"{counted(len(refused), 'reason')} against this submission:\n  " + "\n  ".join(refused))
    return kept


class _Row:
    """One row of a submission: the records that the suite asks for, and what is wrong with them."""

    def __init__(self, records: Sequence[Record], shared: Shared) -> None:
        self.records, self.shared, self.config = records, shared, records[0].config
        self.kept: list[Record] = []

    def refusals(self) -> Iterator[str]:
        """Yield why the row is refused; `kept` then has its records."""
        suite = self.shared.suite
        if self.config.task not in suite.tasks:
            yield f"the suite {SHARED} has no such task; it has {', '.join(suite.tasks)}"
            return
        if older := sorted({record.protocol for record in self.records} - {PROTOCOL_VERSION}):
            yield f"made under protocol {', '.join(older)}, expected {PROTOCOL_VERSION}: make the runs again"
            return
        plan, found = self.shared.plan(self.config), {record.config.key: record for record in self.records}
        selecting, tested = plan.selecting(found), plan.testing(found)
        yield from self._missing("selecting run", selecting, found)
        if suite.select and not tested:
            yield f"no value of {', '.join(suite.select)} is chosen, as not all that the suite tries have run"
        yield from self._missing("tested run", tested, found)
        wanted = [*selecting, *tested]
        self.kept = [found[config.key] for config in wanted if config.key in found]
        for record in self.kept:
            yield from (f"seed {record.config.seed}: {why}" for why in self._faults(record))
        sources = {str(sorted(_sources(record).items())) for record in self.kept if record.ok}
        if len(sources) > 1:
            yield f"its runs were made with {len(sources)} different sources of the encoding"

    def _missing(self, what: str, wanted: Sequence[RunConfig], found: Mapping[str, Record]) -> Iterator[str]:
        """Yield a line on runs that the suite asks for and that are not here, with what is otherwise in those here."""
        missing = [config for config in wanted if config.key not in found]
        if not missing:
            return
        seeds = seeds_text({config.seed for config in missing})
        yield f"{counted(len(missing), what)} of the suite missing ({seeds}){self._otherwise(missing[0])}"

    def _otherwise(self, wanted: RunConfig) -> str:
        """Return in what the runs that are here differ from one that is asked for, if all of them do."""
        configs = [record.config for record in self.records]
        here = next((config for config in configs if config.stage == wanted.stage), configs[0])
        ours, theirs = _named_settings(wanted), _named_settings(here)
        differs = [
            f"{name}={theirs.get(name)}, expected {value}"
            for name, value in ours.items()
            if theirs.get(name) != value and name not in wanted.selected
        ]
        return f"; those here have {'; '.join(differs)}" if differs else ""

    def _faults(self, record: Record) -> Iterator[str]:
        """Yield what is wrong with one record."""
        if record.schema < 2:
            yield "its record has no checksum, as of schema 1"
        if not record.ok:
            if record.config.stage == "test":
                yield f"failed ({record.reason})"
            return  # a value that diverges is an outcome of selection
        expected, data = self.shared.fingerprints[record.config.task], record.dataset.get("fingerprint")
        if data not in expected:
            yield f"its data have the fingerprint {str(data)[:12]}, published runs have {_short(expected)}"
        if not (record.environment.get("source") or record.environment.get("commit")):
            yield "its record names no source of pebench; make it again with this version"
        if not _sources_known(record):
            yield "its record has no digest of the encoding's file: have it in a module, --pe my_module:MyEncoding"
        for name in _personal({"environment": record.environment, "error": record.error, "dataset": record.dataset}):
            yield f"{name} names a folder, the user or this machine"


def _named_settings(config: RunConfig) -> dict[str, Any]:
    selected = ", ".join(config.selected) or "nothing"
    return {"tier": config.tier, "regime": config.regime, "selected": selected, **config.settings()}


def _sources(record: Record) -> dict[str, str]:
    """Return the digest of the file of each encoding in a run that is not pebench's own, by its name."""
    plugins = record.environment.get("plugins", {})
    return {name: facts.get("sha256", "unknown") for name, facts in plugins.items()}


def _sources_known(record: Record) -> bool:
    """Return whether a record has the digest of every encoding that is not pebench's own."""
    own, sources = record.config.encoding not in encoding_cards(), _sources(record)
    return "unknown" not in sources.values() and (record.config.encoding in sources or not own)


def _short(digests: Iterable[Any]) -> str:
    return ", ".join(sorted(str(digest)[:12] for digest in digests))


def _personal(value: Any, name: str = "") -> Iterator[str]:
    """Yield the dotted names of texts that hold an absolute path, the name of this machine or that of its user."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _personal(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _personal(part, name)
    elif isinstance(value, str) and (without_places(value) != value or _names_user(value)):
        yield name


def _names_user(text: str) -> bool:
    """Return whether a text has the user's name as a word; short names are words of other meanings."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have none
        return False
    return len(user) > 3 and re.search(rf"\b{re.escape(user)}\b", text) is not None
