"""Bad inputs to every verb: whatever is given, one message, the exit code that is documented, and nothing half-written.

The inputs are drawn from the options that the parsers have, so that a new option is tested without a word here.
"""

import argparse
import contextlib
import dataclasses
import importlib
import io
import itertools
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pebench.cli import main
from pebench.cli.parser import parser
from pebench.runs.suite import Suite

pytestmark = pytest.mark.slow

EXAMPLES = 60
"""Inputs for each verb."""

TEXTS = (
    "", " ", "-", "--", "0", "-1", "1e999", "nan", "NaN", "2**64", str(2**70), "0x10", "1_000", "True", "None", "null",
    "[]", "{}", "()", "a,b", "a=b", "=", "==", "a=", "=b", "train.max_steps=0", "train.max_steps=1e9",
    "train.max_steps=-3", "model.d_model=7", "encoding.base=", "encoding.=1", "encoding.base=nan", ".", "..", "/", "~",
    "../../x", "/nonexistent/x", "/dev/null", "/etc/passwd", "a\nb", "a\tb", "\x1b[31mred", "é", "日本", "\u202e",
    "\ud800", "a|b", "<img onerror=x>", "[x](javascript:1)", "=1+1", "%s", "{0}", "$HOME", "`id`", "x" * 300,
    "x" * 5000, "add(", "add)", "add()", "rope(theta=)", "rope(theta=1", "rope(theta='", "rope(theta=__import__('os'))",
    "lambda: 0", "nowhere:Thing", "os:system", "os.path:join", "pebench:run", ":", "a:b:c", "vit-digits", "add",
    "core", "smoke",
)  # fmt: skip
"""Values that have broken some program: empty, huge, of another kind, special to a shell, a page or Python."""

text = st.one_of(st.sampled_from(TEXTS), st.text(max_size=30))
LEFT_OUT = {"tensorboard"}  # with good arguments it serves for ever
QUICK = {"run": ["--dry-run"]}
"""Arguments that keep a verb from long work where its other arguments happen to be good."""

GOOD = {"run": [["--task", "vit-digits"], ["--suite", "quickstart"], ["--task", "text-order", "--pe", "rope"]]}
"""Arguments that are right, so that what is wrong in the others is looked at."""


def verbs() -> dict[str, argparse.ArgumentParser]:
    (action,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {name: verb for name, verb in action.choices.items() if name not in LEFT_OUT}


def arguments_of(verb: argparse.ArgumentParser) -> st.SearchStrategy[list[str]]:
    """Return arguments of a verb: some of its options with values, some words without."""
    options = []
    for action in verb._actions:
        if isinstance(action, argparse._HelpAction) or "--open" in action.option_strings:  # which opens a browser
            continue
        name = st.sampled_from(action.option_strings) if action.option_strings else st.just("")
        value = st.sampled_from(list(action.choices)) if action.choices else text
        value = st.one_of(value, text) if action.nargs != 0 else st.just("")
        options.append(st.tuples(name, value).map(lambda pair: [word for word in pair if word]))
    some = st.lists(st.one_of(*options), min_size=1, max_size=4)
    # Without a task a run is refused before anything else is looked at.
    first = st.sampled_from([[], [], *GOOD.get(verb.prog.split()[-1], [[]])])
    return st.tuples(first, some).map(lambda parts: parts[0] + [word for part in parts[1] for word in part])


@pytest.fixture(autouse=True)
def _no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"this process would have ended with {code}"))


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work in an empty folder, and leave none behind."""
    folder.mkdir()
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        shutil.rmtree(folder)


def told(words: list[str], files: Mapping[str, str], folder: Path) -> None:
    """Give a command in a folder of its own, and check what it says and leaves.

    Args:
        words: The command's words.
        files: Texts of files that are there, by name.
        folder: Where the folder may be made.
    """
    out, err = io.StringIO(), io.StringIO()
    with in_folder(folder / "work"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for name, content in files.items():
            Path(name).write_text(content, encoding="utf-8", errors="surrogatepass")
        importlib.invalidate_caches()  # the folder of the example before had the same name
        try:
            code = main(words)
        except SystemExit as error:  # of argparse
            code = int(error.code or 0)
        made = {path.name for path in Path().rglob("*") if path.is_file()} - {*files}
    said = err.getvalue()
    assert code in (0, 1, 2)
    assert "Traceback" not in out.getvalue() + said
    assert "please report" not in (out.getvalue() + said).lower()
    if code == 2:
        assert said.count("error: ") >= 1, said
        assert not made, "something is half-written"
        assert len(said) < 2000, "no message repeats more than a line of what was given"


def try_all(inputs: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int) -> int:
    """Check many inputs, the same ones every time; return how many they were."""
    tried = 0

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def one(given: Any) -> None:
        nonlocal tried
        tried += 1
        check(given)

    one()
    return tried


@pytest.mark.parametrize("name", verbs())
def test_bad_input_is_told_in_one_message(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    def check(words: list[str]) -> None:
        told([name, *QUICK.get(name, []), *words], {}, tmp_path)

    record_property("injections", try_all(arguments_of(verbs()[name]), check, EXAMPLES))


SUITE: dict[str, Any] = {
    "name": "mine", "question": "Why?", "tasks": ["vit-digits"], "encodings": ["add", "rope"], "seeds": 1,
    "tier": "smoke",
}  # fmt: skip
"""Fields of a suite that is right."""

KINDS: list[Any] = [None, True, 0, -1, 3, 10**9, 10**30, 2.5, math.nan, math.inf, (), [], {}, [None], [[1]], [0, 0]]
NAMES = ["model.d_model", "train.max_steps", "encoding.base", "vit-digits", "accuracy"]
UNDER: list[Any] = [None, 7, -1, math.nan, "x", [], [1, 2], [None], {"vit-digits": [8]}]
ODD = st.one_of(
    text,
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(UNDER), min_size=1, max_size=2),
    st.lists(text, max_size=3),
    st.dictionaries(text, text, max_size=2),
)
"""Values of other kinds, and of the right kind that cannot work."""


@st.composite
def changed(draw: st.DrawFn, code: str) -> str:
    """Return a program that was cut short, or has a letter changed."""
    place = draw(st.integers(0, len(code) - 1))
    if draw(st.booleans()):
        return code[:place]
    return code[:place] + draw(st.characters()) + code[place + 1 :]


def suite_code(values: Mapping[str, Any]) -> str:
    return f"import pebench\nnan, inf = float('nan'), float('inf')\nSUITE = pebench.Suite(**{dict(values)!r})\n"


SUITE_FILES = st.one_of(
    st.tuples(st.sampled_from([f.name for f in dataclasses.fields(Suite)]), ODD).map(
        lambda pair: suite_code({**SUITE, pair[0]: pair[1]})
    ),
    changed(suite_code(SUITE)),
    st.builds(lambda raised: f"import os, sys\n{raised}\n", st.deferred(lambda: ENDINGS)),
)


def test_a_bad_suite_file_is_told_in_one_message(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    words = ["run", "--suite", "mine.py", "--device", "cpu", "--dry-run"]
    tried = try_all(SUITE_FILES, lambda code: told(words, {"mine.py": code}, tmp_path), 5 * EXAMPLES)
    record_property("injections", tried)


ENDINGS = st.one_of(
    st.tuples(
        st.sampled_from(
            ["ValueError", "KeyError", "OSError", "MemoryError", "SystemExit", "UserWarning", "UnicodeError"]
        ),
        text,
    ).map(lambda pair: f"raise {pair[0]}({pair[1]!r})"),
    st.sampled_from(
        ["sys.exit()", "sys.exit(3)", "os._exit(3)", "1 / 0", "import nowhere_at_all", "raise 3", "return"]
    ),
)
"""Lines that end what they stand in."""

PLUGIN = """import os, sys
from dataclasses import replace
import torch
from torch import nn
from pebench import PositionalEncoding
from pebench.tasks import TASKS
{first}
class Mine({base}):
    blind = True
    {attribute}
    def __init__(self, spec{options}):
        super().__init__(spec)
        {last}
