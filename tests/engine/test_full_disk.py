"""Disks without room: a message with the path and what is free, no traceback, and an exit code that says so."""

import contextlib
import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pebench.atomic import full_disk, write_text
from pebench.engine.executors.worker import LOG, logged
from pebench.runs.records import find_record
from pebench.tasks import configure
from tests.cli.asking import SMOKE, ask

CONFIG = configure("vit-digits", "none", 0, "smoke")


@pytest.fixture(params=["size=16k", "nr_inodes=6"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk of four pages, or one that has room for six names."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs to mount a tmpfs")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> None:
    for number in range(8):
        with contextlib.suppress(OSError):
            (disk / f"{number}").write_bytes(bytes(8192))


def test_a_command_names_the_run_that_has_no_room(disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = disk / "runs"
    assert ask(*SMOKE, "--pe", "none", "--seed", "0", "--executor", "sequential", out=out).code == 1
    errors = capfd.readouterr().err
    assert "Traceback" not in errors
    assert "report this" not in errors
    record = find_record(CONFIG, out)
    if record is None:
        assert f"{out / CONFIG.directory} has no record" in errors
    reason = errors if record is None else record.reason
    assert "No space left on device (" in reason
    assert " files are free)" in reason
    assert CONFIG.directory in reason or "log.txt" in reason  # records hold no absolute paths


def test_a_plan_that_has_no_room_is_told_before_anything_runs(disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(disk)
    assert ask(*SMOKE, "--pe", "none", "--seed", "0", "--executor", "sequential", out=disk / "runs").code == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"pebench: error: {disk / 'runs' / 'plans'}")
    assert "No space left on device (" in errors
    assert errors.count("\n") == 1


def test_a_log_that_has_no_room_is_done_without(disk: Path) -> None:
    (disk / "run").mkdir()
    fill(disk)
    with logged(disk / "run"):  # which would end the process of a run with a traceback on the terminal
        pass
    assert not (disk / "run" / LOG).exists() or not (disk / "run" / LOG).read_text()


def test_what_is_free_is_said_where_a_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "file"
    told = full_disk(OSError(errno.ENOSPC, "No space left on device"), path)
    assert told.filename == str(path)
    assert "bytes" in told.strerror
    other = PermissionError(errno.EACCES, "Permission denied")
    assert full_disk(other, path) is other


def test_an_error_of_writing_names_the_file_and_leaves_no_half(disk: Path) -> None:
    fill(disk)
    with pytest.raises(OSError, match="are free") as caught:
        write_text(disk / "record.json", "x" * 100)
    assert caught.value.filename == str(disk / "record.json")
    assert not [*disk.glob(".*")]
