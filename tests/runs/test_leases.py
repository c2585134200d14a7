"""A run is one process's at a time, and a dead process's run is anybody's."""

import contextlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pebench.runs import leases
from pebench.runs.leases import FRESH_S, Holder, claim, holder_of

HERE = {name: value for name, value in asdict(leases._myself()).items() if name in ("host", "boot", "pids")}


def dead_process() -> int:
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    process.join()
    return int(process.pid or 0)


def write(folder: Path, number: int = 0, **changes: Any) -> Path:
    """A lease that some other process has left behind."""
    holder = Holder("elsewhere", 1, 1, time.time())
    path = folder / f"lease-{number}.json"
    path.write_text(json.dumps(asdict(replace(holder, **changes))))
    return path


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def held(folder: Path) -> bool:
    """Whether somebody who asks now is refused."""
    with claim(folder) as lease:
        return lease is None


def test_a_run_is_claimed_once(tmp_path: Path) -> None:
    with claim(tmp_path) as lease:
        assert lease is not None
        assert held(tmp_path)
        assert (holder := holder_of(tmp_path)) is not None
        assert holder.pid == os.getpid()
    assert not held(tmp_path)
    assert holder_of(tmp_path) is None
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("seconds", "refused"), [(0, True), (2 * FRESH_S, False)])
@pytest.mark.parametrize("system", ["posix", "nt"])
def test_where_no_system_tells_when_a_process_began_its_number_may_be_anothers_by_now(
    system: str, seconds: float, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without /proc; on Windows signal 0 would be Ctrl-C."""
    dead = dead_process()

    def hidden(path: str) -> Path:
        return Path(path.replace("/proc", str(tmp_path / "none")))

    def kill(pid: int, number: int) -> None:
        assert system == "posix"
        if pid == dead:
            raise ProcessLookupError

    used = {name: getattr(os, name) for name in ("getpid", "link", "readlink", "replace", "utime")}
    monkeypatch.setattr(leases, "Path", hidden)
    monkeypatch.setattr(leases, "os", SimpleNamespace(name=system, kill=kill, **used))
    age(write(tmp_path, **{**HERE, "boot": ""}, pid=os.getpid(), born=0), seconds)
    assert held(tmp_path) == refused
    age(write(tmp_path, **{**HERE, "boot": ""}, pid=dead, born=0), 0)
    assert held(tmp_path) == (system == "nt")


@pytest.mark.parametrize(("seconds", "alive"), [(0, True), (2 * FRESH_S, False)])
def test_where_nothing_may_be_written_it_is_seen_who_is_at_it(
    seconds: float, alive: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(write(tmp_path), seconds)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr(Path, "touch", refuse)
    assert (holder_of(tmp_path) is not None) == alive


def test_a_lease_is_given_back_whatever_happens(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), claim(tmp_path):
        raise RuntimeError
    assert not [*tmp_path.iterdir()]


def test_progress_can_be_read_by_others(tmp_path: Path) -> None:
    with claim(tmp_path) as lease:
        assert lease is not None
        lease.report(7, {"val/loss": 0.5})
        lease.report(8, {})  # at once after: not worth writing
        holder = holder_of(tmp_path)
        assert holder is not None
        assert (holder.step, holder.metrics) == (7, {"val/loss": 0.5})
        assert held(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_run_of_a_dead_process_can_be_taken_over(tmp_path: Path) -> None:
    write(tmp_path, **HERE, pid=dead_process())
    assert holder_of(tmp_path) is None
    with claim(tmp_path) as lease:
        assert lease is not None
        assert [path.name for path in tmp_path.iterdir()] == ["lease-1.json"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_another_process_with_the_same_number_is_not_the_holder(tmp_path: Path) -> None:
    write(tmp_path, **HERE, pid=os.getpid(), born=1)
    assert not held(tmp_path)


def test_another_machines_lease_counts_while_it_is_fresh(tmp_path: Path) -> None:
    path = write(tmp_path)
    age(path, FRESH_S - 60)
    assert held(tmp_path)
    age(path, FRESH_S + 60)
    assert not held(tmp_path)


@pytest.mark.parametrize(
    "other", [{"boot": "of another machine"}, {"pids": "of a container"}, {"boot": "", "pids": ""}]
)
def test_a_process_that_cannot_be_seen_from_here_is_not_taken_for_dead(other: dict[str, str], tmp_path: Path) -> None:
    """Neither that of another machine of our name, nor of another container, nor one whose pebench says less."""
    if other.items() <= HERE.items():
        pytest.skip("this system tells no more of a process than an older pebench wrote")
    path = write(tmp_path, **HERE | other, pid=dead_process())
    assert held(tmp_path)
    age(path, FRESH_S + 60)
    assert not held(tmp_path)


def test_the_lease_of_an_older_pebench_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lease-0.json"
    path.write_text('{"host": "elsewhere", "pid": 1, "born": 1, "since": 5.0, "step": 7, "metrics": {}}')
    assert holder_of(tmp_path) == Holder("elsewhere", 1, 1, 5.0, 7)


def test_a_lease_that_cannot_be_read_counts_while_it_is_fresh(tmp_path: Path) -> None:
    path = tmp_path / "lease-0.json"
    path.write_text("{")
    assert held(tmp_path)
    age(path, FRESH_S + 60)
    assert not held(tmp_path)


@pytest.mark.parametrize("living", [3, 10])
def test_a_living_lease_counts_whatever_its_number(living: int, tmp_path: Path) -> None:
    for number in (3, 10):
        age(write(tmp_path, number, since=number), 0 if number == living else FRESH_S + 60)
    assert held(tmp_path)
    assert (holder := holder_of(tmp_path)) is not None
    assert holder.since == living


def test_who_was_too_slow_withdraws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between seeing nothing and writing lease 0, others have come as far as lease 4."""
    create = leases._create

    def late(written: Path, path: Path) -> None:
        write(tmp_path, 4)
        create(written, path)

    monkeypatch.setattr(leases, "_create", late)
    with claim(tmp_path) as lease:
        assert lease is None
    assert [path.name for path in tmp_path.iterdir()] == ["lease-4.json"]


def test_who_was_too_slow_withdraws_though_numbers_have_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between seeing a dead lease 0 and writing lease 1, one has come and gone, and the next has lease 0."""
    create = leases._create
    age(write(tmp_path), FRESH_S + 60)
    with contextlib.ExitStack() as other:

        def late(written: Path, path: Path) -> None:
            monkeypatch.setattr(leases, "_create", create)
            assert not held(tmp_path)
            assert other.enter_context(claim(tmp_path)) is not None
            create(written, path)

        monkeypatch.setattr(leases, "_create", late)
        assert held(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["lease-0.json"]
    assert not held(tmp_path)


def test_of_two_who_meet_both_withdraw_and_the_next_gets_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, but the one with lease 0 does not have the run yet either: each sees the other's lease."""
    create, alive, step, refused = leases._create, leases._alive, threading.Barrier(2, timeout=60), list[bool]()
    other = threading.Thread(target=lambda: refused.append(held(tmp_path)))

    def together(written: Path, path: Path) -> None:
        step.wait()  # neither writes before both have looked
        create(written, path)
        step.wait()

    def look(path: Path) -> bool:
        seen = alive(path)
        step.wait()
        return seen

    def late(written: Path, path: Path) -> None:
        monkeypatch.setattr(leases, "_create", create)
        assert not held(tmp_path)
        monkeypatch.setattr(leases, "_create", together)
        monkeypatch.setattr(leases, "_alive", look)
        other.start()
        together(written, path)

    age(write(tmp_path), FRESH_S + 60)
    monkeypatch.setattr(leases, "_create", late)
    refused.append(held(tmp_path))
    other.join()
    assert refused == [True, True]
    monkeypatch.setattr(leases, "_create", create)
    assert not held(tmp_path)


def test_two_processes_of_one_number_write_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create, written = leases._create, set[Path]()

    def note(temporary: Path, path: Path) -> None:
        written.add(temporary)
        create(temporary, path)

    monkeypatch.setattr(leases, "_create", note)
    assert [held(tmp_path), held(tmp_path)] == [False, False]
    assert len(written) == 2


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    with claim(tmp_path) as lease:
        assert lease is not None
        assert held(tmp_path)


def test_a_living_holder_renews_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_S", 0.01)
    with claim(tmp_path) as lease:
        assert lease is not None
        age(lease.path, 1000)
        wait_for(lambda: time.time() - lease.path.stat().st_mtime < 500)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def contend(folder: Path, rounds: int, start: Any) -> None:
    """Claim one folder after the other; note every success for a while, in a file that only one may hold."""
    start.wait()
    for number in range(rounds):
        place = folder / str(number)
        with claim(place) as lease:
            if lease is not None:
                inside = place / "inside"
                inside.touch(exist_ok=False)  # raises if another is in here
                time.sleep(0.002)
                inside.unlink()
                with (place / "taken").open("a") as file:
                    file.write("x")


def test_of_many_processes_one_gets_the_run(tmp_path: Path) -> None:
    rounds, processes = 20, 4
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    for number in range(rounds):
        (tmp_path / str(number)).mkdir()
        age(write(tmp_path / str(number)), FRESH_S + 60)  # left behind, so that all want to follow it
    workers = [context.Process(target=contend, args=(tmp_path, rounds, start)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * processes  # never two inside
    assert all((tmp_path / str(number) / "taken").exists() for number in range(rounds))
