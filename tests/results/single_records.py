"""Records of single runs, their folders, and answers of the command line."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pebench.config import RunConfig
from pebench.runs.records import Record, write_config, write_jsonl, write_record
from pebench.tasks import TASKS, configure

DATASET = {"fingerprint": "0123456789abcdef" * 4, "sizes": {"train": 3}, "padding": None}


ENVIRONMENT = {"versions": {"torch": "2.6.0"}, "device": "cpu: Some Processor", "threads": 1}


LOG = "step 11 loss 3.2\nstep 12 loss nan\nRuntimeError: it diverged"


def run(encoding: str, seed: int, value: float | None = 0.5, task: str = "vit-digits", **changes: Any) -> Record:
    """A record of a run that finished with this headline metric, or failed if it is None."""
    config = configure(task, encoding, seed, "smoke", changes.pop("settings", {}), changes.pop("args", {}))
    if value is None:
        error = {"kind": "diverged", "reason": "loss is nan at step 12", "log": LOG}
        return Record(config, status="failed", error=error, duration_s=1.0)
    metrics = {f"test/{TASKS[task].metric}": value, "val/loss": 1 - value / 10}
    usual = {"metrics": metrics, "duration_s": 120.0, "dataset": DATASET, "environment": ENVIRONMENT}
    return Record(config, **(usual | changes))


def runs(encoding: str, values: dict[int, float | None], **changes: Any) -> list[Record]:
    return [run(encoding, seed, value, **changes) for seed, value in values.items()]


def selecting(rate: float, loss: float) -> Record:
    config = configure("vit-digits", "add", 1_000_000, "smoke", {"train.learning_rate": rate})
    return Record(replace(config, stage="select", selected=("train.learning_rate",)), metrics={"val/loss": loss})


def write(records: list[Record], out: Path) -> Path:
    for record in records:
        write_record(record, out)
    return out


def collected(records: list[Record], path: Path) -> Path:
    write_jsonl(records, path)
    return path


def begun(config: RunConfig, out: Path) -> Path:
    """The folder of a run that has no record yet."""
    return write_config(config, out).parent


@dataclass
class Answer:
    """What a command printed, and how it ended."""

    code: int
    text: str
    error: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def row(self, *first: str) -> list[str]:
        """The cells of the one line of a table that begins like this."""
        found = [re.split(r" {2,}", line.strip()) for line in self.lines]
        (cells,) = [cells for cells in found if tuple(cells[: len(first)]) == first]
        return cells[len(first) :]


Ask = Callable[..., Answer]
