"""The HTML page in a real browser: sorted, filtered, by keyboard, on a phone, in the dark, on paper."""

import base64
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pebench.config import CORE_ENCODINGS
from pebench.encodings.families import GROUPS
from pebench.results.figures.style import BETTER, DARK, INK, MUTED, WORSE, mark
from pebench.results.page import Page
from pebench.results.writers.html import html
from pebench.runs.records import Record, read_records
from pebench.runs.suite import load_suite
from tests.sampling import place

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
CORE = Path(__file__).parents[2] / "results" / "untuned"
ATTACK = "</td><script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"


def records() -> list[Record]:
    """The published ones of two tasks, and a run of a plug-in that failed, both with names that try to be markup."""
    found = [record for record in read_records(CORE) if record.config.task in ("vit-cifar10", "text-imdb")]
    values = found[0].to_dict() | {"status": "failed", "error": {"reason": ATTACK, "kind": "error", "log": ATTACK}}
    del values["key"]
    return [*found, Record.from_dict(values | {"config": values["config"] | {"encoding_args": {"note": ATTACK}}})]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(html(Page.of(records())), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def browser(driver: Any, address: str) -> Any:
    """A browser that has just opened the page on a desktop."""
    show(driver, address, width=1280)
    unfold(driver)
    return driver


def show(driver: Any, address: str, width: int, **media: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    features = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media.get("medium", ""), "features": features})
    driver.get(address)


def colours(driver: Any) -> int:
    """How many colours a screenshot has; an empty one has a single colour."""
    return len(pixels(driver))


def pixels(driver: Any, **asked: Any) -> Counter[str]:
    """How many pixels of a screenshot have which colour."""
    data = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"} | asked)["data"]
    found = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB").getcolors(1 << 24)
    return Counter({"#{:02x}{:02x}{:02x}".format(*colour): count for count, colour in found})


