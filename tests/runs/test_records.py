"""Records: written whole or not at all, read back equal, and never mistaken for something else."""

import json
import os
import random
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.config import PROTOCOL_VERSION
from pebench.errors import UserError
from pebench.runs.plan import write_plan
from pebench.runs.records import FAILURE, FILE_NAME, Record, find_record, read_records, write_jsonl, write_record
from pebench.tasks import configure

CONFIG = configure("vit-digits", "concat", 3, "smoke", {"train.max_steps": 7}, {"d_p": 8})
RECORD = Record(
    CONFIG, metrics={"test/accuracy": 0.1 + 0.2, "best_step": 7}, curve=[{"step": 7, "val/loss": 1e-17}],
    parameters={"encoding": 0, "total": 3562}, flops_per_sample=2**60, throughput=1.5, peak_memory_gib=0.5,
    duration_s=2.5, dataset={"fingerprint": "ab" * 32, "sizes": {"train": 3}, "padding": None},
    environment={"versions": {"torch": "2.6.0"}, "device": "cpu: é ☃"}, started="2026-01-01T00:00:00+00:00",
)  # fmt: skip
FAILED = replace(RECORD, config=replace(CONFIG, seed=4), status="failed", error={"reason": "no", "log": "a\nb"})
DAMAGED = {
    "empty": b"",
    "cut short": b'{"config": {"task": "vit-digits", ',
    "no JSON": b"hello",
    "no record": b'{"a": 1}',
    "a list": b"[1]",
    "a number": b"3",
    "binary": b"\xff\xfe\x00",
    "a config without settings": b'{"config": {"task": "vit-digits", "encoding": "add"}}',
    "an unknown field": json.dumps(RECORD.to_dict() | {"surprise": 1}).encode(),
    "no metrics": json.dumps(RECORD.to_dict() | {"metrics": None}).encode(),
    "a metric in words": json.dumps(RECORD.to_dict() | {"metrics": {"test/accuracy": "good"}}).encode(),
    "no environment": json.dumps(RECORD.to_dict() | {"environment": None}).encode(),
    "an error in words": json.dumps(RECORD.to_dict() | {"error": "boom"}).encode(),
    "a start that is no time": json.dumps(RECORD.to_dict() | {"started": 5}).encode(),
    "a start somewhere": json.dumps(RECORD.to_dict() | {"started": "2026-01-01T00:00:00"}).encode(),
    "a config that cannot be": json.dumps(RECORD.to_dict()).replace('"d_model": 16', '"d_model": -1').encode(),
}
damaged = pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())


def many() -> list[Record]:
    """Records of six runs in the order of tables."""
    names = [(task, name, seed) for task in ("lm-grammar", "vit-digits") for name in ("add", "rope") for seed in (0, 1)]
    return [Record(configure(task, name, seed, "smoke")) for task, name, seed in names]


@pytest.mark.parametrize("record", [RECORD, FAILED], ids=["ok", "failed"])
def test_a_record_reads_back_as_it_was_written(record: Record, tmp_path: Path) -> None:
    path = write_record(record, tmp_path)
    assert path == tmp_path / record.config.directory / (FILE_NAME if record.ok else FAILURE)
    assert find_record(record.config, tmp_path) == record
    assert read_records(tmp_path) == [record]


def test_a_failure_whose_reason_is_empty_has_none(tmp_path: Path) -> None:
    assert replace(FAILED, error={"reason": " ", "log": ""}).reason == "no reason recorded"


