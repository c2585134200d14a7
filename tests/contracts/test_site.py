"""The site: its guides name every option, its pages build without a warning, and work in a browser from a folder."""

import argparse
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pebench
from pebench.cli.parser import parser
from pebench.cli.suite import requested_plan
from pebench.config import SECTIONS
from pebench.encodings import EncodingSpec, build_encoding, plugins
from pebench.encodings.plugins import Plugin
from pebench.encodings.registry import encoding_cards
from pebench.engine.executors import EXECUTORS
from pebench.models.attention import fastest_kernel
from pebench.models.transformer import Transformer
from pebench.runs.suite import suite_files
from pebench.tasks import TASKS
from tests.data.own_data import book, texts, write_csv, write_images

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("guides/*.md"))


def text_of(*names: str) -> str:
    return "\n".join((DOCS / name).read_text(encoding="utf-8") for name in names)


def code(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


# Guides


def verbs() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    (action,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    yield from action.choices.items()


@pytest.mark.parametrize(("verb", "options"), verbs(), ids=[verb for verb, _ in verbs()])
def test_guides_name_every_verb_and_every_option(verb: str, options: argparse.ArgumentParser) -> None:
    guides = "\n".join(guide.read_text(encoding="utf-8") for guide in GUIDES)
    named = {option for action in options._actions for option in action.option_strings if option.startswith("--")}
    assert f"pebench {verb}" in guides
    assert {option for option in named - {"--help"} if not re.search(rf"{option}\b", guides)} == set()


def test_guides_name_every_setting_executor_and_exit_code() -> None:
    settings = {f"{section}.{field.name}" for section, kind in SECTIONS.items() for field in dataclasses.fields(kind)}
    runs, clusters = text_of("guides/runs.md"), text_of("guides/clusters.md")
    assert {name for name in settings if f"| `{name}` |" not in runs} == set()
    assert {name for name in EXECUTORS if f"| `{name}`" not in clusters} == set()
    assert {code for code in (0, 1, 2, 130) if f"| {code} |" not in runs} == set()


def test_the_guide_on_clusters_names_every_option_of_an_executor() -> None:
    clusters = text_of("guides/clusters.md")
    folder = ROOT / "src" / "pebench" / "engine" / "executors"  # read, as neither Ray nor submitit need be here
    for module, variable in (("ray", "SETTINGS"), ("slurm", "SHARED")):
        found = re.search(rf"^{variable} = \((.*?)\)", (folder / f"{module}.py").read_text(), re.DOTALL | re.MULTILINE)
        assert found is not None
        names = re.findall(r'"(\w+)"', found[1])
        assert len(names) >= 3
        assert {name for name in names if f"`{name}`" not in clusters} == set()


@pytest.mark.parametrize("guide", [guide for guide in GUIDES if code(guide, "bash")], ids=lambda path: path.stem)
def test_every_command_of_a_guide_parses(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "guided.py").write_text(  # a name of its own, as Python keeps modules
        "import pebench\nfrom pebench.tasks import TASKS\nclass MyEncoding(pebench.PositionalEncoding): ...\n"
        "def my_task(*, length: int = 16): return TASKS['text-order']\n"
    )
    rows = [(*row, str(index % 7)) for index, row in enumerate(texts())]
    write_csv(tmp_path / "reviews.csv", rows, ("review", "stars", "score"))
    pairs = [(text, other, label) for (text, label), (other, _) in zip(texts(), reversed(texts()), strict=True)]
    write_csv(tmp_path / "questions.csv", pairs, ("asked", "known", "label"))
    write_images(tmp_path / "photos")
    (tmp_path / "book.txt").write_text(book())
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PEBENCH_OWN_DATA", "{}")
    monkeypatch.chdir(tmp_path)
    offered = {"my-encoding": Plugin("my-encoding", "guided:MyEncoding")}
    monkeypatch.setattr(plugins, "offered", lambda group: (offered if group is plugins.ENCODINGS else {}, {}))
    commands = "\n".join(code(guide, "bash")).replace("\\\n", " ").replace("my_module", "guided")
    for line in commands.splitlines():
        line = line.partition(" #")[0].partition(" > ")[0].rpartition("&& ")[2]
        if line.startswith("pebench"):
            options = parser().parse_args(shlex.split(line)[1:])
            if "pe" in options:
                assert requested_plan(options)


def test_the_python_of_the_guide_on_models_runs() -> None:
    ours, plain, *_ = code(DOCS / "guides" / "own-model.md", "python")
    names: dict[str, Any] = {}
    for snippet in (ours, plain):
        exec(compile(snippet.replace("max_steps=100", "max_steps=2"), "own-model.md", "exec"), names)
    assert names["x"].shape == (8, 128, 64)


def test_the_guide_on_encodings_shows_the_example() -> None:
    snippet, _ = code(DOCS / "guides" / "own-encoding.md", "python")
    example = (ROOT / "examples" / "own_encoding.py").read_text(encoding="utf-8")
    assert snippet == example.partition('"""\n\n')[2]


def test_the_guides_bias_serves_long_texts() -> None:
    """By blocks of queries, with the numbers of all pairs."""
    _, snippet = code(DOCS / "guides" / "own-encoding.md", "python")
    names: dict[str, Any] = {"__name__": "guide"}
    exec(snippet, names)
    model = Transformer(build_encoding(names["DistanceEncoding"], EncodingSpec(8, 2, 1, (1100,), True)))
    content, seen = torch.randn(1, 1100, 8), set[str]()
    by_blocks = model(content)
    with model.using_kernel(lambda q, mask: seen.add(fastest_kernel(q, mask)) or "matmul"):
        torch.testing.assert_close(model(content), by_blocks, rtol=1e-4, atol=1e-5)
    assert "blocks" in seen


def test_the_reference_has_every_public_name() -> None:
    shown = re.findall(r"^::: pebench\..*\.(\w+)$", text_of("reference/api.md"), re.MULTILINE)
    assert sorted(shown) == sorted(set(pebench.__all__) - {"__version__"})


# Generated pages


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator as mkdocs imports it."""
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(str(DOCS))


@pytest.mark.usefixtures("generate")
@pytest.mark.parametrize("name", [name for name, card in encoding_cards().items() if card.declared["formula"]])
def test_every_formula_is_latex_that_becomes_mathml(name: str) -> None:
    from generate.markdown import formula

    shown = formula(encoding_cards()[name].declared["formula"])
    assert shown.count("<math") == shown.count("</math>") >= 1
    assert "\\" not in shown, "a command that latex2mathml does not know"


@pytest.mark.usefixtures("generate")
def test_published_records_are_found_in_files_and_in_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from generate import published

    flat, folder = tmp_path / "core.jsonl", tmp_path / "fusion" / "runs.jsonl"
    folder.parent.mkdir()
    for path in (flat, folder, tmp_path / "unknown.jsonl"):
        path.touch()
    assert set(published.published()) <= {*suite_files()}
    assert "core" in published.published()
    monkeypatch.setattr(published, "RESULTS", tmp_path)
    assert published.published() == {"core": flat, "fusion": folder}


@pytest.mark.usefixtures("generate")
def test_links_of_the_repository_lead_to_pages_of_the_site() -> None:
    from generate.repository import Site

    site = Site({"guides/own-encoding.md", "encodings.md"})
    site.follow()
    text = "[a](../../examples/own_encoding.py) [b](../encodings.md#other-names) [c](../../src/pebench) [d](gone.md)"
    text += " [e](../../.ci/run)"
    assert site.rewritten(text, "guides/own-encoding.md") == (
        "[a](../source/examples/own_encoding.py.md) [b](../encodings.md#other-names) c [d](gone.md) e"
    )
    assert site.rewritten("[a](docs/encodings.md)", "reference/changelog.md") == "[a](../encodings.md)"


# In a browser


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it: a warning is an error."""
    pytest.importorskip("material", reason="needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def show(driver: Any, page: Path, width: int, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.as_uri())


def wait(driver: Any, script: str) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 30).until(lambda driver: driver.execute_script(f"return {script}"))


browser = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
SHOWN = [
    "index.html", "guides/runs.html", "guides/clusters.html", "encodings.html", "encodings/rope.html",
    "encodings/add.html", "encodings/none.html", "tasks/vit-cifar10.html", "results/suites.html", "results/core.html",
    "reference/api.html", "reference/changelog.html",
]  # fmt: skip


class TestBrowser:
    pytestmark = browser

    def test_every_encoding_and_every_task_has_a_page(self, built: Path) -> None:
        assert {path.stem for path in built.glob("encodings/*.html")} == {*encoding_cards()}
        assert {path.stem for path in built.glob("tasks/*.html")} == {*TASKS, "index"}
        missing = {name for name in encoding_cards() if name != "none"} - {
            p.stem for p in built.glob("encodings/*.svg")
        }
        assert missing == set()

    @pytest.mark.parametrize("width", [1280, 390])
    def test_pages_fit_their_window_and_ask_nobody(self, driver: Any, built: Path, width: int) -> None:
        driver.get_log("browser")
        driver.get_log("performance")
        for page in SHOWN:
            show(driver, built / page, width)
            wait(driver, "document.readyState === 'complete'")
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width, page
            assert driver.get_log("browser") == [], page
        events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
        assert len(asked) > len(SHOWN)
        assert {url for url in asked if not url.startswith(("file:", "data:", "about:"))} == set()

    def test_search_finds_an_encoding(self, driver: Any, built: Path) -> None:
        show(driver, built / "guides" / "data.html", 1280)
        driver.find_element("css selector", ".md-search__input").send_keys("rope")
        links = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
        wait(driver, f"{links}.length")
        assert any("/encodings/rope.html" in link for link in driver.execute_script(f"return {links}"))

    def test_light_and_dark_can_be_chosen(self, driver: Any, built: Path) -> None:
        shade = "getComputedStyle(document.body).backgroundColor"
        light = "rgb(255, 255, 255)"
        # A page stores the shade that it shows, some time later, and the next one takes it: cleared before it looks.
        forget = {"source": "localStorage.clear()"}
        added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", forget)
        show(driver, built / "encodings" / "rope.html", 1280, "dark")
        dark = wait(driver, f"{shade} !== '{light}' && {shade}")
        assert max(map(int, re.findall(r"\d+", dark)[:3])) < 80
        show(driver, built / "index.html", 1280, "light")
        assert wait(driver, f"{shade} === '{light}'")
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        driver.execute_script("document.querySelector('label[title=\"Switch to dark\"]').click()")
        assert wait(driver, f"{shade} === '{dark}'")
        driver.execute_script("document.querySelector('label[title=\"Switch to light\"]').click()")
        assert wait(driver, f"{shade} === '{light}'")

    def test_the_table_on_the_front_page_sorts_and_filters(self, driver: Any, built: Path) -> None:
        show(driver, built / "index.html", 1280)
        rows = "[...document.querySelectorAll('.sortable tbody tr')].filter((row) => row.offsetParent)"
        assert driver.execute_script(f"return {rows}.length") == 20
        driver.find_element("css selector", ".filtered input").send_keys("rope text-")
        shown = driver.execute_script(
            f"return {rows}.map((row) => row.cells[0].textContent + row.cells[1].textContent)"
        )
        assert sorted(shown) == ["ropetext-imdb", "ropetext-sst2"]
        button = driver.find_element("css selector", ".sortable th:nth-child(5) button")
        for sign in (1, -1):
            button.click()
            scores = driver.execute_script(f"return {rows}.map((row) => parseFloat(row.cells[4].textContent))")
            assert scores == sorted(scores, key=lambda score: sign * score)
