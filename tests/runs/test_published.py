"""Published records: those of a suite's runs are taken, as `pebench merge` would lay them out, and no others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import pebench
from pebench.cli import main
from pebench.config import RunConfig
from pebench.engine.preview import preview_suite
from pebench.engine.run import run_suite
from pebench.engine.suite import Suite
from pebench.errors import UserError
from pebench.runs.plan import Plan
from pebench.runs.published import published_records, shipped_results
from pebench.runs.records import COLLECTION, Record, read_records, write_jsonl
from tests.cli.asking import ask

SUITE = Suite("s", "?", ["vit-digits", "lm-grammar"], ["add", "rope"], 2, tier="smoke", declared="2026-01-02 03:04")
RUNS = Plan(SUITE, SUITE.kinds()).testing({})


def record(config: RunConfig) -> Record:
    metrics = {"test/loss": 1.5, "test/accuracy": 0.25, "test/bits_per_byte": 0.5, "val/loss": 1.25, "best_step": 2}
    return Record(config, metrics=metrics, parameters={"encoding": 0, "total": 10}, duration_s=1.0)


def published(folder: Path, *collections: list[Record]) -> Path:
    """A folder of published folders, one for each collection."""
    for number, records in enumerate(collections):
        (folder / str(number)).mkdir(parents=True)
        write_jsonl(records, folder / str(number) / COLLECTION)
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return published(tmp_path / "results", [record(RUNS[0]), record(RUNS[5])], [record(c) for c in (RUNS[0], RUNS[2])])


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("record.json")}


def test_the_published_records_of_runs_are_found_by_key(results: Path) -> None:
    assert set(published_records(RUNS, results)) == {RUNS[place].key for place in (0, 2, 5)}
    assert published_records(RUNS[:1], results) == {RUNS[0].key: record(RUNS[0])}
    assert published_records([], results) == published_records(RUNS, results / "nowhere") == {}


def test_records_of_another_protocol_are_left_out(tmp_path: Path) -> None:
    old = replace(record(RUNS[0]), protocol="0.1")
    assert published_records(RUNS, published(tmp_path, [old, record(RUNS[1])])) == {RUNS[1].key: record(RUNS[1])}


def test_a_damaged_record_is_refused_with_its_place_and_others_damage_does_not_matter(results: Path) -> None:
    path = results / "1" / COLLECTION
    path.write_text(path.read_text().replace("0.25", "0.75"))
    with pytest.raises(UserError, match=r"runs\.jsonl, line \d .*checksum.* --no-published"):
        published_records(RUNS, results)
    assert set(published_records(RUNS[5:6], results)) == {RUNS[5].key}


def test_where_matching_changes_nothing_the_run_at_equal_width_counts(tmp_path: Path) -> None:
    kinds = replace(SUITE, regime="parameters").kinds()
    same = next(kind for kind in kinds if kind.label == "add")
    wide = published_records(kinds, published(tmp_path, [record(replace(same, regime="width"))]))
    assert wide == {same.key: record(same)}


def test_a_declared_suite_takes_what_merge_would_lay_out(results: Path, tmp_path: Path) -> None:
    whole = published(tmp_path / "whole", [record(config) for config in RUNS])
    made = run_suite(SUITE, tmp_path / "taken", published=whole)
    assert [found.config for found in made.records] == RUNS  # and nothing was trained
    assert main(["merge", str(whole), "--out", str(tmp_path / "merged")]) == 0
    assert files(tmp_path / "taken") == files(tmp_path / "merged") != {}
    # a record that is there already stays
    first = next((tmp_path / "taken").rglob("record.json"))
    before = first.stat().st_mtime_ns
    run_suite(SUITE, tmp_path / "taken", published=whole)
    assert first.stat().st_mtime_ns == before


def test_a_dry_run_says_what_would_be_taken_and_takes_nothing(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from pebench import Suite\nSUITE = Suite('s', '?', ['vit-digits', 'lm-grammar'], ['add', 'rope'], 2, "
        "tier='smoke', declared='2026-01-02 03:04')"
    )
    words = ["run", "--suite", str(file), "--device", "cpu", "--dry-run"]
    plan = ask(*words, "--published", str(results), out=tmp_path / "out")
    assert plan.lines[:2] == [
        "8 runs: 5 to do, 3 done",
        "3 of 8 runs are published: taken (--no-published makes them)",
    ]
    assert [line.split()[0] for line in plan.lines if line.startswith("  ")].count("taken") == 3
    assert not (tmp_path / "out").exists()
    assert ask(*words, "--no-published", out=tmp_path / "out").lines[0] == "8 runs: 8 to do, 0 done"


@pytest.mark.parametrize(
    ("suite", "options"),
    [
        (SUITE, {"published": False}),
        (SUITE, {"keep_weights": True}),  # which are not published
        (SUITE, {"analyze": True}),
        (replace(SUITE, declared=""), {"published": True}),
    ],
)
def test_nothing_is_taken_where_runs_are_wanted(
    suite: Suite, options: dict[str, object], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pebench.engine.published.shipped_results", lambda: results)
    assert preview_suite(SUITE, tmp_path / "out", device="cpu").published == 3
    preview = preview_suite(suite, tmp_path / "out", device="cpu", **options)
    assert (preview.published, len(preview.waiting)) == (0, 8)


def test_a_published_failure_is_not_taken_where_failures_are_tried_again(tmp_path: Path) -> None:
    failed = Record(RUNS[0], status="failed", error={"kind": "diverged", "reason": "NaN", "log": ""})
    folder = published(tmp_path / "results", [failed])
    taken, tried = (
        preview_suite(SUITE, tmp_path / "out", device="cpu", published=folder, retry_failed=again)
        for again in (False, True)
    )
    assert (taken.published, tried.published) == (1, 0)


def test_an_installed_package_finds_the_records_of_the_clone_that_it_is_called_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(pebench.__file__).parent
    clone, elsewhere = tmp_path / "clone", tmp_path / "elsewhere"
    (clone / "src" / "pebench").mkdir(parents=True)
    elsewhere.mkdir()
    monkeypatch.chdir(clone)
    assert shipped_results() == package.parents[1] / "results", "not installed, so that its own clone counts"
    monkeypatch.setattr("pebench.runs.published.shipped", lambda name: package / name)
    assert shipped_results() == clone / "results"
    monkeypatch.chdir(elsewhere)
    assert shipped_results() != elsewhere / "results", "a folder of that name may be anybody's"


def test_the_quickstart_trains_where_a_suite_that_is_published_whole_does_not(tmp_path: Path) -> None:
    assert (shipped_results() / "core" / COLLECTION).is_file()
    quick = preview_suite("quickstart", tmp_path, device="cpu")
    assert (quick.published, len(quick.waiting)) == (0, 45)
    core = preview_suite("depth", tmp_path, device="cpu", data_dir=tmp_path)
    assert (core.published, core.waiting) == (len(core.runs), [])


def test_a_folder_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--suite", "quickstart", "--published", str(tmp_path / "no"), "--dry-run"]
    assert main(words) == 2
    assert "--published expects a folder" in capsys.readouterr().err


def test_what_is_published_is_read_as_json_lines(results: Path) -> None:
    """`published_records` looks for the key as text: lines are written so by `write_jsonl`."""
    lines = (results / "1" / COLLECTION).read_bytes().splitlines()
    assert all(f'"key":"{json.loads(line)["key"]}"'.encode() in line for line in lines)
    assert len(read_records(results / "1")) == 2
