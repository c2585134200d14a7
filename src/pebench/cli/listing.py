"""``pebench list``: tasks, encodings, suites or executors, a line each."""

import argparse
import sys

from pebench.errors import UserError, unknown_name
from pebench.formatting import folded


def list_command(options: argparse.Namespace) -> int:
    """Print what there is of one kind."""
    rows: list[tuple[str, str]]
    if options.what == "encodings":
        return _list_encodings(options.format)
    if options.what == "tasks":
        rows = _tasks()
    elif options.what == "suites":
        from pebench.runs.suite import load_suite, suite_files

        rows = [(name, f"{(suite := load_suite(name)).question} ({suite.cost})") for name in suite_files()]
    elif options.what == "executors":
        from pebench.engine.executors import EXECUTORS

        rows = list(EXECUTORS.items())
    else:
        raise unknown_name("list", options.what, ("tasks", "encodings", "suites", "executors"))
    if options.format != "text":
        raise UserError(f"--format is for encodings, which have cards; {options.what} are listed as text.")
    width = max(len(name) for name, _ in rows)
    sys.stdout.writelines(f"{folded(f'{name:{width}}  {text}', hang=4)}\n" for name, text in rows)
    return 0


def _tasks() -> list[tuple[str, str]]:
    """Return every task by name, and at the end those of installed packages that cannot be used."""
    from pebench.tasks.registry import TASKS, plugin_tasks

    others, problems = plugin_tasks()
    tasks = [*TASKS.values(), *others.values()]
    rows = [(task.name, f"{task.summary} [{', '.join(task.budgets)}]") for task in tasks]
    return rows + [("cannot be used:", problem) for problem in problems]


def _list_encodings(form: str) -> int:
    """Print the encodings as text or Markdown."""
    from pebench.cli import catalogue

    formats = {"text": catalogue.listing, "markdown": catalogue.markdown, "overview": catalogue.overview}
    if form not in formats:
        raise unknown_name("format", form, formats)
    text = formats[form]()
    sys.stdout.write(folded(text) if form == "text" else text)
    return 0
