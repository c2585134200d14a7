"""README and results/ describe what the code does: pages equal their records, commands and examples run."""

import base64
import functools
import io
import itertools
import json
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest

from pebench.benchmarks.index import index
from pebench.benchmarks.studies import add_or_concat, segments, undeclared
from pebench.cli import main
from pebench.cli.catalogue import markdown as table
from pebench.cli.catalogue import overview as overview_of_encodings
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.config import CORE_ENCODINGS
from pebench.encodings import plugins
from pebench.encodings.plugins import Plugin
from pebench.encodings.registry import encoding_cards, parse_encoding
from pebench.results import figures
from pebench.results.page import Page
from pebench.results.publish import FIGURES, NOTES, PAGE, published_text
from pebench.results.stats import estimate
from pebench.results.writers.markdown import overview
from pebench.runs.records import COLLECTION, Record, read_records
from pebench.runs.suite import load_suite
from pebench.tasks import find_task
from tests.sampling import sampled

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAME_MATPLOTLIB = f"matplotlib=={version('matplotlib')}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")
DOCUMENTS = [
    "README.md", "CONTRIBUTING.md", "benchmarks/README.md", "docs/architecture.md", "docs/encodings.md",
    "docs/index.md", "docs/method.md", "docs/performance-log.md", "docs/prior-art.md", "docs/python.md",
    "docs/questions.md", "results/README.md",
    *sorted(f"docs/answers/{path.name}" for path in (ROOT / "docs" / "answers").glob("*.md")),
    *sorted(f"docs/guides/{path.name}" for path in (ROOT / "docs" / "guides").glob("*.md")),
]  # fmt: skip
RESULTS = ROOT / "results"
PAGES = sorted(path.parent.name for path in RESULTS.glob("*/runs.jsonl"))
PUBLISHED = sorted(str(path.relative_to(ROOT)) for path in RESULTS.glob("*/*.md"))
BY_HAND = sorted(str(path.relative_to(RESULTS)) for path in RESULTS.glob(f"*/{NOTES}"))


