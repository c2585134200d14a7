"""Rubbish: files that processes left in an output folder when they died, removed at the next start."""

import contextlib
import fnmatch
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pebench.atomic import PART
from pebench.config import RunConfig
from pebench.runs.leases import CLAIM, LEASE, clear_claims, holder_of
from pebench.runs.records import Record

CHECKPOINTS = "checkpoints"
"""Folder of a run's checkpoints, which a finished run has not."""

LAST_CHECKPOINT = f"{CHECKPOINTS}/last.ckpt"
"""The checkpoint that a run goes on from, in the run's folder."""


def clear_rubbish(runs: Sequence[RunConfig], known: Mapping[str, Record], out: Path) -> None:
    """Remove what nobody needs from the folders of runs, but of those that a living process is making.

    A finished run keeps no checkpoints, leases, claims and half written files; any other no claims: the rest is for its
    next attempt to use or to remove.

    Args:
        runs: The runs.
        known: Records of those that have one, by key.
        out: Output folder.
    """
    for config in runs:
        folder = out / config.directory
        with contextlib.suppress(OSError):  # no folder; or a process that has just ended clears it, too
            left = [name for name in os.listdir(folder) if _is_rubbish(name)]
            if not left:
                continue
            clear_claims(folder)
            if config.key in known and known[config.key].ok and holder_of(folder) is None:
                shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
                for name in left:
                    if name != CHECKPOINTS:
                        (folder / name).unlink(missing_ok=True)


def _is_rubbish(name: str) -> bool:
    return name == CHECKPOINTS or name.startswith((CLAIM, LEASE)) or fnmatch.fnmatch(name, PART)
