"""The scorecard: which runs make its cells, ranks, leaders, advice, and the files of the command."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pebench.encodings.registry import encoding_cards
from pebench.results.scorecard import MEASURES, Line, Scorecard, advice, scorecard
from pebench.results.scorecard.build import RATE, without_finer_rates
from pebench.results.scorecard.costs import Cost
from pebench.results.scorecard.ranks import Rank
from pebench.results.writers.html.scorecard import FILTERS, scorecard_html, weighed_at_first
from pebench.results.writers.scorecard import scorecard_json, scorecard_markdown
from pebench.runs.records import Record, read_records, write_jsonl
from pebench.tasks import configure, find_task
from tests.cli.asking import ask

RESULTS = Path(__file__).parents[2] / "results"


def runs(
    task: str, encoding: str, means: Mapping[str, float], settings: Any = None, tier: str = "core", **options: Any
) -> list[Record]:
    """Three seeds of an encoding; metrics by size, "" for the trained one, each seed 1 % above the one before."""
    metric = find_task(task).metric
    return [
        Record(
            configure(task, encoding, seed, tier, settings or {}, options),
            metrics={f"test/{metric}{size and f'@{size}'}": mean * (1 + 0.01 * seed) for size, mean in means.items()},
            parameters={"encoding": 7, "total": 300},
            duration_s=2.0,
        )
        for seed in range(3)
    ]


@pytest.fixture
def records() -> list[Record]:
    return [
        *runs("lm-wikitext2", "rope", {"": 1.5, "4x": 1.6}),
        *runs("lm-wikitext2", "add", {"": 1.6, "4x": 2.4}),
        *runs("lm-wikitext2", "none", {"": 2.0, "4x": 2.0}),
        *runs("lm-wikitext2", "learned", {"": 1.75}),
        *runs("vit-cifar10", "add", {"": 0.6, "1.5x": 0.5}),
        *runs("vit-cifar10", "none", {"": 0.4, "1.5x": 0.3}),
    ]


def line(card: Scorecard, label: str) -> Line:
    (found,) = [line for line in card.lines if line.label == label]
    return found


def test_every_encoding_has_a_row_by_family(records: list[Record]) -> None:
    labels = [line.label for line in scorecard(records).lines]
    assert sorted(labels) == sorted(encoding_cards())
    assert labels[0] == "none"
    assert labels.index("add") < labels.index("rope") < labels.index("alibi")


def test_a_cell_has_mean_rank_and_score(records: list[Record]) -> None:
    card = scorecard(records)
    cells = {label: line(card, label).entries["language"] for label in ("rope", "add", "none")}
    assert [round(cell.estimate.mean, 4) for cell in cells.values() if cell.estimate] == [1.515, 1.616, 2.02]
    assert [cell.rank and cell.rank.place for cell in cells.values()] == [1, 2, 4]
    assert [cell.score for cell in cells.values()] == pytest.approx([1.0, 0.8, 0.0])
    for key, order in {"images": ["add", "none"], "language-4x": ["rope", "none", "add"]}.items():  # more, and less
        entries = [line(card, label).entries[key] for label in order]
        assert [entry.rank for entry in entries] == [Rank(place, place, place) for place in range(1, len(order) + 1)]
        assert [entry.leads for entry in entries] == [True, *[False] * (len(order) - 1)]


def test_a_cell_without_a_value_says_why(records: list[Record]) -> None:
    card = scorecard(records)
    assert line(card, "learned").entries["language-4x"].why == "refuses"
    assert line(card, "learned").entries["language-4x"].score == 0
    assert line(card, "alibi").entries["language"].why == "not measured"
    assert line(card, "alibi").entries["language"].score is None
    assert line(card, "cope").entries["images"].why == "does not serve"  # causal text alone
    assert line(card, "rope-mixed").entries["language"].why == "does not serve"  # grids alone
    assert {measure.key for measure in card.measures} == {"language", "language-4x", "images", "images-1.5x"}
    assert {measure.group for measure in card.unmeasured} == {
        "Language", "Lookup by index", "Lookup by distance", "Lookup from a mark", "Recall", "Parity", "Word problem",
        "Three cells", "Relative cell",
    }  # fmt: skip


def test_other_budgets_settings_regimes_and_options_are_other_questions(records: list[Record]) -> None:
    others = [
        *runs("lm-wikitext2", "alibi", {"": 1.0}, tier="smoke"),
        *runs("lm-wikitext2", "fire", {"": 1.0}, {"train.max_steps": 10}),
        *runs("lm-wikitext2", "rope", {"": 1.0}, theta=50.0),
    ]
    card = scorecard([*records, *others])
    assert card.lines == scorecard(records).lines
    matched = [replace(record, config=replace(record.config, regime="parameters")) for record in records]
    assert not scorecard(matched).measures
    assert not scorecard(runs("lm-wikitext2", "fire", {"": 1.0}, {"train.max_steps": 10})).measures


def test_a_column_is_of_runs_that_compare(records: list[Record]) -> None:
    """Of as many rows those with selected rates are shown, else those of which there are more."""
    selected = [
        replace(record, config=replace(record.config, selected=("train.learning_rate",)))
        for label in ("rope", "add", "none", "learned")
        for record in runs("lm-wikitext2", label, {"": 1.1})
    ]
    card = scorecard([*records, *selected])
    assert card.tables["language"].config.selected == ("train.learning_rate",)
    card = scorecard([*records, *selected[:9]])
    assert card.tables["language"].config.selected == ()


def test_of_as_many_rows_those_of_the_newest_protocol_are_shown(records: list[Record]) -> None:
    older = [
        replace(record, config=replace(record.config, selected=("train.learning_rate",)), protocol="0.0")
        for record in records
    ]
    card = scorecard([*records, *older])
    assert {table.protocol for table in card.tables.values()} == {records[0].protocol}


def test_rows_with_equal_means_all_have_the_best_score() -> None:
    card = scorecard([*runs("lm-wikitext2", "rope", {"": 1.5}), *runs("lm-wikitext2", "add", {"": 1.5})])
    assert [line(card, label).entries["language"].score for label in ("rope", "add")] == [1.0, 1.0]


def test_rates_that_half_of_the_rows_tried_are_no_finer_grid() -> None:
    known = [
        Record(replace(configure("lm-wikitext2", name, 0, "core", {RATE: rate}), selected=(RATE,), stage="select"))
        for name, rates in {"add": (1e-3, 2e-3, 4e-3), "rope": (1e-3, 4e-3)}.items()
        for rate in rates
    ]
    assert without_finer_rates(known) == known


def test_no_row_has_a_finer_grid_of_rates_than_most() -> None:
    """A finer rate would be add's best; one beyond the common ones is what a row at the edge is tried with."""
    rates = {
        "add": {1e-3: 2.0, 2e-3: 1.8, 2.8e-3: 1.7, 4e-3: 1.9},
        "rope": {1e-3: 1.9, 2e-3: 1.7, 4e-3: 1.6, 8e-3: 1.5},
        "none": {1e-3: 2.2, 2e-3: 2.1, 4e-3: 2.3},
    }
    known = list[Record]()
    for name, tried in rates.items():
        for rate, loss in tried.items():
            config = configure("lm-wikitext2", name, tier="core", settings={"train.learning_rate": rate})
            config = replace(config, selected=("train.learning_rate",))
            known += [
                Record(
                    replace(config, stage="select").with_seed(1_000_000), metrics={"val/loss": loss, "best_step": 1}
                ),
                Record(config, metrics={"test/bits_per_byte": loss}, parameters={"encoding": 0, "total": 300}),
            ]
    kept = without_finer_rates(known)
    assert {record.config.train.learning_rate for record in known if record not in kept} == {2.8e-3}
    card = scorecard(known)
    assert [line(card, name).entries["language"].values for name in rates] == [{0: 1.8}, {0: 1.5}, {0: 2.1}]


