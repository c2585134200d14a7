"""The columns of the scorecard: tasks, at the trained size and beyond it."""

from dataclasses import dataclass

from pebench.tasks import Task, find_task

SLIDING = "sliding"
"""A long text, read in windows of the trained length that overlap by half."""

REAL = ("Language", "Images")
"""Groups of columns whose data are not generated."""


@dataclass(frozen=True)
class Measure:
    """A column: the headline metric of a task, at the trained size or at another.

    Args:
        key: Name in files and addresses.
        group: The heading that it shares with others.
        title: The column's own heading.
        task: The task's name.
        tier: The budget of its runs.
        size: The size of its test split, as ``4x``, or `SLIDING`; empty for the trained size.
    """

    key: str
    group: str
    title: str
    task: str
    tier: str
    size: str = ""

    @property
    def real(self) -> bool:
        """True if its data are not generated."""
        return self.group in REAL

    @property
    def beyond(self) -> bool:
        """True for a test at another size than the trained one."""
        return self.size not in ("", SLIDING)

    @property
    def card(self) -> Task:
        """The task."""
        return find_task(self.task)


def _pair(key: str, group: str, task: str, tier: str, size: str, beyond: str) -> tuple[Measure, Measure]:
    """Return the columns of a task at the trained size and beyond it."""
    return (
        Measure(key, group, "as trained", task, tier),
        Measure(f"{key}-{size}", group, beyond, task, tier, size),
    )


MEASURES: tuple[Measure, ...] = (
    *_pair("language", "Language", "lm-wikitext2", "core", "4x", "4 times as long"),
    Measure("language-sliding", "Language", "in overlapping windows", "lm-wikitext2", "core", SLIDING),
    *_pair("images", "Images", "vit-cifar10", "core", "1.5x", "1.5 times the side"),
    *_pair("absolute", "Lookup by index", "seq-lookup-index", "minute", "4x", "4 times as long"),
    *_pair("relative", "Lookup by distance", "seq-lookup-offset", "minute", "4x", "4 times as long"),
    *_pair("indirect", "Lookup from a mark", "seq-what-where", "minute", "4x", "4 times as long"),
    *_pair("recall", "Recall", "seq-recall", "minute", "4x", "4 times as long"),
    *_pair("state", "Parity", "seq-parity", "minute", "4x", "4 times as long"),
    *_pair("product", "Word problem", "seq-a5", "minute", "4x", "4 times as long"),
    *_pair("nearest", "Three cells", "vit-three-cells", "minute", "1.5x", "1.5 times the side"),
    *_pair("pointed", "Relative cell", "vit-relative-cell", "minute", "1.5x", "1.5 times the side"),
)
"""The columns. A new one is a line here."""
