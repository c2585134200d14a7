"""Rows are compared to the reference that a suite or the command line names; nothing else of them changes."""

import json
from pathlib import Path

import pytest

from pebench import Suite
from pebench.cli import main
from pebench.errors import UserError
from pebench.results.gates import gates
from pebench.results.page import Page
from pebench.results.writers.html import html
from pebench.results.writers.json import to_json
from pebench.results.writers.latex import latex
from pebench.results.writers.markdown import markdown
from tests.results.published import published, published_page

CORE = Path(__file__).parents[2] / "results" / "untuned"


@pytest.fixture(scope="module")
def page() -> Page:
    return Page.of(published(), reference="rope")


def test_differences_to_another_reference_are_those_of_their_values(page: Page) -> None:
    usual = published_page()
    for ours, theirs in zip(page.tables, usual.tables, strict=True):
        added = theirs.row("rope").difference
        assert ours.row("add").difference.mean == pytest.approx(-added.mean)
        assert ours.row("add").difference.half_width == pytest.approx(added.half_width)
        assert ours.row("rope").difference is None
        assert [row.estimate for row in ours.rows] == [row.estimate for row in theirs.rows]


@pytest.mark.usefixtures("no_pictures")
def test_every_format_names_the_reference(page: Page) -> None:
    text = markdown(page)
    assert "Δ to rope" in text
    assert "Δ to `rope`" in text
    assert "P(better than rope)" in text
    assert "Worse than `rope`:" in text
    assert text.count("--reference rope") == len(page.tables)
    assert not any(f"{word} {name}" in text for word in ("to", "than", "with", "one of") for name in ("add", "`add`"))
    assert "Differences to rope" in latex(page)
    assert "Δ to rope" in html(page)
    found = json.loads(to_json(page))
    assert {table["reference"] for table in found["tables"]} == {"rope"}
    assert {summary["reference"] for summary in found["across"]} == {"rope"}
    assert [gate.rule for gate in gates(page)] == [gate.rule for gate in gates(published_page())]


def test_a_suite_names_its_reference() -> None:
    suite = Suite("mine", "?", ["vit-cifar10"], tier="core", reference="concat")
    assert Page.of(published(), suite).reference == "concat"
    matched = Suite("mine", "?", ["vit-digits"], ["add", "learned"], reference="learned", regime="parameters")
    assert [kind.model.d_ff is None for kind in matched.kinds()] == [False, True]


def test_an_unknown_reference_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"unknown reference 'concta'.*concat.*must be among the rows"):
        Suite("mine", "?", ["vit-digits"], reference="concta").kinds()
    assert main(["report", str(CORE), "--reference", "alibi"]) == 2
    assert "unknown reference 'alibi'" in capsys.readouterr().err
    words = ["run", "--task", "vit-digits", "--pe", "add", "--pe", "rope", "--dry-run"]
    assert main([*words, "--reference", "none"]) == 2
    assert main([*words, "--reference", "rope"]) == 0
