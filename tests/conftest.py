"""Fixtures of all tests: a cache folder of their own, the processes that a test started, and an end of the time."""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers share the cores, and threads that wait for others spin
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a shell's background job; commands under test inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:.*LeafSpec.*:FutureWarning")  # lightning 2.6 beside torch 2.15


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take modules in another order on every day that the time for tests is limited, so that others are left out."""
    if until := os.environ.get("PEBENCH_TESTS_UNTIL"):
        modules = sorted({item.path for item in items})
        random.Random(until).shuffle(modules)  # the same in every worker
        items.sort(key=lambda item: modules.index(item.path))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the rest once PEBENCH_TESTS_UNTIL (seconds since 1970) is over: CI's slow group has what time is left."""
    if time.time() > float(os.environ.get("PEBENCH_TESTS_UNTIL", "inf")):
        pytest.skip("no time is left")


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEBENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("PEBENCH_DATA_DIR", raising=False)
        patch.delenv("COLUMNS", raising=False)  # xdist's workers have it, and lines would be folded as in a terminal
        yield


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Restore the number of threads, which a run in the test's own process may raise: later tests would be slow."""
    yield
    torch, usual = sys.modules.get("torch"), int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    if torch and torch.get_num_threads() != usual:
        torch.set_num_threads(usual)


@pytest.fixture(scope="session")
def descendants() -> Callable[[int], set[int]]:
    """Return a function that finds the living descendants of a process, from /proc."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")

    def parents() -> Iterator[tuple[int, int]]:
        for entry in os.listdir("/proc"):
            if entry.isdigit() and (found := parent_of(int(entry))) is not None:
                yield int(entry), found

    def find(root: int) -> set[int]:
        family, tree = {root}, list(parents())
        while more := {pid for pid, parent in tree if parent in family} - family:
            family |= more
        return family - {root}

    return find


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, or None if it is gone, or dead and not yet waited for."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else int(parent)


@pytest.fixture(scope="session")
def alive() -> Callable[[set[int]], set[int]]:
    """Return a function that finds which of some processes are still there."""
    return lambda pids: {pid for pid in pids if parent_of(pid) is not None}


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Start Chromium without a window."""
    program, service = shutil.which("chromium"), shutil.which("chromedriver")
    if not (program and service):
        pytest.skip("needs chromium and chromedriver (Debian: chromium-driver)")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    yield driver
    driver.quit()
