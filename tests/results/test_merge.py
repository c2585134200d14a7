"""Records of several machines in one collection, and published ones as a folder to go on in."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.results.page import Page
from pebench.results.writers.markdown import markdown
from pebench.runs.costs import cost
from pebench.runs.plan import run_states
from pebench.runs.records import merge, read_records
from pebench.runs.suite import load_suite
from tests.results.single_records import (
    DATASET,
    ENVIRONMENT,
    Ask,
    collected,
    run,
    runs,
    selecting,
    write,
)


def test_records_of_two_machines_become_one_collection(tmp_path: Path, ask: Ask) -> None:
    first = write(runs("add", {0: 0.5, 1: 0.25}), tmp_path / "first")
    second = collected(runs("add", {1: 0.25, 2: None}), tmp_path / "second.jsonl")
    answer = ask("merge", first, second, "--records", tmp_path / "all.jsonl")
    assert answer.code == 0
    assert answer.text == f"3 runs from 4 records written to {tmp_path / 'all.jsonl'}, 1 of them failed\n"
    assert read_records(tmp_path / "all.jsonl") == runs("add", {0: 0.5, 1: 0.25, 2: None})


@pytest.mark.parametrize("order", [1, -1])
def test_a_finished_run_beats_a_failed_one(order: int, tmp_path: Path, ask: Ask) -> None:
    places = [
        collected([run("add", 0, value)], tmp_path / name) for name, value in (("a.jsonl", None), ("b.jsonl", 0.5))
    ]
    answer = ask("merge", *places[::order], "--records", tmp_path / "all.jsonl")
    assert answer.text == f"1 run from 2 records written to {tmp_path / 'all.jsonl'}\n"
    assert read_records(tmp_path / "all.jsonl") == [run("add", 0, 0.5)]


@pytest.mark.parametrize("before", [None, "what was there\n"])
def test_contradicting_records_are_refused_and_nothing_is_written(before: str | None, tmp_path: Path, ask: Ask) -> None:
    target, config = tmp_path / "all.jsonl", run("rope", 0).config
    if before:
        target.write_text(before)
    a = collected([run("add", 0), run("rope", 0, 0.625)], tmp_path / "a.jsonl")
    b = collected([run("add", 0), run("rope", 0, 0.75), run("none", 0)], tmp_path / "b.jsonl")
    answer = ask("merge", a, b, "--records", target)
    assert answer.code == 2
    assert "1 run recorded with contradictory outcomes" in answer.error
    assert (
        f"{config.directory}: test/accuracy 0.625, val/loss 0.9375 against test/accuracy 0.75, val/loss 0.925"
        in answer.error
    )
    assert "--prefer-first" in answer.error
    assert "/add/" not in answer.error
    assert (target.read_text() if target.exists() else None) == before


@pytest.mark.parametrize(("order", "kept"), [(1, 0.625), (-1, 0.75)])
def test_the_first_of_contradicting_records_can_be_preferred(order: int, kept: float, tmp_path: Path, ask: Ask) -> None:
    a = collected([run("rope", 0, 0.625)], tmp_path / "a.jsonl")
    b = collected([run("rope", 0, 0.75), run("none", 0)], tmp_path / "b.jsonl")
    answer = ask("merge", *(a, b)[::order], "--records", tmp_path / "all.jsonl", "--prefer-first")
    assert answer.code == 0
    assert answer.lines[0] == f"2 runs from 3 records written to {tmp_path / 'all.jsonl'}"
    (line,) = answer.lines[1:]
    assert line.startswith(f"contradicted, the first kept: {run('rope', 0).config.directory}: test/accuracy {kept:g}, ")
    assert read_records(tmp_path / "all.jsonl") == [run("none", 0), run("rope", 0, kept)]


def test_other_data_are_a_contradiction() -> None:
    one, other = run("add", 0), run("add", 0, dataset=DATASET | {"fingerprint": "f" * 64})
    assert merge([[one], [other]]) == ([one], [(one, other)])


def test_another_machine_is_none() -> None:
    one = run("add", 0)
    other = replace(one, environment=ENVIRONMENT | {"threads": 8}, duration_s=1.0, throughput=9.0, started="later")
    assert merge([[one], [other]]) == ([one], [])


def test_of_two_failed_records_one_that_diverged_is_kept() -> None:
    one, other = run("add", 0, None), run("add", 0, None)
    killed = replace(one, error={"kind": "killed", "reason": "the power failed", "log": ""})
    diverged = replace(other, error={"kind": "diverged", "reason": "the loss is nan", "log": ""})
    assert merge([[killed], [diverged]]) == merge([[diverged], [killed]]) == ([diverged], [])


def test_of_two_others_the_first_is_kept() -> None:
    one = run("add", 0, None)
    other = replace(one, error={"kind": "killed", "reason": "the power failed", "log": ""})
    assert merge([[one], [other]]) == ([one], [])


def test_a_contradiction_is_found_past_a_failed_record() -> None:
    failed, one, other = run("add", 0, None), run("add", 0, 0.5), run("add", 0, 0.75)
    for collections in ([[failed], [one], [other]], [[one], [failed], [other]], [[one], [other], [failed]]):
        assert merge(collections) == ([one], [(one, other)])


def test_protocols_are_kept_apart(tmp_path: Path, ask: Ask) -> None:
    records = [run("add", 0, 0.5), run("add", 0, 0.75, protocol="0.0")]
    places = [collected([record], tmp_path / f"{record.protocol}.jsonl") for record in records]
    assert ask("merge", *places, "--records", tmp_path / "all.jsonl").code == 0
    assert {record.protocol: record for record in read_records(tmp_path / "all.jsonl")} == {
        record.protocol: record for record in records
    }


def test_the_order_of_sources_does_not_matter_where_nothing_contradicts(tmp_path: Path, ask: Ask) -> None:
    sources = [
        write([*runs("add", {0: 0.5, 1: None}), run("rope", 2)], tmp_path / "a"),
        collected([*runs("add", {1: 0.25, 0: 0.5}), run("none", 0, 2.5, "lm-grammar")], tmp_path / "b.jsonl"),
        write([*runs("add", {2: None, 1: 0.25}), run("rope", 2, None)], tmp_path / "c"),
    ]
    written = set()
    for order in itertools.permutations(sources):
        assert ask("merge", *order, "--records", tmp_path / "all.jsonl").code == 0
        written.add((tmp_path / "all.jsonl").read_bytes())
    assert len(written) == 1
    assert [record.ok for record in read_records(tmp_path / "all.jsonl")].count(False) == 1


def test_a_merged_collection_may_grow_in_its_place(tmp_path: Path, ask: Ask) -> None:
    path = collected([run("add", 0)], tmp_path / "all.jsonl")
    for _ in range(2):
        assert ask("merge", path, write([run("rope", 0)], tmp_path / "new"), "--records", path).code == 0
    assert read_records(path) == [run("add", 0), run("rope", 0)]


def test_a_merged_collection_gives_the_report_of_its_records(tmp_path: Path, ask: Ask) -> None:
    records = [*runs("add", {0: 0.5, 1: 0.25}), *runs("rope", {0: 0.75, 1: None})]
    places = [write(records[:3], tmp_path / "a"), write(records[1:], tmp_path / "b")]
    assert ask("merge", *places, "--records", tmp_path / "all.jsonl").code == 0
    assert ask("report", tmp_path / "all.jsonl").text == markdown(Page.of(records))


@pytest.mark.parametrize(
    ("sources", "target"), [(["a.jsonl", "nowhere"], "all.jsonl"), (["a.jsonl"], "no/such/all.jsonl")]
)
def test_a_merge_that_cannot_be_is_told(sources: list[str], target: str, tmp_path: Path, ask: Ask) -> None:
    collected([run("add", 0)], tmp_path / "a.jsonl")
    answer = ask("merge", *(tmp_path / source for source in sources), "--records", tmp_path / target)
    assert answer.code == 2
    assert "expected a folder" in answer.error
    assert not (tmp_path / target).exists()


def test_a_merge_needs_a_target(tmp_path: Path, ask: Ask) -> None:
    answer = ask("merge", collected([run("add", 0)], tmp_path / "a.jsonl"))
    assert answer.code == 2
    assert "--records" in answer.error
    assert "--out" in answer.error


def test_published_records_become_a_folder_that_a_run_goes_on_in(tmp_path: Path, ask: Ask) -> None:
    records = [*runs("add", {0: 0.5, 1: None}), selecting(1e-3, 0.5)]
    path, out = collected(records, tmp_path / "all.jsonl"), tmp_path / "runs"
    answer = ask("merge", path, "--out", out)
    assert answer.code == 0
    assert answer.text == f"3 runs laid out in {out}. To go on from there: pebench run ... --out {out}\n"
    assert read_records(out) == read_records(path)
    assert run_states([record.config for record in (*records, run("none", 0))], out) == [
        "done",
        "failed",
        "done",
        "to do",
    ]
    assert ask("merge", path, "--out", out).text.startswith(f"0 runs laid out in {out}, 3 more there already. To go on")


def test_a_suite_takes_over_the_runs_that_it_shares_with_another(tmp_path: Path, ask: Ask) -> None:
    suite = "from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['vit-digits'], ['add'], 2, 'smoke', select=%s)\n"
    (tmp_path / "mine.py").write_text(suite % {"train.learning_rate": [1e-3, 1e-2]})
    trials = [selecting(1e-3, 0.5), selecting(1e-2, 0.25), selecting(1e-1, 0.125)]  # the last is none of its values
    tested = [
        replace(record, config=replace(trial.config, stage="test").with_seed(record.config.seed))
        for trial in trials
        for record in runs("add", {0: 0.5, 1: 0.75, 2: 0.5})
    ]
    path = collected([*trials, *tested, run("rope", 0)], tmp_path / "all.jsonl")
    answer = ask("merge", path, "--out", tmp_path / "runs", "--suite", tmp_path / "mine.py")
    assert answer.text.startswith("4 runs laid out")
    assert answer.text.endswith(f"run --suite {tmp_path / 'mine.py'} --out {tmp_path / 'runs'}\n")
    answer = ask(
        "merge",
        collected([run("rope", 0)], tmp_path / "other.jsonl"),
        "--out",
        tmp_path / "none",
        "--suite",
        tmp_path / "mine.py",
    )
    assert (answer.code, (tmp_path / "none").exists()) == (2, False)
    assert "none of these runs is one of the suite" in answer.error
    found = read_records(tmp_path / "runs")
    assert {(r.config.stage, r.config.train.learning_rate, r.config.seed) for r in found} == {
        ("test", 1e-2, 0), ("test", 1e-2, 1), ("select", 1e-2, 1_000_000), ("select", 1e-3, 1_000_000),
    }  # fmt: skip


@pytest.mark.parametrize("regime", ["parameters", "FLOPs"])
def test_a_suite_takes_over_the_runs_in_which_its_regime_changes_nothing(regime: str, tmp_path: Path, ask: Ask) -> None:
    suite = "from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['vit-digits'], %s, 1, 'smoke', regime=%r)\n"
    (tmp_path / "mine.py").write_text(suite % (["add", "learned", "concat-qk"], regime))
    path = collected([run("add", 0), run("learned", 0), run("concat-qk", 0)], tmp_path / "all.jsonl")
    answer = ask("merge", path, "--out", tmp_path / "runs", "--suite", tmp_path / "mine.py")
    assert answer.code == 0
    found = {record.config.encoding: record for record in read_records(tmp_path / "runs")}
    assert {*found} == ({"add"} if regime == "parameters" else {"add", "learned"})  # a table is added without products
    assert found["add"].config.regime == regime
    assert found["add"].metrics == run("add", 0).metrics
    assert found["add"].matched_flops == (None if regime == "parameters" else cost(run("add", 0).config).flops)
    kinds = load_suite(str(tmp_path / "mine.py")).kinds()
    assert run_states([kind.with_seed(0) for kind in kinds], tmp_path / "runs") == [
        "done",
        "to do" if regime == "parameters" else "done",
        "to do",
    ]


def test_what_a_folder_holds_is_kept_and_completed(tmp_path: Path, ask: Ask) -> None:
    out = write([run("add", 0, 0.5), run("add", 1, None), run("add", 2, 0.75)], tmp_path / "runs")
    path = collected(runs("add", {0: None, 1: 0.25, 2: 0.25}), tmp_path / "all.jsonl")
    answer = ask("merge", path, "--out", out)
    assert answer.code == 2
    assert "after what --out holds" in answer.error
    assert read_records(out) == runs("add", {0: 0.5, 1: None, 2: 0.75})
    answer = ask("merge", path, "--out", out, "--records", tmp_path / "new.jsonl", "--prefer-first")
    assert answer.code == 0
    assert answer.lines[0] == f"3 runs from 6 records written to {tmp_path / 'new.jsonl'}"
    assert answer.lines[1].startswith("1 run laid out")
    assert read_records(out) == read_records(tmp_path / "new.jsonl") == runs("add", {0: 0.5, 1: 0.25, 2: 0.75})


def test_a_run_of_another_protocol_is_not_taken_for_one_of_this(tmp_path: Path, ask: Ask) -> None:
    path = collected([run("add", 0, protocol="0.0"), run("add", 1)], tmp_path / "all.jsonl")
    answer = ask("merge", path, "--out", tmp_path / "runs")
    assert "1 run laid out" in answer.text
    assert "left out: 1 of another protocol" in answer.text
    assert read_records(tmp_path / "runs") == [run("add", 1)]


def test_a_file_is_no_output_folder(tmp_path: Path, ask: Ask) -> None:
    path = collected([run("add", 0)], tmp_path / "all.jsonl")
    answer = ask("merge", path, "--out", path)
    assert answer.code == 2
    assert "folder" in answer.error
    assert read_records(path) == [run("add", 0)]


def test_a_contradiction_of_data_is_named_as_one(tmp_path: Path, ask: Ask) -> None:
    one, other = run("add", 0), run("add", 0, dataset=DATASET | {"fingerprint": "f" * 64})
    places = [collected([record], tmp_path / f"{name}.jsonl") for name, record in (("a", one), ("b", other))]
    assert "ffffffffffff" in ask("merge", *places, "--records", tmp_path / "all.jsonl").error
