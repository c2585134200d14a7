"""A small suite that tests of reliability disturb, and what it leaves when nothing does."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pebench.engine.executors.worker import LOG
from pebench.runs.records import FILE_NAME, read_records

ENCODINGS = ("add", "learned", "rope")
SUITE = ["--task", "vit-digits", *(word for name in ENCODINGS for word in ("--pe", name)), "--seeds", "1"]
SUITE += ["--tier", "smoke", "--set", "train.max_steps=60", "--set", "train.evaluations=6"]
SUITE += ["--device", "cpu", "--threads", "1"]
"""Three runs, so that two at a time leave one that waits."""

PATIENCE_S = 3600.0
"""Time after which a command counts as hung, in seconds: what takes a minute takes ten on a busy machine."""

FINISHED = {"config.json", FILE_NAME, LOG}
"""Files that a finished run's folder may hold, besides those of TensorBoard."""


def command(out: Path, *more: str) -> list[str]:
    """Return the command line of the suite."""
    return [sys.executable, "-m", "pebench", "run", *SUITE, *more, "--out", str(out)]


def start(words: Sequence[str], **environment: str) -> "subprocess.Popen[str]":
    """Start a command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        words, env=os.environ | environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def finish(words: Sequence[str], **environment: str) -> tuple[int, str]:
    """Run a command to its end; return its exit code and what it printed."""
    process = start(words, **environment)
    try:
        printed, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        end(process)
    return process.returncode, printed


def end(process: "subprocess.Popen[Any]") -> None:
    """Kill what is left of a command and of its process group."""
    with contextlib.suppress(ProcessLookupError):  # all of it is gone already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def outcomes(out: Path) -> dict[str, Any]:
    """Return what must not depend on a disturbance: each run's status, metrics and curve, exactly, by its key."""
    found: dict[str, Any] = {}
    for record in read_records(out):
        assert record.config.key not in found, "a run has two records"
        found[record.config.key] = json.dumps([record.status, dict(record.metrics), list(record.curve)])
    return found


def leftovers(out: Path) -> list[str]:
    """Return the files that a death has left and a finished suite does not have."""
    plans = out / "plans"
    return sorted(
        str(path.relative_to(out))
        for path in out.rglob("*")
        if path.is_file()
        and path.parent not in (out, plans)
        and path.name not in FINISHED
        and not path.name.startswith("events.out.tfevents.")
    )
