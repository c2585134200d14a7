"""The results of runs in Python: as records, a data frame, tables in text or HTML, and pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebench.config import REFERENCE_ENCODING, RunConfig
from pebench.errors import UserError, given_path
from pebench.formatting import counted
from pebench.results.inside import analysis_columns
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.runs.suite import Suite

if TYPE_CHECKING:
    import pandas

    from pebench.results.page import Page

WIDTH = 120
"""Width of a table as text, in characters."""


@dataclass(frozen=True, eq=False)
class Results:
    """The records of runs, and what can be made of them.

    Args:
        records: Records of finished and failed runs, those that selected settings too.
        suite: The suite that the runs were made for, if any.
        missing: Planned runs without a record, as another scheduler makes them.
        untested: Rows that are not tested, as no setting could be chosen for them.
    """

    records: Sequence[Record]
    suite: Suite | None = None
    missing: Sequence[RunConfig] = ()
    untested: Sequence[RunConfig] = ()

    @property
    def failed(self) -> list[Record]:
        """The records of runs that failed."""
        return [record for record in self.records if not record.ok]

    @property
    def complete(self) -> bool:
        """True if every planned row is tested and no tested run has failed."""
        tested = [record for record in self.records if record.config.stage == "test"]
        return not self.missing and not self.untested and all(record.ok for record in tested)

    @property
    def reference(self) -> str:
        """Label of the row that the others are compared to."""
        return self.suite.reference if self.suite else REFERENCE_ENCODING

    def to_frame(self, every: bool = False) -> "pandas.DataFrame":
        """Return a data frame with one row a run, in the units of the records: an accuracy is a share of 1.

        Its rows are the runs that the tables count, so that means over it are those of the tables.

        Its columns are the task, encoding and seed, the settings that differ between the runs, the metrics
        (``test accuracy``, ``test bits per byte``), and the cost: parameters, FLOPs, throughput, memory, duration.

        Args:
            every: Include the runs that selected settings, which are never tested, and those tested with a value that
                was chosen when fewer had been tried.
        """
        import pandas

        shown = self.records if every else self._counted()
        settings = [_settings(record.config) for record in shown]
        varied, metrics = _varied(settings), _metrics(shown)
        rows = []
        for record, values in zip(shown, settings, strict=True):
            rows.append(_row(record, {name: values.get(name) for name in varied}, metrics))
        return pandas.DataFrame(rows)

    def _counted(self) -> list[Record]:
        """Return the tested runs, without those whose values are no longer chosen."""
        tested = [record for record in self.records if record.config.stage == "test"]
        if not any(record.config.selected for record in tested):
            return tested
        # By the page, so that the frame and the tables never count different runs.
        superseded = {record.identity for table in self.page.tables for record in table.superseded}
        return [record for record in tested if record.identity not in superseded]

    def table(self, width: int = WIDTH) -> str:
        """Return the tables that ``pebench run`` prints: mean and interval over seeds, difference and verdict.

        Args:
            width: Width in characters; columns that do not fit are left out.

        Raises:
            UserError: If no run was tested.
        """
        from rich.console import Console

        from pebench.results.writers.terminal import terminal

        self._check_tested()
        text = StringIO()
        terminal(self.records, Console(file=text, width=width), self.reference)
        return text.getvalue().strip("\n")

    def report(self, path: Path | str) -> Path:
        """Write a page of the results, in the format of the file's suffix.

        Args:
            path: The file to write: ``.html``, ``.md``, ``.tex``, ``.csv``, ``.json``, or ``.jsonl`` for the records.

        Returns:
            The file.

        Raises:
            UserError: If there is no such format, or no run was tested.
        """
        from pebench.results.publish import ENDINGS, FORMATS  # here: a command that prints no page needs no writer

        path = given_path("path", path)
        writers = {ENDINGS.get(name, f".{name}"): write for name, write in FORMATS.items()}
        if path.suffix not in (*writers, ".jsonl"):
            raise UserError(f"expected a file that ends in {', '.join([*writers, '.jsonl'])}, got {str(path)!r}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl":
            write_jsonl(list(self.records), path)
            return path
        self._check_tested()
        path.write_text(writers[path.suffix](self.page), encoding="utf-8")
        return path

    @cached_property
    def page(self) -> "Page":
        """The page of the results; tables whose rows break their regime are marked."""
        from pebench.results.page import Page

        # A suite without a question is the one that `run` makes of its arguments: nothing was declared with it.
        declared = self.suite if self.suite and self.suite.question else None
        known = any(record.config.label == self.reference for record in self.records)
        # A reference that has no run yet leaves out differences here, where a page that is asked for it refuses.
        reference = self.reference if known and not declared else None
        return Page.of(self.records, declared, allow_unmatched=True, reference=reference)

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        tasks = ", ".join(dict.fromkeys(record.config.task for record in self.records))
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<Results: {counted(len(self.records), 'run')}{tasks and f' of {tasks}'}{failed}>"

    def _repr_html_(self) -> str:
        """Return a compact table for each task, which a notebook shows."""
        from pebench.results.grids import costs, results
        from pebench.results.titles import title

        parts = [f"<p>{escape(repr(self).strip('<>'))}</p>"]
        for table in self.page.tables if self.records else ():
            found = results(table, self.page)
            costly = costs(table)
            # The numbers of parameters: throughput and memory on whatever machine has the notebook say little.
            shown = {**found, **{name: costly[name] for name in list(costly)[:2]}}
            parts.append(_html_table(title(table), {name: column.texts for name, column in shown.items()}))
        return "\n".join(parts)

    def _check_tested(self) -> None:
        """Refuse to make tables of nothing.

        Raises:
            UserError: If no run was tested.
        """
        if not any(record.config.stage == "test" for record in self.records):
            raise UserError(f"there is nothing to show: none of {counted(len(self.records), 'run')} was tested.")


def load_results(source: Path | str, suite: Suite | None = None) -> Results:
    """Read the results of runs.

    Args:
        source: An output folder, a ``.jsonl`` file of records, or a folder that holds such files.
        suite: The suite that the runs were made for, whose question and margin the pages show.

    Raises:
        UserError: If there are no records, or some cannot be read.
    """
    return Results(read_records(given_path("source", source)), suite)


def _settings(config: RunConfig) -> dict[str, Any]:
    """Return what may differ between runs of an encoding and seed: tier, regime, stage, and settings by dotted name."""
    return {"tier": config.tier, "regime": config.regime, "stage": config.stage, **config.settings()}


def _varied(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of settings that have more than one value."""
    names = list(dict.fromkeys(name for values in settings for name in values))
    # Compared as text: lists cannot be in a set, and 1 and True are equal to Python.
    return [name for name in names if len({repr(values.get(name)) for values in settings}) > 1]


