"""Ten thousand steps in one process, and five hundred runs under one command, take no more as they go on."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from pebench.runs.records import read_records
from tests.cli.asking import SMOKE
from tests.reliability.suites import PATIENCE_S, end

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes by /proc"),
]

MORE_MIB = 8.0
"""Memory that a process may take more later on: allocators keep some."""


@dataclass(frozen=True)
class Look:
    """What a process has at one moment."""

    memory_mib: float
    handles: float
    threads: float
    processes: float


def look(pid: int, family: set[int]) -> Look:
    """Look at a process.

    Raises:
        FileNotFoundError, ProcessLookupError, KeyError: If it has ended.
    """
    lines = (line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    status = {name: value.strip() for name, value in lines}
    memory = int(status["VmRSS"].split()[0]) / 1024
    return Look(memory, len(list(Path(f"/proc/{pid}/fd").iterdir())), int(status["Threads"]), len(family))


def looks(command: "subprocess.Popen[bytes]", descendants: Callable[[int], set[int]]) -> dict[int, list[Look]]:
    """Look at a command, and at each process of its that stays, five times a second until it ends."""
    found: dict[int, list[Look]] = {}
    wait = time.monotonic() + PATIENCE_S
    while command.poll() is None:
        assert time.monotonic() < wait
        family = descendants(command.pid)
        for pid in family | {command.pid}:
            try:
                found.setdefault(pid, []).append(look(pid, family))
            except (FileNotFoundError, ProcessLookupError, KeyError):
                continue
        time.sleep(0.2)
    longest = len(found[command.pid])
    return {pid: seen for pid, seen in found.items() if len(seen) > 0.5 * longest}


def check_flat(seen: list[Look]) -> dict[str, float]:
    """Check that a process has no more in its last fifth than in the fifth after its second; return both memories."""
    fifth = len(seen) // 5
    assert fifth > 10, "too short to tell"
    early, late = middle(seen[2 * fifth : 3 * fifth]), middle(seen[4 * fifth :])
    assert late.memory_mib - early.memory_mib < MORE_MIB
    for name in ("handles", "threads", "processes"):  # fewer is no leak: near its end a command waits for its last one
        assert getattr(late, name) <= getattr(early, name), name
    return {"before": early.memory_mib, "after": late.memory_mib}


def middle(seen: list[Look]) -> Look:
    """Return the medians: a file is open for a moment, and a process that ends is no leak."""
    return Look(*(statistics.median(values) for values in zip(*map(astuple, seen), strict=True)))


@pytest.mark.parametrize("executor", ["sequential", "local"])
@pytest.mark.parametrize(("runs", "steps"), [(1, 10_000), (500, 2)], ids=["ten thousand steps", "five hundred runs"])
def test_what_lives_long_takes_no_more(
    runs: int,
    steps: int,
    executor: str,
    tmp_path: Path,
    descendants: Callable[[int], set[int]],
    record_property: Callable[[str, object], None],
) -> None:
    words = [sys.executable, "-m", "pebench", *SMOKE, "--pe", "add", "--seeds", str(runs), "--executor", executor]
    words += ["--set", f"train.max_steps={steps}", "--set", "train.evaluations=1", "--out", str(tmp_path / "runs")]
    with (tmp_path / "printed").open("w") as printed:  # a pipe that nobody reads would stop it
        process = subprocess.Popen(words, start_new_session=True, stdout=printed, stderr=printed)
        try:
            found = looks(process, descendants)
        finally:
            end(process)
    assert process.returncode == 0, (tmp_path / "printed").read_text()
    assert len(read_records(tmp_path / "runs")) == runs
    for pid, seen in found.items():
        for moment, memory in check_flat(seen).items():
            record_property(f"memory {moment} of {'command' if pid == process.pid else 'another'}", round(memory, 1))
