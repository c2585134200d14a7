"""Looking at records: one run, two collections, several machines, a folder in progress. Nothing is trained here."""

import itertools
import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pebench.cli import main
from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.results.compare import compare
from pebench.results.page import Page
from pebench.results.writers.markdown import markdown
from pebench.runs.costs import cost
from pebench.runs.leases import Holder, _myself, claim
from pebench.runs.plan import run_states, write_plan
from pebench.runs.records import Record, merge, read_config, read_records, write_config, write_jsonl, write_record
from pebench.runs.suite import load_suite
from pebench.tasks import TASKS, configure

DATASET = {"fingerprint": "0123456789abcdef" * 4, "sizes": {"train": 3}, "padding": None}
ENVIRONMENT = {"versions": {"torch": "2.6.0"}, "device": "cpu: Some Processor", "threads": 1}
LOG = "step 11 loss 3.2\nstep 12 loss nan\nRuntimeError: it diverged"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def run(encoding: str, seed: int, value: float | None = 0.5, task: str = "vit-digits", **changes: Any) -> Record:
    """A record of a run that finished with this headline metric, or failed if it is None."""
    config = configure(task, encoding, seed, "smoke", changes.pop("settings", {}), changes.pop("args", {}))
    if value is None:
        error = {"kind": "diverged", "reason": "loss is nan at step 12", "log": LOG}
        return Record(config, status="failed", error=error, duration_s=1.0)
    metrics = {f"test/{TASKS[task].metric}": value, "val/loss": 1 - value / 10}
    usual = {"metrics": metrics, "duration_s": 120.0, "dataset": DATASET, "environment": ENVIRONMENT}
    return Record(config, **(usual | changes))


def runs(encoding: str, values: dict[int, float | None], **changes: Any) -> list[Record]:
    return [run(encoding, seed, value, **changes) for seed, value in values.items()]


def selecting(rate: float, loss: float) -> Record:
    config = configure("vit-digits", "add", 1_000_000, "smoke", {"train.learning_rate": rate})
    return Record(replace(config, stage="select", selected=("train.learning_rate",)), metrics={"val/loss": loss})


def write(records: list[Record], out: Path) -> Path:
    for record in records:
        write_record(record, out)
    return out


def collected(records: list[Record], path: Path) -> Path:
    write_jsonl(records, path)
    return path


def begun(config: RunConfig, out: Path) -> Path:
    """The folder of a run that has no record yet."""
    return write_config(config, out).parent


@dataclass
class Answer:
    """What a command printed, and how it ended."""

    code: int
    text: str
    error: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def row(self, *first: str) -> list[str]:
        """The cells of the one line of a table that begins like this."""
        found = [re.split(r" {2,}", line.strip()) for line in self.lines]
        (cells,) = [cells for cells in found if tuple(cells[: len(first)]) == first]
        return cells[len(first) :]