def test_an_encoding_of_ones_own_has_a_row(records: list[Record]) -> None:
    foreign = [
        replace(record, config=replace(record.config, encoding="mine:Wave"))
        for record in runs("lm-wikitext2", "none", {"": 1.4})
    ]
    card = scorecard([*records, *foreign])
    mine = line(card, "mine:Wave")
    assert (mine.card, mine.fused, mine.beyond, mine.parameters) == (None, None, "", 7)
    assert "Conditions hide rows whose properties are not known: mine:Wave." in scorecard_html(card)
    assert "properties are not known" not in scorecard_html(scorecard(records))
    assert mine.entries["language"].rank == Rank(1, 1, 1)
    assert mine.costs[256] == Cost()
    assert card.lines[-1] is mine
    assert "mine:Wave" in scorecard_markdown(card)
    assert ">mine:Wave<" in scorecard_html(card)


def test_what_is_known_without_runs(records: list[Record]) -> None:
    card = scorecard(records)
    assert [line(card, label).fused for label in ("rope", "alibi", "some-layers")] == [True, False, None]
    assert [line(card, label).beyond for label in ("rope", "learned", "randomized")] == ["goes on", "refuses", ""]
    caches = [line(card, label).kv_cache for label in ("alibi", "fox", "ntk-rope", "stack", "rope-mixed")]
    assert caches == ["works", "needs more", "goes stale", "", ""]  # the last serves images alone
    assert [line(card, label).parameters for label in ("rope", "fire", "alibi", "ssmax")] == [7, None, 0, None]