def _metrics(records: Iterable[Record]) -> list[str]:
    """Return the names of all metrics of some records, those of the test split first."""
    names = dict.fromkeys(name for record in records for name in record.metrics)
    return sorted(names, key=lambda name: not name.startswith("test/"))


def _row(record: Record, varied: Mapping[str, Any], metrics: Iterable[str]) -> dict[str, Any]:
    """Return a run's row: column name to value, None where the run has none."""
    config = record.config
    row: dict[str, Any] = {"task": config.task, "encoding": config.label, "seed": config.seed, **varied}
    row["status"] = record.status
    for name in metrics:
        row[_words(name)] = record.metrics.get(name)
    row |= {
        **analysis_columns(record.analysis),
        "parameters": record.parameters.get("total"),
        "encoding parameters": record.parameters.get("encoding"),
        "FLOPs per sample": record.flops_per_sample,
        "samples per second": record.throughput,
        "peak memory (GiB)": record.peak_memory_gib,
        "duration (s)": record.duration_s,
        "error": None if record.ok else record.reason,
        "key": config.key,
    }
    return row


def _words(metric: str) -> str:
    """Return the name of a metric in words.

    Example:
        >>> _words("test/bits_per_byte"), _words("val/loss"), _words("test/loss@2x"), _words("test/loss@shuffled")
        ('test bits per byte', 'validation loss', 'test loss at 2x', 'test loss, shuffled')
    """
    name, _, variant = metric.partition("@")
    if name.startswith("val/"):
        name = name.replace("val/", "validation/")
    words = name.replace("/", " ").replace("_", " ")
    if not variant:
        return words
    return f"{words} at {variant}" if variant[0].isdigit() else f"{words}, {variant}"


def _html_table(caption: str, columns: Mapping[str, Iterable[str]]) -> str:
    """Return columns of text as an HTML table."""
    lines = [f"<table><caption>{escape(caption)}</caption>"]
    lines.append("<tr>" + "".join(f"<th>{escape(name)}</th>" for name in columns) + "</tr>")
    for cells in zip(*columns.values(), strict=True):
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])
