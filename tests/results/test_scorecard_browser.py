"""The scorecard in a real browser: weighed, filtered, sorted, on a phone."""

from pathlib import Path
from typing import Any

import pytest

from pebench.results.scorecard import scorecard
from pebench.results.writers.html.scorecard import scorecard_html
from pebench.runs.records import Record
from tests.results.test_browser import show
from tests.results.test_scorecard import RESULTS, records, runs

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
__all__ = ["records"]


@pytest.fixture
def page(driver: Any, records: list[Record], tmp_path: Path) -> Any:
    more = [*records, *runs("vit-cifar10", "rope", {"": 0.55}), *runs("vit-cifar10", "learned", {"": 0.58})]
    (tmp_path / "page.html").write_text(scorecard_html(scorecard(more)), encoding="utf-8")
    show(driver, (tmp_path / "page.html").as_uri(), width=1280)
    return driver


def rows(page: Any) -> list[str]:
    """The names of the rows that are shown, from top to bottom."""
    found = page.find_elements("css selector", "#card tbody tr:not(.family)")
    return [row.find_element("css selector", "th").text for row in found if row.is_displayed()]


def weigh(page: Any, key: str, weight: int) -> None:
    slider = page.find_element("css selector", f".weights input[name='{key}']")
    page.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", slider, weight
    )


def choose(page: Any, name: str) -> None:
    page.find_element("css selector", f".conditions input[name='{name}']").click()


def test_rows_are_ranked_by_the_readers_weights(page: Any) -> None:
    # language 1.5, 1.6, 1.75, 2.0; images 0.55, 0.6, 0.58, 0.4: scores (100 + 75) / 2, (80 + 100) / 2, ...
    assert rows(page) == ["add", "rope", "learned", "none"]
    weigh(page, "images", 0)
    assert rows(page) == ["rope", "add", "learned", "none"]
    weigh(page, "language", 0)
    weigh(page, "images-1.5x", 2)
    assert rows(page)[:2] == ["add", "none"]
    assert set(rows(page)[2:]) == {"rope", "learned"}  # not measured there, and refuses it: without a score
    score = page.find_element("css selector", "#card tbody tr .weighed")
    assert (score.text, score.get_attribute("data-value")) == ("100.0", "100")
    weigh(page, "language", 1)
    assert rows(page) == ["add", "learned", "none", "rope"]  # for which the size that it refuses counts 0


def test_conditions_hide_rows_and_come_together(page: Any) -> None:
    output = page.find_element("id", "shown")
    assert output.text == "4 of 65 encodings shown."
    choose(page, "beyond")
    assert "learned" not in rows(page)
    choose(page, "any")
    assert len(rows(page)) > 30
    choose(page, "measured")
    assert set(rows(page)) == {"none", "add", "rope"}
    choose(page, "measured")
    choose(page, "free")
    choose(page, "fused")
    assert {"multiply", "ntk-rope"} <= {*rows(page)}
    assert not {"learned", "alibi", "add-qk"} & {*rows(page)}
    page.find_element("id", "words").send_keys("rope")
    assert all("rope" in name for name in rows(page))
    assert output.text == f"{len(rows(page))} of 65 encodings shown."
    assert [found.text for found in page.find_elements("css selector", "#filter output")] == [output.text]


def test_without_any_weight_it_says_that_there_is_no_score(page: Any) -> None:
    output = page.find_element("id", "weightless")
    assert output.text == ""
    for key in ("language", "images"):
        weigh(page, key, 0)
    assert output.text == "All weights are 0, so that no encoding has a score."
    weigh(page, "images", 1)
    assert output.text == ""


def test_without_a_script_there_is_no_column_of_scores(page: Any) -> None:
    def shown() -> bool:
        return page.find_element("css selector", "#card thead .weighed").is_displayed()

    assert shown()
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.refresh()
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert not shown()
    assert len(rows(page)) == 65


def test_paper_holds_the_whole_table(driver: Any, records: list[Record]) -> None:
    """All columns of the published card, on A3 in landscape without its margins: 404 mm at 96 dots an inch."""
    show(driver, (RESULTS / "scorecard" / "page.html").as_uri(), width=1527, medium="print")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 1527
    assert "size: a3 landscape" in scorecard_html(scorecard(records)).lower()


def test_a_page_of_nothing_has_no_errors(driver: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(scorecard_html(scorecard([])), encoding="utf-8")
    driver.get_log("browser")
    show(driver, (tmp_path / "page.html").as_uri(), width=1280)
    assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    choose(driver, "any")
    assert len(rows(driver)) == 65


def test_a_phone_scrolls_the_table_in_its_box(page: Any) -> None:
    show(page, page.current_url, width=390)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    assert rows(page)[0] == "add"