Ask = Callable[..., Answer]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """A function that runs a command, which must not end in a traceback."""

    def call(*arguments: object) -> Answer:
        code = main([str(argument) for argument in arguments])
        answer = Answer(code, *capsys.readouterr())
        assert "Traceback" not in answer.error
        assert (code == 2) == answer.error.startswith("pebench: error: ")
        assert code == 0 or not answer.text
        return answer

    return call


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: when it was written, and what."""
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


# One run

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


# Two collections


def compared(a: list[Record], b: list[Record]) -> Answer:
    return Answer(0, compare(a, b, ("here", "there")), "")


def differing(answer: Answer) -> list[str]:
    return [line.removeprefix("differs  ") for line in answer.lines if line.startswith("differs")]


def test_equal_collections_differ_in_nothing() -> None:
    records = runs("add", {0: 0.5, 1: 0.625})
    answer = compared(records, records)
    assert answer.lines[:2] == ["A: here, 2 runs", "B: there, 2 runs"]
    assert differing(answer) == []
    assert answer.row("vit-digits", "add", "test/accuracy")[2:] == ["+0.0000 ± 0.0000", "2"]


def test_what_differs_is_listed_and_nothing_else() -> None:
    elsewhere = ENVIRONMENT | {"device": "cuda: Some Accelerator"}
    a = runs("add", {0: 0.5, 1: 0.5})
    b = runs("add", {0: 0.5, 1: 0.5}, settings={"train.max_steps": 7}, args={"ratio": 2.0}, environment=elsewhere)
    assert differing(compared(a, b)) == [
        "encoding_args.ratio: nothing | 2.0",
        'environment.device: "cpu: Some Processor" | "cuda: Some Accelerator"',
        "train.max_steps: 2 | 7",
    ]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (run("add", 1), "seed: 0 | 1"),
        (run("add", 0, protocol="0.0"), f'protocol: "{PROTOCOL_VERSION}" | "0.0"'),
        (run("add", 0, dataset={"fingerprint": "f" * 64}), 'data: "0123456789ab" | "ffffffffffff"'),
        (run("add", 0, settings={"data.patch_size": 4}), "data.patch_size: 2 | 4"),
        (run("rope", 0), 'encoding: "add" | "rope"'),
        (replace(run("add", 0), status="failed"), 'status: "ok" | "failed"'),
    ],
    ids=["seed", "protocol", "data", "setting", "encoding", "status"],
)
def test_circumstances_that_differ_are_listed(changed: Record, line: str) -> None:
    assert differing(compared([run("add", 0)], [changed])) == [line]


def test_the_difference_is_b_minus_a_at_equal_seeds() -> None:
    # seeds 1 and 2: 0.65 - 0.6, 0.8 - 0.7: mean 0.075, s = 0.05 / sqrt(2), half-width 12.7062 * 0.05 / 2
    a, b = runs("add", {0: 0.5, 1: 0.6, 2: 0.7}), runs("add", {1: 0.65, 2: 0.8, 3: 0.2})
    # of A alone: s = 0.1, 4.30265 * 0.1 / sqrt(3); of B alone: mean 0.55, s = 0.31225, 4.30265 * s / sqrt(3)
    expected = ["0.6000 ± 0.2484", "0.5500 ± 0.7757", "+0.0750 ± 0.3177", "2"]
    assert compared(a, b).row("vit-digits", "add", "test/accuracy") == expected
    assert compared(b, a).row("vit-digits", "add", "test/accuracy")[2:] == ["-0.0750 ± 0.3177", "2"]


def test_one_seed_in_common_has_no_interval() -> None:
    a, b = runs("add", {0: 0.5, 1: 0.75}), runs("add", {0: 0.25})
    assert compared(a, b).row("vit-digits", "add", "test/accuracy")[1:] == ["0.2500", "-0.2500", "1"]


def test_no_seed_in_common_is_said() -> None:
    cells = compared(runs("add", {0: 0.5}), runs("add", {1: 0.25})).row("vit-digits", "add", "test/accuracy")
    assert cells == ["0.5000", "0.2500", "no seed in common", "0"]


def test_a_failed_run_has_no_pair() -> None:
    a, b = runs("add", {0: 0.5, 1: 0.25}), runs("add", {0: None, 1: 0.5})
    assert compared(a, b).row("vit-digits", "add", "test/accuracy")[1:] == ["0.5000", "+0.2500", "1"]
    assert "no seed in common" in compared(a[:1], b[:1]).text
    assert "no seed in common" in compared(a[:1], [replace(a[0], status="failed")]).text  # whatever it has measured


def test_every_task_encoding_and_option_is_a_row_of_its_own() -> None:
    a = [run("add", 0), run("concat", 0), run("concat", 0, 0.25, args={"d_p": 8}), run("rope", 0, 2.5, "lm-grammar")]
    answer = compared(a, [run("concat", 0, 0.75, args={"d_p": 8}), run("rope", 0, 2.0, "lm-grammar")])
    assert answer.row("vit-digits", "add")[1:] == ["0.5000", "–", "no seed in common", "0"]
    assert answer.row("vit-digits", "concat")[2] == "–"
    assert answer.row("vit-digits", "concat (d_p=8)")[1:] == ["0.2500", "0.7500", "+0.5000", "1"]
    assert answer.row("lm-grammar", "rope") == ["test/bits_per_byte", "2.5000", "2.0000", "-0.5000", "1"]


def test_what_selects_is_compared_by_what_it_selects_by() -> None:
    a, b = [run("add", 0), selecting(1e-3, 0.5)], [run("add", 0), selecting(1e-3, 0.25)]
    answer = compared(a, b)
    assert answer.row("vit-digits", "add", "val/loss") == ["0.5000", "0.2500", "-0.2500", "1"]
    assert answer.row("vit-digits", "add", "test/accuracy")[2:] == ["+0.0000", "1"]


def test_folders_and_collections_compare_alike(tmp_path: Path, ask: Ask) -> None:
    a, b = runs("add", {0: 0.5, 1: 0.25}), runs("add", {0: 0.5, 1: 0.75})
    one = ask("compare", write(a, tmp_path / "a"), write(b, tmp_path / "b"))
    other = ask("compare", collected(a, tmp_path / "a.jsonl"), collected(b, tmp_path / "b.jsonl"))
    assert (one.code, other.code) == (0, 0)
    assert one.lines[0] == f"A: {tmp_path / 'a'}, 2 runs"
    assert one.lines[2:] == other.lines[2:]
    assert one.row("vit-digits", "add")[3:] == ["+0.2500 ± 3.1766", "2"]


def test_shuffled_records_compare_alike() -> None:
    records = [run(name, seed, seed / 10) for name in ("add", "rope") for seed in range(4)]
    shuffled = random.Random(0).sample(records, len(records))
    assert compared(shuffled, records[:3]).text == compared(records, records[:3]).text


@pytest.mark.parametrize("which", [0, 1])
def test_a_comparison_with_nothing_is_refused(which: int, tmp_path: Path, ask: Ask) -> None:
    places = [write([run("add", 0)], tmp_path / "a"), tmp_path / "nowhere"]
    answer = ask("compare", places[which], places[1 - which])
    assert answer.code == 2
    assert str(tmp_path / "nowhere") in answer.error


# Several machines


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
    assert answer.text == f"3 runs laid out in {out}. From there goes on: pebench run --suite NAME --out {out}\n"
    assert read_records(out) == read_records(path)
    assert run_states([record.config for record in (*records, run("none", 0))], out) == [
        "done",
        "failed",
        "done",
        "to do",
    ]
    assert ask("merge", path, "--out", out).text.startswith(f"0 runs laid out in {out}, 3 more there already. From")


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


# A folder in progress


def leave_lease(folder: Path, **changes: Any) -> None:
    """What another process has left in a run's folder, dead or alive."""
    holder = replace(Holder("elsewhere", 1, 1, time.time()), **changes)
    (folder / "lease-0.json").write_text(json.dumps(asdict(holder)))


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        process.wait()
    return process.pid