def test_advice_names_the_best_and_what_is_as_good(records: list[Record]) -> None:
    found = {one.need: one for one in advice(scorecard(records))}
    assert [*found] == [
        "a language model at its trained length", "a language model that reads texts four times as long",
        "a vision transformer at its trained size", "a vision transformer for images 1.5 times as wide and high",
    ]  # fmt: skip
    one = found["a language model at its trained length"]
    assert (one.take, one.result, one.among, one.fewest) == (("rope",), "1.5150 ± 0.0373 bits per byte", 4, 3)
    assert one.certainty == "separably better than the other 3"
    near = [
        replace(record, metrics={"test/bits_per_byte": 1.5 + 0.02 * seed})
        for seed, record in enumerate(runs("lm-wikitext2", "alibi", {"": 1.0}))
    ]
    one = next(iter(advice(scorecard([*records, *near]))))
    assert one.certainty == "best mean of 5; not separable from it: alibi (1.5200)"


def test_advice_names_all_rows_that_are_equally_good(records: list[Record]) -> None:
    one = next(iter(advice(scorecard([*records, *runs("lm-wikitext2", "xpos", {"": 1.5})]))))
    assert one.take == ("rope", "xpos")
    assert one.certainty == "equal means, separably better than the other 3"


def test_a_row_is_as_good_that_one_of_two_equal_ones_cannot_be_told_from() -> None:
    values = {"rope": (1.49, 1.5, 1.51), "add": (1.3, 1.5, 1.7), "none": (1.589, 1.6, 1.612)}
    known = [
        replace(record, metrics={"test/bits_per_byte": values[label][record.config.seed]})
        for label in values
        for record in runs("lm-wikitext2", label, {"": 1.0})
    ]
    (one,) = advice(scorecard(known))
    assert (sorted(one.take), [*one.as_good]) == (["add", "rope"], ["none"])


