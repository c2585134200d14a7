"""Pages of a suite: their parts, and the words that they use."""

import json
import re
from dataclasses import replace

import pytest

from pebench.errors import UserError
from pebench.results.answer import Statement, answer
from pebench.results.finding import finding
from pebench.results.page import Page
from pebench.results.provenance import warnings
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from pebench.tasks import configure
from tests.results.page_records import MEANS, SUITE, TASKS, heads, page, run, runs, whole, whole_text, without

pytestmark = pytest.mark.usefixtures("no_pictures")  # they take long, and words do without


def test_a_page_has_its_parts_in_order() -> None:
    text = markdown(page(runs(3)))
    assert text.startswith("# mine\n")
    assert [text.index(f"**{word}.**") for word in ("Question", "Finding", "Expected", "Decision rule")] == sorted(
        text.index(f"**{word}.**") for word in ("Question", "Finding", "Expected", "Decision rule")
    )
    parts = ["Overview", *TASKS, "Across", "What", "What", "Expected", "Failed", "Limits", "Notes", "Reproduce"]
    assert heads(text) == [*parts, "Provenance"]


def test_a_page_states_what_its_suite_declares() -> None:
    text = whole_text(markdown)
    assert "**Question.** Does it turn?" in text
    assert "**Expected.** Rope ahead." in text
    assert "Margins: 0.5 points (text-order); 1 points (vit-digits)." in text
    assert "pebench run --suite mine\n" in text
    assert "**Decision rule.** By eye." in markdown(page(runs(), replace(SUITE, decision="By eye.")))
    changed = page(runs(), replace(SUITE, remarks=("A seed more.", "It was dark.")))
    assert "\n\n**Since it was declared:**\n\n- A seed more.\n- It was dark.\n\n## " in markdown(changed)
    assert "<b>Since it was declared:</b></p>\n<ul>\n<li>A seed more.</li>\n<li>It was dark.</li>" in html(changed)
    assert "Since it was declared" not in whole_text(markdown) + whole_text(html)
    assert json.loads(to_json(changed))["suite"]["remarks"] == ["A seed more.", "It was dark."]


def test_another_reference_than_the_declared_one_is_told() -> None:
    text = markdown(Page.of(runs(), SUITE, reference="rope"))
    assert "**Not as declared.** These differences are to `rope`; those that the suite declared are to `add`." in text
    assert "**Decision rule.** An encoding differs from `add`" in text
    assert "Not as declared" not in whole_text(markdown) + markdown(Page.of(runs(), None, reference="rope"))


def test_a_page_says_how_many_runs_had_begun_when_its_suite_was_declared() -> None:
    times = ["2026-01-02T03:03:59+00:00", "2026-01-02T03:04:00+00:00", "2026-01-02T04:03:59+01:00"]
    records = [replace(record, started=times[record.config.seed % 3]) for record in runs(3)]
    declared = replace(SUITE, declared="2026-01-02 03:04")
    told = "**Declared.** 2026-01-02 03:04 UTC, when 12 of 18 runs here had begun."
    assert f"{told}\n" in markdown(page(records, declared))
    changed = replace(declared, remarks=("A seed more.",))
    assert f"{told} What has come up since follows.\n" in markdown(page(records, changed))
    assert json.loads(to_json(page(records, declared)))["suite"]["declared"] == "2026-01-02T03:04:00+00:00"
    earlier = replace(SUITE, declared="2026-01-01 12:00")
    assert "2026-01-01 12:00 UTC, before any of 18 runs here had begun." in markdown(page(records, earlier))
    assert "**Declared.**" not in markdown(page(records))
    with pytest.raises(UserError, match="declared must be a date and time, UTC"):
        replace(SUITE, declared="last week").kinds()


def test_what_is_to_be_cited_stands_by_every_table() -> None:
    texts = {"markdown": whole_text(markdown), "html": whole_text(html), "latex": whole_text(latex)}
    assert texts["markdown"].count("\nCite: ") == 1 + len(TASKS) + 1  # overview, tables, across
    assert texts["html"].count(">Cite: ") == 1 + len(TASKS) + 1
    assert texts["html"].count('"https://arxiv.org/abs/1706.03762" title="Attention Is All You Need"') == 4
    assert texts["latex"].count(r"Sources: \cite{") == texts["latex"].count(r"\begin{table}")
    assert "`pebench cite pebench text-order vit-digits add concat rope`" in texts["markdown"]  # of both