def test_every_run_is_counted_in_its_state(tmp_path: Path, ask: Ask) -> None:
    write([*runs("add", {0: 0.5, 1: None}), run("rope", 0), *runs("none", {0: 2.5}, task="lm-grammar")], tmp_path)
    begun(run("rope", 1).config, tmp_path)
    with claim(begun(run("rope", 2).config, tmp_path)):
        answer = ask("status", tmp_path)
    assert answer.code == 0
    assert answer.lines[0].startswith(f"{tmp_path}: 6 runs: 3 done, 1 failed, 1 running, 1 to do")
    assert answer.row("Task") == ["done", "failed", "running", "to do"]
    assert answer.row("lm-grammar") == ["1", "0", "0", "0"]
    assert answer.row("vit-digits") == ["2", "1", "1", "1"]


def test_what_is_planned_and_not_begun_is_to_do(tmp_path: Path, ask: Ask) -> None:
    plan = [configure(task, "add", seed, "smoke") for task in ("vit-digits", "lm-grammar") for seed in (0, 1)]
    write_plan(plan, tmp_path)
    answer = ask("status", tmp_path)
    assert (answer.code, answer.lines[0]) == (0, f"{tmp_path}: 4 runs: 0 done, 4 to do")
    write_record(Record(plan[0], metrics={"test/accuracy": 0.5}), tmp_path)
    answer = ask("status", tmp_path)
    assert answer.lines[0] == f"{tmp_path}: 4 runs: 1 done, 3 to do"
    assert answer.row("lm-grammar") == ["0", "0", "0", "2"]


def test_runs_that_nobody_planned_here_are_counted_too(tmp_path: Path, ask: Ask) -> None:
    planned, other = configure("vit-digits", "add", 0, "smoke"), selecting(1e-3, 0.5)
    write_plan([planned], tmp_path)
    write([other], tmp_path)
    assert ask("status", tmp_path).lines[0] == f"{tmp_path}: 2 runs: 1 done, 1 to do"


def test_a_running_run_is_shown_with_its_step(tmp_path: Path, ask: Ask) -> None:
    config = run("add", 0).config
    with claim(begun(config, tmp_path)) as lease:
        assert lease is not None
        lease.report(41, {"train/loss": 9.0, "val/loss": 0.5, "val/accuracy": 0.25})
        lines = ask("status", tmp_path).lines
    (line,) = lines[lines.index("running") + 1 :]
    assert line.startswith(f"  {config.directory}: step 41, val accuracy 25.00 %, for ")
    assert line.endswith(f", process {os.getpid()} on {platform.node()}")


def test_a_failed_run_is_shown_with_its_kind_and_reason(tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0), run("rope", 0, None)], tmp_path)
    lines = ask("status", tmp_path).lines
    assert lines[lines.index("failed (run them again with --retry-failed)") + 1 :] == [
        f"  {run('rope', 0).config.directory}: diverged: loss is nan at step 12"
    ]


def test_a_failed_run_that_runs_again_is_running(tmp_path: Path, ask: Ask) -> None:
    with claim(write_record(run("rope", 0, None), tmp_path).parent):
        answer = ask("status", tmp_path)
    assert answer.lines[0].startswith(f"{tmp_path}: 1 run: 0 done, 1 running, 0 to do")
    assert "--retry-failed" not in answer.text