def test_a_condition_that_rules_nothing_out_is_no_advice(records: list[Record]) -> None:
    biased = runs("lm-wikitext2", "alibi", {"": 1.9, "4x": 1.2})
    found = {one.need: one.take[0] for one in advice(scorecard([*records, *biased]))}
    assert found["a language model that reads texts four times as long"] == "alibi"
    assert found["a language model that reads texts four times as long, with a fused attention kernel"] == "rope"
    assert "a language model that reads texts four times as long, with a KV cache" not in found
    gated = runs("lm-wikitext2", "fox", {"": 1.9, "4x": 1.1})
    found = {one.need: one.take[0] for one in advice(scorecard([*records, *gated]))}
    assert found["a language model that reads texts four times as long"] == "fox"
    assert found["a language model that reads texts four times as long, with a KV cache"] == "rope"


def test_it_says_how_many_are_measured(records: list[Record]) -> None:
    for write in (scorecard_markdown, scorecard_html):
        assert f"4 of {len(encoding_cards())} encodings have figures in these tables." in write(scorecard(records))


def test_it_says_how_many_rows_are_complete(records: list[Record]) -> None:
    text = scorecard_markdown(scorecard(records))
    assert "Complete rows: 2 in language and images.\n" in text, "rope has no images"
    more = [
        *runs("vit-cifar10", "learned", {"": 0.5}),
        *runs("seq-recall", "rope", {"": 0.9, "4x": 0.5}, tier="minute"),
    ]
    text = scorecard_markdown(scorecard([*records, *more]))
    assert ": 3 in language and images, 1 in the order tasks.\n" in text, "learned refuses other sizes"


def test_nothing_measured_is_said() -> None:
    card = scorecard([])
    for text in (scorecard_markdown(card), scorecard_html(card)):
        assert (
            "Nothing is measured yet on any task of the scorecard (tier core: lm-wikitext2, vit-cifar10; tier" in text
        )
    assert json.loads(scorecard_json(card))["advice"] == []


def test_the_order_of_records_changes_no_byte(records: list[Record]) -> None:
    for write in (scorecard_markdown, scorecard_html, scorecard_json):
        assert write(scorecard(records)) == write(scorecard(records[::-1]))


def test_json_has_every_seed(records: list[Record]) -> None:
    found = json.loads(scorecard_json(scorecard(records)))
    assert [column["key"] for column in found["columns"]] == [measure.key for measure in MEASURES]
    (rope,) = [row for row in found["rows"] if row["encoding"] == "rope"]
    assert rope["cells"]["language"]["values"] == pytest.approx({"0": 1.5, "1": 1.515, "2": 1.53})
    assert rope["cells"]["images"] == {"why": "not measured"}


def test_no_two_inputs_share_a_name(records: list[Record]) -> None:
    names = re.findall(r'<input[^>]* name="([^"]*)"', scorecard_html(scorecard(records)))
    assert len(names) == len({*names})


def test_tags_of_rows_are_conditions_of_the_page(records: list[Record]) -> None:
    page = scorecard_html(scorecard(records))
    tags = {tag for part in page.split('data-tags="')[1:] for tag in part.partition('"')[0].split()}
    assert tags == {*FILTERS} - {"measured"}


@pytest.fixture
def folder(records: list[Record], tmp_path: Path) -> Path:
    """A folder of published results; two suites share runs, and a file beside them holds something else."""
    for name, part in (("a", records[:9]), ("b", records[6:])):
        (tmp_path / "results" / name).mkdir(parents=True)
        write_jsonl(part, tmp_path / "results" / name / "runs.jsonl")
    (tmp_path / "results" / "checks.jsonl").write_text("{}\n")
    return tmp_path / "results"


def test_the_command_prints_or_writes_it(folder: Path, records: list[Record], tmp_path: Path) -> None:
    told = ask("report", "--scorecard", str(folder))
    assert told.text == scorecard_markdown(scorecard(records))
    told = ask("report", "--scorecard", str(folder), "--format", "json")
    assert told.text == scorecard_json(scorecard(records))
    told = ask("report", "--scorecard", str(folder), "--output", str(tmp_path / "out" / "card"))
    assert [Path(path).name for path in told.lines] == ["card.md", "card.html", "card.json"]
    told = ask("report", "--scorecard", str(folder), "--publish", str(tmp_path / "card"))
    assert [Path(path).name for path in told.lines] == ["page.md", "page.html"]
    assert "](page.html)" in (tmp_path / "card" / "page.md").read_text()


