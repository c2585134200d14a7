"""Options of an execution: the output folder, the device and the like, none of which decides a run's outcome."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How runs are executed. Nothing here decides their outcome, so nothing here is part of a run's key.

    Args:
        out: Output folder.
        data_dir: Local folder that stands in for downloads.
        device: A Lightning accelerator: ``cpu``, ``cuda``, or ``auto`` for the best one available.
        threads: CPU threads of a run; ``None`` leaves PyTorch's choice.
        time_limit_s: Wall-clock time after which a run is ended and counted as failed, in seconds.
        devices: Devices (or processes, on CPUs) of one run, which share its batches by Lightning's DDP.
        keep_weights: Keep the weights that were tested, as `weights.safetensors` in the run's folder.
        analyze: Analyze each tested model, and keep the figures in its record; see `pebench.analyze`.
        loggers: Loggers beside TensorBoard, as the command line takes them.
        folders: Additional folders in which modules of encodings are searched.
        modules: Modules that register encodings.
        retried: Checksums of the records of failures that are to be replaced: their runs are made again.
    """

    out: Path
    data_dir: Path | None = None
    device: str = "auto"
    threads: int | None = None
    time_limit_s: float | None = None
    devices: int = 1
    keep_weights: bool = False
    analyze: bool = False
    loggers: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    retried: frozenset[str] = frozenset()
