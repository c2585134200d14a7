"""The command line: what it answers, how it exits, and that it goes on where it was stopped."""

import csv
import io
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pebench import __version__
from pebench.cli import main
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan, run_options
from pebench.config import CORE_ENCODINGS, Options
from pebench.encodings.registry import encoding_cards
from pebench.engine.execution import Execution, execution, gpu_groups, runs_at_a_time
from pebench.engine.executors.server import _prepare
from pebench.engine.executors.worker import failed_record
from pebench.errors import UserError
from pebench.runs.records import FILE_NAME, find_record, read_records, write_record
from pebench.runs.suite import Suite, load_suite, suite_files
from pebench.tasks import TASKS, configure

ROOT = Path(__file__).parents[2]
SMOKE = ["run", "--task", "vit-digits", "--tier", "smoke", "--device", "cpu", "--threads", "1"]
SIGNAL = signal.signal
TWO_BY_TWO = [*SMOKE, "--pe", "add", "--pe", "rope", "--seeds", "2"]


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PEBENCH_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "")  # taken back afterwards, whatever --offline makes of it
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@dataclass
class Answer:
    """What a command printed, how it ended and where its records are."""

    text: str
    code: int
    out: Path

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def ask(*arguments: str, out: Path | None = None) -> Answer:
    text = io.StringIO()
    with redirect_stdout(text):
        code = main([*arguments, *(["--out", str(out)] if out else [])])
    return Answer(text.getvalue(), code, out or Path())


def directories(answer: Answer) -> list[str]:
    """The runs that ``--dry-run`` names, without their keys."""
    return [line.split()[-1].rpartition("-")[0] for line in answer.lines if line.startswith("  ")]


def pebench(*arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pebench", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen(command, **(pipes | options))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return ask(*TWO_BY_TWO, "--jobs", "2", out=tmp_path_factory.mktemp("cli"))


def test_a_plan_is_run_and_shown_as_a_table(first: Answer) -> None:
    assert first.code == 0
    assert first.lines[0] == "4 runs: 4 to do, 0 done"
    assert len(read_records(first.out)) == 4
    assert re.search(r"^rope +\d+\.\d\d ± \d+\.\d\d +2 ", first.text, re.MULTILINE)


def test_without_a_terminal_every_run_has_a_plain_line(first: Answer) -> None:
    lines = [line for line in first.lines if line.startswith("[")]
    assert [line[:5] for line in lines] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert all(re.match(r"\[\d/4\] vit-digits \w+ seed \d: test accuracy [\d.]+ % in \d+ s", line) for line in lines)
    assert "\x1b" not in first.text
    assert "\r" not in first.text


def test_finished_runs_are_skipped(first: Answer) -> None:
    before = {path: path.stat().st_mtime_ns for path in first.out.rglob(FILE_NAME)}
    again = ask(*TWO_BY_TWO, out=first.out)
    assert (again.code, again.lines[0]) == (0, "4 runs: 0 to do, 4 done")
    assert {path: path.stat().st_mtime_ns for path in first.out.rglob(FILE_NAME)} == before
    assert again.lines[1:4] == first.lines[first.lines.index(again.lines[2]) - 1 :][:3]


def test_only_what_is_missing_is_run(first: Answer) -> None:
    plan = ask(*SMOKE, "--pe", "add", "--pe", "none", "--seeds", "2", "--dry-run", out=first.out)
    assert plan.lines[0] == "4 runs: 2 to do, 2 done"
    assert [line.split()[0] for line in plan.lines if line.startswith("  ")] == ["done", "to", "done", "to"]


def test_a_damaged_record_is_made_anew(first: Answer, tmp_path: Path) -> None:
    arguments = [*SMOKE, "--pe", "add", "--seeds", "1"]
    config = configure("vit-digits", "add", 0, "smoke")
    (tmp_path / config.directory).mkdir(parents=True)
    (tmp_path / config.directory / FILE_NAME).write_text("{")
    assert ask(*arguments, out=tmp_path).lines[0] == "1 run: 1 to do, 0 done"
    assert find_record(config, tmp_path).metrics == find_record(config, first.out).metrics


def test_a_dry_run_leaves_nothing(tmp_path: Path) -> None:
    plan = ask(*TWO_BY_TWO, "--dry-run", out=tmp_path / "runs")
    assert plan.code == 0
    assert directories(plan) == [f"vit-digits/{name}/seed{seed}" for seed in (0, 1) for name in ("add", "rope")]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "seeds"),
    [([], [0, 1, 2]), (["--seeds", "2"], [0, 1]), (["--seed", "7"], [7]), (["--seed", "3", "--seed", "0"], [3, 0])],
)
def test_seeds_are_counted_or_named(arguments: list[str], seeds: list[int], tmp_path: Path) -> None:
    plan = ask(*SMOKE, "--pe", "none", *arguments, "--dry-run", out=tmp_path)
    assert directories(plan) == [f"vit-digits/none/seed{seed}" for seed in seeds]


