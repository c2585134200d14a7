"""Advice computed from a scorecard: who needs this takes that, and how sure it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pebench.results.cells import plus_minus
from pebench.results.scorecard.build import Line, Scorecard
from pebench.results.scorecard.measures import Measure
from pebench.results.scorecard.ranks import ranks
from pebench.tasks import Task


def _any(line: Line) -> bool:
    return True


@dataclass(frozen=True)
class Need:
    """A thing that a reader needs.

    Args:
        text: The need in words.
        measure: Key of the column that decides.
        serves: True for encodings that come into question.
    """

    text: str
    measure: str
    serves: Callable[[Line], bool] = _any


def _fused(line: Line) -> bool:
    return line.fused is True


def _cached(line: Line) -> bool:
    return line.kv_cache == "works"


def _free(line: Line) -> bool:
    return line.parameters == 0


LONG, LARGE = "a language model that reads texts four times as long", "a vision transformer for 1.5 times the side"
NEEDS = (
    Need("a language model at its trained length", "language"),
    Need(LONG, "language-4x"),
    Need(f"{LONG}, with a fused attention kernel", "language-4x", _fused),
    Need(f"{LONG}, with a KV cache", "language-4x", _cached),
    Need("a vision transformer at its trained size", "images"),
    Need(LARGE, "images-1.5x"),
    Need(f"{LARGE}, with a fused attention kernel", "images-1.5x", _fused),
    Need(f"{LARGE}, without parameters", "images-1.5x", _free),
    Need("places counted from the start", "absolute"),
    Need("distances", "relative"),
    Need("distances from a token that is found by its content", "indirect"),
    Need("recall of what stood with a key", "recall"),
    Need("a state of two values along a sequence", "state"),
    Need("a state of sixty values along a sequence", "product"),
    Need("distances on a grid", "nearest"),
    Need("directions on a grid", "pointed"),
)
"""The needs of the page. A new one is a line here."""


@dataclass(frozen=True)
class Advice:
    """The encoding to take for a need.

    Args:
        need: The need in words.
        take: The encoding with the best mean; several if their means are equal.
        result: Its mean and interval, with the metric; that of the first of several.
        as_good: Other encodings than which none is separably better, the best first.
        among: Number of encodings that were compared.
        fewest: Seeds of the row that has fewest.
    """

    need: str
    take: tuple[str, ...]
    result: str
    as_good: tuple[str, ...]
    among: int
    fewest: int

    @property
    def certainty(self) -> str:
        """How sure it is, in a sentence."""
        if self.among == 1:
            return "the only one measured"
        if self.as_good or len(self.take) > 1:
            best = f"best mean of {self.among}" if len(self.take) == 1 else f"equal, the best means of {self.among}"
            others = f"; these may be the best too: {', '.join(self.as_good)}" if self.as_good else ""
            return best + others
        return f"the only one of {self.among} that may be the best"


def advice(card: Scorecard) -> Iterator[Advice]:
    """Yield what to take for each need of which anything is measured; not for conditions that every row meets."""
    measures = {measure.key: measure for measure in card.measures}
    for need in NEEDS:
        if need.measure in measures and (found := _take(need, measures[need.measure], card)):
            yield found


def result_unit(task: Task) -> str:
    """Return the unit of a task's headline metric: ``bits per byte``, or ``% accuracy``."""
    return f"{'% ' * task.percent}{task.metric.replace('_', ' ')}"


def _take(need: Need, measure: Measure, card: Scorecard) -> Advice | None:
    measured = [line for line in card.lines if line.entries[measure.key].estimate]
    entries = {line.label: line.entries[measure.key] for line in measured if need.serves(line)}
    if not entries or (need.serves is not _any and len(entries) == len(measured)):
        return None
    task = measure.card
    found = ranks({label: entry.values for label, entry in entries.items()}, task.higher_is_better)
    best = tuple(label for label, rank in found.items() if rank.place == 1)
    estimate = entries[best[0]].estimate
    assert estimate is not None
    return Advice(
        need=need.text,
        take=best,
        result=f"{plus_minus(estimate, task.scale, task.digits)} {result_unit(task)}",
        as_good=tuple(label for label in found if label not in best and found[label].first == 1),
        among=len(entries),
        fewest=min(len(entry.values) for entry in entries.values()),
    )
