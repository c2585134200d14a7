"""Runs that share a process: none notices the others, and their number is found by measuring."""

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench import run_suite
from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources, together
from pebench.engine.executors.server import prepare
from pebench.engine.observer import Observer
from pebench.errors import UserError
from pebench.runs.costs import Cost, cost
from pebench.runs.records import Record, find_record
from pebench.tasks import configure
from pebench.training import turns
from pebench.training.runner import train

DROPS = {"model.dropout": 0.1, "train.max_steps": 60, "train.evaluations": 3}


def smoke(task: str, encoding: str, seed: int = 0, **settings: Any) -> RunConfig:
    return configure(
        task, encoding, seed, "smoke", DROPS | {f"train.{name}": value for name, value in settings.items()}
    )


PLAN = [
    smoke("vit-digits", "add"),
    smoke("text-order", "learned"),
    smoke("lm-grammar", "rope"),
    smoke("vit-digits", "add", 1),
]
DIVERGES = smoke("vit-digits", "add", learning_rate=1e30, evaluations=1)


class Follower(Observer):
    """Keeps what it is told, and interrupts once all runs have gone on if it is to."""

    def __init__(self, interrupts_at: int = 0) -> None:
        self.order, self.notes, self.records = list[str](), list[str](), list[Record]()
        self.interrupts_at = interrupts_at

    def note(self, message: str) -> None:
        if not message.startswith("preparing the data"):  # said where no test before has prepared them
            self.notes.append(message)

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        assert threading.current_thread() is threading.main_thread()
        self.order.append(config.key)
        if self.interrupts_at and len(self.order) == self.interrupts_at:
            signal.raise_signal(signal.SIGINT)

    def finished(self, record: Record) -> None:
        self.records.append(record)


def options(out: Path) -> Options:
    return Options(out, device="cpu", threads=1)


def made(plan: list[RunConfig], out: Path, follower: Follower, jobs: int = 4) -> Follower:
    prepare(plan, options(out), follower)
    together.execute(plan, options(out), Resources(jobs), follower)
    return follower


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(("vit", "text", "lm"))]


def same(ours: Record | None, theirs: Record) -> bool:
    assert ours is not None
    assert ours.error == theirs.error
    return (ours.metrics, ours.curve, ours.position_shares) == (theirs.metrics, theirs.curve, theirs.position_shares)


def test_they_end_as_each_does_alone_to_the_last_bit(tmp_path: Path) -> None:
    follower = made([*PLAN, DIVERGES], tmp_path / "together", Follower())
    shown = follower.order
    assert len(set(shown[:8])) > 2, "one after the other"
    for config in PLAN:
        assert same(find_record(config, tmp_path / "together"), train(config, options(tmp_path / "alone")))
    assert {record.config.key for record in follower.records} == {config.key for config in [*PLAN, DIVERGES]}
    failed = find_record(DIVERGES, tmp_path / "together")
    assert failed is not None
    assert failed.error is not None
    assert failed.error["kind"] == "diverged"
    assert all((record.peak_memory_gib is None) for record in follower.records)
    assert not running()
    assert not [*tmp_path.rglob("lease-*")]


def test_nothing_is_drawn_beside_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(config: RunConfig) -> Cost:
        assert not running(), "random numbers are the process's: counting would set back those of a run"
        return cost(config)

    monkeypatch.setattr(together, "cost", alone)
    follower = made([*PLAN, DIVERGES], tmp_path, Follower(), jobs=2)
    assert len(follower.records) == len(PLAN) + 1


def test_stopped_they_go_on_where_they_were(tmp_path: Path) -> None:
    longer, follower = [smoke("lm-grammar", name, max_steps=200) for name in ("add", "rope")], Follower(12)
    with pytest.raises(KeyboardInterrupt):
        made(longer, tmp_path, follower, jobs=2)
    assert not follower.notes
    assert not follower.records
    assert not [config for config in longer if find_record(config, tmp_path)]
    assert len([*tmp_path.rglob("last.ckpt")]) == 2
    again = made(longer, tmp_path, Follower(), jobs=2)
    assert not again.notes
    for config in longer:
        assert same(find_record(config, tmp_path), train(config, options(tmp_path / "alone")))