def test_a_long_plan_counts_the_runs_of_a_folder(tmp_path: Path) -> None:
    values = ",".join(f"{k}e-4" for k in range(1, 31))
    chosen = ["--pe", "add", "--pe", "none", "--select", f"train.learning_rate={values}"]
    plan = ask(*SMOKE, *chosen, "--seeds", "8", "--dry-run", out=tmp_path)
    assert plan.lines[:4] == [
        "76 runs: 76 to do, 0 done",
        "  to do   vit-digits/add, select: 30 runs",
        "  to do   vit-digits/none, select: 30 runs",
        "  ... and 16 runs with values that these will select",
    ]
    runs = ask(*SMOKE, "--pe", "add", "--seeds", "41", "--dry-run", out=tmp_path)
    assert runs.lines[1] == "  to do   vit-digits/add: 41 runs"
    assert len(directories(ask(*SMOKE, "--pe", "add", "--seeds", "40", "--dry-run", out=tmp_path))) == 40


def test_tasks_and_encodings_are_repeatable_and_the_core_ones_the_default(tmp_path: Path) -> None:
    tasks = ("lm-grammar", "text-order")
    plan = ask("run", "--task", tasks[0], "--task", tasks[1], "--seed", "0", "--dry-run", out=tmp_path)
    assert directories(plan) == [f"{task}/{name}/seed0" for task in tasks for name in CORE_ENCODINGS]


def test_a_run_asked_for_twice_is_one_run(tmp_path: Path) -> None:
    plan = ask(*SMOKE, "--pe", "add", "--pe", "add", "--seed", "0", "--seed", "0", "--dry-run", out=tmp_path)
    assert plan.lines[0] == "1 run: 1 to do, 0 done"


def test_settings_make_other_runs(tmp_path: Path) -> None:
    def keys(*arguments: str) -> list[str]:
        answer = ask(*SMOKE, "--pe", "rope", "--seed", "0", *arguments, "--dry-run", out=tmp_path)
        assert answer.code == 0
        return [line.rpartition("-")[2] for line in answer.lines if line.startswith("  ")]

    usual = keys()
    assert keys("--set", "train.max_steps=2") == usual  # what it is anyway
    assert keys("--set", "train.max_steps=3") != usual
    assert keys("--set", "encoding.theta=100.0") != usual
    assert keys("--set", "model.dropout=0.1", "--set", "train.max_steps=3") != keys("--set", "train.max_steps=3")


def test_an_option_that_is_given_its_default_goes_before_a_common_setting(tmp_path: Path) -> None:
    words = [*SMOKE, "--pe", "add", "--pe", "add(ratio=1)", "--set", "encoding.ratio=2", "--seeds", "1", "--dry-run"]
    plan = ask(*words, out=tmp_path)
    assert plan.lines[0] == "2 runs: 2 to do, 0 done"


def test_a_suite_is_run_by_its_name_or_file(tmp_path: Path) -> None:
    suite = load_suite("quickstart")
    count = len(suite.kinds()) * suite.seeds
    assert ask("run", "--suite", "quickstart", "--dry-run", out=tmp_path).lines[0].startswith(f"{count} runs: ")
    path = tmp_path / "mine.py"
    path.write_text(
        "from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['lm-grammar'], ['none', ('rope', {'theta': 10.0})])"
    )
    plan = ask("run", "--suite", str(path), "--seeds", "1", "--dry-run", out=tmp_path)
    assert directories(plan) == ["lm-grammar/none/seed0", "lm-grammar/rope/seed0"]


