"""Results in Python: a data frame with a row a run, tables and pages, of records from anywhere."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import pebench
from pebench.errors import UserError
from pebench.results.frame import Results
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.tasks import configure

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "results" / "core"


def record(task: str, encoding: str, seed: int, metrics: dict[str, float], **settings: object) -> Record:
    config = configure(task, encoding, seed, "smoke", {name.replace("__", "."): v for name, v in settings.items()})
    return Record(config, metrics=metrics, parameters={"encoding": 10, "total": 300}, duration_s=2.0)


@pytest.fixture
def results() -> Results:
    digits = [
        record("vit-digits", name, seed, {"val/loss": 1.0, "test/accuracy": 0.1 * seed + 0.5})
        for name in ("add", "rope")
        for seed in (0, 1)
    ]
    return Results(
        [
            *digits,
            record("lm-grammar", "add", 0, {"val/loss": 2.0, "test/bits_per_byte": 1.5, "test/bits_per_byte@2x": 1.7}),
        ]
    )


def test_a_frame_has_a_row_a_run_and_readable_columns(results: Results) -> None:
    frame = results.to_frame()
    assert len(frame) == 5
    assert [*frame.columns[:3]] == ["task", "encoding", "seed"]
    assert {"test accuracy", "test bits per byte", "test bits per byte at 2x", "validation loss"} <= {*frame.columns}
    assert frame.groupby("encoding")["test accuracy"].mean().to_dict() == pytest.approx({"add": 0.55, "rope": 0.55})
    assert frame["test bits per byte"].notna().tolist() == [False] * 4 + [True]
    assert frame["parameters"].tolist() == [300] * 5
    assert frame["key"].tolist() == [r.config.key for r in results.records]


def test_settings_that_differ_are_columns() -> None:
    runs = [record("vit-digits", "add", 0, {}, model__num_layers=n) for n in (1, 2)]
    frame = Results(runs).to_frame()
    assert frame["model.num_layers"].tolist() == [1, 2]
    assert "model.d_model" not in frame


def test_runs_that_select_are_rows_if_they_are_asked_for() -> None:
    from dataclasses import replace

    tested = record("vit-digits", "add", 0, {"test/accuracy": 0.5})
    tried = Record(replace(tested.config, selected=("train.clip",), stage="select"), metrics={"val/loss": 1.0})
    assert len(Results([tried, tested]).to_frame()) == 1
    assert Results([tried, tested]).to_frame(every=True)["stage"].tolist() == ["select", "test"]


def test_published_records_are_read_and_shown() -> None:
    results = pebench.load_results(str(PUBLISHED), pebench.load_suite("core"))
    assert len(results) == len(read_records(PUBLISHED))
    assert len(results.to_frame(every=True)) == len(results)
    assert "verdict Holm-adjusted" in results.table()
    html = results._repr_html_()
    assert html.count("<table>") == html.count("</table>") == len(results.page.tables)


def test_a_page_is_written_in_the_format_of_its_suffix(results: Results, tmp_path: Path) -> None:
    starts = {".html": "<!doctype html>", ".md": "# Results", ".csv": "protocol,task,", ".tex": "%"}
    for suffix, start in starts.items():
        path = results.report(tmp_path / f"page{suffix}")
        assert path.read_text(encoding="utf-8").lower().startswith(start.lower()), suffix
    assert len(json.loads(results.report(str(tmp_path / "page.json")).read_text())["tables"]) == 2
    assert pebench.load_results(results.report(tmp_path / "page.jsonl")).to_frame().shape == results.to_frame().shape
    with pytest.raises(UserError, match=r"ends in \.md, \.html, \.tex, \.csv, \.json, \.jsonl, got"):
        results.report(tmp_path / "page.docx")


def test_a_page_is_the_one_that_the_command_line_writes(tmp_path: Path) -> None:
    from pebench.results.page import Page
    from pebench.results.publish import FORMATS

    suite, records = pebench.load_suite("core"), read_records(PUBLISHED)
    written = pebench.load_results(PUBLISHED, suite).report(tmp_path / "core.csv").read_text(encoding="utf-8")
    assert written == FORMATS["csv"](Page.of(records, suite, allow_unmatched=True))


def test_what_shows_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of 0 runs was tested"):
        Results([]).table()
    with pytest.raises(UserError, match="none of 0 runs was tested"):
        Results([]).report(tmp_path / "page.md")
    assert repr(Results([])) == "<Results: 0 runs>"
    assert Results([])._repr_html_() == "<p>Results: 0 runs</p>"
    assert len(Results([]).to_frame()) == 0


def test_a_table_in_a_notebook_holds_no_markup_of_a_name(results: Results, tmp_path: Path) -> None:
    write_jsonl(list(results.records), tmp_path / "all.jsonl")
    assert "<script" not in pebench.load_results(tmp_path / "all.jsonl")._repr_html_()


def test_a_frame_has_the_runs_that_tables_count() -> None:
    results = pebench.load_results(PUBLISHED)
    frame = results.to_frame()
    assert set(frame.groupby(["task", "encoding"]).size()) == {8}
    assert len(frame) < sum(record.config.stage == "test" for record in results.records)  # some were tested before
    (table,) = [table for table in results.page.tables if table.task.name == "text-imdb"]
    means = frame[frame["task"] == "text-imdb"].groupby("encoding")["test accuracy"].mean()
    assert {row.label: row.estimate.mean for row in table.rows} == pytest.approx(means.to_dict())


def snippets_of_the_guide() -> list[str]:
    text = (ROOT / "docs" / "guides" / "reports.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [snippet.replace('"results/', f'"{ROOT}/results/') for snippet in found]


def test_parquet_and_duckdb_as_the_guide_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    parquet, query = snippets_of_the_guide()
    names: dict[str, Any] = {}
    exec(compile(parquet, "reports.md", "exec"), names)
    pandas.testing.assert_frame_equal(pandas.read_parquet("core.parquet"), names["frame"])
    pytest.importorskip("duckdb")
    exec(compile(query, "reports.md", "exec"), names)
    images = names["frame"][names["frame"]["task"] == "vit-cifar10"]
    means = images.groupby("encoding")["test accuracy"].mean().sort_values(ascending=False)
    assert names["means"].fetchall() == [(name, pytest.approx(value), 8) for name, value in means.items()]


def test_a_frame_of_every_kind_of_run_is_a_parquet_file(results: Results, tmp_path: Path) -> None:
    """A column of two types would be refused: settings that differ, metrics of some tasks alone, failures."""
    pytest.importorskip("pyarrow")
    odd = [
        Record(
            configure("vit-digits", "none", 0, "smoke"),
            status="failed",
            error={"kind": "exception", "reason": "none", "log": ""},
        ),
        record("text-order", "add", 0, {"test/accuracy@2x": 0.5}, model__token_pace=2.0, model__d_ff=None),
    ]
    frame = Results([*results.records, *odd]).to_frame(every=True)
    frame.to_parquet(tmp_path / "all.parquet")
    assert len(frame) == 7
