"""One run in full: by folder, file or key, finished, failed or running."""

import itertools
import os
import platform
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.cli.inspect import find_run
from pebench.runs.leases import claim
from pebench.runs.records import Record, read_config, write_record
from tests.results.single_records import (
    DATASET,
    LOG,
    Ask,
    begun,
    collected,
    run,
    runs,
    write,
)

SHOWN = replace(
    run("concat", 3, 0.75, settings={"train.max_steps": 7}, args={"d_p": 8}),
    parameters={"encoding": 0, "total": 3562}, flops_per_sample=1_234_567, throughput=1234.5678, peak_memory_gib=0.5,
    curve=[{"step": 3, "val/loss": 1.25}, {"step": 7, "val/loss": 0.925, "val/accuracy": 0.6}], duration_s=200.0,
    started="2026-01-01T00:00:00+00:00",
)  # fmt: skip


def section(text: str, title: str) -> dict[str, str]:
    """A section of what is shown: name to value."""
    body = text.partition(f"\n\n{title}\n")[2].partition("\n\n")[0]
    return {name: value.strip() for name, _, value in (line.strip().partition("  ") for line in body.splitlines())}


def test_a_run_is_shown_in_full(tmp_path: Path, ask: Ask) -> None:
    path = write_record(SHOWN, tmp_path)
    answer = ask("show", path.parent)
    assert answer.code == 0
    assert answer.lines[0] == "vit-digits concat (d_p=8), seed 3, tier smoke: ok in 3 min"
    assert section(answer.text, "metrics") == {"test/accuracy": "0.75", "val/loss": "0.925"}
    assert section(answer.text, "costs") == {
        "parameters.encoding": "0", "parameters.total": "3,562", "flops_per_sample": "1,234,567",
        "throughput": "1234.57 examples/s", "peak_memory_gib": "0.5",
    }  # fmt: skip
    settings = section(answer.text, "settings")
    assert (settings["train.max_steps"], settings["encoding_args.d_p"], settings["regime"]) == ("7", "8", "width")
    assert section(answer.text, "data") == {"fingerprint": DATASET["fingerprint"], "sizes.train": "3"}
    assert section(answer.text, "environment")["versions.torch"] == "2.6.0"
    assert section(answer.text, "origin") == {
        "place": str(path.parent), "started": "2026-01-01T00:00:00+00:00", "protocol": SHOWN.protocol,
        "key": SHOWN.config.key,
    }  # fmt: skip
    assert [line.split() for line in answer.lines[-3:]] == [
        ["step", "val/loss", "val/accuracy"], ["3", "1.25"], ["7", "0.925", "0.6"],
    ]  # fmt: skip


@pytest.mark.parametrize("record", [SHOWN, run("none", 0, None)], ids=["ok", "failed"])
def test_a_run_can_be_named_by_folder_file_or_key(record: Record, tmp_path: Path, ask: Ask) -> None:
    path = write_record(record, write([run("add", 0)], tmp_path))
    assert not record.ok or read_config(path.parent) == read_config(path) == record.config
    names = (path.parent, path, record.config.key, record.config.key[:8])
    answers = [ask("show", name, "--out", tmp_path) for name in names]
    assert {answer.code for answer in answers} == {0}
    texts = {re.sub(r"^  place +.*$", "", answer.text, flags=re.MULTILINE) for answer in answers}
    assert len(texts) == 1
    assert record.config.key in texts.pop()


def two_with_one_beginning() -> tuple[Record, Record]:
    """Two runs whose keys begin with the same letter."""
    found: dict[str, Record] = {}
    for seed in itertools.count():
        record = run("add", seed)
        if (other := found.setdefault(record.config.key[0], record)) is not record:
            return other, record
    raise AssertionError