def code(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@functools.cache
def records_of(name: str) -> list[Record]:
    """Read the published records of a suite once for all tests of a process."""
    return read_records(RESULTS / name)


@functools.lru_cache(maxsize=2)
def page_of(name: str) -> Page:
    return Page.of(records_of(name), load_suite(name))


def sampled_pages(share: float) -> list:
    """All published suites; the default run makes a share of them, and always that of the overview."""
    return sampled([pytest.param(name, id=name) for name in PAGES], share, lambda name: name == "core")


@pytest.mark.parametrize("name", sampled_pages(0.3))
def test_a_published_page_is_made_of_its_records_and_its_suite(name: str) -> None:
    text = published_text(page_of(name), RESULTS / name)
    assert (RESULTS / name / PAGE).read_text(encoding="utf-8") == text, f"make results SUITE={name}"


@pytest.mark.parametrize("name", sampled_pages(0.12))
def test_a_published_page_is_drawn_of_its_records_and_its_suite(name: str) -> None:
    """To the byte, by the matplotlib of constraints.txt; drawing those of a large suite takes seconds."""
    drawn = {f"{picture.name}.svg": picture.svg for picture in figures.pictures(page_of(name))}
    shown = {path.name: path.read_text(encoding="utf-8") for path in (RESULTS / name / FIGURES).iterdir()}
    assert shown.keys() == drawn.keys(), f"make results SUITE={name}"
    if SAME_MATPLOTLIB:
        assert shown == drawn, f"make results SUITE={name}"


@pytest.mark.parametrize("name", PAGES)
def test_a_published_folder_holds_nothing_that_nobody_reads(name: str) -> None:
    assert {path.name for path in (RESULTS / name).iterdir()} <= {PAGE, COLLECTION, NOTES, FIGURES}
    page = (RESULTS / name / PAGE).read_text(encoding="utf-8")
    shown = {path.rpartition("/")[2] for path in re.findall(r"!\[.*?\]\((.*?)\)", page)}
    assert shown == {quote(path.name) for path in (RESULTS / name / FIGURES).iterdir()}


def test_runs_done_again_differ_as_results_say() -> None:
    """To the last bit not at all on the kind of processor, and with the threads, that the published ones had.

    With matrix products that round otherwise, on that kind too, by next to nothing on WikiText-2.
    """
    published = {record.config.key: record for record in records_of("core")}
    moved, same = {}, []
    for name in ("again", "two-threads"):
        for again in read_records(RESULTS / "checks" / f"{name}.jsonl"):
            first = published[again.config.key]
            alike = all(again.environment[what] == first.environment[what] for what in ("device", "threads"))
            equal = [again.metrics[metric] == first.metrics[metric] for metric in first.metrics]
            assert all(equal) if alike else not all(equal)
            same += [again] * alike
            if not alike:
                change = 100 * (again.metrics["test/accuracy"] - first.metrics["test/accuracy"])
                moved.setdefault(again.config.task, []).append(change)
    assert (len(same), {record.config.task for record in same}) == (8, {"lm-wikitext2", "text-imdb", "text-sst2"})
    assert moved["vit-cifar10"] == pytest.approx([53.70 - 53.04], abs=0.005)
    assert (min(moved["text-sst2"]), max(moved["text-sst2"])) == pytest.approx((-0.11, 1.15), abs=0.005)
    assert len(moved["text-sst2"]) == 5

    otherwise = read_records(RESULTS / "checks" / "kernels.jsonl")
    name = "test/bits_per_byte"
    changes = [abs(again.metrics[name] - published[again.config.key].metrics[name]) for again in otherwise]
    assert len(changes) == 8
    assert 0 < max(changes) < 2e-6

    lines = (RESULTS / "checks" / "other-examples.ndjson").read_text(encoding="utf-8").splitlines()
    changes: dict[str, list[float]] = {}
    for again in map(json.loads, lines):
        first = published[again["key"]]
        name = f"test/{find_task(first.config.task).metric}"
        changes.setdefault(first.config.task, []).append(100 * (again["metric"] - first.metrics[name]))
    assert changes["vit-cifar10"] == [0.0] * 20
    assert (min(changes["text-sst2"]), max(changes["text-sst2"])) == pytest.approx((-1.49, 1.38), abs=0.005)
    assert len(changes["text-sst2"]) == 20
    assert max(map(abs, changes["text-imdb"])) == pytest.approx(0.46, abs=0.005)
    assert len(changes["text-imdb"]) == 10
    for task, told in (("text-sst2", "+0.01 -0.39 0.40"), ("text-imdb", "-0.02 -0.18 0.15")):
        found = estimate(changes[task])
        ends = found.mean - found.half_width, found.mean + found.half_width
        assert f"{found.mean:+.2f} {ends[0]:.2f} {ends[1]:.2f}" == told

    same = read_records(RESULTS / "checks" / "kernels-images.jsonl")
    assert [(again.config.encoding, again.config.seed) for again in same] == [("add", seed) for seed in range(8)]
    for again in same:  # with the kernels that the published ones had, on the other kind of processor
        first = published[again.config.key]
        assert (again.metrics, again.curve) == (first.metrics, first.curve)
        assert again.environment["device"] != first.environment["device"]


def pixels(svg: str) -> list[Any]:
    """The raster pictures in one."""
    from PIL import Image

    found = re.findall(r'xlink:href="data:image/png;base64,\s*(.*?)"', svg, re.DOTALL)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(data))), dtype=float) for data in found]


@pytest.mark.skipif(
    not SAME_MATPLOTLIB, reason="pictures are drawn to the byte by the matplotlib of constraints.txt alone"
)
@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda path: path.stem)
def test_pictures_of_encodings_are_what_they_are_today(picture: Path, tmp_path: Path) -> None:
    assert main(["plot-encoding", picture.stem, "--output", str(tmp_path / picture.name)]) == 0
    published, today = (path.read_text(encoding="utf-8") for path in (picture, tmp_path / picture.name))
    for one, other in zip(pixels(published), pixels(today), strict=True):  # another CPU rounds sines otherwise
        np.testing.assert_allclose(one, other, atol=3)
    lines = [re.findall(r"-?\d+\.\d+", re.sub(r'xlink:href="data.*?"', "", text)) for text in (published, today)]
    np.testing.assert_allclose(*(np.array(numbers, dtype=float) for numbers in lines), atol=0.05, err_msg="make docs")