task = {task}
"""
RIGHT = {
    "first": "", "base": "PositionalEncoding", "attribute": "", "options": "", "last": "pass",
    "task": "replace(TASKS['vit-digits'], name='task')",
}  # fmt: skip
WRONG = {
    "first": ENDINGS,
    "last": ENDINGS,
    "base": st.sampled_from(["", "nn.Module", "dict", "int", "Nowhere", "PositionalEncoding, int", "3"]),
    "attribute": st.sampled_from([
        "blind = 3", "cite = 3", "cite = ('x',)", "name = 3", "serves = None", "add = None", "prepare = 3",
        "parameters = 3", "family = []",
    ]),
    "options": st.sampled_from([", x", ", x=3", ", *, x", ", *, x=None", ", *, x=[]", ", **x", ", *x"]),
    "task": st.sampled_from([
        "3", "None", "lambda: 3", "lambda x: 3", "lambda *, x=1: TASKS", "TASKS",
        *(f"replace(TASKS['vit-digits'], {changed})" for changed in (
            "data='nowhere:Thing'", "data=3", "metric='x'", "budgets={}", "num_classes=0", "name='a b'",
        )),
    ]),
}  # fmt: skip
"""What may be wrong at each place of the program."""


def test_a_bad_plug_in_is_told_in_one_message(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    names = (f"plug_in_of_a_stranger_{number}" for number in itertools.count())  # each is imported once
    wrong = st.one_of(*(st.tuples(st.just(place), values) for place, values in WRONG.items()))
    written = wrong.map(lambda pair: PLUGIN.format(**{**RIGHT, pair[0]: pair[1]}))
    files = st.one_of(written, changed(PLUGIN.format(**RIGHT)))

    def check(given: tuple[str, str]) -> None:
        code, part = given
        name = next(names)
        asked = {"encoding": ["--task", "vit-digits", "--pe", f"{name}:Mine"], "task": ["--task", f"{name}:task"]}
        words = ["run", *asked[part], "--tier", "smoke", "--seeds", "1", "--device", "cpu", "--dry-run"]
        told(words, {f"{name}.py": code}, tmp_path)

    inputs = st.tuples(files, st.sampled_from(["encoding", "encoding", "task"]))
    record_property("injections", try_all(inputs, check, 5 * EXAMPLES))
