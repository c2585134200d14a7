"""Submissions: core's own rows of rotation, as if another had made them, pass; each departure is refused in a line."""

import getpass
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pebench.benchmarks.submissions import leaderboard
from pebench.config import SELECTION_SEED
from pebench.errors import UserError
from pebench.results.submissions.board import BOARD, FOLDER, Submission, board, load_submissions
from pebench.results.submissions.card import CARD, Card, read_card
from pebench.results.submissions.checks import Shared, check_submission
from pebench.runs.records import COLLECTION, Record, read_records, write_jsonl
from pebench.runs.suite import load_suite
from tests.results.single_records import Ask

ROOT = Path(__file__).parents[2]
TASK, LABEL = "text-sst2", "mine:Rotation"
CARD_OPTIONS = ("--paper", "Doe 2026", "--by", "J. Doe", "--code", "https://example.org/mine", "--licence", "MIT")


@pytest.fixture(scope="module")
def shared() -> Shared:
    return Shared(load_suite("core"), read_records(ROOT / "results" / "core"))


def as_mine(record: Record) -> Record:
    plugins = {LABEL: {"place": LABEL, "sha256": "ab" * 32}}
    environment = {**record.environment, "plugins": plugins, "source": "cd" * 32}
    return replace(record, config=replace(record.config, encoding=LABEL), schema=2, environment=environment)


@pytest.fixture(scope="module")
def mine(shared: Shared) -> list[Record]:
    """Rotation's runs on SST-2, the selecting ones too, under the name of another's module."""
    found = [r for r in shared.records if (r.config.task, r.config.label) == (TASK, "rope")]
    assert {r.config.stage for r in found} == {"test", "select"}
    return [as_mine(record) for record in found]


def test_the_rows_of_the_shared_suite_pass_under_another_name(shared, mine) -> None:
    published = [record for record in shared.records if record.config.label == "add"]
    kept = check_submission([*published, *mine], shared)  # published rows lie beside them, and are left out
    assert {record.config.key for record in kept} == {record.config.key for record in mine}


@pytest.mark.parametrize("task", ["vit-cifar10", "lm-wikitext2", "text-imdb"])
def test_what_core_asks_on_each_task_is_what_core_has(task, shared) -> None:
    runs = [as_mine(r) for r in shared.records if (r.config.task, r.config.label) == (task, "rope")]
    kept = check_submission(runs, shared)
    assert sum(record.config.stage == "test" for record in kept) == 8


Change = Callable[[list[Record]], list[Record]]


def each(**changes: Any) -> Change:
    return lambda records: [replace(record, **changes) for record in records]


def facts(**values: Any) -> Change:
    return lambda records: [replace(r, environment={**r.environment, **values}) for r in records]


def configured(**changes: Any) -> Change:
    return lambda records: [replace(r, config=replace(r.config, **changes)) for r in records]


def trained(**changes: Any) -> Change:
    return lambda rs: [replace(r, config=replace(r.config, train=replace(r.config.train, **changes))) for r in rs]


def without(stage: str, seed: int) -> Change:
    def drop(records: list[Record]) -> list[Record]:
        gone = [r for r in records if (r.config.stage, r.config.seed) == (stage, seed)][:1]
        assert gone
        return [record for record in records if record not in gone]

    return drop


def one(change: Change) -> Change:
    """The change in the first tested run alone."""

    def first(records: list[Record]) -> list[Record]:
        place = next(i for i, record in enumerate(records) if record.config.stage == "test")
        return [*records[:place], *change([records[place]]), *records[place + 1 :]]

    return first


