"""Import paths of earlier versions work for one release, and warn once, at the line of the user's file."""

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from pebench.moved import MOVED, RENAMED
from pebench.runs.records import read_records

NAMES = {
    "pebench.cards": "EncodingCard read_card",
    "pebench.costs": "Cost check_costs cost matched",
    "pebench.effects": "Effect effects",
    "pebench.modules": "LanguageModel TextClassifier ViT",
    "pebench.modules.base": "Classifier SequenceModule",
    "pebench.modules.language_model": "LanguageModel",
    "pebench.modules.text_classifier": "TextClassifier",
    "pebench.modules.vit": "ViT",
    "pebench.plugins": "Plugin offered",
    "pebench.records": "Record find_record merge read_config read_records write_jsonl write_record",
    "pebench.registry": "encoding_card encoding_cards load_encoding parse_encoding register",
    "pebench.runner": "build run",
    "pebench.settings": "override parse_settings setting_names",
    "pebench.suites": "MARGIN Suite load_suite serves suite_files",
}
"""Old paths, with the names that users' files import from them."""


def new_path(old: str) -> str:
    top = ".".join(old.split(".")[:2])
    return old.replace(top, MOVED[top], 1)


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process in which nothing is imported yet."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)


def test_every_path_that_has_moved_is_tested() -> None:
    assert {name for name in NAMES if name.count(".") == 1} == {*MOVED}
    assert {*RENAMED} <= {*NAMES}


@pytest.mark.parametrize("old", NAMES)
def test_an_old_path_hands_on_the_names_of_the_new_module(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    top = ".".join(old.split(".")[:2])
    for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
        monkeypatch.delitem(sys.modules, name)
    message = rf"{top} has moved: import {MOVED[top]} instead\. The old name will be gone in the next release\."
    with pytest.warns(FutureWarning, match=message) as caught:
        module = importlib.import_module(old)
    assert len(caught) == 1
    new = importlib.import_module(new_path(old))
    for name in NAMES[old].split():
        now = name if hasattr(new, name) else RENAMED[old][name]
        assert getattr(module, name) is getattr(new, now)
        assert now in module.__all__


def test_an_import_of_an_old_path_leaves_the_new_module_as_it_is() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        from pebench.suites import Suite
    new = importlib.import_module("pebench.runs.suite")
    assert new.Suite is Suite
    assert new.__name__ == new.__spec__.name == "pebench.runs.suite"


@pytest.mark.parametrize("name", ["pebench.suites.nowhere", "pebench.nowhere", "pebench.modules.nowhere"])
def test_a_path_that_never_was_is_not_found(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with pytest.raises(ModuleNotFoundError, match=name.replace(".", r"\.")):
            importlib.import_module(name)


def test_a_name_that_never_was_is_not_found() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with pytest.raises(ImportError, match="cannot import name 'Sweet'"):
            from pebench.suites import Sweet  # noqa: F401


@pytest.mark.parametrize(
    "line", ["from pebench.suites import Suite", "import pebench.suites as suites", "from pebench.suites import *"]
)
def test_the_warning_is_shown_once_at_the_users_line(line: str, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(f"import helper\n\n{line}\nfrom pebench.suites import load_suite\n")
    (tmp_path / "helper.py").write_text("")
    done = python(str(script), folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("Warning") == 1
    assert f"{script}:3: FutureWarning: pebench.suites has moved: import pebench.runs.suite instead." in done.stderr


@pytest.mark.slow
def test_a_submodule_warns_once_with_its_package(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from pebench.modules.vit import ViT\nfrom pebench.modules.text_classifier import TextClassifier\n"
        "import pebench.models\nassert ViT is pebench.models.ViT\n"
    )
    done = python(str(script), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("FutureWarning") == 1
    assert f"{script}:1: FutureWarning: pebench.modules has moved: import pebench.models instead." in done.stderr


@pytest.mark.slow
def test_a_suite_file_and_an_encoding_with_old_paths_run(tmp_path: Path) -> None:
    suite = [
        "from pebench.suites import Suite", "",
        "SUITE = Suite('mine', '?', ['vit-digits'], ['my_module:Mine'], 1, 'smoke')",
    ]  # fmt: skip
    encoding = [
        "import pebench", "from pebench.registry import register", "", "@register('mine')",
        "class Mine(pebench.PositionalEncoding):", '    """Mine."""', "    blind = True",
    ]  # fmt: skip
    (tmp_path / "my_suite.py").write_text("\n".join(suite))
    (tmp_path / "my_module.py").write_text("\n".join(encoding))
    options = ["--executor", "sequential", "--out", "runs"]
    done = python("-m", "pebench", "run", "--suite", "my_suite.py", *options, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("FutureWarning") == 2
    assert "my_suite.py:1: FutureWarning: pebench.suites has moved" in done.stderr
    assert "my_module.py:2: FutureWarning: pebench.registry has moved" in done.stderr
    (record,) = read_records(tmp_path / "runs")
    assert record.ok