def test_a_run_that_failed_early_says_nothing_of_machine_and_code() -> None:
    """It has no environment."""
    here = {"device": "cpu: A", "threads": 1, "commit": "one", "versions": {"torch": "2"}}
    records = [replace(r, environment=here) for r in runs(2)]
    assert "Rows were not measured" not in markdown(page([*records, run("vit-digits", "none", 0, None)], None))
    other = replace(run("vit-digits", "none", 0, 0.5), environment=here | {"device": "cpu: B", "commit": "two"})
    text = markdown(page([*records, other], None))
    assert "Rows were not measured on the same device" in text
    assert "Rows were not measured with the same code" in text


def test_it_is_told_what_ran_where() -> None:
    def told(**places: list[tuple[str, int]]) -> str:
        (table,) = page(
            [
                replace(
                    run("vit-digits", name, seed, 0.5), environment={"device": f"cpu: {device}", "threads": threads}
                )
                for name, found in places.items()
                for seed, (device, threads) in enumerate(found)
            ],
            None,
        ).tables
        return " ".join(warning for warning in warnings(table) if "device" in warning)

    assert told(add=[("A", 1)] * 2, rope=[("A", 1)] * 2) == ""
    rows = told(add=[("A", 1), ("A", 1)], concat=[("B", 1), ("A", 1)], rope=[("B", 1), ("B", 1)], none=[("A", 1)] * 2)
    assert rows.startswith("Rows were not measured on the same device, which may round otherwise; pairing by seed")
    assert rows.endswith(" cpu: B ran concat (seed 0), rope; cpu: A ran all else.")
    seeds = told(add=[("A", 1), ("B", 1), ("B", 2)], rope=[("A", 1), ("B", 1), ("B", 2)])
    assert seeds.startswith("Seeds were not all run on the same device; of each seed, all rows were.")
    assert "cpu: A, threads 1, ran add (seed 0), rope (seed 0); " in seeds


def test_without_a_suite_nothing_is_asked_and_nothing_called_equivalent() -> None:
    text = markdown(page(runs(), None))
    assert text.startswith("# Results\n")
    assert "**Question.**" not in text
    assert "; equivalent" not in text


def test_the_finding_counts_and_names() -> None:
    assert finding(whole()) == (
        "4 comparisons with add: 2 better (text-order: rope; vit-digits: rope); 2 not separable; "
        "2 of all equivalent within the margin (text-order: concat; vit-digits: concat)."
    )
    assert finding(page(runs(1))) == "4 comparisons with add: 4 not tested; 42 tested runs missing."
    alone = [r for r in runs(2) if r.config.encoding == "rope"]
    assert finding(page(alone, None)).startswith("Nothing is compared")


def test_the_answer_comes_first_in_plain_words_with_its_figures() -> None:
    better = tuple(f"`rope` (by 10.00 ± 0.09 points) on {task}" for task in ("text-order", "vit-digits"))
    equal = "`concat` on text-order (within 0.5 points)", "`concat` on vit-digits (within 1 points)"
    open_ones = "comparisons with `add` are not separable: 8 seeds cannot tell, which does not mean equal."
    assert answer(whole()) == [
        Statement("Better than `add`:", better),
        Statement(f"The other 2 of 4 {open_ones}"),
        Statement("Equivalent to `add`:", equal),
    ]
    assert Statement(f"2 of 2 {open_ones}") in answer(page(runs(8, ["vit-digits"], rope=0.6), None))
    assert answer(page(runs(1))) == [
        Statement("4 of 4 comparisons have too few seeds to test."),
        Statement("Not all runs are here: 42 tested runs missing. They are of `add`, `concat` and `rope`."),
    ]
    (*_, last) = answer(page(without(without(runs(), "vit-digits", "rope", 7, 6), "text-order", "add", 7)))
    assert last == Statement("Not all runs are here: 3 tested runs missing. They are of `rope` and `add`.")


