"""pebench run: which runs are made, with which settings, and that it goes on where it was stopped."""

import random
import re
from pathlib import Path

import pytest

from pebench.cli import main
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan, run_options
from pebench.config import CORE_ENCODINGS
from pebench.engine.execution import Execution, execution, gpu_groups, runs_at_a_time
from pebench.engine.executors.worker import LOG, failed_record
from pebench.errors import UserError
from pebench.runs.records import FILE_NAME, find_record, read_records
from pebench.runs.suite import Suite, load_suite
from pebench.tasks import configure
from tests.cli.asking import SMOKE, TWO_BY_TWO, Answer, ask, directories


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
    assert ask(*arguments, "--threads", "1", out=tmp_path / "runs").code == 2
    assert f"{tmp_path / 'data' / 'tiny_shakespeare' / 'input.txt'} is not what was" in capsys.readouterr().err


def test_embedded_tasks_need_no_network(tmp_path: Path) -> None:
    assert ask(*SMOKE, "--pe", "none", "--seed", "0", "--offline", out=tmp_path).code == 0


@pytest.mark.slow
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


@pytest.mark.parametrize("executor", ["commands", "sequential"])
def test_failed_runs_are_kept_where_they_cannot_be_tried_again(
    executor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = failed_record(configure("vit-digits", "add", 0, "smoke"), tmp_path, "killed", "the power failed", 1.0)
    again = [*SMOKE, "--pe", "add", "--seed", "0", "--retry-failed", "--executor", executor]
    assert ask(*again, "--executor-option", "a=b", out=tmp_path).code == 2
    assert f"--executor {executor} has no options, got a" in capsys.readouterr().err
    assert read_records(tmp_path) == [failure]


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


def test_a_run_that_fails_is_shown_and_makes_the_exit_code_1(tmp_path: Path) -> None:
    folder = tmp_path / configure("vit-digits", "none", 0, "smoke").directory
    folder.mkdir(parents=True)
    (folder / "checkpoints").touch()  # a file where a folder must go
    answer = ask(*SMOKE, "--pe", "none", "--seed", "0", out=tmp_path)
    assert answer.code == 1
    assert re.search(
        r"^\[1/1\] vit-digits none seed 0: FAILED after \d+ s: FileExistsError: ", answer.text, re.MULTILINE
    )
    assert "Failed: none seed 0: FileExistsError: " in answer.text
    assert f"\nLog of a failed run: {folder / LOG}\n" in answer.text


def test_a_few_failed_runs_are_named_with_their_folders(tmp_path: Path) -> None:
    arguments = [*SMOKE, "--pe", "add", "--seeds", "5"]
    for seed in range(5):
        failed_record(configure("vit-digits", "add", seed, "smoke"), tmp_path, "killed", "the power failed", 1.0)
    lines = [line for line in ask(*arguments, out=tmp_path).lines if "failed run" in line]
    first = tmp_path / configure("vit-digits", "add", 0, "smoke").directory
    assert (len(lines), lines[0]) == (4, f"Log of a failed run: {first}")
    assert lines[-1] == f"  and 2 more failed runs: pebench status {tmp_path}"


def test_commands_that_are_printed_quote_a_folder_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    answer = ask(*SMOKE, "--pe", "none", "--seed", "0", out=folder)
    assert f"Markdown: pebench report '{folder}'   Curves: pebench tensorboard '{folder}'" in answer.text
    (empty := tmp_path / "no runs").mkdir()
    with pytest.raises(UserError, match=re.escape(f"pebench run --suite quickstart --out '{empty}'")):
        read_records(empty)


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


def test_a_dry_run_counts_the_pictures_of_encodings_and_quotes_the_declaration(tmp_path: Path) -> None:
    told = ask(*SMOKE, "--pe", "rope", "--pe", "learned", "--seeds", "2", "--dry-run", out=tmp_path).text
    # Of rope seed 0 has a picture, of the trained one both: 5 kB each, and 31 kB for three of four.
    assert "Disk: about 113.0 kB, 28.2 kB a run (usual), and " in told
    told = ask("run", "--suite", "quickstart", "--task", "vit-digits", "--dry-run", out=tmp_path).text
    assert f"; the suite's declaration says: {load_suite('quickstart').cost}" in told


def test_a_suite_whose_contrasts_are_of_other_rows_serves_some_of_its_rows() -> None:
    plan = requested_plan(parser().parse_args(["run", "--suite", "fusion", "--task", "text-sst2", "--pe", "rope"]))
    assert {kind.encoding for kind in plan.kinds} == {"rope"}
