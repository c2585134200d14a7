"""Pages as files: every format, the records, the pictures, and what cannot be written."""

import csv
import functools
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from pebench.cli import main
from pebench.config import SELECTION_SEED
from pebench.results.finding import finding
from pebench.results.page import Page
from pebench.results.publish import FORMATS, publish, publish_folder, written
from pebench.results.writers.csv import to_csv
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record, read_records, write_jsonl
from tests.results.page_records import (
    TASKS,
    page,
    run,
    runs,
    whole,
    whole_text,
)


def test_how_to_read_each_kind_of_picture_is_told_where_there_are_some() -> None:
    assert "## Pictures" not in whole_text(markdown)
    text = markdown(whole(), "figures")
    kinds = {title.partition(",")[0] for title in re.findall(r"!\[(.*?)\]", text)}
    told = text.partition("## Pictures\n")[2].partition("\n## ")[0]
    assert kinds == set(re.findall(r"^- (.*?)\. ", told, re.MULTILINE))


EVERY = (*runs(), run("vit-digits", "none", 0, None))


@functools.cache
def in_order(write: Callable[[Page], str]) -> str:
    return write(page([*EVERY]))


@pytest.mark.parametrize("write", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_records_does_not_change_a_byte(write: Callable[[Page], str], seed: int) -> None:
    assert write(page(random.Random(seed).sample(EVERY, len(EVERY)))) == in_order(write)


def test_every_format_and_the_records_are_written(tmp_path: Path) -> None:
    files = publish(whole(), runs(), tmp_path / "new" / "v1.2")
    texts = [path.name for path in files if path.parent == tmp_path / "new"]
    assert texts == ["v1.2.md", "v1.2.html", "v1.2.tex", "v1.2.csv", "v1.2.json", "v1.2.jsonl"]
    assert {path.parent.name for path in files if path.name not in texts} == {"v1.2-figures"}
    assert all(path.is_file() for path in files)
    again = page(read_records(tmp_path / "new" / "v1.2.jsonl"))
    for ending, text in written(again, "v1.2").items():
        assert (tmp_path / "new" / f"v1.2{ending}").read_text(encoding="utf-8") == text
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", (tmp_path / "new" / "v1.2.md").read_text(encoding="utf-8"))
    assert len(pictures) == len(set(pictures)) >= len(TASKS)
    assert all((tmp_path / "new" / picture).is_file() for picture in pictures)


def test_a_folder_is_published_with_what_its_page_shows(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "mine"
    files = publish_folder(whole(), runs(), folder)
    assert [path.name for path in files[:2]] == ["page.md", "runs.jsonl"]
    assert sorted(folder.rglob("*.*")) == sorted(files)
    text = (folder / "page.md").read_text(encoding="utf-8")
    assert {folder / picture for picture in re.findall(r"!\[.*?\]\((.*?)\)", text)} == {*files[2:]}
    assert "[Records](runs.jsonl)" in text
    assert "notes.md" not in text
    (folder / "notes.md").touch()
    publish_folder(whole(), runs(), folder)
    assert "[Notes](notes.md)" in (folder / "page.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["mine", "mine/runs.jsonl"])
def test_a_published_folder_is_made_again_from_its_own_records(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_folder(Page.of(runs()), runs(), tmp_path / "mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    kept = (tmp_path / "mine" / "runs.jsonl").stat().st_ino
    assert main(["report", str(tmp_path / name), "--publish", str(tmp_path / "mine")]) == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    assert (tmp_path / "mine" / "runs.jsonl").stat().st_ino == kept  # what was read is left as it is
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path / "mine" / "page.md")
    assert main(["report", str(tmp_path / "mine"), "--publish", str(tmp_path / "other")]) == 0
    assert read_records(tmp_path / "other") == read_records(tmp_path / "mine")


def test_pictures_that_a_page_no_longer_has_are_taken_away(tmp_path: Path) -> None:
    def drawn(records: list[Record]) -> set[str]:
        publish(page(records), records, tmp_path / "v1.2")
        return {path.name for path in (tmp_path / "v1.2-figures").iterdir()}

    before, fewer = drawn(runs()), [record for record in runs() if record.config.task == "vit-digits"]
    (tmp_path / "v1.2-figures" / "notes.txt").touch()  # no picture
    after = drawn(fewer)
    assert "notes.txt" in after
    assert after - {"notes.txt"} < before
    assert {name.rpartition(".")[2] for name in before - after} == {"svg", "png"}


def test_the_command_line_writes_a_suites_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "mine.py"
    suite.write_text("from pebench import Suite\nSUITE = Suite('mine', 'Why?', ['vit-digits'], ['add'], 2, 'smoke')\n")
    records = [run("vit-digits", "add", 0, 0.5)]
    write_jsonl(records, tmp_path / "page.jsonl")
    before = (tmp_path / "page.jsonl").stat().st_mtime_ns
    words = ["report", str(tmp_path / "page.jsonl"), "--suite", str(suite)]
    assert main([*words, "--output", str(tmp_path / "page")]) == 0
    assert "**Question.** Why?" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (tmp_path / "page.jsonl").stat().st_mtime_ns == before  # what was read is left as it is
    capsys.readouterr()
    assert main([*words, "--strict", "--output", str(tmp_path / "strict")]) == 2
    assert "vit-digits: Missing: add seed 1" in capsys.readouterr().err
    assert not (tmp_path / "strict.md").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--format", "csv", "--output", "x"], "either --format"),
        (["--publish", "mine", "--output", "x"], "or --publish"),
        (["--publish", __file__], "--publish expects a folder"),
        (["--format", "latexx"], "latexx"),
        (["--output", "."], "--output expects how files' names begin"),
        (["--output", "out/core.md"], "begin, out/core, got one of them: out/core.md."),
        (["--output", "core.jsonl"], "begin, core, got one of them: core.jsonl."),
        (["--suite", "nonsense"], "nonsense"),
        (["--suite", "core"], "expected records of the suite 'core'"),
    ],
)
def test_what_cannot_be_written_is_told(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(runs(1), tmp_path / "all.jsonl")
    assert main(["report", str(tmp_path / "all.jsonl"), *words]) == 2
    assert expected in capsys.readouterr().err


def test_latex_has_a_float_for_each_table_and_no_bare_special_character() -> None:
    text = whole_text(latex)
    assert text.count(r"\begin{table}") == text.count(r"\end{tabular}") == 2 + 2 * 3 + 1
    assert len(set(re.findall(r"\\label{(.*?)}", text))) == 9
    assert text.count(r"\toprule") == 9
    body = re.sub("(?m)^%.*", "", text)
    assert not re.search(r"(?<!\\)[%#]|[±Δ↑↓†–_]", body.replace(r"\_", ""))
    assert r"accuracy \% $\uparrow$" in text


def test_latex_and_csv_have_the_numbers_of_the_page() -> None:
    rows = {(row["task"], row["encoding"]): row for row in csv.DictReader(io.StringIO(whole_text(to_csv)))}
    assert {key: float(row["mean"]) for key, row in rows.items()} == {
        (table.task.name, row.config.encoding): fmean(row.values.values())
        for table in whole().tables
        for row in table.rows
    }
    for value in re.findall(r"\d\d\.\d\d ± \d+\.\d\d", whole_text(markdown)):
        assert value.replace("±", r"$\pm$") in whole_text(latex)


def test_json_has_what_the_suite_declares_and_the_figures_across_tasks() -> None:
    values = json.loads(whole_text(to_json))
    assert values["suite"]["margin"] == {"text-order": 0.005, "vit-digits": 0.01}
    assert values["finding"] == finding(whole())
    (across,) = values["across"]
    assert across["tasks"] == {"text-order": 8, "vit-digits": 8}
    assert across["rows"][0]["encoding"] == "rope"
    assert across["rows"][0]["rank"] == {"mean": 1.0, "low": 1.0, "high": 1.0}


def test_pages_are_made_without_torch(tmp_path: Path) -> None:
    write_jsonl([r for r in runs(2) if r.config.seed != SELECTION_SEED], tmp_path / "all.jsonl")
    suite = tmp_path / "mine.py"
    suite.write_text(
        "from pebench import Suite\n"
        f"SUITE = Suite('mine', 'Why?', {TASKS}, ['add', 'concat', 'rope'], 2, 'smoke', regime='width')\n"
    )
    code = (
        "import sys; from pebench.cli import main; "
        f"assert main(['report', {str(tmp_path)!r} + '/all.jsonl', '--suite', {str(suite)!r}, "
        f"'--output', {str(tmp_path)!r} + '/page']) == 0; print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.endswith("False\n")