def test_encodings_can_be_asked_for_as_published_tables_name_them() -> None:
    rows = {}
    for page in PAGES:
        for record in records_of(page):
            rows[record.config.label] = (record.config.encoding, record.config.encoding_args)
    assert {"concat (ratio=0.5)", "embed-scale (of=add-qk)"} < {*rows}
    assert {label: parse_encoding(label) for label in rows} == rows


@pytest.mark.parametrize("page", ["README.md", "results/README.md"])
def test_front_pages_show_the_published_overview(page: str) -> None:
    shown = re.search(r"<!-- overview.*?-->\n(.*?)<!-- /overview -->", (ROOT / page).read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] == overview(page_of("core"))


def paragraphs(document: str) -> Iterator[tuple[str, str]]:
    """Paragraphs and items of a document in results/, with the suite whose folder it is in, or core."""
    text = (RESULTS / document).read_text(encoding="utf-8").partition("## Tried")[0]
    folder = document.partition("/")[0]
    suite = folder if folder in PAGES else "core"
    for section in re.split(
        r"^## ", re.sub(r"<!-- overview.*<!-- /overview -->", "", text, flags=re.DOTALL), flags=re.M
    ):
        yield from ((suite, part) for part in re.split(r"\n\n|\n(?=- )", section))


FIGURE = r"(?<![\d.])[+-]?\d+\.\d+\s±\s\d+\.\d+"


LEAST = {"README.md": 5, "../docs/method.md": 0, "../docs/prior-art.md": 6} | dict.fromkeys(BY_HAND, 0)
"""Documents in which figures are looked up, and how many are there at least."""


@pytest.mark.parametrize(("document", "least"), LEAST.items())
def test_every_figure_with_an_interval_is_on_the_page_that_it_is_told_of(document: str, least: int) -> None:
    """On the page beside its notes, or on one that the same paragraph links."""
    count, lost = 0, []
    for suite, text in paragraphs(document):
        names = {suite, *re.findall(r"([\w-]+)/page\.md\)", text)} & {*PAGES}
        pages = "".join((RESULTS / name / PAGE).read_text(encoding="utf-8") for name in names)
        figures = re.findall(FIGURE, text)
        count += len(figures)
        known = set(re.findall(FIGURE, pages))
        known |= {figure.lstrip("+-") for figure in known}  # "0.96 ± 0.67 points below"
        lost += [figure for figure in figures if re.sub(r"\s", " ", figure) not in known]
    assert count >= least
    assert lost == []


RANGES = {
    "0.002 to 0.011", "0.01 to 0.08", "0.04 to 0.10", "0.34 to 0.55", "0.498 to 0.505", "1.23 to 1.25",
    "53.04 to 53.70", "53.59 to 54.55", "-0.39 to 0.40", "-0.18 to 0.15",
}  # fmt: skip
"""What `INTERVAL` finds that is none: the least and the most of several figures, and runs done again (see above)."""

INTERVAL = r"-?\d+\.\d\d+ to -?\d+\.\d\d+"


def test_every_comparison_that_was_not_declared_is_worked_out_from_records() -> None:
    """Written as "0.53 (0.11 to 0.96)", with the sign that the words have."""
    assert (RESULTS / "studies" / "undeclared.md").read_text(encoding="utf-8") == undeclared.page()
    found = {document: not_worked_out((RESULTS / document).read_text(encoding="utf-8")) for document in LEAST}
    assert {document: lost for document, lost in found.items() if {*lost} - RANGES} == {}


@functools.cache
def worked_out() -> dict[str, set[str]]:
    """Means of exploratory comparisons by their interval, as prose may write them, with either sign."""
    known: dict[str, set[str]] = {}
    for _, found in undeclared.measured():
        ends = found.mean - found.half_width, found.mean + found.half_width
        for digits, (low, high) in itertools.product((2, 3, 4), (ends, (-ends[1], -ends[0]))):
            known.setdefault(f"{low:.{digits}f} to {high:.{digits}f}", set()).add(f"{abs(found.mean):.{digits}f}")
    return known


def not_worked_out(text: str) -> list[str]:
    """Intervals in a text that no exploratory comparison has whose mean stands shortly before."""
    text, lost = " ".join(text.split()), []
    for match in re.finditer(INTERVAL, text):
        before = re.findall(r"\d+\.\d+", text[max(match.start() - 140, 0) : match.start()])
        lost += [] if worked_out().get(match[0], set()) & {*before} else [match[0]]
    return lost