def test_a_column_that_few_rows_have_is_not_weighed_at_first(records: list[Record]) -> None:
    page = scorecard_html(scorecard([*records, *runs("seq-a5", "rope", {"": 0.5}, tier="minute")]))
    first = dict(re.findall(r'<input type="range" name="([^"]*)".* value="(.)">', page))
    assert first == {"language": "1", "language-4x": "0", "images": "1", "images-1.5x": "0", "product": "0"}


def test_columns_are_weighed_at_first_while_half_of_the_rows_are_in_all(records: list[Record]) -> None:
    parity = [
        record for label in ("rope", "alibi", "fire") for record in runs("seq-parity", label, {"": 0.5}, tier="minute")
    ]
    more = [*records, *runs("lm-wikitext2", "alibi", {"": 1.7}), *parity]
    # language has rope, add, learned, none and alibi of six; images share add and none with it, parity rope and alibi
    assert [measure.key for measure in weighed_at_first(scorecard(more))] == ["language"]
    assert [measure.key for measure in weighed_at_first(scorecard(records))] == ["language", "images"]


def test_markdown_has_a_table_for_each_kind_of_column(records: list[Record]) -> None:
    text = scorecard_markdown(scorecard([*records, *runs("seq-parity", "rope", {"": 0.5}, tier="minute")]))
    parts = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])
    assert list(parts) == ["Language and images", "Order tasks, at the trained size", "Costs and properties"]
    shown = [re.findall(r"^\| ([a-z0-9-]+) ", part, re.MULTILINE) for part in parts.values()]
    assert sorted(shown[0]) == ["add", "learned", "none", "rope"]
    assert shown[1] == ["rope"]
    assert len(shown[2]) == len(encoding_cards())
    assert "Without a row so far: `none`, `add`" in parts["Order tasks, at the trained size"]
    assert "For other kinds of model: " in parts["Order tasks, at the trained size"]