@pytest.mark.parametrize("ended", [True, False])
def test_a_failure_that_is_tried_again_while_records_are_read(
    ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is listed, and gone when it is to be read; the record beside it has come if the run has ended."""
    other = write_record(RECORD, tmp_path)
    failure = write_record(FAILED, tmp_path)
    opened = os.open

    def meanwhile(path: str, *arguments: int) -> int:
        if str(path) == str(failure) and failure.exists():
            failure.unlink()
            if ended:
                write_record(replace(FAILED, status="ok", error=None), tmp_path)
        return opened(path, *arguments)

    monkeypatch.setattr("pebench.runs.records.folders.os.open", meanwhile)
    found = read_records(tmp_path)
    assert other.exists()
    assert [(record.config.seed, record.ok) for record in found] == [(3, True), (4, True)][: 1 + ended]


def test_a_file_says_its_key_status_and_protocol(tmp_path: Path) -> None:
    values = json.loads(write_record(FAILED, tmp_path).read_text(encoding="utf-8"))
    assert values["key"] == FAILED.config.key
    assert (values["status"], values["protocol"], values["schema"]) == ("failed", PROTOCOL_VERSION, 2)
    assert values["config"]["encoding_args"] == {"d_p": 8}


def test_a_file_has_the_same_bytes_whatever_the_order_of_its_mappings(tmp_path: Path) -> None:
    turned = replace(RECORD, metrics=dict(reversed(RECORD.metrics.items())))
    first = write_record(RECORD, tmp_path / "a").read_bytes()
    assert write_record(turned, tmp_path / "b").read_bytes() == first


def test_a_file_may_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        assert stat.S_IMODE(write_record(RECORD, tmp_path).stat().st_mode) == 0o644
    finally:
        os.umask(mask)


@pytest.mark.parametrize("name", ["replace", "fsync"])
def test_a_write_that_fails_leaves_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match="no space left"):
        write_record(RECORD, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_write_that_fails_keeps_the_record_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(RECORD, tmp_path)
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_record(replace(RECORD, status="failed"), tmp_path)
    assert find_record(CONFIG, tmp_path) == RECORD


def test_a_record_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, real = [], {name: getattr(os, name) for name in ("fsync", "replace")}
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), real["fsync"](file)))

    def replaced(source: str, target: Path) -> None:
        calls.append("replace")
        assert Path(source).parent == target.parent  # on one file system, where a rename is atomic
        assert Record.from_dict(json.loads(Path(source).read_text(encoding="utf-8"))) == RECORD
        real["replace"](source, target)

    monkeypatch.setattr(os, "replace", replaced)
    write_record(RECORD, tmp_path)
    assert calls[:2] == ["fsync", "replace"]


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: write_record(RECORD, folder),
        lambda folder: write_jsonl([RECORD], folder / "all.jsonl"),
        lambda folder: write_plan([CONFIG], folder),
    ],
    ids=["record", "collection", "plan"],
)
def test_two_processes_of_one_number_write_files_of_their_own(
    write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of two containers may be that share a folder."""
    replaced, written = os.replace, set[Path]()
    monkeypatch.setattr(os, "replace", lambda source, target: (written.add(source), replaced(source, target)))
    write(tmp_path)
    write(tmp_path)
    assert len(written) == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused(value: float, tmp_path: Path) -> None:
    record = replace(RECORD, metrics={"test/loss": value})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record(record, tmp_path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_jsonl([record], tmp_path / "all.jsonl")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_no_record_is_found_where_there_is_none(tmp_path: Path) -> None:
    write_record(RECORD, tmp_path)
    assert find_record(replace(CONFIG, seed=0), tmp_path) is None
    assert find_record(CONFIG, tmp_path / "elsewhere") is None


@damaged
def test_a_damaged_record_counts_as_absent(content: bytes, tmp_path: Path) -> None:
    write_record(RECORD, tmp_path).write_bytes(content)
    assert find_record(CONFIG, tmp_path) is None


@damaged
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    write_record(FAILED, tmp_path)
    path = write_record(RECORD, tmp_path)
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_records(tmp_path)
    assert str(path) in str(caught.value)


def test_a_damaged_line_of_a_jsonl_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    write_jsonl(many(), path)
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(UserError, match=r"all\.jsonl, line 8, is not a record"):
        read_records(path)


def test_the_source_must_exist_and_hold_records(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere' does not exist"):
        read_records(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no records under"):
        read_records(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_records_are_read_in_one_order_however_they_were_written(seed: int, tmp_path: Path) -> None:
    shuffled = random.Random(seed).sample(many(), len(many()))
    for record in shuffled:
        write_record(record, tmp_path / "folder")
    write_jsonl(shuffled, tmp_path / "all.jsonl")
    assert read_records(tmp_path / "folder") == many()
    assert read_records(tmp_path / "all.jsonl") == many()
    assert read_records(tmp_path) == many()  # both: each run once


@pytest.mark.parametrize("name", ["aaa.jsonl", "zzz.jsonl"])
def test_a_runs_own_record_wins_over_an_older_collection_beside_it(name: str, tmp_path: Path) -> None:
    write_jsonl([replace(RECORD, status="failed")], tmp_path / name)
    write_record(RECORD, tmp_path)
    assert read_records(tmp_path) == [RECORD]


def test_no_file_is_written_that_would_not_be_found_again(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ends in .jsonl.*all.json'"):
        write_jsonl([RECORD], tmp_path / "all.json")
    assert not [*tmp_path.iterdir()]


def test_an_output_folder_inside_another_is_a_matter_of_its_own(tmp_path: Path) -> None:
    other = replace(RECORD, config=replace(CONFIG, seed=5))
    write_record(other, tmp_path / "core")
    write_jsonl([FAILED], tmp_path / "core" / "all.jsonl")
    assert read_records(tmp_path) == [FAILED, other]  # as no run is of this folder
    write_record(RECORD, tmp_path)
    assert read_records(tmp_path) == [RECORD]
    write_jsonl([FAILED], tmp_path / "all.jsonl")
    assert read_records(tmp_path) == [RECORD, FAILED]


def test_blank_lines_of_a_jsonl_file_are_skipped(tmp_path: Path) -> None:
    write_jsonl(many(), tmp_path / "all.jsonl")
    text = (tmp_path / "all.jsonl").read_text(encoding="utf-8")
    (tmp_path / "all.jsonl").write_text(text.replace("\n", "\n\n"), encoding="utf-8")
    assert read_records(tmp_path) == many()


def test_records_of_another_protocol_are_kept_apart(tmp_path: Path) -> None:
    other = replace(RECORD, protocol="0.0")
    write_jsonl([RECORD, other], tmp_path / "all.jsonl")
    assert {record.protocol for record in read_records(tmp_path)} == {"0.0", PROTOCOL_VERSION}


def test_a_runs_own_record_goes_before_one_in_a_collection(tmp_path: Path) -> None:
    write_jsonl([replace(RECORD, throughput=1.0)], tmp_path / "z.jsonl")
    write_record(replace(RECORD, throughput=2.0), tmp_path)
    assert [record.throughput for record in read_records(tmp_path)] == [2.0]


def test_folders_that_lie_elsewhere_are_read_once_and_circles_have_an_end(tmp_path: Path) -> None:
    write_record(RECORD, tmp_path / "scratch")
    (tmp_path / "runs" / "inside").mkdir(parents=True)
    (tmp_path / "runs" / "elsewhere").symlink_to(tmp_path / "scratch", target_is_directory=True)
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "scratch", target_is_directory=True)
    (tmp_path / "runs" / "inside" / "up").symlink_to(tmp_path / "runs", target_is_directory=True)
    (tmp_path / "runs" / "lost").symlink_to(tmp_path / "nowhere")
    assert read_records(tmp_path / "runs") == [RECORD]


def test_records_that_are_read_share_what_looks_the_same_and_nothing_else(tmp_path: Path) -> None:
    seeds = [replace(RECORD, config=CONFIG.with_seed(seed), environment={"threads": 1}) for seed in range(3)]
    other = replace(RECORD, config=CONFIG.with_seed(3), environment={"threads": 1.0})
    write_jsonl([*seeds, other], tmp_path / "all.jsonl")
    first, second, third, fourth = read_records(tmp_path)
    assert first.environment is second.environment is third.environment
    assert first.config.model is second.config.model
    assert repr(fourth.environment) == "{'threads': 1.0}"
    assert [record.config.seed for record in (first, second, third, fourth)] == [0, 1, 2, 3]


def test_a_collection_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_jsonl([RECORD], tmp_path / "all.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        write_jsonl([RECORD, replace(RECORD, throughput=float("nan"))], tmp_path / "all.jsonl")
    assert read_records(tmp_path) == [RECORD]
    assert [path.name for path in tmp_path.iterdir()] == ["all.jsonl"]
