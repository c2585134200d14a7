"""Plug-ins are guests: nothing of their runs reaches the others, and every run ends in one record."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pebench.config import Options, RunConfig
from pebench.engine.checks import check_kinds
from pebench.engine.execution import Execution
from pebench.engine.executors import Resources, find_executor
from pebench.engine.observer import Observer
from pebench.errors import UserError
from pebench.runs.parent import end_without_guests
from pebench.runs.records import Record, find_record, read_records
from pebench.tasks import configure
from pebench.training.guests import SETTINGS, contained
from pebench.training.runner import train

HERE = Path(__file__).parent
linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs fork")


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(HERE))
    yield
    for cls in vars(sys.modules.get("guests", object)).values():
        if isinstance(cls, type) and hasattr(cls, "done"):
            cls.done = False


def run(encoding: str) -> RunConfig:
    return configure("vit-digits", encoding, 0, "smoke")


def options(out: Path) -> Options:
    return Options(out, device="cpu", threads=1, folders=(str(HERE),))


class Heard(Observer):
    """Remembers the records that it hears of."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def finished(self, record: Record) -> None:
        self.records.append(record)


def executed(executor: str, names: list[str], out: Path) -> list[Record]:
    heard = Heard()
    find_executor(executor)([run(name) for name in names], options(out), Resources(2), heard)
    return heard.records


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return train(run("add"), options(tmp_path_factory.mktemp("alone")))


def test_the_run_after_a_guests_is_the_same_in_the_same_process(
    alone: Record, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = executed("sequential", ["guests:Sets", "guests:Patches", "add"], tmp_path)
    assert [record.ok for record in records] == [True] * 3
    assert (records[-1].metrics, records[-1].curve) == (alone.metrics, alone.curve)
    assert "guests.Sets" in caplog.text
    assert "torch's default dtype" in caplog.text
    assert "torch.nn.functional.gelu" in caplog.text
    assert f"{run('add').directory} left something" not in caplog.text


def test_a_guest_that_ends_its_process_leaves_a_failure(tmp_path: Path) -> None:
    """An exit code of its own has no meaning here: 75 was that of a process whose run is another's."""
    (record,) = executed("local", ["guests:Exits"], tmp_path)
    assert (record.ok, record.reason) == (False, "ended with exit code 75")


def test_a_guest_that_ends_its_process_ends_no_other_run_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"this process would have ended with {code}"))
    failed, other = executed("sequential", ["guests:Exits", "none"], tmp_path)
    assert (failed.ok, other.ok) == (False, True)
    assert "encoding 'guests:Exits' (guests.py:" in failed.reason
    assert "os._exit(75) was called" in failed.reason
    assert len(read_records(tmp_path)) == 2


@pytest.mark.parametrize(
    ("name", "reason"), [("ExitsAtOnce", r"os\._exit\(75\) was called"), ("Leaves", "SystemExit: 75")]
)
def test_a_guest_that_ends_its_process_when_it_is_built_is_refused(
    name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"this process would have ended with {code}"))
    with pytest.raises(UserError, match=f"with guests:{name}: .*{reason}"):
        check_kinds([run(f"guests:{name}")], Execution(tmp_path, device="cpu"))


@pytest.mark.slow
@linux
def test_a_guest_that_leaves_or_ends_processes_stops_no_other_run(alone: Record, tmp_path: Path) -> None:
    kinds = ["LeavesThread", "LeavesChild", "LeavesSession", "Exits"]
    records = executed("local", [*(f"guests:{name}" for name in kinds), "add"], tmp_path)
    ended = {record.config.encoding.partition(":")[2]: record for record in records}
    assert len(records) == len(ended) == 5
    assert [ended[name].ok for name in kinds] == [True, True, True, False]
    assert ended["Exits"].reason == "ended with exit code 75"
    assert find_record(run("add"), tmp_path).metrics == alone.metrics


