"""docs/architecture.md and benchmarks/README.md name what exists, in the order of the import contract."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from pebench.benchmarks import grids, rules
from pebench.cli.parser import parser
from pebench.runs.suite import Suite

ROOT = Path(__file__).parents[2]
PAGES = ["docs/architecture.md", "benchmarks/README.md"]
ARCHITECTURE, PROTOCOL = ((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
NAMED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", ARCHITECTURE, flags=re.DOTALL))
PATHS = [text for text in NAMED if re.fullmatch(r"[\w./-]+(/|\.\w+)", text) and ("/" in text or text.endswith(".toml"))]
OBJECTS = [text for text in NAMED if re.fullmatch(r"pebench[\w.]*:[\w.]+", text)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short(page: str) -> None:
    prose = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(prose.split()) < 700


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_it_names_exists(path: str) -> None:
    assert (ROOT / path).exists()
    assert (ROOT / path).is_dir() == path.endswith("/")


@pytest.mark.parametrize("name", OBJECTS)
def test_a_function_that_it_names_exists(name: str) -> None:
    module, _, attributes = name.partition(":")
    found = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)


def test_it_names_enough() -> None:
    assert len(PATHS) > 15
    assert len(OBJECTS) > 15


def test_packages_stand_in_the_order_of_the_import_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    (block,) = re.findall(r"```text\n(.*?)```", ARCHITECTURE, re.DOTALL)
    drawn = [re.split(r"  +", line)[0] for line in block.splitlines()]
    assert drawn == [layer.replace("pebench.", "") for layer in contract["layers"]]


def test_the_suite_of_the_protocol_is_one() -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PROTOCOL, re.DOTALL)
    names: dict[str, object] = {}
    exec(snippet, names)
    suite = names["SUITE"]
    assert isinstance(suite, Suite)
    assert len(suite.kinds()) == 3
    assert suite.decision.endswith(rules.EDGE_OF_GRID)
    runs = len(grids.CIFAR10_RATES) * 3 + len(suite.tested_seeds) * 3
    assert suite.cost.startswith(f"{runs} runs")


def test_the_commands_of_the_protocol_parse() -> None:
    (block,) = re.findall(r"```bash\n(.*?)```", PROTOCOL, re.DOTALL)
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    assert [command[0] for command in commands] == ["pebench", "pebench", "make", "make", "pebench"]
    for program, *arguments in commands:
        if program == "pebench":
            parser().parse_args(arguments)
        else:
            assert f"\n{arguments[0]}:  ##" in (ROOT / "Makefile").read_text(encoding="utf-8")