def test_a_part_of_a_suite_is_the_runs_that_the_whole_has_on_its_tasks(tmp_path: Path) -> None:
    def lines(*arguments: str) -> list[str]:
        found = ask("run", "--suite", "quickstart", "--seeds", "2", "--dry-run", *arguments, out=tmp_path).lines
        return [line for line in found if line.startswith("  to do")]

    part = lines("--task", "vit-digits", "--task", "lm-grammar")
    assert part == [line for line in lines() if "vit-digits" in line or "lm-grammar" in line]
    suite = Suite("s", "?", ["lm-grammar", "vit-digits"], margin={"lm-grammar": 1, "bits_per_byte": 2, "accuracy": 3})
    assert suite.part(["vit-digits"]).margin == {"accuracy": 3}
    assert suite.part(["lm-grammar"]).margin == {"lm-grammar": 1, "bits_per_byte": 2}


def test_the_data_folder_may_be_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--task", "lm-shakespeare", "--pe", "none", "--seed", "0", "--tier", "smoke", "--device", "cpu"]
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("PEBENCH_DATA_DIR", str(tmp_path / "data"))
    assert ask(*arguments, "--threads", "1", out=tmp_path / "runs").code == 2
    assert f"expected {tmp_path / 'data' / 'tiny_shakespeare' / 'input.txt'}" in capsys.readouterr().err
    (tmp_path / "data" / "tiny_shakespeare").mkdir()
    text = "".join(random.Random(0).choices("to be or not\n", k=20_000))
    (tmp_path / "data" / "tiny_shakespeare" / "input.txt").write_text(text)
    assert ask(*arguments, "--threads", "1", out=tmp_path / "runs").code == 0