def test_segments_are_judged_from_records() -> None:
    """Intervals are written there with both signs, unlike exploratory ones."""
    page = segments.page()
    assert (RESULTS / "studies" / "segments.md").read_text(encoding="utf-8") == page
    told = (ROOT / "docs" / "answers" / "segments.md").read_text(encoding="utf-8")
    found = re.findall(r"([-+]\d\.\d\d)\s\w*\s?\(([-+]\d\.\d\d to [-+]\d\.\d\d)\)", told)
    assert len(found) == 3
    assert all(f"{mean} " in page and interval in page for mean, interval in found)


def test_every_pair_of_addition_and_concatenation_is_shown_as_records_have_it() -> None:
    redo = "python -m benchmarks.studies.add_or_concat --output results/studies/add_or_concat.md"
    assert (RESULTS / "studies" / "add_or_concat.md").read_text(encoding="utf-8") == add_or_concat.page(), redo
    if SAME_MATPLOTLIB:
        folder = RESULTS / "studies" / add_or_concat.FOLDER
        shown = {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}
        assert shown == {
            add_or_concat.file_name(group): add_or_concat.picture(group) for group in add_or_concat.GROUPS
        }, redo


def mean_of(suite: str, encoding: str, metric: str, task: str = "lm-wikitext2") -> float:
    """Return the mean over tested seeds of a metric in published records."""
    values = [
        record.metrics[metric]
        for record in records_of(suite)
        if (record.config.task, record.config.label, record.config.stage) == (task, encoding, "test")
        and record.status == "ok"
        and record.protocol == page_of(suite).tables[0].protocol
    ]
    return sum(values) / len(values)


def test_the_front_page_says_what_records_say() -> None:
    core, full = (
        {name: mean_of(suite, name, "test/perplexity") for name in CORE_ENCODINGS} for suite in ("core", "full")
    )
    text = " ".join(README.split())
    assert f"perplexity {core['concat']:.1f} instead of {core['add']:.1f} at 0.8 M parameters" in text
    assert f"{full['concat']:.1f} instead of {full['add']:.1f} at 9 M" in text
    assert (
        f"RoPE reaches perplexity {core['rope']:.1f} in the small model and {full['rope']:.1f} in the larger one"
        in text
    )
    pope, relative = (
        round(mean_of("scorecard-language", name, "test/perplexity")) for name in ("pope", "transformer-xl")
    )
    assert pope == relative
    assert f"PoPE and Transformer-XL's attention {pope} in the small one (five seeds)" in text
    falls = []
    for suite in ("core", "confirm"):
        added, concatenated = (mean_of(suite, name, "test/accuracy@1.5x", "vit-cifar10") for name in ("add", "concat"))
        falls.append(100 * (added - concatenated))
    assert all(7.0 <= fall < 8.0 for fall in falls)
    assert "concatenation falls more than 7 points behind addition" in text


def test_every_collection_in_results_is_of_records() -> None:
    """So that `load_results("results")` reads them all."""
    for path in RESULTS.rglob("*.jsonl"):
        with path.open(encoding="utf-8") as lines:
            assert "config" in json.loads(next(lines)), path


