"""Costs of a training step with each encoding, as the study `encoding_costs` publishes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pebench.errors import UserError

FILE = Path("studies") / "encoding_costs.json"
"""Place of the figures in a folder of published results."""

LENGTHS = (256, 1024, 4096)
"""Numbers of tokens of the scorecard's columns."""


@dataclass(frozen=True)
class Cost:
    """Cost of a training step over one with ``none``.

    Args:
        time: Its seconds; ``None`` where they were not measured.
        memory: Its peak of memory, likewise.
        why: Reason why there is none where it was tried; else empty.
    """

    time: float | None = None
    memory: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Costs:
    """Costs of encodings on causal text.

    Args:
        device: ``cpu`` or ``cuda``; empty where nothing was measured.
        cells: Encoding to number of tokens to cost.
    """

    device: str = ""
    cells: Mapping[str, Mapping[int, Cost]] = field(default_factory=dict)

    def of(self, label: str) -> dict[int, Cost]:
        """Return the costs of an encoding at each of `LENGTHS`."""
        return {tokens: self.cells.get(label, {}).get(tokens, Cost()) for tokens in LENGTHS}


def read_costs(folder: Path) -> Costs:
    """Return the costs in a folder of published results; none where it has no such file.

    Raises:
        UserError: If the file is not what the study writes.
    """
    path = folder / FILE
    if not path.is_file():
        return Costs()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cells = {
            label: {int(tokens): _cost(cell) for tokens, cell in kinds.get("text", {}).items()}
            for label, kinds in found["costs"].items()
        }
        return Costs(found["device"], cells)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected figures of the study encoding_costs, got something else ({type(error).__name__}: "
            f"{error}). Make it again: python -m benchmarks.studies.encoding_costs --output {path.with_suffix('.md')}"
        ) from error


def _cost(cell: Mapping[str, Any]) -> Cost:
    if "why" in cell:
        return Cost(why=str(cell["why"]))
    return Cost(float(cell["time"]), float(cell["memory"]))
