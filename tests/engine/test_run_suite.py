"""The engine as a library: it leaves what the command line leaves, prints nothing, and is not deep."""

import json
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pebench
from pebench.cli import main
from pebench.config import Options, RunConfig
from pebench.engine.executors.worker import failed_record, work
from pebench.engine.observer import Observer, Stage
from pebench.errors import UserError
from pebench.models import ViT
from pebench.results.frame import Results
from pebench.runs.plan import Plan
from pebench.runs.records import FILE_NAME, Record, find_record, read_records
from pebench.tasks import configure

PACKAGE = Path(pebench.__file__).parent
SMALL: dict[str, Any] = {"tier": "smoke", "device": "cpu", "threads": 1, "executor": "sequential"}
COMMAND = ["--tier", "smoke", "--device", "cpu", "--threads", "1", "--executor", "sequential"]
MEASURED = ("duration_s", "throughput", "peak_memory_gib", "started", "checksum")
"""What differs between two runs of the same configuration: the clock, the memory, and the checksum of all."""


class Listener(Observer):
    """Remembers what it hears, in order."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.stages: list[Stage] = []

    def planned(self, stage: Stage) -> None:
        self.stages.append(stage)
        self.heard.append(f"planned {stage.title}".strip())

    def started(self) -> None:
        self.heard.append("started")

    def note(self, message: str) -> None:
        self.heard.append("note")

    def progress(self, config: RunConfig, step: int, metrics: Mapping[str, float]) -> None:
        self.heard.append("progress")

    def finished(self, record: Record) -> None:
        self.heard.append("finished")

    def ended(self) -> None:
        self.heard.append("ended")

    @property
    def once(self) -> list[str]:
        """What was heard, repetitions and notes left out."""
        told = [text for text in self.heard if text != "note"]
        return [text for before, text in zip(["", *told], told, strict=False) if text != before]


def unmeasured(record: Record) -> dict[str, Any]:
    """A record as JSON, without what the clock and the memory tell."""
    values = json.loads(json.dumps(record.to_dict()))
    return {name: value for name, value in values.items() if name not in MEASURED}


@pytest.fixture(scope="module")
def selected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Listener, Path]:
    """Two encodings for which the engine has selected a setting."""
    out, listener = tmp_path_factory.mktemp("library"), Listener()
    results = pebench.run(
        "vit-digits", ["add", "rope(theta=100.0)"], seeds=1, select={"train.clip": [0.5, 1.0]}, out=out,
        observer=listener, **SMALL,
    )  # fmt: skip
    return results, listener, out


@pytest.mark.slow
def test_command_line_and_library_leave_equal_records(
    selected: tuple[Results, Listener, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--task", "vit-digits", "--pe", "add", "--pe", "rope(theta=100.0)", "--seeds", "1", *COMMAND]
    assert main([*words, "--select", "train.clip=0.5,1.0", "--out", str(tmp_path)]) == 0
    theirs, ours = read_records(tmp_path), read_records(selected[2])
    assert len(ours) == 6
    assert [unmeasured(record) for record in ours] == [unmeasured(record) for record in theirs]
    names = [sorted(path.relative_to(out) for path in out.rglob(FILE_NAME)) for out in (tmp_path, selected[2])]
    assert names[0] == names[1]


def test_an_observer_hears_both_stages(selected: tuple[Results, Listener, Path]) -> None:
    _, listener, _ = selected
    runs = ["progress", "finished"]
    assert listener.once == [
        "planned selecting train.clip", "started", *runs * 4, "ended", "planned testing", "started", *runs * 2, "ended",
    ]  # fmt: skip
    assert [len(stage.todo) for stage in listener.stages] == [4, 2]


def test_the_same_call_makes_no_run_twice(
    selected: tuple[Results, Listener, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    results, _, out = selected
    listener = Listener()
    again = pebench.run(
        ["vit-digits"], ["add", "rope(theta=100.0)"], [0], select={"train.clip": [0.5, 1.0]}, out=str(out),
        observer=listener, **SMALL,
    )  # fmt: skip
    assert listener.heard == ["planned selecting train.clip", "planned testing"]
    assert again.records == results.records
    assert again.complete
    assert capsys.readouterr() == ("", "")


def test_a_library_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert pebench.run("vit-digits", ["none"], seeds=1, out=tmp_path, **SMALL).complete
    assert capfd.readouterr() == ("", "")


def test_a_suite_runs_itself_in_processes_of_their_own(tmp_path: Path) -> None:
    suite = pebench.Suite("mine", "Why?", ["vit-digits"], ["none", "add"], seeds=1, tier="smoke")
    results = suite.run(tmp_path, jobs=2, device="cpu", threads=1)
    assert [record.config.encoding for record in results.records] == ["none", "add"]
    assert results.complete
    assert results.suite is suite


def test_failures_are_kept_until_they_are_asked_for_again(tmp_path: Path) -> None:
    failed_record(configure("vit-digits", "add", 0, "smoke"), tmp_path, "killed", "the power failed", 1.0)
    kept = pebench.run("vit-digits", ["add"], 1, out=tmp_path, **SMALL)
    assert [record.reason for record in kept.failed] == ["the power failed"]
    assert not kept.complete
    assert kept.to_frame()["error"].tolist() == ["the power failed"]
    retried = pebench.run("vit-digits", ["add"], 1, out=tmp_path, retry_failed=True, **SMALL)
    assert (retried.failed, retried.complete) == ([], True)


def test_an_earlier_failure_stays_until_its_run_has_another_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A death in between loses no record. A further failure is an outcome, which nobody tries a third time."""
    earlier = failed_record(configure("vit-digits", "add", 0, "smoke"), tmp_path, "killed", "the power failed", 1.0)
    found, tried = [], []

    def train(config: RunConfig, options: Options, *_: object) -> None:
        found.append(find_record(config, options.out))
        tried.append(options)
        raise RuntimeError("the power failed again")

    monkeypatch.setattr("pebench.training.runner.train", train)
    retried = pebench.run("vit-digits", ["add"], 1, out=tmp_path, retry_failed=True, **SMALL)
    assert found == [earlier]
    assert [record.reason for record in retried.failed] == ["RuntimeError: the power failed again"]
    assert read_records(tmp_path) == retried.records
    assert work(earlier.config, tried[0])  # as another command that was asked for the same does
    assert len(tried) == 1


