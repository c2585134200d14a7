"""The checks of a suite: each rule is a function that yields its mistakes, so that all are reported at once."""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pebench.config import REFERENCE_ENCODING, REGIMES, SECTIONS, SELECTION_SEED, RunConfig, check_seed, override
from pebench.errors import UserError, unknown_name
from pebench.formatting import quoted
from pebench.runs.suite.encodings import Encoding, option_names
from pebench.runs.suite.values import can_go_on, combinations, is_list, type_text, utc
from pebench.tasks import find_task

MOST_SEEDS = 1_000_000
"""Largest number of seeds of a row: a plan of more would fill the memory before anything is said."""

EXAMPLES = {"tasks": ["vit-digits"], "encodings": ["add", "rope"], "remarks": ["One sentence."]}
"""Values of fields that are lists, for the message on a value that is none."""


@contextlib.contextmanager
def collected(mistakes: list[str]) -> Iterator[None]:
    """Add the message of a `UserError` to a list and go on, so that all mistakes are reported at once."""
    try:
        yield
    except UserError as error:
        mistakes.append(str(error))


def type_mistake(name: str, kind: Any, value: Any) -> str:
    """Return what is said of a field whose value has another type.

    Args:
        name: Name of the field.
        kind: Type that it is annotated with.
        value: The value.
    """
    if name in EXAMPLES and not is_list(value):
        example = [value] if isinstance(value, str) else EXAMPLES[name]
        return f"{name} expects a list, as in {quoted(example)}, got {quoted(value)}."
    if name == "encodings":
        return (
            "encodings expects names, such as 'rope', 'rope(theta=500.0)' or, of a class in a module of yours, "
            f"'my_module:MyEncoding', and pairs of a name and options, got {quoted(value)}."
        )
    return f"{name} must be {type_text(kind)}, got {quoted(value)}."


def check_name(name: str) -> Iterator[str]:
    """Yield a mistake if a suite has no name, or one that no file can have."""
    if not name.strip() or not name.isprintable() or {*name} & {*"/\\"}:
        yield f"name expects text without slashes, such as 'depth', which files may be named by, got {quoted(name)}."


def check_rows(tasks: Sequence[str], encodings: Sequence[Encoding]) -> Iterator[str]:
    """Yield a mistake if there is no task, or no encoding."""
    for name, values in (("tasks", tasks), ("encodings", encodings)):
        if not values:
            yield f"{name} expects at least one, as in {EXAMPLES[name]}, got {quoted(values)}."


def check_date(declared: str) -> Iterator[str]:
    """Yield a mistake if the time of the declaration is none."""
    try:
        utc(declared)
    except ValueError:
        yield f"declared must be a date and time, UTC, such as '2026-11-21 21:53', got {quoted(declared)}."


def check_tasks(purpose: str, value: Any, tasks: Sequence[str]) -> Iterator[str]:
    """Yield a mistake if a value is given by task, and one of its tasks is not in the suite."""
    if isinstance(value, Mapping) and (strangers := sorted(value.keys() - {*tasks})):
        yield str(unknown_name(f"task to {purpose} on", strangers[0], tasks))


def check_settings(settings: Mapping[str, Any], tasks: Sequence[str], encodings: Iterable[Encoding]) -> Iterator[str]:
    """Yield settings for tasks and options of encodings that are not in the suite."""
    # An option counts if any row has it: `--set encoding.theta=50` is for those rows that know it.
    known = {f"encoding.{option}" for encoding in encodings for option in option_names(encoding)}
    for setting, value in settings.items():
        if setting in SECTIONS and isinstance(value, Mapping):
            dotted = f"{setting}.{next(iter(value), '...')}"
            yield f"settings expects dotted names, such as {dotted!r}, got {setting!r} with names of its own."
            continue
        yield from check_tasks(f"set {setting}", value, tasks)
        if setting.startswith("encoding.") and setting not in known:
            valid = known or {"(none: these encodings have no options)"}
            yield str(unknown_name("encoding option", setting, valid))


def check_variation(
    vary: Mapping[str, Any], settings: Iterable[str], select: Iterable[str], regime: str
) -> Iterator[str]:
    """Yield settings that cannot vary between tables."""
    taken = {*settings, *select}
    for name, values in vary.items():
        if name.startswith("encoding."):
            yield f"{name} cannot vary; give each value a row of its own: --pe 'NAME(option=value)'."
        elif name in taken:
            yield f"{name} cannot vary and be set or selected too."
        elif name == "model.d_ff" and regime != "width":
            yield f"model.d_ff cannot vary: it matches {regime}."
        if not is_list(values) or not values:
            yield f"the values that {name} varies over must be a list, got {quoted(values)}."


def check_along(
    along: Mapping[str, Mapping[Any, Mapping[str, Any]]],
    vary: Iterable[str],
    settings: Iterable[str],
    select: Iterable[str],
) -> Iterator[str]:
    """Yield settings that go along with nothing that varies, or are chosen elsewhere too."""
    taken = {*vary, *settings, *select}
    for name, by_value in along.items():
        if name not in vary:
            yield f"settings go along with {name}, which does not vary."
        for other in sorted({*itertools.chain.from_iterable(by_value.values())} & taken):
            yield f"{other} cannot go along with {name} and vary, be set or be selected too."


def check_regime(regime: str) -> Iterator[str]:
    """Yield a mistake if there is no such regime."""
    if regime not in REGIMES:
        yield str(unknown_name("regime", regime, REGIMES))


