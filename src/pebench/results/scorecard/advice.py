"""Advice computed from a scorecard: who needs this takes that, and how sure it is."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pebench.formatting import shortened
from pebench.results.cells import plus_minus
from pebench.results.scorecard.build import Line, Scorecard
from pebench.results.scorecard.measures import Measure
from pebench.results.scorecard.ranks import ranks, separable_pairs
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


TEXT, LONG = "a language model at its trained length", "a language model that reads texts four times as long"
SLIDING = "texts longer than the trained length, read in overlapping windows"
LARGE = "a vision transformer for images 1.5 times as wide and high"
NEEDS = (
    Need(TEXT, "language"),
    Need(f"{TEXT}, with a fused attention kernel", "language", _fused),
    Need(f"{TEXT}, with a KV cache", "language", _cached),
    Need(LONG, "language-4x"),
    Need(f"{LONG}, with a fused attention kernel", "language-4x", _fused),
    Need(f"{LONG}, with a KV cache", "language-4x", _cached),
    Need(SLIDING, "language-sliding"),
    Need(f"{SLIDING}, with a fused attention kernel", "language-sliding", _fused),
    Need("a vision transformer at its trained size", "images"),
    Need(LARGE, "images-1.5x"),
    Need(f"{LARGE}, with a fused attention kernel", "images-1.5x", _fused),
    Need(f"{LARGE}, without parameters", "images-1.5x", _free),
    Need("looking up a token by its index", "absolute"),
    Need("looking up a token at a given distance", "relative"),
    Need("a token at a distance from a mark", "indirect"),
    Need("recalling the value that came with a key", "recall"),
    Need("tracking a state of two values", "state"),
    Need("tracking a state of sixty values", "product"),
    Need("distances on a grid", "nearest"),
    Need("directions on a grid", "pointed"),
)
"""The needs of the page. A new one is a line here."""

TOKENS, PATCHES = 1024, 256
"""Sizes at which advice gives the time of a training step, for texts and for images."""

MOST_NAMED = 6
"""Encodings not separable from the best one that a sentence names; further ones are counted."""


@dataclass(frozen=True)
class Advice:
    """The encoding to take for a need.

    Args:
        need: The need in words.
        take: The encoding with the best mean; several if their means are equal.
        result: Its mean and interval, with the metric; that of the first of several.
        as_good: Encodings that are not separable from it, the best first, each with its mean as text.
        among: Number of encodings that were compared.
        fewest: Seeds of the row that has fewest.
        step_time: Time of a training step with it over one with ``none``, in words; empty for generated data, and where
            it was not measured.
    """

    need: str
    take: tuple[str, ...]
    result: str
    as_good: Mapping[str, str]
    among: int
    fewest: int
    step_time: str = ""

    @property
    def certainty(self) -> str:
        """How sure it is, in a sentence."""
        if self.among == 1:
            return "the only one measured"
        others = self.among - len(self.take)
        if not self.as_good and others:
            return f"{'equal means, ' * (len(self.take) > 1)}separably better than the other {others}"
        if len(self.take) > 1:
            best, them = f"equal means, the best of {self.among}", "them"
        else:
            best, them = f"best mean of {self.among}", "it"
        near = ", ".join(shortened([f"{label} ({mean})" for label, mean in self.as_good.items()], MOST_NAMED, "more"))
        return f"{best}; not separable from {them}: {near}" if near else best


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
    measured = [line for line in card.lines if line.entries[measure.key].rank]
    entries = {line.label: line.entries[measure.key] for line in measured if need.serves(line)}
    if not entries or (need.serves is not _any and len(entries) == len(measured)):
        return None
    task = measure.card
    values = {label: entry.values for label, entry in entries.items()}
    means = {label: entry.estimate for label, entry in entries.items() if entry.estimate}
    pairs = [*separable_pairs(values, task.higher_is_better)]
    found = ranks(values, task.higher_is_better, pairs)
    best = tuple(label for label, rank in found.items() if rank.place == 1)
    apart = {*map(frozenset, pairs)}
    near = [label for label in found if label not in best and any({take, label} not in apart for take in best)]
    return Advice(
        need=need.text if measure.real else f"{need.text} ({measure.group})",
        take=best,
        result=f"{plus_minus(means[best[0]], task.scale, task.digits)} {result_unit(task)}",
        as_good={label: f"{task.scale * means[label].mean:.{task.digits}f}" for label in near},
        among=len(entries),
        fewest=min(len(entry.values) for entry in entries.values()),
        step_time=_step_time(next(line for line in measured if line.label == best[0]), task) if measure.real else "",
    )


def _step_time(line: Line, task: Task) -> str:
    cost = line.image_costs[PATCHES] if task.image else line.costs[TOKENS]
    size = f"{PATCHES:,} patches" if task.image else f"{TOKENS:,} tokens"
    return "" if cost.time is None else f"{cost.time:.2f} times none's at {size}"