def test_the_answer_names_the_declared_contrasts_that_are_separable() -> None:
    one = replace(SUITE, tasks=["vit-digits"])
    ahead = "`rope` is better than `concat` by 9.95 ± 0.24 points on vit-digits"
    for contrasts, expected in (
        ([("rope", "concat")], f"The declared contrast is separable: {ahead}."),
        ([("concat", "add")], "The declared contrast is not separable."),
        ([("rope", "concat"), ("concat", "add")], f"1 of 2 declared contrasts is separable: {ahead}."),
    ):
        found = answer(page(runs(8, ["vit-digits"]), replace(one, contrasts=contrasts)))
        assert found[0] == Statement(expected)
    few = answer(page(runs(1, ["vit-digits"]), replace(one, contrasts=[("rope", "concat"), ("concat", "add")])))
    assert Statement("2 declared contrasts have too few seeds to test.") in few
    assert not [found for found in few if "separable" in found.text]


def test_a_finding_of_several_statements_is_a_list_and_a_single_one_a_line() -> None:
    found = whole_text(markdown).partition("**Finding.**\n\n")[2].partition("\n\n")[0].splitlines()
    assert found[:2] == ["- Better than `add`:", "  - `rope` (by 10.00 ± 0.09 points) on text-order"]
    assert [line[: line.index("-")] for line in found] == ["", "  ", "  ", "", "", "  ", "  "]
    listed = "<li><code>rope</code> (by 10.00 ± 0.09 points) on text-order</li>"
    assert f"<p><b>Finding.</b> Better than <code>add</code>:</p>\n<ul>\n{listed}\n<li>" in whole_text(html)
    alone = page([one for one in runs(2) if one.config.encoding == "rope"], None)
    assert "\n\n**Finding.** Nothing is compared: no other encoding shares" in markdown(alone)
    both = markdown(page([one for one in runs() if one.config.encoding != "concat"], None))  # a single one, with a list
    assert "\n\n**Finding.**\n\n- Better than `add`:\n  - `rope` (by 10.00 ± 0.09 points) on text-order\n  - " in both
    assert "<p><b>Finding.</b> Nothing is compared: no other encoding shares" in html(alone)


def test_the_answer_names_few_rows_of_many_and_counts_the_others() -> None:
    many = {name: 0.5 + 0.01 * place for place, name in enumerate(("none", "alibi", "learned", "fire", "t5-bias"))}
    found = answer(page(runs(8, ["vit-digits"], **many), None))
    assert found[1].text == "Worse than `add` on vit-digits:"
    assert re.sub(r"\d ± [\d.]+", "", found[1].items[0]) == "`none` (by 10.0 points)"
    assert found[1].items[1].startswith("`alibi` (by 9.0")
    assert (len(found[1].items), found[1].items[-1]) == (5, "1 more")


def test_the_answer_counts_tables_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebench.results.answer.MOST_TABLES", 1)
    assert answer(whole())[0] == Statement("Better than `add`: `rope` on 2 of 2 tables.")
    one = page([*runs(8, ["text-order"], rope=MEANS["add"]), *runs(8, ["vit-digits"])])
    assert answer(one)[0] == Statement("Better than `add`: `rope` (by 10.00 ± 0.09 points) on vit-digits.")


def test_what_says_where_runs_were_made_stands_in_the_provenance_alone() -> None:
    places = [replace(r, environment={"device": f"cpu: {'AB'[r.config.encoding == 'rope']}"}) for r in runs(2)]
    text = markdown(page(places))
    before, _, after = text.partition("## Provenance")
    assert "Rows were not measured on the same device" not in before
    assert before.count("Throughput and memory do not compare here") == len(TASKS)
    assert "- Machines and code: Rows were not measured on the same device" in after


def test_what_tables_share_is_told_once() -> None:
    text = whole_text(markdown).partition("## Provenance")[2]
    assert text.count("Weights chosen by") == 1
    assert text.count("Splits:") == 2


def test_records_of_another_suite_are_refused() -> None:
    with pytest.raises(UserError, match=r"expected records of the suite 'mine', .* vit-digits \(quick\)"):
        page([Record(configure("vit-digits", "add", 0, "quick"), metrics={"test/accuracy": 0.5})])


def test_ranks_are_not_told_apart_with_few_tasks_and_the_page_says_why() -> None:
    assert "that takes 5 tasks and 3 encodings; there are 2 and 3." in whole_text(markdown)