REFUSED = {
    "a seed": (without("test", 3), "1 tested run of the suite missing (seed 3)"),
    "a rate": (without("select", SELECTION_SEED), "1 selecting run of the suite missing"),
    "budget": (trained(max_steps=7), "those here have train.max_steps=7, expected 1000"),
    "tier": (configured(tier="full"), "those here have tier=full, expected core"),
    "rates": (trained(learning_rate=0.003), "missing"),
    "untuned": (
        lambda runs: configured(selected=())([run for run in runs if run.config.stage == "test"]),
        "those here have selected=nothing, exp",
    ),
    "protocol": (each(protocol="0.1"), "made under protocol 0.1, expected 0.2"),
    "schema": (each(schema=1), "no checksum, as of schema 1"),
    "failed": (one(each(status="failed", error={"kind": "killed", "reason": "gone", "log": ""})), "failed (gone)"),
    "data": (one(each(dataset={"fingerprint": "f" * 64})), "its data have the fingerprint ffffffffffff, published"),
    "no data": (each(dataset={}), "its data have the fingerprint None"),
    "pebench": (facts(source=None, commit=None), "its record names no source of pebench"),
    "encoding": (facts(plugins={}), "its record has no digest of the encoding's file"),
    "unknown": (facts(plugins={LABEL: {"place": LABEL, "sha256": "unknown"}}), "no digest of the encoding's file"),
    "two": (one(facts(plugins={LABEL: {"place": LABEL, "sha256": "0" * 64}})), "2 different sources of the encoding"),
    "path": (one(facts(device="cpu: /home/doe/chip")), "environment.device names a folder"),
    "plug-in": (facts(plugins={LABEL: {"sha256": "ab", "summary": "See /home/doe/a.py"}}), "plugins"),
    "host": (one(facts(device="cpu of a-machine-of-doe")), "environment.device names a folder, the user or this"),
    "user": (one(facts(device="cpu of j-doe-0")), "environment.device names a folder, the user or this machine"),
    "task": (configured(task="vit-digits"), "the suite core has no such task"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_each_departure_is_refused_in_a_line(what, shared, mine, monkeypatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a-machine-of-doe")
    monkeypatch.setattr(getpass, "getuser", lambda: "j-doe-0")
    change, message = REFUSED[what]
    with pytest.raises(UserError) as refused:
        check_submission(change(mine), shared)
    lines = str(refused.value).splitlines()
    assert any(message in line and LABEL in line for line in lines[1:]), lines
    assert "reason" in lines[0]


def test_a_value_that_diverged_is_an_outcome_of_selection(shared, mine) -> None:
    diverged = {"kind": "diverged", "reason": "the loss is nan", "log": ""}

    def worst(record: Record) -> bool:
        return record.config.stage == "select" and record.config.train.learning_rate == 0.0005

    changed = [replace(r, status="failed", metrics={}, error=diverged) if worst(r) else r for r in mine]
    assert changed != mine
    assert len(check_submission(changed, shared)) == len(mine)


def test_published_rows_alone_are_nothing_to_submit(shared) -> None:
    with pytest.raises(UserError, match="there is nothing to submit"):
        check_submission([record for record in shared.records if record.config.task == TASK], shared)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("by", "", "by expects a text"), ("licence", "a\nb", "licence expects"), ("code", "ftp://x", "code expects an"),
        ("code", "https://x)[y](javascript:1", "code expects"), ("paper", "x" * 300, "at most 200"),
    ],
)  # fmt: skip
def test_a_card_has_every_field(field, value, message) -> None:
    good = {"name": "Mine", "paper": "Doe", "by": "Doe", "code": "https://x.org", "licence": "MIT"}
    with pytest.raises(UserError, match=message):
        Card(**good | {field: value})


def test_the_board_ranks_rows_and_names_where_they_are_from(shared, mine) -> None:
    card = Card("Mine | <b>", "Doe", "J. Doe", "https://x.org", "MIT")
    text = board(shared, [Submission("mine", card, mine)])
    table = text.partition(f"## {TASK}")[2].partition("##")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    head, _, *rows = rows
    assert head[:3] == ["Encoding", "From", "Verdict"]
    assert {row[0]: row[1] for row in rows}[LABEL] == "mine"
    means = [float(row[4].partition(" ")[0]) for row in rows]
    assert means == sorted(means, reverse=True)
    ours, theirs = (next(row for row in rows if row[0] == name) for name in ("rope", LABEL))
    assert ours[3:7] == theirs[3:7]  # the same runs, and so the same mean, difference and p
    assert text.count(LABEL) == 2
    assert "\\<b>" in text


def test_submit_lays_out_a_folder_that_is_checked_again(shared, mine, tmp_path, ask: Ask) -> None:
    results, runs = tmp_path / "results", tmp_path / "mine.jsonl"
    (results / "core").mkdir(parents=True)
    (results / "core" / COLLECTION).symlink_to(ROOT / "results" / "core" / COLLECTION)
    write_jsonl(mine, runs)
    where = ("--results", results)
    assert "1 row of 14 runs may be submitted" in ask("submit", runs, "--check", *where).text
    assert not (results / FOLDER).exists()
    assert "expected --paper, --by, --code, --licence" in ask("submit", runs, "--name", "mine", *where).error
    assert "names a folder" in ask("submit", runs, "--name", "../mine", *CARD_OPTIONS, *where).error
    answer = ask("submit", runs, "--name", "mine", *CARD_OPTIONS, *where)
    folder = results / FOLDER / "mine"
    assert answer.code == 0
    assert {path.name for path in folder.iterdir()} == {COLLECTION, CARD}
    (found,) = load_submissions(results, shared)
    assert (found.card.by, len(found.records)) == ("J. Doe", 14)
    assert (results / FOLDER / BOARD).read_text(encoding="utf-8") == board(shared, [found])

    assert "exists" in ask("submit", runs, "--name", "mine", *CARD_OPTIONS, *where).error
    again = ask("submit", runs, "--name", "mine", "--title", "New", "--replace", *CARD_OPTIONS, *where)
    assert (again.code, read_card(folder).name) == (0, "New")
    assert "is a row of submission 'mine'" in ask("submit", runs, "--name", "other", *CARD_OPTIONS, *where).error
    assert not (results / FOLDER / "other").exists()

    first, *rest = (folder / COLLECTION).read_text(encoding="utf-8").splitlines()
    values = json.loads(first)
    values["metrics"]["val/loss"] = 0.1
    (folder / COLLECTION).write_text("\n".join([json.dumps(values), *rest]), encoding="utf-8")
    with pytest.raises(UserError, match=r"submission 'mine': .*checksum"):
        load_submissions(results, shared)
    assert "checksum" in ask("submit", folder / COLLECTION, "--check", *where).error


def test_without_published_results_submit_says_where_they_are(mine, tmp_path, ask: Ask) -> None:
    write_jsonl(mine, tmp_path / "mine.jsonl")
    assert "clone" in ask("submit", tmp_path / "mine.jsonl", "--check", "--results", tmp_path).error


def test_the_leaderboard_is_made_of_the_submissions() -> None:
    path = ROOT / "results" / FOLDER / BOARD
    assert path.read_text(encoding="utf-8") == leaderboard(), "make submissions"