def test_a_key_that_begins_like_two_is_refused_with_both(tmp_path: Path, ask: Ask) -> None:
    one, other = two_with_one_beginning()
    write([one, other], tmp_path)
    answer = ask("show", one.config.key[0], "--out", tmp_path)
    assert answer.code == 2
    assert "2 runs match" in answer.error
    assert one.config.key in answer.error
    assert other.config.key in answer.error
    assert ask("show", one.config.key, "--out", tmp_path).code == 0
    assert ask("show", f"vit-digits/add/seed{one.config.seed}-", "--out", tmp_path).code == 0
    both = ask("show", one.config.key, other.config.key, "--out", tmp_path)
    assert both.text == "\n".join(ask("show", r.config.key, "--out", tmp_path).text for r in (one, other))


@pytest.mark.parametrize("name", ["zzzz", "no/such/folder"])
def test_a_key_that_no_run_has_is_refused(name: str, tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0)], tmp_path)
    for out in (tmp_path, tmp_path / "nowhere"):
        answer = ask("show", name, "--out", out)
        assert answer.code == 2
        assert all(words in answer.error for words in ("no run under", repr(str(out)), repr(name)))


def test_the_middle_of_a_key_names_no_run(tmp_path: Path, ask: Ask) -> None:
    record = run("add", 0)
    write([record], tmp_path)
    assert ask("show", record.config.key[4:], "--out", tmp_path).code == 2


@pytest.mark.parametrize("name", ["my_rows:Wide", "Wide", "my_rows.Wide/seed0", "digits/my", "rows:Wi"])
def test_a_run_is_found_by_any_part_of_its_path_and_by_its_label(name: str, tmp_path: Path) -> None:
    ours = run("add", 0)
    record = replace(ours, config=replace(ours.config, encoding="my_rows:Wide"))
    write([ours, record], tmp_path)
    assert find_run(name, tmp_path) == tmp_path / record.config.directory


def test_a_failed_run_shows_why(tmp_path: Path, ask: Ask) -> None:
    answer = ask("show", write_record(run("rope", 1, None), tmp_path).parent)
    assert answer.lines[0] == "vit-digits rope, seed 1, tier smoke: failed in 1 s"
    assert section(answer.text, "error") == {"kind": "diverged", "reason": "loss is nan at step 12"}
    assert answer.text.endswith("\nend of its log\n" + "".join(f"  {line}\n" for line in LOG.splitlines()))


def test_a_running_one_shows_its_step_and_process(tmp_path: Path, ask: Ask) -> None:
    config = run("add", 0).config
    folder = begun(config, tmp_path)
    with claim(folder) as lease:
        assert lease is not None
        lease.report(41, {"val/loss": 0.5})
        for name in (folder, config.key[:8]):
            answer = ask("show", name, "--out", tmp_path)
            assert answer.code == 0
            assert f"running, step 41, in process {os.getpid()} of {platform.node()}" in answer.text
    answer = ask("show", folder)
    assert answer.code == 2
    assert f"{folder} holds no record of a run; it has not finished" in answer.error


def test_more_runs_than_one_are_not_shown(tmp_path: Path, ask: Ask) -> None:
    write(runs("add", {0: 0.5, 1: 0.5}), tmp_path)
    answer = ask("show", tmp_path)
    assert answer.code == 2
    assert "expected one run" in answer.error
    assert "holds 2" in answer.error


def test_a_damaged_record_is_named(tmp_path: Path, ask: Ask) -> None:
    path = write_record(run("add", 0), tmp_path)
    path.write_text("{")
    answer = ask("show", path.parent)
    assert answer.code == 2
    assert str(path) in answer.error


def test_a_folder_with_one_failed_run_shows_it(tmp_path: Path, ask: Ask) -> None:
    folder = write_record(run("rope", 1, None), tmp_path).parent
    assert "loss is nan" in ask("show", folder.parent).text


def test_a_folder_with_a_collection_of_one_run_shows_it(tmp_path: Path, ask: Ask) -> None:
    collected([run("rope", 1)], tmp_path / "all.jsonl")
    assert ask("show", tmp_path).code == 0
