"""Runs without a value, and the lines in which pages list them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pebench.formatting import counted, seeds_text
from pebench.results.prose import Code, Prose


@dataclass(frozen=True)
class Absence:
    """A run without a value.

    Args:
        task: Its task.
        label: Its encoding, as in the tables.
        seed: Its seed.
        reason: Why it failed, in one line; ``None`` if there is no record of it.
        values: The settings that it was to try, in words, if it selects; empty if it tests.
        varied: The settings that make its table another than others of its task, in words.
    """

    task: str
    label: str
    seed: int
    reason: str | None = None
    values: str = ""
    varied: str = ""

    @property
    def table_name(self) -> str:
        """The task, with the settings that vary."""
        return named_with_settings(self.task, self.varied)


def named_with_settings(task: str, varied: str) -> str:
    """Return a task with the settings that make a table of it another than others.

    Example:
        >>> named_with_settings("vit-digits", ""), named_with_settings("vit-digits", "model.num_layers=2")
        ('vit-digits', 'vit-digits (model.num_layers=2)')
    """
    return f"{task} ({varied})" if varied else task


def absence_lines(absences: Iterable[Absence]) -> list[Prose]:
    """Return a line for each run that failed, then for missing runs, then for those that select.

    Rows that miss the same runs share a line.

    Args:
        absences: Absent runs of one table.

    Example:
        >>> lost = [Absence("vit-digits", "add", 7), *(Absence("vit-digits", "add", 9, values=x) for x in ("a", "b"))]
        >>> absence_lines([*lost, Absence("vit-digits", "rope", 7)])
        [('Missing: add, rope seed 7',), ('Missing: add, 2 runs that select, seed 9',)]
    """
    failed, tested, selecting = [], dict[str, list[int]](), dict[str, list[int]]()
    for absence in absences:
        if absence.reason is None:
            (selecting if absence.values else tested).setdefault(absence.label, []).append(absence.seed)
        else:
            label = f"{absence.label} ({absence.values}, selecting)" if absence.values else absence.label
            reason = absence.reason.replace("`", "'")  # a backtick would end the code that it stands in
            failed.append((f"Failed: {label} seed {absence.seed}: ", Code(reason)))
    missing = [(f"Missing: {', '.join(labels)} {seeds_text(seeds)}",) for seeds, labels in _alike(tested).items()]
    for seeds, labels in _alike(selecting).items():
        # A seed stands for several runs, one for each value that is tried; they are counted, and their seeds named
        # once.
        count = f"{counted(len(seeds), 'run')} that select{'s' * (len(seeds) == 1)}"
        each = " each" * (len(labels) > 1)
        missing.append((f"Missing: {', '.join(labels)}, {count}{each}, {seeds_text(set(seeds))}",))
    return [*failed, *missing]


def _alike(missed: dict[str, list[int]]) -> dict[tuple[int, ...], list[str]]:
    """Return the seeds that rows miss, each with the rows that miss them."""
    found = dict[tuple[int, ...], list[str]]()
    for label, seeds in missed.items():
        found.setdefault(tuple(seeds), []).append(label)
    return found


def absence_counts(absences: Sequence[Absence]) -> list[str]:
    """Return how many runs failed, and how many are missing, in words; empty where none is.

    Example:
        >>> absence_counts([Absence("vit-digits", "add", 7), Absence("vit-digits", "add", 8, "no memory")])
        ['1 run failed', '1 tested run missing']
    """
    failed = sum(absence.reason is not None for absence in absences)
    selecting = sum(absence.reason is None and bool(absence.values) for absence in absences)
    tested = len(absences) - failed - selecting
    counts = [f"{counted(failed, 'run')} failed"] if failed else []
    counts += [f"{counted(tested, 'tested run')} missing"] if tested else []
    counts += [f"{counted(selecting, 'selecting run')} missing"] if selecting else []
    return counts
