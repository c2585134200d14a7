"""The record of one run, and its layout in JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.errors import UserError

SCHEMA = 1
"""Version of a record's layout."""

FILE_NAME = "record.json"
"""File name of the record of a run that finished. A failure never replaces it."""

FAILURE = "failure.json"
"""File name of the record of a run that failed; it is deleted when the run finishes."""

WEIGHTS = "weights.safetensors"
"""File name of the weights that a run was tested with, where they are kept."""

DAMAGE = (ValueError, KeyError, TypeError, AttributeError, UserError)
"""Exceptions that reading something else than a record can raise."""


@dataclass(frozen=True)
class Record:
    """The outcome of one run, with all that a table needs to know of it.

    Args:
        config: The resolved configuration.
        status: ``ok`` or ``failed``.
        metrics: Test metrics of the weights that validation chose (``test/accuracy``), the best validation
            metrics (``val/loss``) and the step they were reached at (``best_step``).
        curve: Validation and training metrics along the run, each point with its ``step``.
        parameters: Numbers of trained parameters: ``encoding`` and ``total``.
        flops_per_sample: Floating-point operations to train on one sample once, forward and backward; for texts, on one
            of the median length.
        throughput: Samples (images, texts, windows of tokens) trained on in a second, validation excluded.
        peak_memory_gib: Largest resident memory of the process while it trained, or of the accelerator if one was used.
        duration_s: Wall-clock time of the whole run.
        dataset: ``fingerprint`` (SHA-256 of the prepared data), ``sizes`` per split, ``padding`` (share of the
            tokens in a training epoch that are padding).
        environment: ``versions``, ``commit``, ``device``, ``devices``, ``threads``, ``precision``, ``compiled``,
            ``attention`` (kernel), and ``plugins`` and ``task``, where an encoding or the task is a plug-in.
        started: Start of the run, in UTC, as ISO 8601.
        error: For a failed run: its ``kind``, the ``reason`` in one line and the ``log``'s tail.
        protocol: Version of the rules.
        schema: Version of this layout.
        matched_flops: Like `flops_per_sample`, but for a sample of full length in a training step, whose samples share
            some of the work: the regime ``FLOPs`` matches rows by it.
        position_shares: Share of the variance between positions in what enters each block and, last, the output layer:
            ``untrained`` and ``trained``. See `pebench.training.position_share`.
    """

    config: RunConfig
    status: str = "ok"
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Sequence[Mapping[str, float]] = field(default_factory=list)
    parameters: Mapping[str, int] = field(default_factory=dict)
    flops_per_sample: int | None = None
    throughput: float | None = None
    peak_memory_gib: float | None = None
    duration_s: float | None = None
    dataset: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    error: Mapping[str, str] | None = None
    protocol: str = PROTOCOL_VERSION
    schema: int = SCHEMA
    matched_flops: int | None = None
    position_shares: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if the run finished and was tested."""
        return self.status == "ok"

    @property
    def diverged(self) -> bool:
        """True if the run failed because its loss was no longer a finite number."""
        return not self.ok and (self.error or {}).get("kind") == "diverged"

    @property
    def reason(self) -> str:
        """The reason why the run failed, in one line."""
        return " ".join((self.error or {}).get("reason", "").split()) or "no reason recorded"

    @property
    def identity(self) -> tuple[str, str]:
        """Protocol and key, which two records of the same run share."""
        return self.protocol, self.config.key

    def to_dict(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the record as plain JSON values.

        Args:
            config: The `to_dict` of its configuration, where it is known already.
        """
        # `dataclasses.asdict` would copy each point of every curve.
        return vars(self) | {"key": self.config.key, "config": config or self.config.to_dict()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Record":
        """Return the record that `to_dict` wrote.

        Raises:
            UserError: If its configuration cannot work.
            TypeError: If a field is of another kind than reports take for granted.
            ValueError: If its start has no time zone.
        """
        rest = {name: value for name, value in values.items() if name not in ("config", "key")}
        return checked(Record(config=RunConfig.from_dict(values["config"]), **rest))


def checked(record: Record) -> Record:
    """Return the same record, if its fields are of the kinds that reports take for granted.

    Raises:
        TypeError: If one is not.
        ValueError: If the time at which the run was started has no zone.
    """
    # What reports index into without looking. A file edited by hand should fail here, by its name, not in some table.
    for name in ("metrics", "parameters", "dataset", "environment", "position_shares", "error"):
        value = getattr(record, name)
        if not isinstance(value, Mapping) and not (name == "error" and value is None):
            raise TypeError(f"expected {name} as names and values, got {value!r}")
    if not all(isinstance(value, int | float) for value in record.metrics.values()):
        raise TypeError(f"expected numbers as metrics, got {dict(record.metrics)}")
    # Pages compare it with the time at which a suite was declared; without a zone that would be an exception.
    if record.started and datetime.fromisoformat(record.started).tzinfo is None:
        raise ValueError(f"expected the time at which the run was started with its zone, got {record.started!r}")
    return record
