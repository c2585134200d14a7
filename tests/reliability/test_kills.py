"""Deaths at any moment: of the command, of its server, of a run, of all at once, and at single system calls.

After each the same command is given again. No run may be lost, doubled or changed, and nothing may be left behind.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.suites import ENCODINGS, PATIENCE_S, command, end, finish, leftovers, outcomes, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], float]:
    """What the suite leaves, and the seconds that it takes."""
    out, begin = tmp_path_factory.mktemp("undisturbed"), time.monotonic()
    code, printed = finish(command(out))
    assert code == 0, printed
    assert len(outcomes(out)) == len(ENCODINGS)
    assert leftovers(out) == []
    return outcomes(out), time.monotonic() - begin


def wait_for_death(family: set[int], alive: Callable[[set[int]], set[int]]) -> None:
    """Wait until processes are gone: no orphan may go on."""
    wait = time.monotonic() + PATIENCE_S
    while alive(family):
        assert time.monotonic() < wait, f"processes are left: {alive(family)}"
        time.sleep(0.1)


def check_again(out: Path, expected: dict[str, Any]) -> None:
    """Give the command again, and check that all is as if nothing had happened."""
    code, printed = finish(command(out, "--retry-failed"))  # a run that was killed has failed, and is tried again
    assert code == 0, printed
    assert outcomes(out) == expected
    assert leftovers(out) == []


@dataclass(frozen=True)
class Killing:
    """What a test of kills needs: the undisturbed outcomes and their time, a folder, and a view of processes."""

    expected: dict[str, Any]
    seconds: float
    out: Path
    descendants: Callable[[int], set[int]]
    alive: Callable[[set[int]], set[int]]

    def check(self, moment: str, choose: Callable[[int, set[int]], set[int]], goes_on: bool) -> None:
        """Kill processes while the suite runs, and check that nothing is lost.

        Args:
            moment: Seed of the moment, any text.
            choose: Returns the processes to kill, of the command's own number and those of all that it started.
            goes_on: True if the command is to come to its end by itself afterwards.
        """
        process = start(command(self.out))
        try:
            time.sleep(random.Random(moment).uniform(0.1, 0.95) * self.seconds)
            family = self.descendants(process.pid)
            for pid in choose(process.pid, family):
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.kill(pid, signal.SIGKILL)
            if goes_on:
                process.communicate(timeout=PATIENCE_S)
            wait_for_death(family | {process.pid}, self.alive)
        finally:
            end(process)
        check_again(self.out, self.expected)

    def servers(self, family: set[int]) -> set[int]:
        """Return the processes that have started others: the server of runs, if it is there yet."""
        return {pid for pid in family if self.descendants(pid)}


@pytest.fixture
def killing(
    undisturbed: tuple[dict[str, Any], float],
    tmp_path: Path,
    descendants: Callable[[int], set[int]],
    alive: Callable[[set[int]], set[int]],
) -> Killing:
    return Killing(*undisturbed, tmp_path, descendants, alive)


@pytest.mark.parametrize("number", range(10))
def test_a_kill_of_a_run_loses_nothing(number: int, killing: Killing) -> None:
    killing.check(f"run {number}", lambda _, family: {*sorted(family - killing.servers(family))[:1]}, goes_on=True)


@pytest.mark.parametrize("number", range(8))
def test_a_kill_of_the_command_loses_nothing(number: int, killing: Killing) -> None:
    killing.check(f"command {number}", lambda command, _: {command}, goes_on=False)


@pytest.mark.parametrize("number", range(5))
def test_a_kill_of_the_server_loses_nothing(number: int, killing: Killing) -> None:
    killing.check(f"server {number}", lambda _, family: killing.servers(family), goes_on=True)


@pytest.mark.parametrize("number", range(5))
def test_a_kill_of_everything_at_once_loses_nothing(number: int, killing: Killing) -> None:
    killing.check(f"all {number}", lambda command, family: family | {command}, goes_on=False)


@pytest.mark.parametrize("signals", [["INT"], ["TERM"], ["HUP"], ["INT", "INT"], ["TERM", "TERM"], ["INT", "TERM"]])
def test_a_signal_ends_the_command_which_then_goes_on(
    signals: list[str],
    undisturbed: tuple[dict[str, Any], float],
    tmp_path: Path,
    descendants: Callable[[int], set[int]],
    alive: Callable[[set[int]], set[int]],
) -> None:
    expected, seconds = undisturbed
    process = start(command(tmp_path))
    try:
        time.sleep(0.6 * seconds)
        family = descendants(process.pid) | {process.pid}
        for name in signals:
            process.send_signal(getattr(signal, f"SIG{name}"))
            time.sleep(0.2)
        process.communicate(timeout=PATIENCE_S)
        wait_for_death(family, alive)
    finally:
        end(process)
    # Before it handles signals, and after its last run, a signal ends the command as it ends any program.
    assert process.returncode in (130, 143, -signal.SIGHUP, -signal.SIGTERM, 0)
    check_again(tmp_path, expected)


CALLS = ("fsync", "replace", "rename", "link", "unlink", "rmdir", "mkdir")
DIE = """
import itertools, os, sys
calls, number, die = itertools.count(1), int(sys.argv[1]), os._exit  # which pebench keeps plug-ins from
def dying(usual):
    def call(*arguments, **options):
        if next(calls) == number:
            die(9)
        return usual(*arguments, **options)
    return call
for name in {names}:
    setattr(os, name, dying(getattr(os, name)))
from pebench.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("number", range(1, 20))
def test_a_death_at_a_system_call_loses_nothing(
    number: int, undisturbed: tuple[dict[str, Any], float], tmp_path: Path
) -> None:
    expected, _ = undisturbed
    python, _, _, *words = command(tmp_path, "--executor", "sequential")
    # every third call of the first run: its claim, checkpoints, record, and what is removed after it
    code, printed = finish([python, "-c", DIE.format(names=CALLS), str(3 * number), *words])
    assert code == 9, printed
    check_again(tmp_path, expected)
