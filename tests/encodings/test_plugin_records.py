"""Records of plug-ins: origin, changes of the source, reproduction; and the example of a package."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import pebench
from pebench.encodings import plugin_modules
from pebench.engine.executors.worker import work
from pebench.results.page import Page
from pebench.results.provenance import changed_plugins, warnings
from pebench.results.tables import build_tables
from pebench.results.writers.markdown import markdown
from pebench.runs.records import FILE_NAME, read_record, read_records
from pebench.tasks import configure

from .workplace import ROWS, SMOKE, Workplace, done, options


def test_a_record_has_the_origin_of_a_plug_in(here: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    module = here.module(ROWS)
    name, out = f"{module}:Rows", here.folder / "runs"
    record = done(name, out)
    assert record.ok, record.error
    digest = plugin_modules.digest(here.folder / f"{module}.py")
    facts = {"place": name, "sha256": digest, "summary": "Adds a number. And more"}
    assert record.environment["plugins"] == {name: facts}
    assert record.config.directory.startswith(f"vit-digits/{module}.Rows/seed0-")
    assert record.parameters["encoding"] == 16
    assert "plugins" not in done("add", out).environment
    page = markdown(Page.of(read_records(out)))
    assert f"- Plug-ins: {name}: {name}, source {digest[:12]}\n" in page
    assert f"**{name}**: Adds a number. And more. ({name}, source {digest[:12]})\n" in page
    assert f"--pe {name}" in page
    assert f"plugins.{name}.sha256" in here.ask("show", str(out / record.config.directory))


def test_a_record_has_the_origin_of_a_plug_in_within_another_encoding(here: Workplace) -> None:
    module = here.module(ROWS)
    config = configure("vit-digits", "stack", 0, "smoke", encoding_args={"first": f"{module}:Rows(scale=2)"})
    work(config, options(here.folder))
    record = read_record(here.folder / config.directory)
    assert record is not None
    assert list(record.environment["plugins"]) == [f"{module}:Rows"]


def test_records_of_different_sources_are_warned_of(here: Workplace) -> None:
    module = here.module(ROWS)
    first = done(f"{module}:Rows", here.folder / "runs")
    assert changed_plugins([first]) == []
    facts = {"plugins": {f"{module}:Rows": {"place": f"{module}:Rows", "sha256": "0" * 64}}}
    second = replace(first, config=first.config.with_seed(1), environment={**first.environment, **facts})
    (table,) = build_tables([first, second])
    assert f"Runs of {module}:Rows were not made with the same source of it: 000000000000, " in str(warnings(table))
    (encoded,) = changed_plugins([first, second])
    assert re.search(r"has changed since .* source was 000000000000 and is [0-9a-f]{12} now", encoded)


@pytest.mark.slow
def test_a_change_of_the_source_is_reported_when_runs_are_skipped(here: Workplace) -> None:
    module = here.module(ROWS)
    command = [*SMOKE, "--pe", f"{module}:Rows", "--executor", "sequential", "--out", "runs"]
    assert "has changed" not in here.ask_anew(*command)
    assert "has changed" not in here.ask_anew(*command)
    (here.folder / f"{module}.py").write_text(ROWS + "\n# changed\n")
    assert f"encoding '{module}:Rows' has changed since runs here were done with it" in here.ask_anew(*command)


@pytest.mark.slow
def test_records_are_read_where_the_plug_in_is_not(here: Workplace) -> None:
    module = here.module(ROWS)
    done(f"{module}:Rows", here.folder / "runs")
    done("add", here.folder / "runs")
    (here.folder / f"{module}.py").unlink()
    for command in (["report", "runs"], ["compare", "runs", "runs"], ["report", "runs", "--format", "json"]):
        assert f"{module}:Rows" in here.ask_anew(*command)
    assert "2 done" in here.ask_anew("status", "runs")
    (record,) = here.folder.glob(f"runs/*/{module}.Rows/*/{FILE_NAME}")
    assert f"no module '{module}' is installed" in here.ask_anew("run", "--config", str(record), "--out", "new", code=2)


@pytest.mark.slow
def test_a_record_is_reproduced(here: Workplace) -> None:
    module = here.module(ROWS)
    config = configure("vit-digits", f"{module}:Rows", 0, "smoke", encoding_args={"scale": 2})
    work(config, options(here.folder / "first"))
    first = read_record(here.folder / "first" / config.directory)
    where = "--config", f"first/{config.directory}/{FILE_NAME}", "--out", "again"
    here.ask("run", *where, "--threads", "1", "--device", "cpu", "--executor", "sequential")
    again = read_record(here.folder / "again" / config.directory)
    assert first is not None
    assert again is not None
    assert (again.config, again.metrics) == (first.config, first.metrics)


@pytest.mark.slow
def test_printed_commands_find_the_module_from_anywhere(
    here: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    module = here.module(ROWS)
    out = here.folder / "runs"
    printed = here.ask(*SMOKE, "--pe", f"{module}:Rows", "--executor", "commands", "--out", str(out))
    (line,) = [line for line in printed.splitlines() if "--config" in line]
    assert line.startswith(f"PYTHONPATH={here.folder.resolve()}:")
    command = line.replace("pebench run", f"{sys.executable} -m pebench run")
    subprocess.run(command, shell=True, cwd=tmp_path_factory.mktemp("elsewhere"), check=True, capture_output=True)
    assert len(read_records(out)) == 1


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that examples/plugin is installed to, with nothing from the network."""
    import shutil

    pytest.importorskip("setuptools")
    source, site = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).parents[2] / "examples" / "plugin", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--target", site, source], check=True)
    return site


@pytest.fixture
def beside(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command where the example is installed, and return what it prints."""
    source = str(Path(pebench.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{source}:{installed}")
    return Workplace(tmp_path).ask_anew


def test_the_example_is_listed(beside: Callable[..., str]) -> None:
    words = " ".join(beside("list", "encodings").split())  # lines are folded to the terminal's width
    assert re.search(r" Plug-ins binary input .{,250}from pebench-binary 0\.1\.0", words)


@pytest.mark.slow
def test_the_example_runs_by_name_and_by_place(beside: Callable[..., str], tmp_path: Path) -> None:
    names = ("--pe", "add", "--pe", "binary", "--pe", "pebench_binary:BinaryEncoding")
    beside(*SMOKE, *names, "--set", "encoding.bits=3", "--out", "runs")
    records = {record.config.encoding: record for record in read_records(tmp_path / "runs")}
    by_name, by_place = (records[name] for name in ("binary", "pebench_binary:BinaryEncoding"))
    assert by_name.config.encoding_args == {"bits": 3}
    assert by_name.environment["plugins"]["binary"]["distribution"] == "pebench-binary"
    assert list(by_place.environment["plugins"]) == ["pebench_binary:BinaryEncoding"]
    assert "pebench-binary 0.1.0" in beside("report", "runs")
    assert json.loads(beside("report", "runs", "--format", "json"))


@pytest.mark.slow
def test_the_tests_of_the_example_pass(beside: Callable[..., str]) -> None:
    folder = Path(__file__).parents[2] / "examples" / "plugin"
    script = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    where = ["-c", "/dev/null", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder / "tests")]
    assert "2 passed" in beside("-q", *where, script=script)
