"""A mistake ends a command with exit code 2 and a line that says what to do."""

import json
import socket
from pathlib import Path

import pytest

from pebench.cli import main
from pebench.config import Options
from pebench.engine.executors.server import _prepare
from pebench.runs.records import FILE_NAME
from pebench.tasks import configure
from tests.cli.asking import ROOT, SMOKE, TWO_BY_TWO, Answer, ask
from tests.data.copies import WRITERS, write_table


@pytest.mark.parametrize("task", ["text-imdb", "vit-cifar10", "lm-shakespeare"])
def test_offline_says_at_once_what_to_do(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was tried")

    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert ask("run", "--task", task, "--offline", out=tmp_path).code == 2
    message = capsys.readouterr().err
    assert all(words in message for words in ("(--offline)", "with network access", "--data-dir DIR"))
    assert "Traceback" not in message


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


def test_a_file_of_a_run_is_that_run_alone(first: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = next(first.out.rglob(FILE_NAME))
    given = ["--set", "train.max_steps=9", "--seeds", "2", "--selection-seeds", "2"]
    assert ask("run", "--config", str(file), *given, out=tmp_path).code == 2
    assert "it does not go with --seeds, --set, --selection-seeds." in capsys.readouterr().err


def test_seeds_that_select_go_with_what_is_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twice = [*SMOKE, "--selection-seeds", "2", "--dry-run"]
    assert ask(*twice, out=tmp_path).code == 2
    assert "it goes with --select, or with a suite that does" in capsys.readouterr().err
    selecting = ask(*twice, "--select", "train.learning_rate=1e-3,1e-2", "--pe", "add", out=tmp_path)
    assert selecting.code == 0
    assert selecting.text.count("/select-seed") == 4


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_plan_of_nothing_is_a_mistake(dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = ["run", "--suite", "encodings", "--task", "lm-grammar", "--pe", "rope-mixed"]
    assert ask(*suite, *dry, out=tmp_path).code == 2
    assert "none of these encodings serves any of these tasks" in capsys.readouterr().err


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
        (["new", "encodign", "mine"], "unknown kind 'encodign'. Did you mean 'encoding'?"),
        (["new", "encoding", "my-encoding"], "got 'my-encoding'"),
        (["new", "encoding", "class"], "'class' is a keyword of Python"),
        (["new", "encoding", "torch"], "'torch' is the name of an installed module"),
        (["completion", "bsh"], "unknown shell 'bsh'. Did you mean 'bash'?"),
        (["runn"], "unknown command 'runn'. Did you mean 'run'?"),
        (["plot", "rope"], "unknown command 'plot'. Did you mean 'plot-encoding'?"),
        (["encodings"], "unknown command 'encodings'. Did you mean 'list'?"),
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
        (["report", str(ROOT / "results" / "core" / "page.md")], "runs.jsonl, beside it, may."),
        (["report", str(ROOT / "results" / "core.jsonl")], f"does not exist. {str(ROOT / 'results' / 'core')!r} does."),
        (["run"], "expected --task NAME, --data PATH, --suite NAME or --config FILE. Try"),
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
        ([*SMOKE, "--device", "tpu"], "unknown --device 'tpu'."),
        ([*SMOKE, "--device", "gpu"], "unknown --device 'gpu'. Did you mean 'cuda'?"),
        ([*SMOKE, "--set", "train.max_steps"], "--set expects key=value"),
        ([*SMOKE, "--set", "train.max_steps=many"], "train.max_steps expects int, got 'many'"),
        ([*SMOKE, "--set", "train.max_steps=0"], "train.max_steps must be positive"),
        ([*SMOKE, "--set", "model.num_heads=3"], "must be a multiple of model.num_heads"),
        ([*SMOKE, "--set", "model.dropout=1"], "model.dropout must be in"),
        ([*SMOKE, "--set", "data.max_len=3"], "unknown setting 'data.max_len'"),
        ([*SMOKE, "--data-dir", "nowhere"], "--data-dir expects a folder"),
        ([*SMOKE, "--out", ""], "argument --out: expected a path, got an empty text. See: pebench run --help"),
        ([*SMOKE, "--beyond", "2", "--set", "train.beyond=4"], "give one of the two"),
        ([*SMOKE, "--devices", "3"], "train.batch_size must be a multiple of --devices, got 16"),
        ([*SMOKE, "--set", "train.precision=16-mixed"], "16-mixed needs a GPU; on processors: bf16-mixed"),
        (["run", "--task", "vit-digits", "--tier", "full"], "has no tier 'full'. Valid for it: smoke, minute, quick"),
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


@pytest.mark.parametrize("words", [["show", "x" * 5000], ["run", "--task", "x" * 5000], ["list", "x" * 5000]])
def test_what_was_given_is_not_repeated_at_length(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert 100 < len(capsys.readouterr().err) < 2000


def test_no_message_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "\x1b[31mred"]) == 2
    assert "\x1b" not in capsys.readouterr().err


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


def test_a_file_in_the_place_of_the_output_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert ask(*TWO_BY_TWO, out=tmp_path / "file").code == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("dry", [["--dry-run"], []])
@pytest.mark.parametrize("place", ["file/runs", "/proc/nowhere"])
def test_a_folder_that_takes_no_files_is_told_before_any_run(
    place: str, dry: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    code = ask(*SMOKE, "--pe", "none", *dry, out=tmp_path / place).code
    # The superuser may write anywhere: there only the attempt tells, and a dry run makes none.
    assert code == 2 or (dry and place == "/proc/nowhere" and code == 0)
    error = capsys.readouterr().err
    assert code == 0 or error.startswith(f"pebench: error: --out: cannot write in {str(tmp_path / place)!r} (")


def test_a_folder_that_holds_a_record_itself_is_no_output_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "record.json").write_text("of another program")
    assert ask(*SMOKE, "--pe", "none", out=tmp_path).code == 2
    assert "holds a record.json itself, as the folder of a single run does" in capsys.readouterr().err


def test_a_report_of_runs_that_are_not_finished_names_the_command_that_tells_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plans").mkdir()
    assert main(["report", str(tmp_path)]) == 2
    assert f"No run has finished yet: pebench status {tmp_path}" in capsys.readouterr().err


def test_a_dry_run_makes_no_folder(tmp_path: Path) -> None:
    assert ask(*SMOKE, "--pe", "none", "--dry-run", out=tmp_path / "a" / "b").code == 0
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("text", ["raise SystemError('no')", "SUITE = 3", "def", ""])
def test_a_file_that_is_no_suite_is_told(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(text)
    assert ask("run", "--suite", str(tmp_path / "mine.py"), out=tmp_path).code == 2
    assert "mine.py" in capsys.readouterr().err


@pytest.mark.parametrize(("what", "words"), [("foo", "unknown list 'foo'"), ("tasks", "tasks are listed as text")])
def test_what_cannot_be_listed_so_is_told(what: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("list", what, "--format", "markdown").code == 2
    assert words in capsys.readouterr().err


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


@pytest.mark.parametrize("executor", ["sequential", "local"])
def test_odd_data_end_a_command_with_one_message(
    executor: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    WRITERS["text-agnews"](tmp_path / "data")
    write_table(tmp_path / "data" / "ag_news", "train", text=["a", None], label=[0, 1])
    command = ["run", "--task", "text-agnews", "--tier", "smoke", "--pe", "add", "--seed", "0", "--device", "cpu"]
    command += ["--executor", executor, "--data-dir", str(tmp_path / "data")]
    assert ask(*command, out=tmp_path / "runs").code == 2
    message = capfd.readouterr().err
    assert "column 'text', row 1: expected a text, got None." in message
    assert message.count("pebench: error:") == 1
    assert "Traceback" not in message
    assert "report this" not in message
    assert not [*tmp_path.rglob("record.json")]