def test_building_the_encodings_of_others_leaves_this_process_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    check_kinds([run("guests:Sets"), run("add")], Execution(tmp_path, device="cpu"))
    assert torch.get_default_dtype() == torch.float32
    assert "torch's default dtype" in caplog.text


CHANGES: dict[str, Callable[[], Any]] = {
    "torch's default dtype": lambda: torch.set_default_dtype(torch.bfloat16),
    "torch's default device": lambda: torch.set_default_device("meta"),
    "torch's grad mode": lambda: torch.set_grad_enabled(False),
    "torch's deterministic algorithms": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "torch's precision of matrix products": lambda: torch.set_float32_matmul_precision("medium"),
    "torch's denormal numbers": lambda: torch.set_flush_denormal(True),
    "torch's flash attention": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "torch's efficient attention": lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    "cuDNN's benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "cuDNN's determinism": lambda: setattr(torch.backends.cudnn, "deterministic", True),
    "cuDNN's TF32": lambda: setattr(torch.backends.cudnn, "allow_tf32", not torch.backends.cudnn.allow_tf32),
    "the current folder": lambda: os.chdir("/"),
    "torch's hooks of all modules": lambda: nn.modules.module.register_module_forward_hook(lambda *_: None),
    "torch.Tensor.add": lambda: setattr(torch.Tensor, "add", lambda *_: None),
    "torch.nn.modules.linear.Linear.forward": lambda: setattr(nn.Linear, "forward", lambda _, x: x),
    "torch.nn.functional.gelu": lambda: setattr(nn.functional, "gelu", torch.tanh),
    "pebench.seeding.stream": lambda: setattr(sys.modules["pebench.seeding"], "stream", hash),
    "math.sqrt": lambda: setattr(sys.modules["math"], "sqrt", abs),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_is_put_back_and_named(name: str, caplog: pytest.LogCaptureFixture) -> None:
    usual = {known: read() for known, (read, _) in SETTINGS.items()}
    watched = [torch.Tensor.add, nn.Linear.forward, nn.functional.gelu, sys.modules["math"].sqrt]
    with contained("a guest"):
        CHANGES[name]()
    assert {known: read() for known, (read, _) in SETTINGS.items()} == usual
    assert [torch.Tensor.add, nn.Linear.forward, nn.functional.gelu, sys.modules["math"].sqrt] == watched
    assert not nn.modules.module._global_forward_hooks
    assert [record.getMessage() for record in caplog.records] == [
        f"a guest left something behind, which was put back: {name}"
    ]


def test_every_setting_is_tried() -> None:
    assert set(SETTINGS) <= set(CHANGES)


def test_random_numbers_threads_and_the_environment_are_put_back_in_silence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KEPT", "1")
    before, threads, environment = torch.get_rng_state(), torch.get_num_threads(), dict(os.environ)
    with contained("a run"):
        torch.rand(3)
        torch.set_num_threads(threads + 1)
        os.environ["NEW"] = "1"
        del os.environ["KEPT"]
    assert torch.equal(torch.get_rng_state(), before)
    assert (torch.get_num_threads(), dict(os.environ)) == (threads, environment)
    assert not caplog.records


LEFT = """
import multiprocessing, threading, time
from pebench.runs.parent import end_without_guests
threading.Thread(target=threading.Event().wait).start()
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
child.start()
print(child.pid)
end_without_guests(3)
print("not reached")
"""


@linux
def test_a_program_ends_though_a_thread_and_a_process_are_left(alive: Callable[[set[int]], set[int]]) -> None:
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3, "")
    child, end = int(done.stdout), time.monotonic() + 30
    while alive({child}):  # ended, it is the system's to wait for
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_program_in_which_nothing_is_left_ends_as_usual() -> None:
    daemon = threading.Thread(target=threading.Event().wait, daemon=True)
    daemon.start()
    assert end_without_guests(0) is None
