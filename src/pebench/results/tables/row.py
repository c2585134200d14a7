"""One row of a table: the runs of one encoding, their mean, and their difference to the reference."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from pebench.config import RunConfig
from pebench.results.stats import Difference, Estimate
from pebench.results.tables.settings import row_settings
from pebench.results.verdicts import Verdict
from pebench.runs.records import Record


@dataclass(frozen=True)
class Row:
    """The runs of one encoding.

    Args:
        label: The encoding with its options: ``concat (d_p=16)``.
        records: Records by seed, failed ones too.
        values: Seed to the headline metric of the runs that finished.
        failed: Seed to the reason of the runs that did not finish.
        estimate: Mean and interval of `values`.
        difference: Paired difference to the reference row, where both have values.
        p_adjusted: The difference's p-value after Holm's correction over the table.
        verdict: The finding on the difference; ``None`` without one.
    """

    label: str
    records: tuple[Record, ...]
    values: dict[int, float]
    failed: dict[int, str]
    estimate: Estimate | None
    difference: Difference | None = None
    p_adjusted: float | None = None
    verdict: Verdict | None = None

    @property
    def config(self) -> RunConfig:
        """The configuration of the first run; the others differ by seed alone."""
        return self.records[0].config

    @property
    def own(self) -> dict[str, Any]:
        """The settings that may differ between rows: those selected, and those that match the regime."""
        return self.config.values_of(row_settings(self.config))

    @cached_property
    def finished(self) -> list[Record]:
        """The records of `values`."""
        return [record for record in self.records if record.config.seed in self.values]

    def known(self, get: Callable[[Record], Any]) -> list[Any]:
        """Return a quantity of every finished run that has it."""
        return [x for x in map(get, self.finished) if x is not None]

    def mean(self, get: Callable[[Record], float | None]) -> float | None:
        """Return the mean of `known`; ``None`` if there is nothing."""
        known = self.known(get)
        return fmean(known) if known else None

    def largest(self, get: Callable[[Record], Any]) -> Any:
        """Return the largest of `known`; ``None`` if there is nothing."""
        return max(self.known(get), default=None)

    @property
    def perplexity(self) -> float | None:
        """Mean test perplexity; ``None`` where the task has none."""
        return self.mean(lambda r: r.metrics.get("test/perplexity"))

    def extrapolation(self, metric: str) -> dict[str, dict[int, float]]:
        """Return a test metric at other lengths or resolutions than in training.

        Args:
            metric: Its name without the split.

        Returns:
            The size (``2x``, or a control such as ``shuffled``) to seed to value.
        """
        prefix = f"test/{metric}@"
        return {name.removeprefix(prefix): seeds for name, seeds in self._at_sizes.items() if name.startswith(prefix)}

    @cached_property
    def _at_sizes(self) -> dict[str, dict[int, float]]:
        """Every finite metric at another size, by its name in records, to seed to value."""
        found: dict[str, dict[int, float]] = {}
        for record in self.finished:
            for name, value in record.metrics.items():
                # At several times the trained length a loss may be infinite; that is left out, and the cell says of how
                # many seeds it is.
                if "@" in name and math.isfinite(value):
                    found.setdefault(name, {})[record.config.seed] = value
        return found

    @cached_property
    def position_shares(self) -> dict[str, dict[int, Sequence[float | None]]]:
        """Position variance shares: ``untrained`` and ``trained`` to seed to the share before each block and output."""
        shares: dict[str, dict[int, Sequence[float | None]]] = {"untrained": {}, "trained": {}}
        for record in self.finished:
            for stage, of_seed in shares.items():
                if stage in record.position_shares:
                    of_seed[record.config.seed] = record.position_shares[stage]
        return shares

    @cached_property
    def costs(self) -> dict[str, Any]:
        """Parameters, operations, throughput and memory by name; ``None`` where no run has them."""
        return {
            # Equal in all runs of a row, or a warning says so; of unequal ones the largest is no understatement.
            "parameters_encoding": self.largest(lambda r: r.parameters.get("encoding")),
            "parameters_total": self.largest(lambda r: r.parameters.get("total")),
            "flops_per_sample": self.largest(lambda r: r.flops_per_sample),
            "throughput": self.mean(lambda r: r.throughput),
            "peak_memory_gib": self.largest(lambda r: r.peak_memory_gib),
        }
