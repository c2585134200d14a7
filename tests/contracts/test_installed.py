"""Paths and dotted names that a move breaks silently hold, from a checkout and from an installed package.

The installed package is laid out as pyproject.toml has a wheel be; where hatchling is there, a wheel is built too.
"""

import ast
import hashlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pebench.cli import main

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pebench"
FACTS = """
import json, sys
from multiprocessing import forkserver
from pathlib import Path

import pebench
from pebench.encodings.sources import find_source
from pebench.encodings.registry import encoding_cards
from pebench.engine.executors.server import server
from pebench.results.citations import bibliography
from pebench.runs.suite import load_suite, shipped, suite_files
from pebench.training import environment

server()
print(json.dumps({
    "package": str(Path(pebench.__file__).parent),
    "code": environment.code(),
    "commit": environment.commit(),
    "cards": {name: card.module for name, card in encoding_cards().items()},
    "sources": {name: str(find_source(name)) for name in json.loads(sys.argv[1])},
    "shipped": {name: str(shipped(name)) for name in ("benchmarks", "CITATION.cff")},
    "suites": {name: load_suite(name).question for name in suite_files()},
    "bibliography": sorted(bibliography()),
    "preloaded": forkserver._forkserver._preload_modules,
}))
"""
"""Prints whatever of pebench is found by a path or by a dotted name."""

SOURCES = [
    "pebench", "pebench.config", "pebench.encodings.base", "pebench.encodings.rope", "pebench.models.vit",
    "pebench.runs.suite.files",
]  # fmt: skip


def modules(package: Path) -> list[Path]:
    """The source files of a package; the suites in an installed one are none."""
    return sorted({*package.rglob("*.py")} - {*(package / "benchmarks").rglob("*")})


def run(*arguments: str, package: Path, folder: Path) -> str:
    """What Python prints with this package, in a folder that has none."""
    environment = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel installs it, by pyproject.toml."""
    site = tmp_path_factory.mktemp("site")
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    ignore = shutil.ignore_patterns("__pycache__")
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, site / Path(package).name, ignore=ignore)
    for source, target in wheel["force-include"].items():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, site / target, ignore=ignore)
        else:
            shutil.copy(ROOT / source, site / target)
    return site / "pebench"


@pytest.fixture(scope="module", params=["checkout", "installed"])
def package(request: pytest.FixtureRequest, installed: Path) -> Path:
    return PACKAGE if request.param == "checkout" else installed


@pytest.fixture(scope="module")
def facts(package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What pebench finds of itself, in a process that imports this package."""
    text = run("-c", FACTS, json.dumps(SOURCES), package=package, folder=tmp_path_factory.mktemp("elsewhere"))
    found: dict[str, Any] = json.loads(text)
    assert found["package"] == str(package)
    return found


@pytest.mark.slow
def test_the_digest_of_the_code_is_of_every_module_of_the_package(facts: dict[str, Any]) -> None:
    """The same one from a checkout and a wheel, as runs are the same."""
    digest = hashlib.sha256()
    for path in modules(PACKAGE):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    assert {path.parent.name for path in modules(PACKAGE)} > {"models", "encodings", "data", "training", "pebench"}
    assert facts["code"] == digest.hexdigest()


def test_the_commit_is_that_of_the_checkout_alone(facts: dict[str, Any], package: Path) -> None:
    if package != PACKAGE or not (ROOT / ".git").exists():
        assert facts["commit"] is None
        return
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert head.stdout.startswith(facts["commit"].partition("+")[0])
    assert len(facts["commit"].partition("+")[0]) >= 10


def test_every_encoding_is_found_by_its_file(facts: dict[str, Any], package: Path) -> None:
    registered = set()
    for path in (PACKAGE / "encodings").glob("*.py"):
        registered |= set(re.findall(r'^@register\("([\w-]+)"\)', path.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(registered) > 40
    assert {*facts["cards"]} == registered
    for module in facts["cards"].values():
        assert package.parent.joinpath(*module.split(".")).with_suffix(".py").is_file()


def test_a_source_is_found_without_an_import(facts: dict[str, Any], package: Path) -> None:
    for module, source in facts["sources"].items():
        assert Path(source).is_relative_to(package), module
        place = package.parent.joinpath(*module.split("."))
        assert Path(source) in (place.with_suffix(".py"), place / "__init__.py")
        assert Path(source).is_file()


def test_what_ships_with_the_package_is_found(facts: dict[str, Any], package: Path) -> None:
    folder = package if package != PACKAGE else ROOT
    assert facts["shipped"] == {name: str(folder / name) for name in ("benchmarks", "CITATION.cff")}
    assert all(Path(path).exists() for path in facts["shipped"].values())


def test_every_suite_is_found_and_loaded(facts: dict[str, Any]) -> None:
    assert {*facts["suites"]} == {path.stem for path in (ROOT / "benchmarks" / "suites").glob("*/*.py")}
    assert all(facts["suites"].values())


def test_the_bibliography_is_found(facts: dict[str, Any]) -> None:
    (file,) = PACKAGE.rglob("references.bib")
    keys = re.findall(r"^@\w+\{([\w:-]+),", file.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(keys) > 20
    assert {*keys} < {*facts["bibliography"]}


def test_the_server_preloads_a_module_that_exists(facts: dict[str, Any]) -> None:
    assert facts["preloaded"]
    for name in facts["preloaded"]:
        assert importlib.util.find_spec(name), name


@pytest.mark.parametrize("words", [["list", "suites"], ["cite"], ["list", "encodings"]], ids=" ".join)
def test_the_command_line_of_an_installed_package_works_anywhere(
    words: list[str], installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run("-m", "pebench", *words, package=installed, folder=tmp_path)
    assert main(words) == 0
    assert found.splitlines()[:3] == capsys.readouterr().out.splitlines()[:3]


DOTTED = re.compile(r"pebench(\.\w+)+(:\w+)?")


def dotted_strings() -> list[str]:
    """Every string of the package that names one of its modules, or something in it."""
    found = set()
    for path in modules(PACKAGE):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
                found.add(node.value)
    return sorted(found)


@pytest.mark.parametrize("text", dotted_strings())
def test_a_dotted_string_names_something_that_exists(text: str) -> None:
    module, _, name = text.partition(":")
    if name:
        assert hasattr(importlib.import_module(module), name)
    else:
        assert importlib.util.find_spec(module)  # which imports no more than the packages around it


def test_dotted_strings_are_found_where_tasks_and_the_package_have_them() -> None:
    expected = {
        "pebench.models.vit:ViT",
        "pebench.data.images:Digits",
        "pebench.engine.executors.preload",
        "pebench.models",
    }
    assert expected <= {*dotted_strings()}


@pytest.mark.slow
def test_a_wheel_has_the_files_that_were_laid_out(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="building a wheel needs hatchling")
    code = f"from hatchling.build import build_wheel; build_wheel({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=600)
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    laid_out = {path.relative_to(installed.parent).as_posix() for path in installed.rglob("*") if path.is_file()}
    assert names == laid_out
