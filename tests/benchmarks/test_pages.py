"""Pages of studies are kept while they grow, and when their measurement is interrupted."""

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
import torch

from pebench.benchmarks.studies import pages, processes

ROOT = Path(__file__).parents[2]
STUDIES = [path for path in sorted((ROOT / "benchmarks" / "studies").glob("*.py")) if "\ndef main(" in path.read_text()]


def growing(output: Path, stages: int, interrupted: bool = False) -> Iterator[str]:
    for number in range(1, stages + 1):
        yield "line\n" * number
        assert output.read_text() == "line\n" * number + pages.INCOMPLETE  # each stage is kept at once
    if interrupted:
        raise KeyboardInterrupt


def test_a_page_is_written_at_every_stage_and_printed_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "page.md"
    assert pages.write_page(growing(output, 3), output) == 0
    assert output.read_text() == "line\nline\nline\n" == capsys.readouterr().out


def test_an_interrupted_page_keeps_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.md"
    assert pages.write_page(growing(output, 2, interrupted=True), output) == 130
    assert output.read_text() == "line\nline\n" + pages.INCOMPLETE == capsys.readouterr().out


def test_an_interruption_before_anything_is_measured_leaves_the_page_of_before(tmp_path: Path) -> None:
    output = tmp_path / "page.md"
    output.write_text("of last year\n")
    assert pages.write_page(growing(output, 0, interrupted=True), output) == 130
    assert output.read_text() == "of last year\n"


def test_a_page_names_the_command_that_makes_it() -> None:
    text = pages.circumstances("growth", ["--threads", "2"], torch.device("cpu"), 2)
    assert text.endswith(" 2 threads, 32 bit.  \n`python -m benchmarks.studies.growth --threads 2`\n\n")


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_a_study_documents_its_command_and_its_page_names_it(study: Path) -> None:
    command = f"python -m benchmarks.studies.{study.stem}"
    assert f"\n    {command} " in study.read_text()
    assert f"`{command} " in (ROOT / "results" / "studies" / f"{study.stem}.md").read_text()


@pytest.mark.parametrize("way", [["-m", "benchmarks.studies.undeclared"], ["benchmarks/studies/undeclared.py"]])
def test_a_study_runs_as_a_module_and_by_its_path(way: list[str]) -> None:
    asked = subprocess.run([sys.executable, *way, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert "--output FILE" in asked.stdout, asked.stderr


def test_processes_are_ended_when_nobody_waits_for_them() -> None:
    results = processes.as_finished(time.sleep, [0, 3600], 2)
    assert next(results) == (0, None)
    children = multiprocessing.active_children()
    assert len(children) == 2
    results.close()
    deadline = time.monotonic() + 60
    while any(child.exitcode is None for child in children):  # the pool's own thread may be the one that joins them
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_results_come_with_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    class AtOnce:
        def __init__(self, *_: object, **__: object) -> None: ...

        def submit(self, function: object, item: object) -> Future[object]:
            future: Future[object] = Future()
            future.set_result(function(item))  # type: ignore[operator]
            return future

        def shutdown(self, **_: object) -> None: ...

    monkeypatch.setattr(processes, "ProcessPoolExecutor", AtOnce)
    assert sorted(processes.as_finished(str, [5, 6, 7], 2)) == [(0, "5"), (1, "6"), (2, "7")]
