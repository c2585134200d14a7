"""``pebench new``: a file to fill in for an encoding or a task of one's own, with its test."""

import argparse
import importlib.util
import keyword
import sys
from pathlib import Path

from pebench.cli.templates import ENCODING, ENCODING_TEST, TASK, TASK_TEST
from pebench.errors import UserError
from pebench.formatting import folded, quoted

TEMPLATES = {"encoding": (ENCODING, ENCODING_TEST), "task": (TASK, TASK_TEST)}


def new_command(options: argparse.Namespace) -> int:
    """Write the two files in this folder, and print the commands that check and run them."""
    name, kind = options.name, options.kind
    _check_name(name)
    files = [Path(f"{name}.py"), Path(f"test_{name}.py")]
    if there := [str(file) for file in files if file.exists()]:
        raise UserError(f"expected a new name, but there is already {' and '.join(there)}; nothing is overwritten.")
    words = {"NAME": name, "CLASS": "".join(part.capitalize() for part in name.split("_")), "TITLE": _title(name)}
    for file, text in zip(files, TEMPLATES[kind], strict=True):
        for word, value in words.items():
            text = text.replace(f"<{word}>", value)
        file.write_text(text, encoding="utf-8")
    place = f"{name}:{words['CLASS']}" if kind == "encoding" else f"{name}:{name}"
    run = f"--task vit-digits --pe add --pe {place}" if kind == "encoding" else f"--task {place} --pe add --pe none"
    told = (
        f"{files[0]} and {files[1]} are written, and work as they are. Fill in the first, then:\n"
        f"  pebench verify {place}\n  pytest {files[1]}\n  pebench run {run}\n"
    )
    sys.stdout.write(folded(told))
    return 0


def _title(name: str) -> str:
    return name.replace("_", "-")


def _check_name(name: str) -> None:
    """Refuse a name that no module of one's own can have.

    Raises:
        UserError: With what was expected.
    """
    if not name.isidentifier() or not name.isascii() or name.lower() != name:
        raise UserError(
            f"expected a name for a Python file, of small letters, digits and _, as in my_encoding; got {quoted(name)}."
        )
    if keyword.iskeyword(name):
        raise UserError(f"{name!r} is a keyword of Python, which cannot name a file to import: take another.")
    try:
        taken = importlib.util.find_spec(name) is not None and not Path(f"{name}.py").exists()
    except ValueError:  # of a module that is loaded in an odd way
        taken = True
    if taken:
        raise UserError(f"{name!r} is the name of an installed module, which would be imported instead: take another.")