def test_runs_of_ones_own_stand_beside_published_ones(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own" / "runs.jsonl"
    own.parent.mkdir()
    write_jsonl(runs("lm-wikitext2", "alibi", {"": 1.4}), own)
    cards = [ask("report", "--scorecard", *map(str, folders)).text for folders in ([folder], [folder, own.parent])]
    shown = [re.findall(r"^\| alibi +\|.*1\.4140 ± ", text, re.MULTILINE) for text in cards]
    assert [len(rows) for rows in shown] == [0, 1]
    assert ask("report", str(folder), "--scorecard", str(own.parent)).text == cards[1]
    assert "4 of 65" in cards[0]
    assert "5 of 65" in cards[1]
    assert "](../README.md" not in cards[1], "a folder of one's own has no such page"


def test_a_row_of_ones_own_has_the_properties_of_its_class(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'from pebench.encodings.alibi import AlibiEncoding\n\n\nclass Mine(AlibiEncoding):\n    """Mine."""\n'
    (tmp_path / "scorecard_row_of_mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    name = "scorecard_row_of_mine:Mine"
    own = [
        replace(record, config=replace(record.config, encoding=name))
        for record in runs("lm-wikitext2", "alibi", {"": 1.4})
    ]
    card = scorecard([*records, *own])
    mine = line(card, name)
    assert (mine.fused, mine.beyond, mine.kv_cache) == (False, "goes on", "works")
    assert card.lines[-1] is mine
    assert mine.entries["images"].why == "not measured"
    assert "properties are not known" not in scorecard_html(card)


def test_long_texts_in_overlapping_windows_have_a_column_and_a_need(records: list[Record]) -> None:
    windows = [
        *runs("lm-wikitext2", "xpos", {"": 1.5, "sliding": 1.4}),
        *runs("lm-wikitext2", "swin-bias", {"": 1.7, "sliding": 1.6}),
        *runs("lm-wikitext2", "fox", {"": 1.7, "sliding": 1.3}),
    ]
    card = scorecard([*records, *windows])
    assert line(card, "swin-bias").entries["language-sliding"].estimate, "refuses longer windows, not these"
    assert line(card, "learned").entries["language-sliding"].why == "not measured"
    found = {one.need: one for one in advice(card)}
    need = "texts longer than the trained length, read in overlapping windows"
    assert (found[need].take, found[need].certainty) == (("fox",), "separably better than the other 2")
    assert found[f"{need}, with a fused attention kernel"].take == ("xpos",)
    assert found["a language model at its trained length, with a KV cache"].take == ("rope",)
    text = scorecard_markdown(card)
    assert "Language in overlapping windows<br>bits per byte" in text
    assert "Every token is read twice" in text
    assert "Every token is read twice" not in scorecard_markdown(scorecard(records))


def test_sizes_are_said_from_records(records: list[Record]) -> None:
    text = scorecard_markdown(scorecard(records))
    assert "1,500 steps at 128 tokens, beyond it 512; 300 parameters." in text
    assert "1,500 steps at 32 pixels a side, in patches of 4 × 4, beyond it 48; 300 parameters." in text


def test_both_formats_share_a_legend(records: list[Record]) -> None:
    card = scorecard(records)
    text, page = scorecard_markdown(card), scorecard_html(card).replace("&#39;", "'")
    for words in (
        "*refuses*: no positions beyond",
        "*does not serve*: made for texts",
        "*with a bias* where PyTorch's",
    ):
        assert words in text
        assert words.replace("*", "") in page
    assert "set images to 0 to rank encodings for text alone. Scores have no interval." in page


def test_parameters_are_of_any_column() -> None:
    card = scorecard(runs("seq-parity", "fire", {"": 0.5}, tier="minute"))
    assert line(card, "fire").parameters == 7


def test_rows_without_parameters_are_those_that_add_none(records: list[Record]) -> None:
    page = scorecard_html(scorecard(records))
    free = {label: tags.split() for tags, label in re.findall(r'data-tags="([^"]*)">\n<th[^>]*>([^<]*)<', page)}
    assert all("free" in free[label] for label in ("multiply", "ntk-rope", "yarn"))
    assert not any("free" in free[label] for label in ("ssmax", "dape", "fire"))


def test_runs_of_ones_own_have_a_scorecard(tmp_path: Path, records: list[Record]) -> None:
    write_jsonl(records, tmp_path / "all.jsonl")
    assert ask("report", "--scorecard", str(tmp_path / "all.jsonl")).text == scorecard_markdown(scorecard(records))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "core"], "got --suite too"),
        (["--records", "all.jsonl"], "got --records too"),
        (["--task", "mine:task"], "got --task too"),
        (["--format", "latex"], "unknown format of a scorecard 'latex'"),
        (["--format", "json", "--output", "x"], "expected one of --format, --output and --publish"),
    ],
)
def test_a_mistake_is_told(words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("report", "--scorecard", str(folder), *words).code == 2
    assert message in capsys.readouterr().err


def test_a_report_of_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("report").code == 2
    assert "expected a folder of runs" in capsys.readouterr().err


def test_the_published_scorecard_is_made_of_the_published_records() -> None:
    from pebench.cli.scorecard import published, published_files
    from pebench.results.scorecard.costs import read_costs

    card = scorecard(published(RESULTS), read_costs(RESULTS))
    assert read_records(RESULTS / "core" / "runs.jsonl")  # there are any
    for path, text in published_files(card, RESULTS / "scorecard").items():
        assert path.read_text(encoding="utf-8") == text, "make scorecard"
