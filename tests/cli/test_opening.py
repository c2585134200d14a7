"""The HTML page from the command line: where it goes, that it opens, and that it never floods a terminal."""

import sys
import webbrowser
from pathlib import Path

import pytest

from pebench.cli import main
from pebench.cli.opening import DISPLAYS, open_page
from pebench.runs.records import write_jsonl
from tests.cli.asking import SMOKE, Answer, ask
from tests.results.page_records import runs


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was asked to open."""
    found: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: not found.append(address))
    return found


@pytest.fixture
def nothing_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a display."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("there is nothing to open it in"))
    for name in DISPLAYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_jsonl(runs(2, ["vit-digits"]), tmp_path / "all.jsonl")
    return tmp_path / "all.jsonl"


def test_a_run_ends_with_the_path_of_its_page(first: Answer) -> None:
    page = first.out / "report.html"
    assert first.lines[-1] == f"Page: {page}"
    assert "<h2>vit-digits</h2>" in page.read_text(encoding="utf-8")


def test_a_run_opens_its_page_if_asked_to(first: Answer, opened: list[str]) -> None:
    again = ask(*SMOKE, "--pe", "add", "--pe", "rope", "--seeds", "2", "--open", out=first.out)
    assert again.code == 0
    assert opened == [(first.out / "report.html").resolve().as_uri()]


@pytest.mark.usefixtures("nothing_to_see")
def test_without_a_display_it_is_said_where_the_page_is(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(source), "--open"]) == 0
    page = source.with_suffix(".html")
    assert capsys.readouterr().out == (
        f"all.html\nThere is no browser here to open it in. The page is at {page.resolve()}\n"
    )
    assert page.is_file()


def test_a_browser_that_fails_is_no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(address: str) -> bool:
        raise webbrowser.Error("none")

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", fail)
    assert str(tmp_path / "page.html") in open_page(tmp_path / "page.html")


def test_html_in_a_terminal_is_written_to_a_file(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["report", str(source), "--format", "html"]) == 0
    assert capsys.readouterr().out == "all.html\n"
    assert (source.parent / "all.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["report", str(source), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("protocol,task,")


def test_html_in_a_pipe_is_printed(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(source), "--format", "html"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert not (source.parent / "all.html").exists()


def test_the_published_page_opens_too(source: Path, opened: list[str]) -> None:
    assert main(["report", str(source), "--output", "mine", "--open"]) == 0
    assert opened == [(source.parent / "mine.html").resolve().as_uri()]


def test_only_html_opens(source: Path, opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(source), "--format", "csv", "--open"]) == 2
    assert "--open shows the HTML page, got --format csv" in capsys.readouterr().err
    assert opened == []
