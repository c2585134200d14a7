"""The other verbs: what they print, and that none loads what it does not need."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pebench import __version__
from pebench.cli import main
from pebench.encodings.registry import encoding_cards
from pebench.runs.records import read_records
from pebench.runs.suite import suite_files
from pebench.tasks import TASKS
from tests.cli.asking import Answer, ask, pebench


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


def test_what_there_is_is_listed() -> None:
    for what, names in (("tasks", TASKS), ("suites", suite_files())):
        assert [line.split()[0] for line in ask("list", what).lines] == list(names)
    pattern = re.compile(r"^  ([\w-]+) +(?:nothing|input|residual|queries|logits|–)", re.MULTILINE)
    listed = pattern.findall(ask("list", "encodings").text)
    assert sorted(listed) == list(encoding_cards())
    assert "options: base=10000.0, ratio=1.0" in ask("list", "encodings").text
    assert max(map(len, ask("list", "encodings").lines)) <= 120
    assert re.search(r"^vit-digits .*\[smoke, minute, quick\]$", ask("list", "tasks").text, re.MULTILINE)


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


@pytest.mark.parametrize("verb", [(), ("run",), ("list",), ("report",)])
def test_help_exits_with_0(verb: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*verb, "--help"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: pebench", *verb]))


MISTAKES = (
    "verify ropee", "verify vit-digit", "verify module_with_torch:Nothing", "plot-encoding ropee", "analyze nowhere",
    "run --task vit-digits --pe module_with_torch:Nothing", "run --task module_with_torch:nothing",
    "run --task vit-digits --executor local --executor-option partition=x", "run --task vit-digits --tier quik",
)  # fmt: skip
"""Commands with a mistake that is told before torch is imported."""


def test_what_needs_no_model_does_not_import_torch(
    first: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"""
import contextlib, io, sys
from pebench.cli import main
MISTAKES = {MISTAKES}
for line in ("--help", "run --help", "list tasks", "list encodings", "list suites", "report {first.out}",
             "report {first.out} --format html",
             "list executors", "status {first.out}", "compare {first.out} {first.out}",
             "run --task text-imdb --offline --out {first.out / "none"}", *MISTAKES):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        main(line.split())
    if heavy := {{"torch", "lightning", "datasets", "torchvision"}} & set(sys.modules):
        sys.exit(f"{{line}} imports {{heavy}}")
"""
    (tmp_path / "module_with_torch.py").write_text("import torch\nclass Something: ...\n")
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.count("pebench: error: ") == len(MISTAKES) + 1
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr


def test_the_package_is_a_program() -> None:
    with pebench("--version") as process:
        assert process.communicate() == (f"pebench {__version__}\n", "")
    assert process.returncode == 0
