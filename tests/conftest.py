"""What all tests share: a cache folder of their own, and the processes that a test started."""

import os
import shutil
import signal
import sys
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


@pytest.fixture(scope="session", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEBENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("PEBENCH_DATA_DIR", raising=False)
        yield


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """A run in a test's own process may ask for more threads; the tests behind it would keep them, and be slow."""
    yield
    torch, usual = sys.modules.get("torch"), int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    if torch and torch.get_num_threads() != usual:
        torch.set_num_threads(usual)


@pytest.fixture(scope="session")
def descendants() -> Callable[[int], set[int]]:
    """A function that finds the living processes below one, from what Linux tells."""
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
    """The process that `pid` is a child of; None if `pid` is gone, or dead and not yet waited for."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else int(parent)


@pytest.fixture(scope="session")
def alive() -> Callable[[set[int]], set[int]]:
    """A function that says which of some processes are still there."""
    return lambda pids: {pid for pid in pids if parent_of(pid) is not None}


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Chromium without a window."""
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
