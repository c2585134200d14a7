"""Bad inputs to every verb: whatever is given, one message, the exit code that is documented, and nothing half-written.

The inputs are drawn from the options that the parsers have, so that a new option is tested without a word here.
"""

import argparse
import contextlib
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pebench.cli import main
from pebench.cli.parser import parser

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


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work in an empty folder, and leave none behind."""
    folder.mkdir()
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", verbs())
def test_bad_input_is_told_in_one_message(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    tried = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(arguments_of(verbs()[name]))
    def check(words: list[str]) -> None:
        nonlocal tried
        tried += 1
        out, err = io.StringIO(), io.StringIO()
        with in_folder(tmp_path / "work"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([name, *QUICK.get(name, []), *words])
            except SystemExit as error:  # of argparse
                code = int(error.code or 0)
            made = [path for path in Path().rglob("*") if path.is_file()]
            assert code in (0, 1, 2)
            said = err.getvalue()
            assert "Traceback" not in out.getvalue() + said
            assert "please report" not in (out.getvalue() + said).lower()
            if code == 2:
                assert said.count("error: ") >= 1, said
                assert not made, "something is half-written"
                assert len(said) < 2000, "no message repeats more than a line of what was given"

    check()
    record_property("injections", tried)