def check_tested_seeds(seeds: Sequence[int], given: Any) -> Iterator[str]:
    """Yield a mistake if there are no seeds to test, or one is out of range.

    Args:
        seeds: The seeds that are tested.
        given: The suite's field, for the message.
    """
    if not seeds:
        yield f"seeds expects a number from 1 on, or a list of seeds, got {quoted(given)}."
    if len(seeds) > MOST_SEEDS:
        yield f"seeds must be at most {MOST_SEEDS:,}, got {quoted(given)}."
    out_of_range: list[str] = []
    with collected(out_of_range):
        check_seed(min(seeds, default=0))  # the two ends speak for all
        check_seed(max(seeds, default=0))
    yield from out_of_range


def check_selecting_seeds(
    selecting: Sequence[range], tested: Sequence[int], given: Any, selects: bool
) -> Iterator[str]:
    """Yield a mistake if a task has no seeds to select with, or shares one with those that are tested.

    Args:
        selecting: The seeds that settings are selected with, of each task.
        tested: The seeds that are tested.
        given: The suite's field, for the message.
        selects: True if any setting is selected.
    """
    if not all(selecting):
        yield f"selection_seeds must be at least 1, got {quoted(given)}."
    if any(seeds.stop - seeds.start > MOST_SEEDS for seeds in selecting):
        yield f"selection_seeds must be at most {MOST_SEEDS:,}, got {quoted(given)}."
    if selects and any(seed in seeds for seeds in selecting for seed in tested):
        yield f"seeds from {SELECTION_SEED:,} on select and cannot be tested."


def check_selection(
    select: Mapping[str, Any], settings: Mapping[str, Any], regime: str, tasks: Sequence[str]
) -> Iterator[str]:
    """Yield settings that cannot be selected by validation, and values that are no lists."""
    for name, values in select.items():
        if name == "model.d_ff" and regime != "width":
            yield f"model.d_ff cannot be selected: it matches {regime}."
        # Rows are matched before values are selected, and these change what a run costs; dropout does not.
        elif regime != "width" and name.startswith(("model.", "data.")) and name != "model.dropout":
            yield f"{name} cannot be selected: rows would not be matched by {regime}."
        elif name == "train.monitor":
            yield "train.monitor cannot be selected: it is what selects."
        elif name.startswith("encoding."):
            yield f"{name} cannot be selected; give each value a row of its own, with --set or in a suite."
        if name in settings:
            yield f"{name} cannot be set and selected too; for one value alone: --select {name}=VALUE"
        yield from _check_lists(name, values, tasks)


def _check_lists(name: str, values: Any, tasks: Sequence[str]) -> Iterator[str]:
    """Yield a mistake where the values to select a setting from are no list, or an empty one."""
    lists, where = [values], ""
    if isinstance(values, Mapping):
        lists, where = [values.get(task) for task in tasks], " on each task"
        yield from check_tasks(f"select {name}", values, tasks)
    for found in lists:
        if not is_list(found) or not found:
            yield f"the values to select {name} from must be a list{where}, got {quoted(found)}."


def check_select_beyond(count: int, grids: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield why grids cannot go on beyond their ends, where they are to."""
    if count < 0:
        yield f"select_beyond must be at least 0, got {count}."
    for grid in grids if count > 0 else ():
        if len(grid) != 1:
            yield f"select_beyond goes with one setting to select, got {len(grid)}{': ' * bool(grid)}{', '.join(grid)}."
        for name, values in grid.items():
            if is_list(values) and not can_go_on(values):
                yield f"select_beyond needs two positive numbers or more to go on from, got {name}={quoted(values)}."


def margin_names(tasks: Iterable[str]) -> set[str]:
    """Return the names that margins may be declared for: tasks and their metrics."""
    found = {*tasks}
    for name in tasks:
        with contextlib.suppress(UserError):  # unknown tasks are reported elsewhere
            found.add(find_task(name).metric)
    return found


def check_margins(margin: Mapping[str, float], tasks: Sequence[str]) -> Iterator[str]:
    """Yield margins of unknown names, and those that are not positive."""
    known = margin_names(tasks)
    for name, value in margin.items():
        if name not in known:
            yield str(unknown_name("task or metric of a margin", name, known))
        elif not 0 < value < math.inf:
            yield f"the margin of {name} must be positive, got {quoted(value)}."


def check_comparisons(reference: str, contrasts: Iterable[Sequence[str]], labels: set[str]) -> Iterator[str]:
    """Yield a reference and contrasts that are not among the rows, by their labels."""
    # The default one need not be a row: nobody has asked for it, and the page says that there are no differences.
    if reference not in labels | {REFERENCE_ENCODING}:
        yield f"{unknown_name('reference', reference, labels)} The reference must be among the rows."
    for pair in contrasts:
        for label in pair:
            if label not in labels:
                yield str(unknown_name("encoding of a contrast", label, labels))


def check_selected_values(kind: RunConfig, grid: Mapping[str, Any]) -> Iterator[str]:
    """Yield values that a kind of run refuses, in every combination; where one is refused, each value by itself."""
    usable = {}
    for name, values in grid.items():
        if is_list(values) and not name.startswith("encoding."):  # `check_selection` reports the others
            usable[name] = values
    try:
        for combination in combinations(usable):
            override(kind, combination)
    except UserError as error:
        alone: list[str] = []
        for name, values in usable.items():
            for value in values:
                with collected(alone):
                    override(kind, {name: value})
        yield from alone or [str(error)]  # each value may be valid alone, and the combination not