@needs_proc
def test_the_lease_of_a_dead_process_is_not_running(tmp_path: Path, ask: Ask) -> None:
    ours = asdict(_myself())
    leave_lease(begun(run("add", 0).config, tmp_path), **ours | {"pid": dead_process()})
    leave_lease(write_record(run("add", 1, None), tmp_path).parent, **ours | {"born": 1})
    answer = ask("status", tmp_path)
    assert answer.lines[0] == f"{tmp_path}: 2 runs: 0 done, 1 failed, 1 to do"
    assert "running" not in answer.lines


def test_a_run_on_another_machine_is_running(tmp_path: Path, ask: Ask) -> None:
    leave_lease(begun(run("add", 0).config, tmp_path), step=7)
    answer = ask("status", tmp_path)
    assert ", 1 running, " in answer.lines[0]
    assert answer.lines[-1].endswith("process 1 on elsewhere")
    assert ": step 7, for " in answer.lines[-1]


def test_the_time_left_goes_by_what_each_task_took(tmp_path: Path, ask: Ask) -> None:
    # vit-digits: one to do, one half done, at 120 s each; lm-grammar: two to do at 600 s; two at a time
    write([run("add", 0), run("add", 0, 2.5, "lm-grammar", duration_s=600.0)], tmp_path)
    for config in (run("add", 1), run("add", 1, 2.5, "lm-grammar"), run("add", 2, 2.5, "lm-grammar")):
        begun(config.config, tmp_path)
    with claim(begun(run("add", 2).config, tmp_path)):
        assert ask("status", tmp_path).lines[0].endswith(", about 23 min left")  # (1.5 * 120 + 2 * 600) s
        with claim(begun(run("add", 3).config, tmp_path)):
            assert ask("status", tmp_path).lines[0].endswith(", about 12 min left")  # (2 * 120 + 2 * 600) / 2 s
    assert ask("status", tmp_path).lines[0].endswith(": 2 done, 5 to do")


def test_a_task_of_which_nothing_is_done_is_taken_for_the_mean_of_the_others(tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0), run("add", 0, 2.5, "lm-grammar", duration_s=600.0)], tmp_path)
    begun(run("add", 0, 0.5, "text-order").config, tmp_path)
    with claim(begun(run("add", 1, 0.5, "text-order").config, tmp_path)):
        assert ask("status", tmp_path).lines[0].endswith(", about 9 min left")  # 1.5 * 360 s


def test_the_time_left_is_unknown_where_nothing_is_done(tmp_path: Path, ask: Ask) -> None:
    write([run("add", 0, None)], tmp_path)
    with claim(begun(run("add", 1).config, tmp_path)):
        assert ask("status", tmp_path).lines[0].endswith(", time left unknown")


def test_a_folder_that_is_none_of_ours_is_refused(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "other" / "src").mkdir(parents=True)
    for name in ("empty", "file", "other", "nowhere"):
        answer = ask("status", tmp_path / name)
        assert answer.code == 2
        assert repr(str(tmp_path / name)) in answer.error


# All of them


def test_looking_changes_nothing(tmp_path: Path, ask: Ask) -> None:
    records = [*runs("add", {0: 0.5, 1: None}), selecting(1e-3, 0.5)]
    write_plan([record.config for record in records], write(records, tmp_path / "runs"))
    leave_lease(begun(run("rope", 0).config, tmp_path / "runs"))
    before = files(tmp_path)
    out, key = tmp_path / "runs", records[0].config.key
    for words in (("status", out), ("show", key, "--out", out), ("compare", out, out), ("report", out)):
        assert ask(*words).code == 0
    assert files(tmp_path) == before


def test_a_folder_with_one_failed_run_shows_it(tmp_path: Path, ask: Ask) -> None:
    folder = write_record(run("rope", 1, None), tmp_path).parent
    assert "loss is nan" in ask("show", folder.parent).text


def test_a_folder_with_a_collection_of_one_run_shows_it(tmp_path: Path, ask: Ask) -> None:
    collected([run("rope", 1)], tmp_path / "all.jsonl")
    assert ask("show", tmp_path).code == 0


@pytest.mark.parametrize("kind", ["selecting", "tested"])
def test_the_order_of_records_does_not_change_a_comparison(kind: str) -> None:
    tested = [run("add", 0, value, settings={"train.max_steps": steps}) for steps, value in ((3, 0.25), (4, 0.75))]
    records = tested if kind == "tested" else [selecting(1e-3, 0.5), selecting(1e-2, 0.25)]
    assert compared(records[::-1], records).text == compared(records, records).text


def test_a_contradiction_of_data_is_named_as_one(tmp_path: Path, ask: Ask) -> None:
    one, other = run("add", 0), run("add", 0, dataset=DATASET | {"fingerprint": "f" * 64})
    places = [collected([record], tmp_path / f"{name}.jsonl") for name, record in (("a", one), ("b", other))]
    assert "ffffffffffff" in ask("merge", *places, "--records", tmp_path / "all.jsonl").error
