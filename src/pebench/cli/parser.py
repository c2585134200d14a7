"""The parser of the command line. Each verb's options are in `pebench.cli.verbs` and `pebench.cli.run_options`."""

import argparse
import textwrap
from pathlib import Path
from typing import Any, NoReturn

from pebench import __version__
from pebench.cli.run_options import add_run
from pebench.cli.verbs import add_verbs
from pebench.errors import UserError, nearest
from pebench.formatting import quoted

OTHER_OPTIONS = {
    "--encoding": "--pe NAME", "--epochs": "--set train.max_steps=N", "--steps": "--set train.max_steps=N",
    "--lr": "--set train.learning_rate=X", "--learning-rate": "--set train.learning_rate=X",
    "--batch-size": "--set train.batch_size=N", "--output": "--out DIR",
    "--gpus": "--devices N",
}  # fmt: skip
"""Options of other programs, and those of ``pebench run`` that mean the same."""


OTHER_VALUES = {"gpu": "cuda", "train": "run", "encodings": "list", "tasks": "list", "suites": "list"}
"""Verbs and values that other programs have or that come to mind, and those that mean the same here."""


class Help(argparse.HelpFormatter):
    """Breaks no line of help inside of a name such as --no-published."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return textwrap.indent("\n".join(self._split_lines(text, width - len(indent))), indent)


def _path(text: str) -> Path:
    """Return a path; an empty one, as an unset variable of a shell gives, would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got an empty text")
    return Path(text)


class Parser(argparse.ArgumentParser):
    """Raises mistakes as `UserError`, and reports an unknown option by the verb that it was given to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=Help)
        self.register("type", Path, _path)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a verb or a value that is none of those that there are, with the nearest."""
        if action.choices is None or value in action.choices:
            return
        known = list(action.choices)
        near = other if (other := OTHER_VALUES.get(value)) in known else nearest(value, known)
        hint = f" Did you mean {near!r}?" if near else ""
        kind = action.option_strings[0] if action.option_strings else str(action.metavar).lower()
        raise UserError(f"unknown {kind} {quoted(value)}.{hint} Valid: {', '.join(known)}. See: {self.prog} --help")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse; what is left over is an error here, not only at the top, which has no option to suggest."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unknown argument {left[0]!r}.{self._hint(left[0])}")
        return found, left

    def _hint(self, argument: str) -> str:
        """Return what an unknown argument may have meant, as text that ends the message."""
        name, running = argument.partition("=")[0], "--task" in self._option_string_actions  # only `run` has --task
        if not name.startswith("-"):
            if not running:
                return ""
            from pebench.tasks import TASKS

            if name in TASKS:
                return f" A task is named by --task {name}."
            return " An option with several values is repeated: --pe add --pe rope, --seed 0 --seed 1."
        near = (OTHER_OPTIONS.get(name) if running else None) or nearest(name, self._option_string_actions)
        return f" Did you mean {near}?" if near else ""

    def error(self, message: str) -> NoReturn:
        """Raise a mistake.

        Raises:
            UserError: With the message, and the command that helps.
        """
        raise UserError(f"{message.rstrip('.')}{'' if message.endswith('?') else '.'} See: {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line. Its result has an ``action``: module and name of the verb's function."""
    top = Parser(prog="pebench", description="A benchmark of positional encodings for transformers.")
    top.add_argument("--version", action="version", version=f"pebench {__version__}")
    top.set_defaults(action=("start", "start_command"))  # what a verb replaces
    verbs = top.add_subparsers(metavar="COMMAND", parser_class=Parser)
    add_run(verbs)
    add_verbs(verbs)
    return top
