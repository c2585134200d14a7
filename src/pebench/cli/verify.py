"""``pebench verify``: check every property of an encoding or of a task, and print its card."""

import argparse
import contextlib
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from pebench.config import parse_settings, python_value
from pebench.encodings.options import split_options
from pebench.encodings.plugin_modules import load_object
from pebench.encodings.plugins import EITHER, at_place
from pebench.encodings.registry import encoding_cards, load_encoding, normal_options, plugin_cards, read_encoding
from pebench.errors import UserError, nearest
from pebench.formatting import folded, format_encoding
from pebench.tasks import TASKS, Task, find_task
from pebench.tasks.registry import is_task

EXIT_FAILED = 1


def verify_command(options: argparse.Namespace) -> int:
    """Check an encoding or a task and print its card; return 1 if a property is broken."""
    warnings.filterwarnings("ignore")  # of libraries, between the lines
    if _means_task(options.encoding):
        return _verify_task(options)
    name, chosen = read_options(options.encoding, options.settings)  # before torch is imported, which takes seconds
    load_encoding(name)  # before anything is printed
    from pebench.conformance import SETTINGS, Subject
    from pebench.conformance.card import card

    subject = Subject(name, chosen)
    if not any(map(subject.serves, SETTINGS)):
        raise UserError(f"{options.encoding} can be built for none of our models: {_refusal(subject)}")
    failed = _run(subject)
    facts = {"encoding": _title(options, subject), **card(subject)}
    _print_facts(facts)
    sys.stdout.write("\n" + (f"Broken properties: {failed}.\n" if failed else "Every property holds.\n"))
    return EXIT_FAILED if failed else 0


def _means_task(name: str) -> bool:
    """Return True for the name of a task, and for one that is more like a task's than like an encoding's.

    Raises:
        UserError: For a place at which there is neither.
    """
    base = name.partition("(")[0].rstrip()
    if plugin := at_place(base, EITHER):
        load_object(plugin)
    # An encoding of ours first: to see whether a place is a task imports a module.
    if base in encoding_cards() or is_task(name):
        return base not in encoding_cards()
    plain = not set(".:/") & set(base)
    return plain and not nearest(base, [*encoding_cards(), *plugin_cards()[0]]) and bool(nearest(base, TASKS))


def _verify_task(options: argparse.Namespace) -> int:
    """Check a task and print its card; return 1 if a property is broken."""
    name, own = split_options(options.encoding)
    chosen = own | {name: python_value(value) for name, value in parse_settings(options.settings, "--set").items()}
    full = format_encoding(name, chosen, literal=True)
    find_task(full)  # before torch is imported
    from pebench.conformance.comparisons import BrokenError
    from pebench.conformance.tasks import TASK_PROPERTIES, TaskBench, check_task

    bench = TaskBench(full)
    missing, failed = bench.missing_data(), 0
    for item in TASK_PROPERTIES.values():
        broken, state = None, "-" if item.needs_data and missing else "ok"
        try:
            if state == "ok":
                check_task(item, bench)
        except BrokenError as error:
            broken, state = error, "broken"
        print(folded(f"{state:7} {item.name:18} {item.statement}", hang=8), flush=True)
        if broken:
            failed += 1
            print(folded(f"        expected {broken.expected}\n        got      {broken.got}"))
    if missing:
        print(folded(f"\nThe rest needs the data. {missing}"))
    _print_task(bench.task, _chance(bench, missing))
    held = "Every property that could be checked holds" if missing else "Every property holds"
    sys.stdout.write("\n" + (f"Broken properties: {failed}.\n" if failed else f"{held}.\n"))
    return EXIT_FAILED if failed else 0


def _chance(bench: Any, missing: str) -> float | None:
    """Return the chance level of a task; None without its data, or where they fail, which properties have told."""
    if bench.task.chance is None and not missing:
        with contextlib.suppress(Exception):
            return float(bench.chance)
    return bench.task.chance  # type: ignore[no-any-return]


def _print_task(task: Task, chance: float | None) -> None:
    """Print what a task declares, and its chance level; None if that is not known without the data."""
    facts = {
        "task": f"{task.name}: {task.summary}",
        "kind": f"{task.kind.name}, {'causal' if task.causal else 'bidirectional'}",
        "metric": f"{task.metric.replace('_', ' ')}, {'higher' if task.higher_is_better else 'lower'} is better",
        "chance level": "of the data" if chance is None else task.shown(chance),
        "splits": task.splits,
        "extrapolation": ", ".join(f"{factor:g}x" for factor in task.beyond) or "none",
        "tiers": ", ".join(task.budgets),
        "data": str(task.source or "embedded"),
    }
    _print_facts(facts)


def _print_facts(facts: Mapping[str, str]) -> None:
    width = max(map(len, facts))
    sys.stdout.writelines(["\n", *(f"{folded(f'{title:{width}}  {text}', hang=4)}\n" for title, text in facts.items())])


def read_options(encoding: str, settings: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return an encoding's name and options.

    Args:
        encoding: A name, or a name with options: ``concat(d_p=16)``.
        settings: Further options, ``option=value`` or ``encoding.option=value``, which come first.

    Raises:
        UserError: For an option that the encoding does not have.
    """
    given = {name.removeprefix("encoding."): value for name, value in parse_settings(settings, "--set").items()}
    name, own = read_encoding(encoding)
    return name, normal_options(name, own | {option: python_value(value) for option, value in given.items()})


def _title(options: argparse.Namespace, subject: Any) -> str:
    summary = (subject.maker.__doc__ or "").strip().split("\n")[0].replace("``", "")
    return ", ".join([options.encoding, *options.settings]) + (f": {summary}" if summary else "")


def _refusal(subject: Any) -> str:
    from pebench.conformance import SETTINGS

    try:
        subject.build(SETTINGS[0].spec)
    except ValueError as error:
        return str(error)
    return ""


def _run(subject: Any) -> int:
    """Check every property where it applies and print a line for each; return the number of broken ones."""
    from pebench.conformance import PROPERTIES, Bench, BrokenError, check, checks
    from pebench.conformance.mending import mending_lines

    benches: dict[Any, Bench] = {}
    told: dict[tuple[str, str], str] = {}
    todo, failed = list(checks(subject)), 0
    for name, item in PROPERTIES.items():
        settings, broken = [setting for other, setting in todo if other is item], None
        for setting in settings:
            # Properties share a bench, which builds the models of its setting once.
            bench = benches.setdefault(setting, Bench(subject, setting))
            try:
                check(item, bench)
            except BrokenError as error:
                broken = error
                break
        state = "broken" if broken else f"ok x {len(settings)}" if settings else "-"
        print(folded(f"{state:7} {name:18} {item.statement}", hang=8), flush=True)
        if broken:
            failed += 1
            # One fault often breaks several properties with the same figures; these are printed once.
            first = told.setdefault((broken.expected, broken.got), name)
            why = f"        expected {broken.expected}\n        got      {broken.got}"
            place = f"        in {broken.setting}"
            print(folded(f"{place}\n{why if first == name else f'        as for {first}'}"), flush=True)
            if first == name and (lines := mending_lines(item, bench, broken.failed)):
                print(folded(f"        declare  {' and '.join(lines)} in the class, if that is what it should do"))
    return failed
