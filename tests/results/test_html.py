"""The HTML page: it says what the Markdown page says, escapes what records say, and does not depend on their order."""

import random
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pebench.results import figures
from pebench.results.cells import (
    Cell,
    count_cell,
    decimal_cell,
    interval_cell,
    p_cell,
    rate_cell,
    setting_cell,
    si_cell,
)
from pebench.results.page import Page
from pebench.results.prose import prose
from pebench.results.stats import Estimate
from pebench.results.writers.html import html
from pebench.results.writers.html.content import markup
from pebench.results.writers.markdown import markdown
from pebench.runs.records import Record
from tests.results.published import RESULTS, published, published_page

CORE = published()
ATTACK = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Reader(HTMLParser):
    """Tags, ids, texts, and the cells of every table, line by line."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.lines: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id" and value]
        self.links += [value for name, value in attributes if name.endswith(("href", "src")) and value]
        if tag == "tr":
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.inside:
            self.lines[-1][-1] += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


@pytest.fixture(scope="module")
def core() -> str:
    return html(published_page(of_suite=True))


def test_it_says_what_the_markdown_page_says(core: str) -> None:
    page = markdown(published_page(of_suite=True))
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:2] == "| "]
    rows = [row for row in rows if row[0] not in ("Encoding", "Model")]
    # the overview's differences, of which the reference has none, and values; pairs, speedups; results, costs; across
    # tasks; and two of ours beside what is published on each task
    assert len(rows) == 4 + 5 + 4 * (5 + 4 + 4 + 5) + 5 + (4 * 2 + 2 + 3 + 2 + 4)
    found = read(core)
    assert [row for row in rows if row not in found.lines] == []
    text = re.sub(r"\s", "", "".join(found.texts))  # code among words is a text of its own
    finding = page.partition("**Finding.**\n\n")[2].partition("\n\n")[0].replace("`", "")
    for sentence in [*re.findall(r"\*\*(?:Question|Expected)\.\*\* (.*)", page), *re.findall("- (.*)", finding)]:
        assert sentence.replace(" ", "") in text


def test_every_id_is_there_once_and_every_link_leads_to_one(core: str) -> None:
    found = read(core)
    assert len(found.ids) == len(set(found.ids))
    inside = {link for link in found.links if link.startswith("#")}
    assert {link[1:] for link in inside} <= set(found.ids)
    assert all(link.startswith("https://") for link in {*found.links} - inside)  # of works that are cited


def test_pictures_take_their_colours_from_the_page(core: str) -> None:
    pictures = "".join(re.findall(r'<svg role="img".*?</svg>', core, re.DOTALL))
    assert pictures.count("<svg") == 13
    assert "var(--c1f2328)" in pictures
    assert not re.search(r"#[0-9a-f]{6}\b", pictures)


@pytest.mark.usefixtures("no_pictures")
def test_what_records_say_is_escaped_everywhere() -> None:
    values = CORE[0].to_dict()
    del values["key"]
    environment = values["environment"] | dict.fromkeys(("commit", "device", "precision"), ATTACK)
    environment |= {"plugins": {ATTACK: {"package": ATTACK, "version": ATTACK, "sha256": ATTACK}}}
    failed = {
        "status": "failed",
        "error": {"reason": ATTACK, "kind": ATTACK, "log": ATTACK},
        "environment": environment,
    }
    config = values["config"] | {"encoding": "mine", "encoding_args": {"note": ATTACK}}
    dataset = {"fingerprint": ATTACK, "sizes": {}}
    odd = [values | failed | {"config": config}, values | {"config": config | {"seed": 1}, "dataset": dataset}]
    plain, attacked = (read(html(page)) for page in (published_page(), Page.of([*CORE, *map(Record.from_dict, odd)])))
    assert attacked.tags.count("script") == plain.tags.count("script") == 1
    assert "img" not in attacked.tags
    assert any(ATTACK in text for text in attacked.texts)


def test_names_of_records_in_our_sentences_are_escaped_too() -> None:
    assert read(markup(prose(f"**Finding.** `{ATTACK}` and {ATTACK}"))).tags == ["b", "code"]


@pytest.mark.usefixtures("no_pictures")
def test_the_order_of_records_does_not_change_a_byte() -> None:
    shuffled = random.Random(0).sample(CORE, len(CORE))
    assert html(Page.of(shuffled)) == html(published_page())


def test_pictures_are_left_out_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_TABLES", 1)
    text = html(Page.of([record for record in CORE if record.config.task in ("vit-cifar10", "text-imdb")]))
    assert text.count('<svg role="img"') == 4  # of all tables, and of the first one
    assert "Tables without pictures: 1. The first 1 with up to" in text


@pytest.mark.usefixtures("no_pictures")
def test_failed_and_missing_runs_are_named() -> None:
    first, second, *rest = [record for record in CORE if record.config.task == "text-sst2"]
    reason = {"reason": "loss is nan", "kind": "diverged", "log": ""}
    lost = replace(second, status="failed", metrics={}, error=reason)
    texts = read(html(Page.of([lost, *rest]))).texts
    assert f"Failed: add seed {second.config.seed}: loss is nan" in texts
    assert f"Missing: add seed {first.config.seed}" in texts


@pytest.mark.parametrize(
    ("cell", "text", "value"),
    [
        (interval_cell(Estimate(1.8119, 0.0101, 3), 1, 2), "1.81 ± 0.01", 1.81),
        (interval_cell(Estimate(0.0018, None, 1), 100, 2, "+"), "+0.18", 0.18),
        (interval_cell(Estimate(-0.2, 3.0, 2), 1, 1), "-0.2 ± 3.0", -0.2),
        (interval_cell(Estimate(-0.00001, None, 1), 100, 2, "+"), "+0.00", 0.0),
        (interval_cell(Estimate(0.1, 0.02, 8), 100, 2, "+", " better (n=6)"), "+10.00 ± 2.00 better (n=6)", 10.0),
        (count_cell(842_816), "842,816", 842816.0),
        (count_cell(3, " (1 failed)"), "3 (1 failed)", 3.0),
        (count_cell(None), "–", None),
        (si_cell(88_912_345), "88.9 M", 88.9e6),
        (si_cell(6_047), "6.05 k", 6050.0),
        (si_cell(12), "12", 12.0),
        (rate_cell(1234.5), "1,234", 1234.0),
        (rate_cell(5.4321), "5.43", 5.43),
        (setting_cell(0.0301), "0.0301", 0.0301),
        (setting_cell(1e-5), "1e-05", 1e-5),
        (setting_cell("32-true"), "32-true", None),
        (setting_cell(True), "True", None),
        (p_cell(0.0496), "0.0496", 0.0496),
        (p_cell(0.0004), "<0.001", 0.001),
        (p_cell(None), "–", None),
        (decimal_cell(0.6512, 2, " [0.57, 0.74]"), "0.65 [0.57, 0.74]", 0.65),
    ],
)
def test_cells_sort_by_the_number_that_they_show(cell: Cell, text: str, value: float | None) -> None:
    assert (cell.text, cell.value) == (text, value)


NUMBER = re.compile(r"([+-]?(?:[\d,]*\.)?[\d,]*\d(?:e[+-]?\d+)?)(?: ([kMGT]))?(?:$|[ *])")


def number(text: str) -> float | None:
    """The number that a text begins with, but for a "<" before it."""
    found = NUMBER.match(text.removeprefix("&lt;"))
    return float(found[1].replace(",", "")) * {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[found[2] or ""] if found else None


def test_every_number_on_the_page_sorts_by_what_it_shows(core: str) -> None:
    cells = re.findall(r'<td class="number ?\w*" data-value="(.*?)"><span>(.*?)</span>', core)
    assert len(cells) == 390
    assert [text for value, text in cells if (float(value) if value else None) != number(text)] == []


@pytest.mark.slow
def test_pages_and_pictures_are_made_without_torch() -> None:
    program = f"""
import sys
from pathlib import Path
from pebench.results.page import Page
from pebench.results.prose import prose
from pebench.runs.records import read_records
from pebench.results.stats import Estimate
from pebench.results.writers.html import html
records = read_records(Path({str(RESULTS / "untuned")!r}))
html(Page.of([record for record in records if record.config.task in ("vit-cifar10", "text-imdb")]))
sys.exit(", ".join({{"torch", "lightning", "pandas"}} & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
