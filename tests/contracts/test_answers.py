"""Answers and questions: each page has its form, and each figure is on a page that it links or is worked out anew."""

import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from pebench.benchmarks.studies import comparisons
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.encodings.base import EncodingSpec
from pebench.encodings.build import build_encoding
from tests.contracts.test_docs import FIGURE, INTERVAL, not_worked_out

DOCS = Path(__file__).parents[2] / "docs"
INDEX = DOCS / "answers" / "index.md"
ANSWERS = sorted(path for path in INDEX.parent.glob("*.md") if path != INDEX)
WRITTEN = [*ANSWERS, INDEX, DOCS / "questions.md"]
LEAST_CLAIM = 0.01
"""Bits per byte on WikiText-2; smaller differences may come from the grid of learning rates."""

FORM = re.compile(
    r"# (?P<claim>[^\n]+)\n\n\*\*(?P<verdict>[^*]+)\*\*\n\n"
    r"!\[(?P<seen>[^]]+)\]\((?P<picture>[^)]+)\)\n\n(?P<summary>.+?)\n\n## Details\n\n(?P<details>.+)",
    re.DOTALL,
)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def form_of(path: Path) -> dict[str, str]:
    found = FORM.fullmatch(text_of(path))
    assert found, "a heading, a bold answer, a picture, a summary and '## Details', in this order"
    return found.groupdict()


def paragraphs(path: Path) -> Iterator[str]:
    yield from re.split(r"\n\n|\n(?=- )", text_of(path))


def names(paths: list[Path]) -> list:
    return [pytest.param(path, id=path.stem) for path in paths]


@pytest.mark.parametrize("page", names(ANSWERS))
def test_an_answer_comes_first_and_is_short(page: Path) -> None:
    form = form_of(page)
    assert "**" not in form["summary"]
    summary = re.sub(r"\]\([^)]*\)", "]", form["summary"])
    words = summary.replace(" ± ", "±").split()
    assert len(words) <= 150, f"{len(words)} words before the details, at most 150"
    picture = (page.parent / form["picture"]).resolve()
    assert picture.is_file()
    assert DOCS.parent / "results" in picture.parents
    assert len(form["seen"].split()) >= 8, "say in words what the picture shows"


@pytest.mark.parametrize("page", names(ANSWERS))
def test_an_answer_claims_nothing_that_learning_rates_may_explain(page: Path) -> None:
    """Three decimals or more are bits per byte; points have two."""
    form = form_of(page)
    told = re.findall(r"(?<!± )(?<![\d.])\d+\.\d{3,}", form["verdict"] + form["summary"])
    assert [figure for figure in told if float(figure) < LEAST_CLAIM] == []


def test_the_index_has_a_line_for_every_answer() -> None:
    lines = re.findall(r"^\| \[(.+?)\]\(([\w-]+)\.md\) \| (.+?) \| (.+?) \|$", text_of(INDEX), re.MULTILINE)
    assert {stem: claim for claim, stem, *_ in lines} == {page.stem: form_of(page)["claim"] for page in ANSWERS}
    assert len(lines) == len(ANSWERS)
    assert [cell for *_, language, images in lines for cell in (language, images) if len(cell.split()) > 8] == []


@pytest.mark.parametrize("page", names(WRITTEN))
def test_every_figure_with_an_interval_is_on_a_page_that_its_paragraph_links(page: Path) -> None:
    lost = []
    for text in paragraphs(page):
        links = re.findall(r"\]\(([./]*/results/[\w./-]+\.md)\)", text)
        known = {found for link in links for found in re.findall(FIGURE, text_of(page.parent / link))}
        known |= {figure.lstrip("+-") for figure in known}  # "0.96 ± 0.67 points behind"
        lost += [figure for figure in re.findall(FIGURE, text) if re.sub(r"\s", " ", figure) not in known]
    assert lost == []


def test_answers_have_figures() -> None:
    assert sum(len(re.findall(FIGURE, text_of(page))) for page in WRITTEN) > 250
    assert sum(len(re.findall(INTERVAL, text_of(page))) for page in WRITTEN) > 20


@pytest.mark.parametrize("page", names(WRITTEN))
def test_every_exploratory_comparison_is_worked_out_from_records(page: Path) -> None:
    """Written as "0.53 (0.11 to 0.96)", with the sign that the words have."""
    assert not_worked_out(text_of(page)) == []


