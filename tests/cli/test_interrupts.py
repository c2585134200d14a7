"""Ctrl-C, and readers that leave: nothing is lost, and no traceback is shown."""

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.config import Options
from pebench.engine.executors import Resources, local
from pebench.engine.executors.worker import failed_record
from pebench.engine.observer import Observer
from pebench.engine.signals import Terminated
from pebench.runs.records import find_record, read_records, write_record
from pebench.tasks import configure
from tests.cli.asking import SIGNAL, SMOKE, TWO_BY_TWO, ask, pebench


def test_failures_that_were_to_be_tried_again_outlast_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [configure("vit-digits", name, 0, "smoke") for name in ("add", "rope")]
    failures = [failed_record(config, tmp_path, "killed", "the power failed", 1.0) for config in configs]

    def interrupted(*_: object) -> None:
        assert find_record(failures[0].config, tmp_path) == failures[0]  # until there is another
        write_record(replace(failures[0], status="ok", error=None), tmp_path)
        raise KeyboardInterrupt

    monkeypatch.setattr("pebench.engine.run.find_executor", lambda name: interrupted)
    assert ask(*SMOKE, "--pe", "add", "--pe", "rope", "--seed", "0", "--retry-failed", out=tmp_path).code == 130
    assert [(r.config.encoding, r.ok) for r in read_records(tmp_path)] == [("add", True), ("rope", False)]


def test_sigterm_is_told_from_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", SIGNAL)
    told: list[type[BaseException]] = []

    def execute(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt as error:
            told.append(type(error))
            raise

    monkeypatch.setattr("pebench.engine.run.find_executor", lambda name: execute)
    assert ask(*SMOKE, "--pe", "add", "--seed", "0", out=tmp_path).code == 130
    assert told == [Terminated]


@pytest.mark.parametrize(("error", "seconds"), [(Terminated, local.TERMINATION_S), (KeyboardInterrupt, local.GRACE_S)])
def test_runs_have_longer_to_save_where_nobody_waits_at_a_keyboard(
    error: type[BaseException], seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object) -> None:
        raise error

    config = configure("vit-digits", "add", 0, "smoke")
    given: list[float] = []
    monkeypatch.setattr(local.Backlog, "take", raises)
    monkeypatch.setattr(local, "_stop", lambda _, grace: given.append(grace))
    with pytest.raises(error):
        local.execute([config], Options(tmp_path, device="cpu"), Resources(1), Observer())
    assert given == [seconds]


def test_the_end_of_a_command_leaves_signals_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", SIGNAL)
    before = signal.getsignal(signal.SIGTERM)
    assert ask(*SMOKE, "--pe", "add", "--seed", "0", "--executor", "commands", out=tmp_path).code == 0
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("list", "tasks"), ("run", "--help"), (*TWO_BY_TWO, "--dry-run")])
def test_a_reader_that_leaves_early_causes_no_traceback(arguments: Sequence[str], tmp_path: Path) -> None:
    with pebench(*arguments, cwd=tmp_path) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.parametrize("delay", [pytest.param(0.2, marks=pytest.mark.slow), 1.0])
def test_an_interrupt_while_starting_causes_no_traceback(delay: float, tmp_path: Path) -> None:
    with pebench(*TWO_BY_TWO, "--out", str(tmp_path), start_new_session=True) as process:
        process.stdout.readline()
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in output + errors


@pytest.mark.slow
def test_an_interrupt_while_the_server_of_runs_starts_causes_no_traceback(
    tmp_path: Path, descendants: Callable[[int], set[int]]
) -> None:
    def servers(root: int) -> list[Path]:
        found = [Path(f"/proc/{pid}") for pid in descendants(root)]
        return [path for path in found if b"forkserver" in (path / "cmdline").read_bytes()]

    with pebench(*TWO_BY_TWO, "--out", str(tmp_path), start_new_session=True) as process:
        while not (found := servers(process.pid)):
            assert process.poll() is None
        blocked = re.search(r"SigBlk:\s*(\w+)", (found[0] / "status").read_text())
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.count("Traceback")) == (130, 0), errors
    # an exception while Python itself starts is nobody's to catch
    assert int(blocked[1], 16) >> (signal.SIGINT - 1) & 1


@pytest.mark.slow
def test_an_interrupted_command_goes_on_where_it_was_stopped(
    tmp_path: Path, descendants: Callable[[int], set[int]], alive: Callable[[set[int]], set[int]]
) -> None:
    arguments = [*SMOKE, "--pe", "none", "--pe", "add", "--seed", "0", "--jobs", "1", "--set", "train.max_steps=300"]
    with pebench(*arguments, "--out", str(tmp_path), start_new_session=True) as process:
        assert any(line.startswith("[1/2] ") for line in process.stdout)
        family = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "pebench: interrupted. Finished runs are kept; the same command goes on from there.\n"
    end = time.monotonic() + 20
    while left := alive(family):
        assert time.monotonic() < end, left
        time.sleep(0.05)
    (kept,) = read_records(tmp_path)
    finished = ask(*arguments, "--executor", "sequential", out=tmp_path)
    assert (finished.code, finished.lines[0]) == (0, "2 runs: 1 to do, 1 done")
    assert kept in read_records(tmp_path)
