"""The suites that come with pebench: what they declare stays as it was, wherever they are loaded from."""

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from pebench.runs.suite import Suite, load_suite, suite_files

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "suites.json"


def digest(suite: Suite) -> str:
    """A hash of everything that a suite declares; what is left at its default does not count."""
    declared = {}
    for field in fields(suite):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        value = getattr(suite, field.name)
        if value != default:
            declared[field.name] = value
    return hashlib.sha256(repr(declared).encode()).hexdigest()[:16]


@pytest.mark.parametrize(("name", "expected"), json.loads(GOLDEN.read_text()).items())
def test_a_suite_declares_what_it_declared(name: str, expected: str) -> None:
    """Where a change to a suite, `grids.py` or `rules.py` is meant: `python -m tests.benchmarks.test_suites`."""
    assert digest(load_suite(name)) == expected


def test_no_sentence_is_pasted_into_many_suites() -> None:
    """`benchmarks/rules.py` names those that three suites or more share."""
    found: Counter[str] = Counter()
    for file in suite_files().values():
        texts = [node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)]
        sentences = {s for text in texts if isinstance(text, str) for s in re.split(r"(?<=[.!?]) ", text)}
        found.update(sentence for sentence in sentences if len(sentence) > 60)
    assert [sentence for sentence, count in found.items() if count > 2] == []


def test_suites_load_from_an_installed_package(tmp_path: Path) -> None:
    package = tmp_path / "pebench"
    shutil.copytree(ROOT / "src" / "pebench", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "benchmarks", package / "benchmarks")  # as pyproject.toml has a wheel do
    code = (
        "from pebench.benchmarks import grids; from pebench.runs.suite import load_suite;"
        "assert load_suite('core').select['train.learning_rate'] is grids.CORE_RATES; print(grids.__file__)"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert asked.stdout.strip() == str(package / "benchmarks" / "grids.py"), asked.stderr


if __name__ == "__main__":
    digests = {name: digest(load_suite(name)) for name in suite_files()}
    GOLDEN.write_text(json.dumps(digests, indent=1) + "\n")