def test_scales_of_position_are_as_the_answer_says() -> None:
    told = " ".join(text_of(DOCS / "answers" / "position-scale.md").split())
    images, text = (scales(*model) for model in (((8, 8), 64), ((128,), 96)))
    assert f"{100 * images['same']:.0f} % is the same at every position ({100 * text['same']:.0f} % over" in told
    assert f"at {images['learned']:.1f} ({text['learned']:.1f}) times the scale of `add` in what varies" in told
    assert f"relative to content, at {images['concat']:.1f} ({text['concat']:.1f}) times" in told


def scales(extent: tuple[int, ...], d_model: int) -> dict[str, float]:
    """Of the sinusoid's square the share that all positions have in common; the scale of what varies, over add's."""
    spec = EncodingSpec(d_model, 1, 1, extent, causal=False)
    places = torch.cartesian_prod(*(torch.arange(float(n)) for n in extent)).reshape(-1, len(extent))
    varies, found = {}, {}
    for name in ("add", "learned", "concat"):
        torch.manual_seed(0)
        encoding = build_encoding(name, spec, {})
        content = encoding.content_width
        position = encoding.embed(torch.zeros(1, len(places), content), encoding.state(places))[0].detach()
        varies[name] = float(position.var(0, correction=0).sum() / content) ** 0.5
        found[name] = varies[name] / varies["add"]
        found.setdefault("same", float(position.mean(0).square().sum() / position.square().sum(1).mean()))
    return found


def test_differences_along_the_run_are_those_of_the_curves() -> None:
    """Each cell of the table in more-training, in validation, over the seeds that are tested."""
    table = re.findall(
        r"^\| *(.*?) *\| (\d+) \| (.+) \|$", text_of(DOCS / "answers" / "more-training.md"), re.MULTILINE
    )
    assert len(table) == 10
    where = ("", "", "")
    for head, step, cells in table:
        if head:
            page = re.findall(r"\[([\w-]+)\]", head)[0]
            ends = ("vit-cifar10", "val/accuracy") if "CIFAR" in head else ("lm-wikitext2", "val/bits_per_byte")
            where = (page, *ends)
        for label, cell in zip(("rope", "concat", "learned", "none"), cells.split(" | "), strict=True):
            found = along_the_run(*where, label, int(step))
            half = 0.5 * 10 ** -len(cell.partition(".")[2])
            assert math.isclose(float(cell), found, abs_tol=half * 1.001), (*where, label, step, found)


def test_losses_on_the_trained_text_are_those_of_the_curves() -> None:
    told = " ".join(text_of(DOCS / "answers" / "more-training.md").split())
    larger = np.mean([along_the_run("full", "lm-wikitext2", "train/loss", "rope", step) for step in (1800, 2000)])
    small = along_the_run("core", "lm-wikitext2", "train/loss", "rope", 1500)
    assert f"rotation is {larger:.3f} nats a token from addition there, in the small model {small:.3f}" in told


def along_the_run(page: str, task: str, metric: str, label: str, step: int) -> float:
    """A row's mean difference to addition at a step, in bits per byte, nats or points."""
    scale = 100 if metric == "val/accuracy" else 1

    def values(name: str) -> dict[int, float]:
        runs = comparisons.runs(task, comparisons.row(name, page))
        curves = {seed: {point["step"]: point for point in run.curve} for seed, run in runs.items()}
        return {seed: scale * curve[step][metric] for seed, curve in curves.items()}

    ours, added = values(label), values("add")
    assert ours.keys() == added.keys()
    return float(np.mean([value - added[seed] for seed, value in ours.items()]))


COMMANDS = re.findall(r"^pebench .*$", text_of(DOCS / "questions.md"), re.MULTILINE)


def test_every_question_has_a_source_and_a_command() -> None:
    questions = text_of(DOCS / "questions.md").split("\n### ")[1:]
    assert len(questions) >= 12
    for question in questions:
        assert re.search(r"\]\(https://[^)]+\)", question), question
        assert re.search(r"```bash\npebench .*\n", question), question


@pytest.mark.parametrize("line", sorted({*COMMANDS}))
def test_every_command_of_a_question_plans_runs(line: str) -> None:
    assert requested_plan(parser().parse_args(shlex.split(line)[1:]))