@pytest.mark.parametrize("task", ["text-imdb", "vit-cifar10", "lm-shakespeare"])
def test_offline_says_at_once_what_to_do(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was tried")

    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    start = time.monotonic()
    assert ask("run", "--task", task, "--offline", out=tmp_path).code == 2
    assert time.monotonic() - start < 5
    message = capsys.readouterr().err
    assert all(words in message for words in ("(--offline)", "with network access", "--data-dir DIR"))
    assert "Traceback" not in message


def test_embedded_tasks_need_no_network(tmp_path: Path) -> None:
    assert ask(*SMOKE, "--pe", "none", "--seed", "0", "--offline", out=tmp_path).code == 0


def test_failed_runs_are_kept_until_they_are_asked_for_again(first: Answer, tmp_path: Path) -> None:
    arguments = [*SMOKE, "--pe", "add", "--pe", "rope", "--seed", "0"]
    configs = [configure("vit-digits", name, 0, "smoke") for name in ("add", "rope")]
    for config in configs:
        failed_record(config, tmp_path, "killed", "the power failed", 1.0)
    kept = ask(*arguments, out=tmp_path)
    assert kept.code == 1
    assert kept.lines[0] == "2 runs: 0 to do, 0 done, 2 failed (run them again with --retry-failed)"
    assert "Failed: rope seed 0: the power failed" in kept.text
    retried = ask(*arguments, "--retry-failed", out=tmp_path)
    assert (retried.code, retried.lines[0]) == (0, "2 runs: 2 to do, 0 done")
    assert [find_record(c, tmp_path).metrics for c in configs] == [find_record(c, first.out).metrics for c in configs]


@pytest.mark.parametrize("dry", [["--dry-run"], []])
@pytest.mark.parametrize(
    ("changes", "words"),
    [({"encoding": "../x"}, "unknown encoding '../x'"), ({"model": {"d_model": 30, "num_heads": 2}}, "got 15")],
)
def test_a_file_of_a_run_that_cannot_work_is_a_mistake(
    changes: dict[str, object], words: str, dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(configure("vit-digits", "rope", 0, "smoke").to_dict() | changes))
    assert ask("run", "--config", str(file), *dry, out=tmp_path / "runs").code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("executor", ["commands", "sequential"])
def test_failed_runs_are_kept_where_they_cannot_be_tried_again(
    executor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = failed_record(configure("vit-digits", "add", 0, "smoke"), tmp_path, "killed", "the power failed", 1.0)
    again = [*SMOKE, "--pe", "add", "--seed", "0", "--retry-failed", "--executor", executor]
    assert ask(*again, "--executor-option", "a=b", out=tmp_path).code == 2
    assert f"--executor {executor} has no options, got a" in capsys.readouterr().err
    assert read_records(tmp_path) == [failure]


def test_failures_that_were_to_be_tried_again_outlast_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = [configure("vit-digits", name, 0, "smoke") for name in ("add", "rope")]
    failures = [failed_record(config, tmp_path, "killed", "the power failed", 1.0) for config in configs]

    def interrupted(*_: object) -> None:
        assert find_record(failures[0].config, tmp_path) is None
        write_record(replace(failures[0], status="ok", error=None), tmp_path)
        raise KeyboardInterrupt

    monkeypatch.setattr("pebench.engine.run.find_executor", lambda name: interrupted)
    assert ask(*SMOKE, "--pe", "add", "--pe", "rope", "--seed", "0", "--retry-failed", out=tmp_path).code == 130
    assert [(r.config.encoding, r.ok) for r in read_records(tmp_path)] == [("add", True), ("rope", False)]


def test_the_end_of_a_command_leaves_signals_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", SIGNAL)
    before = signal.getsignal(signal.SIGTERM)
    assert ask(*SMOKE, "--pe", "add", "--seed", "0", "--executor", "commands", out=tmp_path).code == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_file_of_a_run_is_that_run_alone(first: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = next(first.out.rglob(FILE_NAME))
    given = ["--set", "train.max_steps=9", "--seeds", "2", "--selection-seeds", "2"]
    assert ask("run", "--config", str(file), *given, out=tmp_path).code == 2
    assert "it does not go with --seeds, --set, --selection-seeds." in capsys.readouterr().err


def test_commands_that_select_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    select = ["--select", "train.learning_rate=0.001,0.01", "--executor", "commands", "--offline"]
    lines = ask(*SMOKE, "--pe", "add", "--seeds", "1", *select, out=tmp_path)
    assert (lines.code, len(lines.lines)) == (0, 2)
    assert all(" --offline" in line for line in lines.lines)
    assert "once these are done, the same command prints those that test 1 row" in capsys.readouterr().err


def test_commands_forbid_the_network_however_that_was_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEBENCH_OFFLINE", "true")
    lines = ask(*SMOKE, "--pe", "add", "--seeds", "1", "--executor", "commands", out=tmp_path).lines
    assert [" --offline" in line for line in lines] == [True]


@pytest.mark.parametrize("how", [["learned(frozen=True)"], ["learned", "--set", "encoding.frozen=true"]])
def test_an_encoding_is_asked_for_with_options(how: list[str], tmp_path: Path) -> None:
    wanted = configure("vit-digits", "learned", 0, "smoke", encoding_args={"frozen": True})
    plan = ask(*SMOKE, "--seeds", "1", "--dry-run", "--pe", *how, out=tmp_path)
    assert plan.lines[1].split()[-1] == wanted.directory


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_plan_of_nothing_is_a_mistake(dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = ["run", "--suite", "encodings", "--task", "lm-grammar", "--pe", "rope-mixed"]
    assert ask(*suite, *dry, out=tmp_path).code == 2
    assert "none of these encodings serves any of these tasks" in capsys.readouterr().err


def asked_execution(*arguments: str) -> Execution:
    """How runs are made that a command line asks for."""
    options = parser().parse_args(arguments)
    return execution(options.out, run_options(options))


@pytest.mark.parametrize(("devices", "groups"), [(1, ["0", "1", "2"]), (2, ["0,1"]), (3, ["0,1,2"])])
def test_runs_have_as_many_gpus_as_devices(
    devices: int, groups: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    how = asked_execution(*SMOKE[:-4], "--devices", str(devices))
    assert gpu_groups(how) == groups
    assert runs_at_a_time(9, how) == len(groups)
    assert runs_at_a_time(9, asked_execution(*SMOKE, "--executor", "sequential")) == 1
    with pytest.raises(UserError, match="--devices 4 expects as many GPUs, got 3"):
        gpu_groups(asked_execution(*SMOKE[:-4], "--devices", "4"))
    elsewhere = asked_execution(*SMOKE[:-4], "--devices", "4", "--executor", "slurm")
    assert runs_at_a_time(9, elsewhere) == 1  # whatever this machine has
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-5,7")
    assert gpu_groups(asked_execution(*SMOKE[:-4])) == ["4", "GPU-5", "7"]
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # a driver that this torch cannot use
    assert gpu_groups(asked_execution(*SMOKE[:-4])) == []


class Output(io.TextIOWrapper):
    terminal = False

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(("terminal", "expected"), [(False, "accuracy % ↑"), (True, "accuracy % ?")])
def test_a_page_can_be_written_where_output_is_not_unicode(
    terminal: bool, expected: str, first: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = Output(written := io.BytesIO(), encoding="cp1252")
    output.terminal = terminal
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["report", str(first.out)]) == 0
    assert expected in written.getvalue().decode("cp1252" if terminal else "utf-8")


def test_a_page_of_ones_own_suite_names_its_file(first: Answer, tmp_path: Path) -> None:
    file = tmp_path / "my suite.py"
    file.write_text("from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['vit-digits'], tier='smoke', seeds=2)\n")
    text = ask("report", str(first.out), "--suite", str(file)).text
    assert f"`pebench report --suite '{file}'`" in text
    assert f"\npebench run --suite '{file}'\n" in text
    assert "**Expected.**" not in text


def test_a_run_that_fails_is_shown_and_makes_the_exit_code_1(tmp_path: Path) -> None:
    folder = tmp_path / configure("vit-digits", "none", 0, "smoke").directory
    folder.mkdir(parents=True)
    (folder / "checkpoints").touch()  # a file where a folder must go
    answer = ask(*SMOKE, "--pe", "none", "--seed", "0", out=tmp_path)
    assert answer.code == 1
    assert "[1/1] vit-digits none seed 0: FAILED: FileExistsError: " in answer.text
    assert "Failed: none seed 0: FileExistsError: " in answer.text


def test_what_cannot_work_ends_before_any_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(*SMOKE, "--pe", "add", "--pe", "rope", "--set", "model.d_model=30", out=tmp_path / "runs").code == 2
    message = capsys.readouterr().err
    assert "vit-digits with add: " in message
    assert "vit-digits with rope: " in message
    assert "Traceback" not in message
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("rope(theta=1e999)", "option 'theta' of encoding 'rope' must be finite, got inf"),
        (f"rope(theta={'9' * 400})", "option 'theta' of encoding 'rope' must be finite, got inf"),
        ("shifted(of='add(base=1e999)')", "option 'base' of encoding 'add' must be finite, got inf"),
        ("rope(theta=-5)", "theta of encoding 'rope' must be positive and finite, got -5.0"),
    ],
)
def test_an_option_that_makes_no_sense_ends_before_any_run(
    encoding: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(*SMOKE, "--pe", encoding, out=tmp_path / "runs").code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_names_what_rows_differ_in_and_the_rate_that_they_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*SMOKE, "--pe", "rope", "--vary", "model.num_layers=1,2", "--seeds", "1", "--dry-run"]
    assert main([*asked, "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(line.split() for line in lines if line.startswith("Task"))
    rows = [line.split() for line in lines if line.startswith("vit-digits")]
    assert [row[head.index("model.num_layers")] for row in rows] == ["1", "2"]
    assert "Learning rate: 0.003, the same for every row of a task (--select chooses one for each)" in lines


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["run", "--task", "vit-digit"], "vit-digits"),
        (["run", "--task", "vit-digits", "--pe", "rop"], "rope"),
        (["run", "--task", "vit-digits", "--tier", "smok"], "smoke"),
        (["run", "--suite", "quickstrat"], "quickstart"),
        (["run", "--task", "vit-digits", "--set", "train.max_step=3"], "train.max_steps"),
        (["run", "--task", "vit-digits", "--set", "encoding.bse=3"], "encoding.base"),
        (["run", "--task", "vit-digits", "--set", "train.lr=3"], "train.learning_rate"),
        (["list", "task"], "tasks"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    arguments: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("pebench: error: unknown ")
    assert f"Did you mean {near!r}?" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: VERB"),
        (["runn"], "invalid choice: 'runn'"),
        (["run", "--tasks", "vit-digits"], "unknown argument '--tasks'. Did you mean --task? See: pebench run --help"),
        (["run", "vit-digits"], "unknown argument 'vit-digits'. A task is named by --task vit-digits."),
        (
            [*SMOKE, "--pe", "add", "rope"],
            "unknown argument 'rope'. An option with several values is repeated: --pe add",
        ),
        ([*SMOKE, "--gpus", "2"], "unknown argument '--gpus'. Did you mean --devices N?"),
        (
            [*SMOKE, "--set", "train.learning_rate=1e-3,2e-3"],
            "got '1e-3,2e-3'. Several values go to --select or --vary.",
        ),
        ([*SMOKE, "--executor-option", "gpu"], "--executor-option expects key=value"),
        ([*SMOKE, "--lr=1e-3"], "unknown argument '--lr=1e-3'. Did you mean --set train.learning_rate=X?"),
        (["status", "runs", "more"], "unknown argument 'more'. See: pebench status --help"),
        ([*SMOKE, "--pe", "nope"], "unknown encoding 'nope'. 'none' is what it is called here"),
        ([*SMOKE, "--pe", "RoPE-2D"], "unknown encoding 'RoPE-2D'. 'rope' is what it is called here"),
        ([*SMOKE, "--pe", "rope,alibi"], "Expected one name each: --pe rope --pe alibi"),
        (["cite", "sinusoidal"], "'add' is what it is called here"),
        ([*SMOKE, "--pe", "rope", "--pe", "none", "--reference", "add"], "unknown reference 'add'. Valid: none, rope."),
        (["report", str(ROOT / "results" / "core.csv")], "core.jsonl, beside it, may."),
        (["run"], "--task NAME or --suite NAME"),
        (["run", "--task", "vit-digits", "--config", "record.json"], "it does not go with --task."),
        (
            ["run", "--task", "vit-digits", "--suite", "core"],
            "unknown task of suite core 'vit-digits'. Valid: lm-wikitext2",
        ),
        ([*SMOKE, "--seeds", "0"], "--seeds must be at least 1"),
        ([*SMOKE, "--seeds", "two"], "invalid int value: 'two'"),
        ([*SMOKE, "--seeds", "2", "--seed", "2"], "either --seeds N or --seed S"),
        ([*SMOKE, "--seed", "-1"], "a seed must be in"),
        ([*SMOKE, "--seed", str(2**32)], "a seed must be in"),
        ([*SMOKE, "--time-limit", "nan"], "--time-limit must be at least 1, and finite, got nan"),
        ([*SMOKE, "--time-limit", "inf"], "--time-limit must be at least 1, and finite, got inf"),
        ([*SMOKE, "--pe", "rope(**{'theta': 5.0})"], "expected an encoding as in rope"),
        ([*SMOKE, "--pe", "rope(theta={[]: 1})"], "option 'theta' of encoding 'rope' expects float, got '{[]: 1}'"),
        ([*SMOKE, "--pe", "rope(theta=fast)"], "option 'theta' of encoding 'rope' expects float, got 'fast'"),
        ([*SMOKE, "--pe", "rope(theta=1,theta=2)"], "expected an encoding as in rope"),
        ([*SMOKE, "--pe", "rope(theta=1)(theta=2)"], "expected an encoding as in rope"),
        ([*SMOKE, "--pe", "rope(theta=1).of(theta=2)"], "expected an encoding as in rope"),
        (
            [*SMOKE, "--pe", "rope", "--set", "encoding.theta={[]: 1}"],
            "option 'theta' of encoding 'rope' expects float",
        ),
        ([*SMOKE, "--pe", "rope", "--set", f"encoding.theta={'-' * 5000}1"], "expects float"),
        ([*SMOKE, "--jobs", "0"], "--jobs must be at least 1"),
        ([*SMOKE, "--threads", "0"], "--threads must be at least 1"),
        ([*SMOKE, "--device", "tpu"], "invalid choice: 'tpu'"),
        ([*SMOKE, "--set", "train.max_steps"], "--set expects key=value"),
        ([*SMOKE, "--set", "train.max_steps=many"], "train.max_steps expects int, got 'many'"),
        ([*SMOKE, "--set", "train.max_steps=0"], "train.max_steps must be positive"),
        ([*SMOKE, "--set", "model.num_heads=3"], "must be a multiple of model.num_heads"),
        ([*SMOKE, "--set", "model.dropout=1"], "model.dropout must be in"),
        ([*SMOKE, "--set", "data.max_len=3"], "unknown setting 'data.max_len'"),
        ([*SMOKE, "--data-dir", "nowhere"], "--data-dir expects a folder"),
        ([*SMOKE, "--devices", "3"], "train.batch_size must be a multiple of --devices, got 16"),
        ([*SMOKE, "--set", "train.precision=16-mixed"], "16-mixed needs a GPU; on processors: bf16-mixed"),
        (["run", "--task", "vit-digits", "--tier", "full"], "has no tier 'full'. Valid for it: smoke, quick"),
        (["run", "--suite", "nowhere.py"], "'nowhere.py' does not exist"),
        (["report", "nowhere"], "'nowhere' does not exist"),
    ],
)
def test_a_mistake_is_told_in_a_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # where no runs are that would be done already
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("pebench: error: ")
    assert words in message
    assert "Traceback" not in message


def test_a_device_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert ask(*SMOKE, "--device", "cuda", out=tmp_path / "runs").code == 2
    assert "--device cuda: there is none here" in capsys.readouterr().err
    assert not [*tmp_path.rglob("record.json")]


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", "/dev/null/cache")
    (problem,) = _prepare([configure("text-order", "add", tier="smoke")], Options(tmp_path), lambda _: None)
    assert problem.startswith("text-order: ")
    assert "/dev/null/cache" in problem


def test_a_suite_whose_contrasts_are_of_other_rows_serves_some_of_its_rows() -> None:
    plan = requested_plan(parser().parse_args(["run", "--suite", "fusion", "--task", "text-sst2", "--pe", "rope"]))
    assert {kind.encoding for kind in plan.kinds} == {"rope"}


def test_a_file_in_the_place_of_the_output_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert ask(*TWO_BY_TWO, out=tmp_path / "file").code == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["raise SystemError('no')", "SUITE = 3", "def", ""])
def test_a_file_that_is_no_suite_is_told(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(text)
    assert ask("run", "--suite", str(tmp_path / "mine.py"), out=tmp_path).code == 2
    assert "mine.py" in capsys.readouterr().err


def test_what_there_is_is_listed() -> None:
    for what, names in (("tasks", TASKS), ("suites", suite_files())):
        assert [line.split()[0] for line in ask("list", what).lines] == list(names)
    pattern = re.compile(r"^  ([\w-]+) +(?:nothing|input|residual|queries|logits|–)", re.MULTILINE)
    listed = pattern.findall(ask("list", "encodings").text)
    assert sorted(listed) == list(encoding_cards())
    assert "options: base=10000.0, ratio=1.0" in ask("list", "encodings").text
    assert max(map(len, ask("list", "encodings").lines)) <= 120
    assert re.search(r"^vit-digits .*\[smoke, quick\]$", ask("list", "tasks").text, re.MULTILINE)


@pytest.mark.parametrize(("what", "words"), [("foo", "unknown list 'foo'"), ("tasks", "tasks are listed as text")])
def test_what_cannot_be_listed_so_is_told(what: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("list", what, "--format", "markdown").code == 2
    assert words in capsys.readouterr().err


def test_a_report_is_markdown_csv_or_json(first: Answer) -> None:
    markdown = ask("report", str(first.out))
    rows = list(csv.DictReader(io.StringIO(ask("report", str(first.out), "--format", "csv").text)))
    tables = json.loads(ask("report", str(first.out), "--format", "json").text)["tables"]
    assert markdown.text.startswith("# Results\n")
    assert [row["encoding"] for row in rows] == ["add", "rope"]
    assert tables[0]["rows"][0]["n"] == 2
    accuracy = [r.metrics["test/accuracy"] for r in read_records(first.out) if r.config.encoding == "rope"]
    assert float(rows[1]["mean"]) == pytest.approx(sum(accuracy) / 2)


def test_records_are_collected_in_one_file_that_gives_the_same_report(first: Answer, tmp_path: Path) -> None:
    text = ask("report", str(first.out), "--records", str(tmp_path / "all.jsonl")).text
    assert ask("report", str(tmp_path / "all.jsonl")).text == ask("report", str(tmp_path)).text == text


def test_the_commands_of_a_report_make_the_runs_it_shows(first: Answer) -> None:
    (command,) = re.findall("^pebench (run .*)$", ask("report", str(first.out)).text, re.MULTILINE)
    plan = ask(*command.split(), "--dry-run", out=first.out)
    assert plan.lines[0] == "4 runs: 0 to do, 4 done"


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"\xff\xfe", b""])
def test_a_report_of_nonsense_names_the_file(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert ask("report", str(tmp_path)).code == 2
    assert str(tmp_path / FILE_NAME) in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_told(
    first: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("report", str(first.out), "--records", str(tmp_path / "nowhere" / "all.jsonl")).code == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("verb", [(), ("run",), ("list",), ("report",)])
def test_help_exits_with_0(verb: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*verb, "--help"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: pebench", *verb]))


def test_what_needs_no_model_does_not_import_torch(first: Answer) -> None:
    program = f"""
import contextlib, io, sys
from pebench.cli import main
for line in ("--help", "run --help", "list tasks", "list encodings", "list suites", "report {first.out}",
             "report {first.out} --format html",
             "list executors", "status {first.out}", "compare {first.out} {first.out}",
             "run --task text-imdb --offline --out {first.out / "none"}"):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(line.split())
    if heavy := {{"torch", "lightning", "datasets", "torchvision"}} & set(sys.modules):
        sys.exit(f"{{line}} imports {{heavy}}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr


def test_the_package_is_a_program() -> None:
    with pebench("--version") as process:
        assert process.communicate() == (f"pebench {__version__}\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize("arguments", [("list", "tasks"), ("run", "--help"), (*TWO_BY_TWO, "--dry-run")])
def test_a_reader_that_leaves_early_causes_no_traceback(arguments: Sequence[str], tmp_path: Path) -> None:
    with pebench(*arguments, cwd=tmp_path) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.parametrize("delay", [0.2, 1.0])
def test_an_interrupt_while_starting_causes_no_traceback(delay: float, tmp_path: Path) -> None:
    with pebench(*TWO_BY_TWO, "--out", str(tmp_path), start_new_session=True) as process:
        process.stdout.readline()
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in output + errors


@pytest.mark.slow
def test_an_interrupt_while_the_server_of_runs_starts_causes_no_traceback(
    tmp_path: Path, descendants: Callable[[int], set[int]]
) -> None:
    def servers(root: int) -> list[Path]:
        found = [Path(f"/proc/{pid}") for pid in descendants(root)]
        return [path for path in found if b"forkserver" in (path / "cmdline").read_bytes()]

    with pebench(*TWO_BY_TWO, "--out", str(tmp_path), start_new_session=True) as process:
        while not (found := servers(process.pid)):
            assert process.poll() is None
        blocked = re.search(r"SigBlk:\s*(\w+)", (found[0] / "status").read_text())
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.count("Traceback")) == (130, 0), errors
    assert (
        int(blocked[1], 16) >> (signal.SIGINT - 1) & 1
    )  # an exception while Python itself starts is nobody's to catch


@pytest.mark.slow
def test_an_interrupted_command_goes_on_where_it_was_stopped(
    tmp_path: Path, descendants: Callable[[int], set[int]], alive: Callable[[set[int]], set[int]]
) -> None:
    arguments = [*SMOKE, "--pe", "none", "--pe", "add", "--seed", "0", "--jobs", "1", "--set", "train.max_steps=300"]
    with pebench(*arguments, "--out", str(tmp_path), start_new_session=True) as process:
        assert any(line.startswith("[1/2] ") for line in process.stdout)
        family = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "pebench: interrupted. Finished runs are kept; the same command goes on from there.\n"
    end = time.monotonic() + 20
    while left := alive(family):
        assert time.monotonic() < end, left
        time.sleep(0.05)
    (kept,) = read_records(tmp_path)
    finished = ask(*arguments, "--executor", "sequential", out=tmp_path)
    assert (finished.code, finished.lines[0]) == (0, "2 runs: 1 to do, 1 done")
    assert kept in read_records(tmp_path)