@pytest.mark.parametrize(("page", "words"), [("README.md", 900), ("results/README.md", 1200)])
def test_front_pages_are_short(page: str, words: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(text.split()) <= words
    if page == "README.md":
        lines = text.splitlines()
        assert "**" in lines[2]  # the answer
        assert next(number for number, line in enumerate(lines, 1) if "pip install" in line) <= 25


@pytest.mark.parametrize(("mark", "made"), [("groups", overview_of_encodings), ("encodings", table)])
def test_the_tables_of_encodings_are_made_from_their_cards(mark: str, made: Callable[[], str]) -> None:
    text = (ROOT / "docs/encodings.md").read_text(encoding="utf-8")
    shown = re.search(rf"<!-- {mark}.*?-->\n(.*?)<!-- /{mark} -->", text, re.DOTALL)
    assert shown is not None
    assert shown[1] == made(), "make docs"


def test_the_tables_of_encodings_name_every_encoding() -> None:
    assert sorted(re.findall(r"^\| `([\w-]+)` \|", table(), re.MULTILINE)) == list(encoding_cards())
    assert sorted(re.findall(r"`([\w-]+)`", overview_of_encodings())) == list(encoding_cards())


def test_what_is_called_otherwise_is_here() -> None:
    section = (ROOT / "docs/encodings.md").read_text(encoding="utf-8").partition("## Other names")[2]
    named = set(re.findall(r"`([\w-]+)`", section.partition("\n## ")[0]))
    assert named - {"theta"} <= set(encoding_cards())


@pytest.mark.parametrize(
    "line", [line.partition("#")[0].strip() for block in code("bash") for line in block.splitlines()]
)
def test_every_command_of_the_readme_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_module.py").write_text("import pebench\nclass MyEncoding(pebench.PositionalEncoding): ...\n")
    monkeypatch.chdir(tmp_path)
    offered = {"my-encoding": Plugin("my-encoding", "my_module:MyEncoding")}
    monkeypatch.setattr(plugins, "offered", lambda group: (offered if group is plugins.ENCODINGS else {}, {}))
    line = line.rpartition("&& ")[2]
    if line.startswith("pebench"):
        options = parser().parse_args(shlex.split(line)[1:])
        if "task" in options:
            assert requested_plan(options)


@pytest.mark.slow
def test_the_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (snippet,) = code("python")
    quick = snippet.replace("seeds=3", "seeds=1").replace('max_steps": 100', 'max_steps": 2')
    assert quick != snippet
    names: dict[str, Any] = {}
    exec(compile(quick, "README.md", "exec"), names)
    assert [*names["frame"]["encoding"]] == ["add", "rope"]
    assert "rope" in capsys.readouterr().out


def test_the_index_of_results_is_made_from_the_suites() -> None:
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- pages.*?-->\n(.*?)<!-- /pages -->", text, re.DOTALL)
    assert shown is not None
    assert shown[1] == index(), "make readme"
    assert sorted(re.findall(r"\[([\w-]+)\]", shown[1])) == PAGES


def test_the_example_runs_in_a_trainer_of_its_own() -> None:
    accuracies = runpy.run_path(str(ROOT / "examples" / "own_trainer.py"))["main"](max_steps=2)
    assert set(accuracies) == {"rope", "CosineEncoding"}
    assert all(0 <= accuracy <= 1 for accuracy in accuracies.values())


@pytest.mark.slow
def test_the_example_goes_from_an_encoding_to_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "examples")
    lines = (runpy.run_path("own_encoding.py")["__doc__"] or "").splitlines()
    verify, run, plot = (shlex.split(line)[1:] for line in lines if line.startswith("pebench"))
    assert main(verify) == 0
    assert main([*run, "--seeds", "1", "--tier", "smoke", "--executor", "sequential", "--out", str(tmp_path)]) == 0
    assert main([*plot[:-1], str(tmp_path / "triangle.svg")]) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("\n| own_encoding:TriangleEncoding |") >= 2


@pytest.mark.parametrize("page", [*DOCUMENTS, *PUBLISHED])
def test_links_lead_to_a_file_and_a_heading(page: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)", (ROOT / page).read_text(encoding="utf-8"))
    for path, anchor in links:
        target = (ROOT / page).parent / unquote(path) if path else ROOT / page
        assert target.exists(), path
        assert not anchor or anchor[1:] in anchors(target.read_text(encoding="utf-8")), anchor


def anchors(markdown: str) -> set[str]:
    """What GitHub calls the headings of a page: in lower case, without punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ (.*)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*DOCUMENTS, *PUBLISHED])
def test_no_empty_line_cuts_a_table(page: str) -> None:
    rows = re.findall(r"\|\n\n(\|.*)\n(.*)", (ROOT / page).read_text(encoding="utf-8"))
    assert [row for row, next_line in rows if not re.match(r"\| ?:?---", next_line)] == []


def test_the_table_of_commands_names_every_command() -> None:
    text = (ROOT / "docs/guides/runs.md").read_text(encoding="utf-8")
    text = text.partition("\n## Commands\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")][1:]
    (verbs,) = (action.choices for action in parser()._actions if action.metavar == "COMMAND")
    assert sorted(name for row in rows for name in re.findall(r"`([\w-]+)`", row)) == sorted(verbs or ())
