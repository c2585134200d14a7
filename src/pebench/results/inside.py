"""Figures of an analysis: the numbers in a record's `analysis` that tables show, each with a title."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pebench.runs.records import Record

Figures = Mapping[str, Any]
"""Figures of `pebench.analyze` for one model, by measure; None for a measure that does not apply."""

Reader = Callable[[Figures], float | None]
"""A function from a measure's figures to a number; None where it is not known."""


@dataclass(frozen=True)
class Figure:
    """One number of an analysis.

    Args:
        group: Table that shows it: ``input``, ``attention``, ``ablation``, ``layers`` or ``means``.
        title: Heading of its column.
        measure: Measure that it is of.
        read: Reader of the number.
        scale: Factor of the number as it is shown: 100 for percent.
        digits: Digits after the decimal point.
    """

    group: str
    title: str
    measure: str
    read: Reader
    scale: int = 1
    digits: int = 2

    def of(self, analysis: Figures) -> float | None:
        """Return the number of one model; None where the measure does not apply or is missing."""
        found = analysis.get(self.measure)
        return self.read(found) if found else None

    def of_runs(self, records: Iterable[Record], stage: str) -> list[float]:
        """Return the number of each run that has it, ``trained`` or ``untrained``."""
        found = (self.of(record.analysis.get(stage, {})) for record in records)
        return [value for value in found if value is not None]


def _value(name: str) -> Reader:
    return lambda figures: figures.get(name)


def _mean(name: str) -> Reader:
    """Return a reader of the mean over layers and heads."""

    def read(figures: Figures) -> float | None:
        known = [value for layer in figures.get(name, ()) for value in layer if value is not None]
        return fmean(known) if known else None

    return read


def _at(name: str, layer: int) -> Reader:
    """Return a reader of the number of one layer, counted from the end if negative; None where it is not there."""

    def read(figures: Figures) -> float | None:
        values = figures.get(name) or ()
        return values[layer] if -len(values) <= layer < len(values) else None

    return read


def _second_block(figures: Figures) -> float | None:
    values = figures.get("position") or []
    return values[1] if len(values) > 2 else None  # the last is of the output, after all blocks


def _reach(figures: Figures) -> float | None:
    distance, uniform = _mean("distance")(figures), _mean("uniform")(figures)
    return distance / uniform if distance is not None and uniform else None


def _largest(name: str) -> Reader:
    """Return a reader of the largest number of all layers."""
    return lambda figures: max((value for value in figures.get(name) or () if value is not None), default=None)


PRODUCTS = (
    "content-content", "content-position", "position-content", "position-position",
    "constant-content", "constant-position",
)  # fmt: skip
"""Products of a query's part, named first, and a key's part, in attention logits; softmax ignores a key's constant."""

FIGURES = (
    Figure("input", "shared channels (%)", "energies", _value("overlap"), 100, 1),
    Figure("input", "dimensions of position", "energies", _value("position_participation"), 1, 1),
    Figure("input", "constant part of position (%)", "energies", _value("constant"), 100, 1),
    Figure("input", "alignment (1: random)", "subspaces", _value("alignment")),
    Figure("input", "shift by one, R²", "shift", _at("held_out", 0)),
    Figure("input", "collision margin", "collisions", _value("margin")),
    Figure("input", "loss without constant channels (+nats)", "constant_channels", _value("constant"), 1, 3),
    Figure("input", "loss without as many others, or all (+nats)", "constant_channels", _value("others"), 1, 3),
    *(Figure("attention", f"{name} (%)", "terms", _mean(name), 100, 1) for name in (*PRODUCTS, "bias")),
    Figure("attention", "distance (1: uniform)", "attention", _reach),
    *(Figure("ablation", f"without {name}", "ablation", _value(name), 1, 3) for name in PRODUCTS),
    Figure("layers", "position, input (%)", "probes", _at("position", 0), 100, 1),
    Figure("layers", "position, second block (%)", "probes", _second_block, 100, 1),
    Figure("layers", "position, output (%)", "probes", _at("position", -1), 100, 1),
    Figure("layers", "position's R², best layer", "probes", _largest("position_r2")),
    Figure("layers", "token, input (%)", "probes", _at("token", 0), 100, 1),
    Figure("layers", "token, output (%)", "probes", _at("token", -1), 100, 1),
    Figure("means", "without position's mean, first block (+nats)", "position_mean", _at("position", 0), 1, 3),
    Figure("means", "without another position's mean, first block (+nats)", "position_mean", _at("permuted", 0), 1, 3),
    Figure("means", "without position's mean, second block (+nats)", "position_mean", _at("position", 1), 1, 3),
    Figure("means", "without another position's mean, second block (+nats)", "position_mean", _at("permuted", 1), 1, 3),
)
"""Every number that tables show, in their order."""


def analysis_columns(analysis: Mapping[str, Figures]) -> dict[str, float | None]:
    """Return the numbers of a record's analysis by title; nothing of a run that was not analyzed."""
    return {figure.title: figure.of(analysis.get("trained", {})) for figure in FIGURES} if analysis else {}