def test_the_command_has_it(tmp_path: Path) -> None:
    follower = Follower()
    results = run_suite(PLAN[:2], tmp_path, executor="together", jobs=2, device="cpu", observer=follower)
    assert [record.ok for record in results.records] == [True, True]
    with pytest.raises(UserError, match="several runs on one device"):
        run_suite(PLAN[:2], tmp_path / "other", executor="together", devices=2, device="cpu")


def test_a_turn_is_given_in_the_order_in_which_it_is_asked_for() -> None:
    shared, order = turns.Turns("cpu"), list[int]()
    inside, asked = threading.Event(), threading.Event()

    def run(number: int) -> None:
        with shared.taken():
            if number == 0:
                inside.set()
                asked.wait(10)
            for _ in range(2):
                order.append(number)
                shared.pass_on()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for number, thread in enumerate(threads):
        thread.start()
        inside.wait(10)
        while len(shared._waiting) <= number:  # the next one asks after this one
            pass
    asked.set()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 0, 1, 2]


def test_each_finds_the_process_as_it_left_it() -> None:
    shared, found, draws = turns.Turns("cpu"), list[str](), dict[str, list[float]]()
    torch.manual_seed(5)
    before = torch.get_rng_state()

    def run(precision: str, seed: int) -> None:
        with shared.taken():
            found.append(torch.get_float32_matmul_precision())
            torch.manual_seed(seed)
            torch.set_float32_matmul_precision(precision)
            drawn = draws[precision] = []
            for _ in range(3):
                shared.pass_on()
                found.append(torch.get_float32_matmul_precision())
                drawn.append(float(torch.rand(1, dtype=torch.float32)))

    try:
        threads = [threading.Thread(target=run, args=each) for each in (("high", 1), ("medium", 2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        torch.set_float32_matmul_precision("highest")
    assert sorted(found) == ["high"] * 3 + ["highest"] * 2 + ["medium"] * 3
    for precision, seed in (("high", 1), ("medium", 2)):
        torch.manual_seed(seed)
        assert draws[precision] == [float(torch.rand(1, dtype=torch.float32)) for _ in range(3)]
    torch.set_rng_state(before)
    assert turns.turns_of_this_run() is None


@pytest.mark.parametrize(
    ("paces", "room", "number", "why"),
    [
        ([1.0, 1.9, 3.4, 3.5], 64, 4, "8 were not faster"),
        ([1.0, 1.05], 64, 1, "2 were not faster"),
        ([1.0, 2.0, 4.0], 4, 4, "memory has no room for twice as many"),
    ],
)
def test_the_number_grows_as_long_as_it_helps(paces: list[float], room: int, number: int, why: str) -> None:
    now, done = 0.0, 0.0
    width = together.Width(0, lambda: 2 * width.now <= room, lambda: now)
    settled = False
    for pace in paces:
        assert not settled
        assert not width.measure(done, steady=False)  # its runs begin
        before = width.now
        while width.now == before and not settled:
            settled = width.measure(done, steady=True)
            now, done = now + 1.0, done + pace
    assert settled
    assert (width.now, width.settled) == (number, why)
    assert not width.measure(done, steady=True)


def test_a_number_that_is_given_stays() -> None:
    now = 0.0
    width = together.Width(3, lambda: True, lambda: now)
    for _ in range(50):
        now += 1.0
        assert not width.measure(now, steady=True)
    assert (width.now, width.settled) == (3, "")


def test_the_number_that_was_found_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together.Width, "WINDOW_S", 0.2)
    monkeypatch.setattr(together.Width, "GAIN", 1e9)
    plan = [smoke("vit-digits", "add", seed, max_steps=300) for seed in range(4)]
    follower = made(plan, tmp_path, Follower(), jobs=0)
    assert follower.notes == ["1 at a time from here on: 2 were not faster"]
    assert len(follower.records) == 4
