"""The record of one run, and its layout in JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.errors import UserError
from pebench.formatting import MOST, cut, printable, quoted
from pebench.runs.records.schema import CHECKSUM, check_fields, checksum

SCHEMA = 2
"""Version of a record's layout. Since 2 it has a checksum; those of 1 stay as they are, and have none."""

PARTS = 4
"""Parts of the trained length; a loss by position has a mean for each, and goes on so in longer windows."""

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
            tokens in a training epoch that are padding), and ``chance`` (the headline metric on the test split of the
            best constant prediction) where the task does not declare it.
        environment: ``versions``, ``commit``, ``source`` (SHA-256 of pebench's code), ``device``, ``devices``,
            ``threads``, ``precision``, ``compiled``, ``attention`` (kernel), and ``plugins`` and ``task``, where an
            encoding or the task is a plug-in.
        started: Start of the run, in UTC, as ISO 8601.
        error: For a failed run: its ``kind``, the ``reason`` in one line and the ``log``'s tail.
        protocol: Version of the rules.
        schema: Version of this layout.
        matched_flops: Like `flops_per_sample`, but for a sample of full length in a training step, whose samples share
            some of the work: the regime ``FLOPs`` matches rows by it.
        position_shares: Share of the variance between positions in what enters each block and, last, the output layer:
            ``untrained`` and ``trained``. See `pebench.training.position_share`.
        beyond: The encoding's ``policy`` at sizes that it was not trained at and, of language models, the loss there
            ``by_position``, as `pebench.training.by_position` finds it; empty in older records.
        analysis: Figures of `pebench.analyze` by measure, ``trained`` and ``untrained``; empty where not asked for.
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
    analysis: Mapping[str, Any] = field(default_factory=dict)
    beyond: Mapping[str, Any] = field(default_factory=dict)

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
        text = " ".join((self.error or {}).get("reason", "").split())
        return cut(printable(text), MOST) or "no reason recorded"  # it may have what a library printed in colour

    @property
    def identity(self) -> tuple[str, str]:
        """Protocol and key, which two records of the same run share."""
        return self.protocol, self.config.key

    @property
    def checksum(self) -> str:
        """SHA-256 of the record's content, which tells it from every other record of the same run."""
        values = self.to_dict()
        return str(values.get(CHECKSUM) or checksum(values))

    def to_dict(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the record as plain JSON values.

        Args:
            config: The `to_dict` of its configuration, where it is known already.
        """
        # `dataclasses.asdict` would copy each point of every curve.
        values = vars(self) | {"key": self.config.key, "config": config or self.config.to_dict()}
        for name in ("analysis", "beyond"):
            if not values[name]:
                del values[name]  # records from before it stay as they are, to the byte
        return values | {CHECKSUM: checksum(values)} if self.schema > 1 else values

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Record":
        """Return the record that `to_dict` wrote.

        Raises:
            UserError: If its checksum or its key is another, its configuration cannot work, or a field is not what it
                may be.
        """
        rest = dict(values)
        check_whole(rest)
        config, key = RunConfig.from_dict(rest.pop("config")), rest.pop("key", None)
        check_fields(rest)
        record = Record(config=config, **rest)
        check_key(record, key)
        return record


def check_whole(values: dict[str, Any]) -> None:
    """Take the checksum out of a record's values, and refuse them if it is another than theirs.

    Raises:
        UserError: If a record since schema 2 has no checksum or another one, or it is of a newer schema.
    """
    if not isinstance(values.get("config"), Mapping):
        raise UserError("it has no configuration.")
    schema, found = values.setdefault("schema", 1), values.pop(CHECKSUM, None)
    if schema == 1 and found is None:
        return
    if type(schema) is int and schema > SCHEMA:
        raise UserError(f"it is of schema {schema}, which a newer pebench made; this one reads up to {SCHEMA}.")
    if found != checksum(values):
        raise UserError(
            "its checksum is not that of its content: it was damaged, or changed by hand. What is to change in a "
            "record is changed in Python, by dataclasses.replace and pebench.runs.records.write_record."
        )


def check_key(record: Record, key: Any) -> None:
    """Refuse a record whose key is not that of its configuration; keys of another protocol cannot be made again.

    Raises:
        UserError: With both keys.
    """
    if record.protocol == PROTOCOL_VERSION and key is not None and key != record.config.key:
        raise UserError(f"its key is {quoted(key)}, and that of its configuration {record.config.key!r}.")


def damage_text(error: Exception) -> str:
    """Return what is wrong with a record, in a line, by the exception of `DAMAGE` that reading it raised."""
    text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return cut(printable(" ".join(text.split())).rstrip("."), MOST)
