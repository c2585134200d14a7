"""Costs of a training step with each encoding, as the study `encoding_costs` publishes them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pebench.errors import UserError

FILE = Path("studies") / "encoding_costs.json"
"""Place of the figures in a folder of published results."""

LENGTHS, PATCHES = (256, 1024, 4096), (256, 1024)
"""Numbers of tokens and of patches of the scorecard's columns."""

IDLE = ("add", "random", "multiply", "learned", "axial-learned", "gated-add")
"""Encodings whose costs show the noise: they add or multiply positions at the input alone, next to no work."""


@dataclass(frozen=True)
class Cost:
    """Cost of a training step over one with ``none``.

    Args:
        time: Its seconds; ``None`` where they were not measured.
        memory: Its peak of memory, likewise.
        why: Reason why there is none where it was tried; else empty.
        rounds: Number of times that it was measured.
        kernel: Kernel of attention, in the study's words.
    """

    time: float | None = None
    memory: float | None = None
    why: str = ""
    rounds: int = field(default=1, compare=False)
    kernel: str = field(default="", compare=False)


@dataclass(frozen=True)
class Costs:
    """Costs of encodings on causal text, and on images.

    Args:
        device: ``cpu`` or ``cuda``; empty where nothing was measured.
        cells: Encoding to number of tokens to cost.
        images: Encoding to number of patches to cost.
    """

    device: str = ""
    cells: Mapping[str, Mapping[int, Cost]] = field(default_factory=dict)
    images: Mapping[str, Mapping[int, Cost]] = field(default_factory=dict)

    def of(self, label: str) -> dict[int, Cost]:
        """Return the costs of an encoding at each of `LENGTHS`."""
        return {tokens: self.cells.get(label, {}).get(tokens, Cost()) for tokens in LENGTHS}

    def of_images(self, label: str) -> dict[int, Cost]:
        """Return the costs of an encoding of images at each of `PATCHES`."""
        return {patches: self.images.get(label, {}).get(patches, Cost()) for patches in PATCHES}


def read_costs(*folders: Path) -> Costs:
    """Return the costs in folders of results: of each encoding those in the first folder that has it.

    All are of the kind of device of the first folder with costs; what a GPU costs is no column beside a CPU's.

    Raises:
        UserError: If a file is not what the study writes.
    """
    found = [costs for folder in folders if (costs := _read(folder)).device]
    if not found:
        return Costs()
    alike = [costs for costs in reversed(found) if costs.device == found[0].device]
    together = Costs(found[0].device)
    for costs in alike:  # the first folder last, so that its figures stand
        together = Costs(costs.device, {**together.cells, **costs.cells}, {**together.images, **costs.images})
    return together


def _read(folder: Path) -> Costs:
    """Return the costs in one folder; none where it has no such file."""
    path = folder / FILE
    if not path.is_file():
        return Costs()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        cells, images = (
            {
                label: {int(size): _cost(cell) for size, cell in kinds.get(kind, {}).items()}
                for label, kinds in found["costs"].items()
            }
            for kind in ("text", "image")
        )
        return Costs(found["device"], cells, images)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected figures of the study encoding_costs, got something else ({type(error).__name__}: "
            f"{error}). Make it again: python -m benchmarks.studies.encoding_costs --output {path.with_suffix('.md')}"
        ) from error


def _cost(cell: Mapping[str, Any]) -> Cost:
    if "why" in cell:
        return Cost(why=str(cell["why"]))
    rounds = cell.get("rounds", [])
    kernel = str(rounds[0].get("kernel", "")) if rounds else ""
    return Cost(float(cell["time"]), float(cell["memory"]), rounds=len(rounds), kernel=kernel)
