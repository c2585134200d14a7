"""The failures that pebench is built to survive, and the tests that inject each.

`make reliability` runs them all and writes results/reliability.md. A test is named by its file and function; every case
of it counts as one injection. A test that injects several times says so: ``record_property("injections", number)``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """One kind of failure.

    Args:
        injected: How the failure is brought about.
        expected: How it is survived.
        tests: Tests that inject it, as ``file::function`` below tests/; a class may stand between.
    """

    injected: str
    expected: str
    tests: tuple[str, ...]


KILLS = "reliability/test_kills.py::"
EXECUTORS = "engine/test_executors.py::"

FAILURES = {
    "F1": Failure(
        "a run's process is killed, at random moments",
        "the other runs go on; the run is made again, bit for bit",
        (f"{KILLS}test_a_kill_of_a_run_loses_nothing", f"{EXECUTORS}test_a_run_that_is_killed_leaves_the_signal"),
    ),
}