def test_exact_runs_are_made_from_their_configurations(tmp_path: Path) -> None:
    configs = [configure("vit-digits", "add", 7, "smoke"), configure("vit-digits", "none", 3, "smoke")]
    how = {name: value for name, value in SMALL.items() if name != "tier"}
    results = pebench.run_suite([*configs, configs[0]], tmp_path, **how)
    assert [record.config for record in results.records] == configs


def test_a_preview_counts_what_would_be_made(selected: tuple[Results, Listener, Path], tmp_path: Path) -> None:
    suite = pebench.Suite(
        "command line", "", ["vit-digits"], ["add", "rope(theta=100.0)"], seeds=2, tier="smoke",
        select={"train.clip": [0.5, 1.0]},
    )  # fmt: skip
    fresh = pebench.preview_suite(suite, tmp_path / "none", device="cpu", jobs=100)
    assert fresh.jobs == len(fresh.waiting) + fresh.later  # no more at a time than there will be
    assert (len(fresh.waiting), fresh.later, {*fresh.states}) == (4, 4, {"to do"})
    half = pebench.preview_suite(suite, selected[2], device="cpu")
    assert (len(half.waiting), half.later, half.states.count("done")) == (2, 0, 6)
    assert half.forecast.sampled > 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jobs": 0}, "^jobs must be at least 1"),
        ({"time_limit": 0.5}, "^time_limit must be at least 1, and finite, got 0.5"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"executor": "locale"}, "Did you mean 'local'"),
        ({"data_dir": "nowhere"}, "--data-dir expects a folder"),
        ({"executor_options": {"a": "b"}}, "has no options, got a"),
        ({"threads": "2"}, "threads expects a number, got '2'"),
        ({"thread": 2}, "unknown option of a run: 'thread'. Did you mean 'threads'?"),
        ({"observer": Listener}, "observer expects an instance of pebench.Observer, got the class "),
        ({"loggers": [print]}, "loggers expects each logger as text, as each run makes its own"),
        ({"out": ""}, "out expects a path, got an empty text"),
        ({"out": 5}, r"out expects a text or a pathlib\.Path, got 5"),
        ({"data_dir": 5}, r"data_dir expects a text or a pathlib\.Path, got 5"),
        ({"settings": {"train": {"max_steps": 3}}}, "expects dotted names, such as 'train.max_steps', got 'train'"),
        ({"settings": {"train.max_steps": 10**20}}, "train.max_steps must be below 1,000,000,000,000, got 1000"),
    ],
)
def test_a_mistake_is_an_error_before_any_run(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        pebench.run("vit-digits", ["add"], 1, **SMALL | {"out": tmp_path} | options)
    assert not [*tmp_path.rglob("record.json")]


@pytest.mark.parametrize("given", [None, 5, [1]])
def test_an_argument_of_another_type_is_told_what_is_expected(given: Any) -> None:
    for function, words in (
        (pebench.load_results, r"source expects a text or a pathlib\.Path, got "),
        (pebench.load_suite, r"suite expects a text or a pathlib\.Path, got "),
        (pebench.preview_suite, r"suite expects a Suite, its name or file, or a list of configurations, got "),
        (pebench.datamodule, r"task expects a name such as 'vit-digits', got "),
    ):
        with pytest.raises(UserError, match=words):
            function(given)


@pytest.mark.parametrize(
    ("tasks", "encodings", "words"),
    [
        (3, ["add"], r"tasks expects a list, as in \['vit-digits'\], got 3\."),
        ([3], ["add"], r"tasks must be list\[str\], got \[3\]\."),
        ("vit-digits", 3, r"encodings expects a list, as in \['add', 'rope'\], got 3\."),
        ("vit-digits", {"rope": {}}, "encodings expects a list"),  # whose options would be lost
        (
            "vit-digits",
            [Listener],
            "encodings expects names, .* 'my_module:MyEncoding', and pairs of a name",
        ),
    ],
)
def test_a_call_with_other_types_is_told(tasks: Any, encodings: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        pebench.run(tasks, encodings, 1, out=tmp_path, **SMALL)


@pytest.mark.parametrize("seeds", [2, np.int64(2), np.arange(2), [np.int32(0), 1], range(2)])
def test_one_encoding_is_asked_for_by_its_name_alone_and_seeds_as_any_numbers(seeds: Any, tmp_path: Path) -> None:
    how = SMALL | {"executor": "commands", "observer": Listener()}
    results = pebench.run("vit-digits", encodings="rope", seeds=seeds, out=tmp_path, **how)
    assert [(config.encoding, config.seed) for config in results.missing] == [("rope", 0), ("rope", 1)]


def test_the_network_is_forbidden_for_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PEBENCH_OFFLINE", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(UserError, match="--offline"):
        pebench.run("text-imdb", ["add"], 1, out=tmp_path, offline=True, device="cpu")
    assert not [name for name in ("PEBENCH_OFFLINE", "HF_HUB_OFFLINE") if name in pebench.engine.execution.os.environ]


def test_a_plan_that_is_made_once_can_be_run(tmp_path: Path) -> None:
    suite = pebench.Suite("mine", "Why?", ["vit-digits"], ["none"], seeds=1, tier="smoke")
    results = pebench.run_suite(
        Plan(suite, suite.kinds()), tmp_path, device="cpu", threads=1, executor="commands", observer=Listener()
    )
    assert [config.encoding for config in results.missing] == ["none"]
    assert not results.complete
    assert len(results) == 0


def depths(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of our own frames, outermost first, at each training loss from now on."""
    found, usual = [], ViT.loss

    def loss(self: ViT, batch: Any) -> Any:
        names = [f.name for f in traceback.extract_stack() if PACKAGE in Path(f.filename).parents]
        if "training_step" in names:
            found.append([*names, "loss"])  # whose own frame comes next
        return usual(self, batch)

    monkeypatch.setattr(ViT, "loss", loss)
    return found


def test_few_frames_lie_between_the_command_line_and_the_loss(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = depths(monkeypatch)
    words = ["run", "--task", "vit-digits", "--pe", "add", "--seeds", "1", *COMMAND, "--out", str(tmp_path)]
    assert main(words) == 0
    assert len(found) == 2
    for names in found:
        assert names[0] == "main"
        assert len(names) <= 10, names
        assert len(names[names.index("run_suite") :]) <= 8, names


def test_what_needs_no_model_of_the_library_does_not_import_torch() -> None:
    code = "import sys, pebench; pebench.run, pebench.Results, pebench.load_results; sys.exit('torch' in sys.modules)"
    import subprocess

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
