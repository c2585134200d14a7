"""The first steps: ``pebench`` alone, ``new``, ``doctor``, ``completion``, and what a narrow terminal shows."""

import contextlib
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.cli import main
from pebench.cli.parser import parser
from pebench.config import RunConfig
from pebench.encodings.registry import encoding_cards
from pebench.runs.records import write_record
from tests.cli.asking import Answer, ask
from tests.runs.plans import record


def test_alone_it_says_what_to_do_first(monkeypatch: pytest.MonkeyPatch) -> None:
    told = ask()
    assert told.code == 0
    commands = [line.split()[1:] for line in told.lines if line.startswith("pebench ") and "compares" not in line]
    assert len(commands) == 4
    for command in commands:
        assert parser().parse_args(command).action[1] != "start_command"  # argparse refuses what it does not know
    assert max(map(len, told.lines)) <= 60


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which modules are found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "place", "some"),
    [
        ("encoding", "fresh_wave", "fresh_wave:FreshWave", "order or dtype"),
        ("task", "fresh_task", "fresh_task:fresh_task", ""),
    ],
)
def test_new_files_pass_as_they_are(kind: str, name: str, place: str, some: str, here: Path) -> None:
    told = ask("new", kind, name)
    assert told.code == 0
    assert f"  pebench verify {place}" in told.lines
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py", "-k", some]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place"), [("encoding", "whole_wave:WholeWave"), ("task", "whole_task:whole_task")])
def test_new_files_have_every_property(kind: str, place: str, here: Path) -> None:
    assert ask("new", kind, place.partition(":")[0]).code == 0
    assert main(["verify", place]) == 0


def test_new_overwrites_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "test_mine_here.py").write_text("mine")
    assert ask("new", "encoding", "mine_here").code == 2
    assert "there is already test_mine_here.py; nothing is overwritten" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["test_mine_here.py"]
    assert (here / "test_mine_here.py").read_text() == "mine"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose pace is known without measuring, and whose network does not answer."""

    def run_suite(runs: list[RunConfig], out: Path, jobs: int, published: bool) -> None:
        """Leave the records of runs that took 1 s to start and to test, and 10 ms a step."""
        assert (len(runs), jobs, published) == (3, 4, False)
        for config in runs:
            train = config.train
            took = {"duration_s": 1 + 0.01 * train.max_steps, "throughput": 100 * train.batch_size}
            write_record(replace(record(config, 0.5), **took), out)

    monkeypatch.setattr("pebench.cli.doctor.run_suite", run_suite)
    monkeypatch.setattr("pebench.engine.execution.cores", lambda: 4)
    monkeypatch.setattr("pebench.engine.pace.operations_per_second", lambda config, device, threads: 1e10)
    monkeypatch.setattr("pebench.tasks.sources.reachable", lambda site, seconds=0.0: False)


@pytest.mark.usefixtures("quick")
def test_the_doctor_tells_what_can_run_and_how_long_it_takes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    told = ask("doctor")
    assert told.code == 0
    assert " core" in told.text
    assert ", 1 threads" not in told.text
    titles = [line for line in told.lines if not line.startswith(" ")]
    assert titles == ["Network", "Cache", "Data", "Machine", "Versions", "Time"]
    assert "does not answer within 2 s" in told.text
    assert f"  {here / 'cache'}: 0.0 GiB, writable" in told.lines
    assert (
        "  comes with pebench: vit-digits, vit-three-cells, vit-relative-cell, text-order, lm-grammar, seq-copy"
        in told.text
    )
    assert "not here, downloaded at the first run: " in told.text
    # 15 runs each of 200, 600 and 150 steps, four at a time: (45 + 15 * 9.5) / 4 s
    assert "--suite quickstart: about 47 s (45 runs, cpu)" in told.text
    assert "--tier minute: about 3 s for one run, as of vit-digits" in told.text
    assert " days for one run" in told.lines[-1]  # of the tier full
    assert "  forbidden (--offline, " in ask("doctor", "--offline").text
    (here / "file").touch()
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(here / "file" / "cache"))
    assert "not writable: set PEBENCH_CACHE_DIR" in ask("doctor", "--offline").text


@pytest.mark.slow
def test_the_doctor_tries_short_runs(capfd: pytest.CaptureFixture[str]) -> None:
    told = ask("doctor", "--offline")
    lines = told.lines[told.lines.index("Time") + 1 :]
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "pebench run --suite quickstart", "--tier minute", "--tier quick", "--tier core", "--tier full",
    ]  # fmt: skip
    assert capfd.readouterr().err == ""


def completed(shell: str, script: str, *words: str) -> list[str]:
    line = " ".join(f"'{word}'" for word in words)
    ask_it = f'COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _pebench; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run([shell, "-c", f"{script}\n{ask_it}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes_verbs_options_and_names() -> None:
    script = ask("completion", "bash").text
    assert completed("bash", script, "pebench", "ver") == ["verify"]
    assert completed("bash", script, "pebench", "run", "--sui") == ["--suite"]
    assert completed("bash", script, "pebench", "run", "--suite", "quicks") == ["quickstart"]
    assert completed("bash", script, "pebench", "run", "--task", "vit-d") == ["vit-digits"]
    assert completed("bash", script, "pebench", "run", "--device", "cu") == ["cuda"]
    assert completed("bash", script, "pebench", "new", "enc") == ["encoding"]
    assert completed("bash", script, "pebench", "run", "--out", "vit") == []
    assert set(completed("bash", script, "pebench", "run", "--pe", "")) == set(encoding_cards())


def test_other_shells_get_the_same_words() -> None:
    assert ask("completion", "zsh").text == (
        "autoload -U +X bashcompinit && bashcompinit\n" + ask("completion", "bash").text
    )
    fish = ask("completion", "fish").text
    assert "__fish_use_subcommand -f -a 'run list" in fish
    assert "'__fish_seen_subcommand_from run' -l device -r -f -a 'auto cpu cuda'" in fish
    assert "'__fish_seen_subcommand_from run' -l offline\n" in fish


NARROW: list[list[str]] = [
    [], ["list", "tasks"], ["list", "suites"], ["list", "encodings"], ["list", "executors"], ["run", "--help"],
    ["doctor", "--offline"], ["new", "encoding", "my_wide_name"], ["status", "OUT"],
    ["show", "add/seed0", "--out", "OUT"], ["verify", "ropee"], ["run", "--task", "vit-digits", "--tier", "quik"],
]  # fmt: skip


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("words", NARROW, ids=" ".join)
def test_on_60_columns_no_line_breaks_inside_a_word(
    words: list[str], first: Answer, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        for file in here.glob("*.py"):
            file.unlink()
        with contextlib.suppress(SystemExit):  # of --help
            main([str(first.out) if word == "OUT" else word for word in words])
        return "".join(capsys.readouterr())

    wide, narrow = shown(10_000), shown(60)
    if "--help" not in words:  # whose usage line argparse lays out
        assert narrow.split() == wide.split()
    assert set(narrow.split()) <= set(wide.split())
    assert [line for line in narrow.splitlines() if len(line) > 60 and len(line.split()) > 1] == []
