"""Records that are damaged, changed by hand, put elsewhere or made up: refused by name, and never taken as done."""

import copy
import json
import random
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pebench.cli import main
from pebench.errors import UserError
from pebench.results.page import Page
from pebench.results.writers.csv import to_csv
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.plan import PLANS, planned_runs, unreadable_records, write_plan
from pebench.runs.records import (
    FAILURE,
    FILE_NAME,
    Record,
    damage,
    find_record,
    read_config,
    read_records,
    without_places,
    write_jsonl,
    write_record,
)
from pebench.tasks import configure

CONFIG = configure("vit-digits", "rope", 0, "smoke")
RECORD = Record(
    CONFIG, metrics={"test/accuracy": 0.5, "val/loss": 0.9, "best_step": 2}, curve=[{"step": 2, "val/loss": 0.9}],
    parameters={"encoding": 0, "total": 3562}, flops_per_sample=10**6, throughput=1.5, peak_memory_gib=0.5,
    duration_s=2.5, dataset={"fingerprint": "ab" * 32, "sizes": {"train": 3}, "padding": None},
    environment={
        "versions": {"torch": "2.6.0"}, "device": "cpu: some", "threads": 1, "compiled": False,
        "plugins": {"mine": {"place": "mine:Mine", "sha256": "ab"}},
    },
    started="2026-01-01T00:00:00+00:00", position_shares={"trained": [0.5, None]},
    analysis={"trained": {"terms": {"bias": [[0.5, None]]}, "energies": {"overlap": 0.5}, "shift": None}},
)  # fmt: skip
OTHER = replace(RECORD, config=configure("vit-digits", "add", 0, "smoke"), analysis={})
ODD: list[Any] = [
    None, "", [], {}, float("nan"), float("inf"), -1, 10**30, 1e308, True, "x", [None], [[1]], {"a": {"b": [None]}},
    "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))|a`b`", "\x1b[31mred\x07", "=1+1", "../../x", "/tmp/x",
    "a\nb", "y" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("value", [5, {"step": 2}, "23"])
def test_a_list_is_asked_for_by_name(value: Any) -> None:
    with pytest.raises(UserError, match=r"curve is .*, expected a list"):
        Record.from_dict(old(RECORD, curve=value))


def old(record: Record, **changes: Any) -> dict[str, Any]:
    """A record as pebench wrote it before it had a checksum."""
    return replace(record, schema=1).to_dict() | changes


def places(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for name in values if isinstance(values, dict) else range(min(len(values), 1)) if isinstance(values, list) else ():
        yield from places(values[name], (*path, name))


def spoiled(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The record with another value at a place; the key of what follows from its configuration is left out."""
    values = copy.deepcopy(old(RECORD))
    part: Any = values
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    if path[0] == "config":
        values.pop("key", None)
    return values


def test_a_flipped_bit_is_never_another_record(tmp_path: Path) -> None:
    path = write_record(RECORD, tmp_path)
    content, choose = path.read_bytes(), random.Random(0)
    for _ in range(100):
        place = choose.randrange(8 * len(content))
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        assert find_record(CONFIG, tmp_path) in (None, RECORD)  # it may hit a blank between two fields


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"metrics": {"test/accuracy": 2.0}}, "metrics.test/accuracy is 2.0, expected a number from 0 to 1"),
        ({"config": OTHER.config.to_dict()}, "its key is"),
        ({"schema": 99, "checksum": ""}, "it is of schema 99, which a newer pebench made"),
        ({"schema": 2}, "its checksum is not that of its content"),
        ({"curve": [{"val/loss": 1.0}]}, "curve is {'val/loss': 1.0}, expected points with their step"),
    ],
)
def test_what_is_wrong_with_a_record_is_said(changes: dict[str, Any], text: str, tmp_path: Path) -> None:
    path = write_record(RECORD, tmp_path)
    path.write_text(json.dumps(old(RECORD, **changes)))
    assert find_record(CONFIG, tmp_path) is None
    assert text in damage(CONFIG, tmp_path)
    (note,) = unreadable_records([CONFIG], {}, tmp_path)
    assert text in note
    with pytest.raises(UserError, match="delete it and run again"):
        read_records(tmp_path)


def test_a_record_of_another_run_is_not_taken_for_this_one(tmp_path: Path) -> None:
    path = write_record(RECORD, tmp_path)
    path.write_bytes(write_record(OTHER, tmp_path / "elsewhere").read_bytes())
    assert find_record(CONFIG, tmp_path) is None
    assert damage(CONFIG, tmp_path) == f"it is the record of {OTHER.config.directory}, protocol 0.2"


@pytest.mark.parametrize("damaged", ["cut", "changed", "of another run"])
def test_what_run_makes_again_is_to_do_for_status_and_a_dry_run(damaged: str, tmp_path: Path, capsys: Any) -> None:
    path = write_record(RECORD, tmp_path)
    asked = ["run", "--task", "vit-digits", "--tier", "smoke", "--pe", "rope", "--seed", "0", "--device", "cpu"]
    asked += ["--dry-run", "--out", str(tmp_path)]
    for spoil, state in ((False, "done"), (True, "to do")):
        if spoil and damaged == "of another run":
            path.write_bytes(write_record(OTHER, tmp_path / "elsewhere").read_bytes())
            shutil.rmtree(tmp_path / "elsewhere")
        elif spoil:
            text = path.read_text()
            path.write_text(text[:-20] if damaged == "cut" else text.replace("3562", "3563"))
        assert main(["status", str(tmp_path)]) == 0
        status = capsys.readouterr().out
        assert f"1 {state}" in status.splitlines()[0]
        assert main(asked) == 0
        dry = capsys.readouterr().out
        assert re.search(rf"{state} +{CONFIG.directory}", dry)
        assert [f"  {CONFIG.directory}\n" in status, "1 record cannot be read" in dry] == [spoil] * 2


@pytest.mark.parametrize("name", [FILE_NAME, FAILURE])
def test_a_record_in_another_runs_folder_is_named_and_left_out(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_record(OTHER, tmp_path)
    stranger = RECORD if name == FILE_NAME else replace(RECORD, status="failed", error={"kind": "lost"})
    path = write_record(stranger, tmp_path)
    folder = path.parent.rename(path.parent.with_name("seed1-0123456789ab"))
    assert read_records(tmp_path) == [OTHER]
    assert f"{folder / name} is left out: it is the record of {CONFIG.directory}" in caplog.text
    assert read_records(folder) == [stranger]  # asked for by its own place


def test_a_record_changed_by_hand_is_refused_and_one_changed_in_python_is_not(tmp_path: Path) -> None:
    path = write_record(RECORD, tmp_path)
    path.write_text(path.read_text().replace('"total": 3562', '"total": 3563'))
    for read in (read_records, lambda folder: read_config(folder / CONFIG.directory)):
        with pytest.raises(UserError, match="damaged, or changed by hand"):
            read(tmp_path)
    changed = replace(RECORD, parameters={"encoding": 0, "total": 3563})
    write_record(changed, tmp_path)
    assert read_records(tmp_path) == [changed]


def test_records_without_a_checksum_stay_as_they_are_to_the_byte(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(json.dumps(old(RECORD)) + "\n")
    write_jsonl(read_records(first), second)
    write_jsonl(read_records(second), first)
    assert first.read_bytes() == second.read_bytes()
    assert b"checksum" not in first.read_bytes()


CODE = """
from dataclasses import replace
from pathlib import Path
from pebench import PositionalEncoding
from pebench.tasks import TASKS
Path("imported").touch()
task = replace(TASKS["vit-digits"], name="task")
Mine = type("Mine", (PositionalEncoding,), {})
"""


@pytest.mark.parametrize("verb", [["report"], ["compare", "runs"], ["report", "--format", "html"]])
def test_a_record_imports_no_code_and_its_user_may(
    verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = f"code_of_a_stranger_{len(verb)}_{verb[0]}"
    Path(f"{name}.py").write_text(CODE)
    write_record(replace(RECORD, config=replace(CONFIG, task=f"{name}:task")), Path("runs"))
    assert main([*verb, "runs"]) == 2
    assert f"--task {name}:task" in capsys.readouterr().err
    assert not Path("imported").exists()
    assert str(tmp_path) not in sys.path
    assert main([*verb, "runs", "--task", f"{name}:task"]) == 0
    assert Path("imported").exists()
    capsys.readouterr()


def test_a_record_of_an_encoding_within_others_imports_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("code_of_another.py").write_text(CODE)
    for encoding, options in (("code_of_another:Mine", {}), ("stack", {"first": "code_of_another:Mine"})):
        config = replace(CONFIG, encoding=encoding, encoding_args=options)
        write_record(replace(RECORD, config=config), Path("runs"))
    for verb in (["report"], ["report", "--format", "html"], ["status"], ["merge", "--records", "r.jsonl"]):
        assert main([*verb, "runs"]) == 0
    assert not Path("imported").exists()
    capsys.readouterr()


@pytest.mark.parametrize("place", [("config", "task"), ("config", "encoding"), ("config", "tier")])
@pytest.mark.parametrize("name", ["../../../x", "/tmp/x", "a/b", "..", "a|b", "<b>", "=1+1", "\x1b[2J", "x" * 300])
def test_names_of_records_lead_nowhere(place: tuple[str, str], name: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "r.jsonl").write_text(json.dumps(spoiled(place, name)) + "\n")
    assert main(["merge", str(tmp_path / "in" / "r.jsonl"), "--out", str(tmp_path / "in" / "m" / "m")]) == 2
    assert {path.name for path in tmp_path.rglob("*")} == {"in", "r.jsonl"}
    error = capsys.readouterr().err
    assert f"{place[1]} expects a name" in error
    assert "\x1b" not in error
    assert len(error) < 600


CASES = [(path, odd) for path in places(old(RECORD)) for odd in ODD]


def test_a_field_of_another_kind_is_refused_or_does_no_harm() -> None:
    """A fixed sample of 400 of them through every format."""
    accepted = longest = 0
    for path, odd in random.Random(1).sample(CASES, 400):
        try:
            record = Record.from_dict(json.loads(json.dumps(spoiled(path, odd))))
        except (UserError, TypeError, KeyError) as error:
            longest = max(longest, len(str(error)))
            continue
        accepted += 1
        if record.config.task != CONFIG.task or record.config.stage == "select":
            continue
        page = Page.of([record, OTHER], allow_unmatched=True)
        for write in (to_csv, to_json, latex) if accepted % 4 else (markdown,):
            text = write(page)
            assert "\x1b" not in text
            if write is markdown:
                assert not [mark for mark in ("<img", "](javascript") if mark in outside_code(text)]
    assert 20 < accepted < 300
    assert longest < 600  # one that lists every setting


def outside_code(text: str) -> str:
    """What Markdown reads for elements and links, without those that a backslash makes text."""
    return "".join(re.sub(r"\\.", "", text).split("`")[::2])


ATTACK = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) a|b =1"


def attacked() -> Page:
    config = replace(CONFIG, encoding_args={"note": ATTACK})
    failed = replace(
        RECORD, config=config.with_seed(1), status="failed", error={"reason": f"\x1b[31m{ATTACK}\x07"}, analysis={}
    )
    return Page.of([OTHER, replace(RECORD, config=config, analysis={}), failed])


def test_markdown_shows_options_and_reasons_as_they_are() -> None:
    text = markdown(attacked())
    assert r"\<img src=x" in text
    assert not [mark for mark in ("<img", "](javascript") if mark in outside_code(text)]
    assert "\x1b" not in text
    rows = [line.replace(r"\|", "") for line in text.splitlines() if line.startswith("|")]
    tables = [line.count("|") for line in rows if "note=" in line]
    assert tables
    assert {"|" in line for line in rows} == {True}
    header = next(line for line in rows if line.startswith("| Encoding"))
    assert any(count == header.count("|") for count in tables)


def test_a_cell_of_csv_that_begins_like_a_formula_is_text_and_numbers_stay_numbers() -> None:
    from pebench.results.writers.csv import _cell

    assert [_cell(text) for text in ("=1+1", "+1", "-x", "@a", "\tb")] == ["'=1+1", "'+1", "'-x", "'@a", "'\tb"]
    assert [_cell(value) for value in (-0.5, -1, None, "add", {"a": 1})] == [-0.5, -1, None, "add", '{"a":1}']
    lines = to_csv(Page.of([replace(RECORD, analysis={}), OTHER])).splitlines()
    assert len({line.count(",") > 5 for line in lines}) == 1


def test_rows_with_and_without_an_analysis_share_a_csv() -> None:
    lines = to_csv(Page.of([RECORD, OTHER])).splitlines()
    assert "analysis" in lines[0]


def test_a_damaged_plan_and_one_that_leads_elsewhere_are_ignored(tmp_path: Path) -> None:
    write_plan([CONFIG], tmp_path)
    (path,) = (tmp_path / PLANS).glob("*.json")
    path.write_text(path.read_text().replace("rope", "rape"))
    assert planned_runs(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('File "/home/me/my code/model.py", line 3', 'File "model.py", line 3'),
        ("[Errno 28] No space left: '/scratch/me/runs/x.ckpt'", "[Errno 28] No space left: 'x.ckpt'"),
        (f"{Path.home()}", "~"),
        (f"{Path(__file__)}:3", f"{Path(__file__).relative_to(Path.cwd())}:3"),
        (r"C:\Users\me\x.py: no", "x.py: no"),
        ("val/loss of a/b, see https://x.org/a/b", "val/loss of a/b, see https://x.org/a/b"),
    ],
)
def test_a_text_for_others_has_no_places(text: str, expected: str) -> None:
    assert without_places(text) == expected
    assert FILE_NAME not in without_places("/a/b")