@pytest.fixture(scope="module")
def headline(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of two tasks of the headline page, which have every kind of table and picture."""
    found = [r for r in read_records(CORE.with_name("core")) if r.config.task in ("lm-wikitext2", "text-sst2")]
    path = tmp_path_factory.mktemp("page") / "core.html"
    path.write_text(html(Page.of(found, load_suite("core"))), encoding="utf-8")
    return path.as_uri()


def seen(driver: Any, element: Any) -> Counter[str]:
    """How many pixels of an element have which colour, as it is shown."""
    found = driver.execute_script(
        "const box = arguments[0].getBoundingClientRect();"
        "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height, scale: 1}",
        element,
    )
    return pixels(driver, clip=found, captureBeyondViewport=True)


def column(driver: Any, header: str) -> list[str]:
    """The cells of a column of a task's results or costs, from top to bottom."""
    return driver.execute_script(
        "const table = arguments[0].closest('table'), place = arguments[0].parentElement.cellIndex;"
        "return [...table.tBodies[0].rows].map((row) => row.cells[place].textContent)",
        button(driver, header),
    )


def button(driver: Any, header: str) -> Any:
    """The first one with this text, of a task's tables."""
    return driver.execute_script(
        "return [...document.querySelectorAll('#vit-cifar10-core th button')]"
        ".find((b) => b.textContent === arguments[0])",
        header,
    )


def unfold(driver: Any) -> None:
    driver.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")


def aria_sort(driver: Any, header: str) -> str | None:
    return button(driver, header).find_element("xpath", "..").get_attribute("aria-sort")


def test_a_column_sorts_best_first_then_the_other_way(browser: Any) -> None:
    header = "accuracy % ↑"
    for expected in ("descending", "ascending"):
        button(browser, header).click()
        numbers = [float(text.split()[0]) for text in column(browser, header)]
        assert numbers == sorted(numbers, reverse=expected == "descending")
        assert (aria_sort(browser, header), aria_sort(browser, "n")) == (expected, None)


def test_numbers_sort_as_numbers_and_what_is_missing_comes_last(browser: Any) -> None:
    for reverse in (False, True):
        button(browser, "Total params").click()
        numbers = [int(text.replace(",", "")) for text in column(browser, "Total params")]
        assert numbers == sorted(numbers, reverse=reverse)
    for _ in range(2):
        button(browser, "Δ to add (points)").click()
        assert column(browser, "Δ to add (points)")[-1] == "–"


def test_words_hide_the_rows_of_other_encodings(browser: Any) -> None:
    box = browser.find_element("id", "words")
    box.send_keys("ROPE, conc")
    # Published models beside ours are no encodings.
    heads = browser.find_elements("css selector", "tbody th:not(#quality *)")
    visible = [row for row in heads if row.is_displayed()]
    assert {row.text for row in visible} == {"rope", "concat"}
    rows = len(heads)
    assert browser.find_element("tag name", "output").text == f"{len(visible)} of {rows} rows shown"
    box.clear()
    box.send_keys(" ")
    assert all(row.is_displayed() for row in browser.find_elements("css selector", "tbody tr"))


def test_the_keyboard_reaches_everything_and_sorts(browser: Any) -> None:
    from selenium.webdriver import ActionChains, Keys

    reached, header = [], "accuracy % ↑"
    for _ in range(200):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        active = browser.switch_to.active_element
        assert active.value_of_css_property("outline-style") != "none"
        reached.append(active.get_attribute("id") or active.text)
        if active == button(browser, header):
            break
    assert reached[0] == "Skip to the results"
    assert "words" in reached
    assert column(browser, "Encoding")[0] == "add"
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    assert aria_sort(browser, header) == "descending"
    ActionChains(browser).send_keys(Keys.SPACE).perform()
    assert aria_sort(browser, header) == "ascending"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_whole_alone_and_quiet(driver: Any, address: str, width: int) -> None:
    driver.get_log("browser")
    driver.get_log("performance")
    show(driver, address, width)
    assert colours(driver) > 50
    assert driver.title == "pebench results"
    headings = [found.text for found in driver.find_elements("css selector", "h2")]
    assert {"vit-cifar10", "Notes"} <= set(headings)
    unfold(driver)
    pictures = driver.find_elements("css selector", "figure svg")
    assert len(pictures) == 7
    assert min(picture.size["height"] for picture in pictures) > 80
    assert driver.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert asked == {address}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_picture_shows_its_encodings_and_every_table_its_text(
    driver: Any, headline: str, width: int, scheme: str
) -> None:
    show(driver, headline, width, scheme=scheme)
    unfold(driver)
    rows, verdicts = {mark(name).colour for name in CORE_ENCODINGS}, {BETTER, WORSE, MUTED}
    ink = DARK[INK] if scheme == "dark" else INK
    pictures = driver.find_elements("css selector", "figure svg")
    assert len(pictures) == 9
    for picture in pictures:
        compares = "ifferences" in picture.get_attribute("aria-label")  # in the colours of verdicts, not of rows
        inks = {DARK[colour] if scheme == "dark" else colour for colour in (verdicts if compares else rows)}
        shown = seen(driver, picture)
        assert sum(shown[colour] > 5 for colour in inks) >= (1 if compares else 4)  # one row refuses lengths
        if compares:
            continue
        driver.execute_script("arguments[0].style.visibility = 'hidden'", picture)
        assert not inks & seen(driver, picture).keys()
    tables = driver.find_elements("css selector", ".scroll")
    assert len(tables) == 17
    for table in tables:
        shown = seen(driver, table)
        assert shown[ink] > 0.002 * shown.total()


PUBLISHED = sorted(path.parent for path in CORE.parent.glob("*/runs.jsonl"))
SHOWN = [path for path in PUBLISHED if path.name in ("core", "encodings") or place(path.name) < 0.2]


@pytest.mark.parametrize("published", SHOWN, ids=lambda path: path.name)
def test_a_published_page_sorts_each_of_its_tables_and_leads_nowhere_else(
    driver: Any, published: Path, tmp_path: Path
) -> None:
    page = tmp_path / f"{published.name}.html"
    page.write_text(html(Page.of(read_records(published), load_suite(published.name))), encoding="utf-8")
    driver.get_log("browser")
    show(driver, page.as_uri(), width=1280)
    assert driver.title == f"{page.stem}: pebench results"
    assert driver.execute_script(
        "const ids = [...document.querySelectorAll('[id]')].map((found) => found.id);"
        "const links = [...document.querySelectorAll('a[href^=\"#\"]')].map((link) => link.hash.slice(1));"
        "return [ids.length - new Set(ids).size, links.length > 0, links.filter((link) => !ids.includes(link))]"
    ) == [0, True, []]
    tables = driver.execute_script(
        "return [...document.querySelectorAll('.scroll table')].map((table) => {"
        "  const rows = () => [...table.tBodies[0].rows].filter((row) => row.className !== 'family');"
        "  const names = () => rows().map((row) => row.cells[0].textContent), before = names();"
        "  const button = table.querySelector('th button'); button.click(); button.click();"
        "  return [before.sort().reverse(), names()];"
        "})"
    )
    assert len(tables) > 2
    assert all(expected == found != [] for expected, found in tables)
    assert driver.get_log("browser") == []


def test_what_records_say_is_shown_and_never_run(browser: Any) -> None:
    assert browser.execute_script("return window.pwned") is None
    assert not browser.find_elements("tag name", "img")
    assert ATTACK in browser.find_element("tag name", "main").text


def test_the_page_lets_no_other_script_run(browser: Any) -> None:
    browser.execute_script(
        "const other = document.createElement('script'); other.textContent = 'window.pwned = 1';"
        "document.body.append(other)"
    )
    assert browser.execute_script("return window.pwned") is None
    assert any("Content Security Policy" in entry["message"] for entry in browser.get_log("browser"))


def test_a_phone_scrolls_tables_in_their_box_and_never_the_page(driver: Any, address: str) -> None:
    show(driver, address, 390)
    unfold(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") == 390
    boxes = driver.execute_script("return [...document.querySelectorAll('.scroll')].map((b) => b.scrollWidth)")
    assert max(boxes) > 390
    sizes = driver.execute_script(
        "return [...document.querySelectorAll('button, input')].map((e) => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 44


def test_a_phone_keeps_the_encoding_and_its_verdict_in_sight(driver: Any, address: str) -> None:
    show(driver, address, 390)
    unfold(driver)
    found = driver.execute_script(
        "const box = document.querySelector('#vit-cifar10-core .judged'); box.scrollLeft = 1000;"
        "const cells = [...box.querySelector('tbody tr').cells].map((cell) => cell.getBoundingClientRect());"
        "return [box.scrollLeft, box.getBoundingClientRect().left, ...cells.slice(0, 2).map((cell) => cell.left)]"
    )
    scrolled, left, name, verdict = found
    assert scrolled > 20
    assert (name, verdict) == pytest.approx((left + 1, left + 1 + 5.5 * 16), abs=1)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of all encodings."""
    path = tmp_path_factory.mktemp("page") / "many.html"
    path.write_text(html(Page.of(read_records(CORE.with_name("encodings")), load_suite("encodings"))))
    return path.as_uri()


def test_a_long_page_is_folded_grouped_by_family_and_keeps_its_headers(driver: Any, many: str) -> None:
    show(driver, many, 1280)
    assert driver.execute_script("return document.documentElement.scrollHeight") < 6000
    families = [
        row.text for row in driver.find_elements("css selector", "main > section .family") if row.is_displayed()
    ]
    assert families == [*GROUPS]
    top = driver.execute_script(
        "const rows = document.querySelectorAll('main > section tbody tr'); rows[45].scrollIntoView({block: 'end'});"
        "return document.querySelector('main > section thead th').getBoundingClientRect().top"
    )
    assert top == pytest.approx(0, abs=1)
    driver.find_element("css selector", "main > section th button").click()
    assert not [row for row in driver.find_elements("css selector", "main > section .family") if row.is_displayed()]


def test_a_link_to_a_folded_part_opens_it(driver: Any, many: str) -> None:
    show(driver, many, 390)
    part = driver.find_element("id", "provenance")
    assert part.get_attribute("open") is None
    driver.find_element("css selector", "nav a[href='#provenance']").click()
    assert part.get_attribute("open") is not None
    assert "pebench run --suite encodings" in part.text


def shades(driver: Any) -> tuple[str, ...]:
    return tuple(
        driver.execute_script(
            "return ['body', 'figure svg', 'figure svg path'].map((s) => getComputedStyle(document.querySelector(s)))"
            ".flatMap((style) => [style.backgroundColor, style.color, style.fill])"
        )
    )


def test_dark_is_dark_pictures_too_and_paper_is_light(driver: Any, address: str) -> None:
    show(driver, address, 1280)
    light = shades(driver)
    show(driver, address, 1280, scheme="dark")
    dark = shades(driver)
    assert (light[0], dark[0]) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")
    assert (light[-1], dark[-1]) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")
    assert colours(driver) > 50
    show(driver, address, 1280, scheme="dark", medium="print")
    assert shades(driver)[-1] == "rgb(255, 255, 255)"
    assert not driver.find_element("id", "filter").is_displayed()
