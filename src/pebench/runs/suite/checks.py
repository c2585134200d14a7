"""The checks of a suite: each rule is a function that yields its mistakes, so that all are reported at once."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pebench.config import REFERENCE_ENCODING, REGIMES, SELECTION_SEED, RunConfig, check_seed, override
from pebench.errors import UserError, unknown_name
from pebench.runs.suite.encodings import option_names
from pebench.runs.suite.values import combinations, is_list
from pebench.tasks import find_task

if TYPE_CHECKING:
    from pebench.runs.suite.declaration import Suite


@contextlib.contextmanager
def collected(mistakes: list[str]) -> Iterator[None]:
    """Add the message of a `UserError` to a list and go on, so that all mistakes are reported at once."""
    try:
        yield
    except UserError as error:
        mistakes.append(str(error))


def mistakes_of_suite(suite: "Suite") -> Iterator[str]:
    """Yield the mistakes that can be found before any run is configured."""
    yield from _date(suite)
    yield from _settings(suite)
    yield from _variation(suite)
    yield from _seeds(suite)
    yield from _selection(suite)
    yield from _margins(suite)


def mistakes_of_kinds(suite: "Suite", kinds: Sequence[RunConfig]) -> Iterator[str]:
    """Yield the mistakes that are found by the configured runs, one of each task and encoding."""
    if kinds:
        yield from _rows_compared(suite, {kind.label for kind in kinds})
    for kind in kinds:
        yield from _values_to_select_from(suite, kind)


def _date(suite: "Suite") -> Iterator[str]:
    """Yield a mistake if `declared` is no date."""
    try:
        _ = suite.declared_at
    except ValueError:
        yield f"declared must be a date and time, UTC, such as '2026-11-21 21:53', got {suite.declared!r}."


def _settings(suite: "Suite") -> Iterator[str]:
    """Yield settings for tasks and options of encodings that are not in the suite."""
    known = {f"encoding.{option}" for encoding in suite.encodings for option in option_names(encoding)}
    for setting, value in suite.settings.items():
        yield from _unknown_task(suite, f"set {setting}", value)
        if setting.startswith("encoding.") and setting not in known:
            valid = known or {"(none: these encodings have no options)"}
            yield str(unknown_name("encoding option", setting, valid))


def _unknown_task(suite: "Suite", purpose: str, value: Any) -> Iterator[str]:
    """Yield a mistake if a value is given by task, and one of its tasks is not in the suite."""
    if isinstance(value, Mapping) and (strangers := sorted(value.keys() - {*suite.tasks})):
        yield str(unknown_name(f"task to {purpose} on", strangers[0], suite.tasks))


def _variation(suite: "Suite") -> Iterator[str]:
    """Yield settings that cannot vary between tables."""
    for name, values in suite.vary.items():
        if name.startswith("encoding."):
            yield f"{name} cannot vary; give each value a row of its own: --pe 'NAME(option=value)'."
        elif name in suite.settings or name in suite.select:
            yield f"{name} cannot vary and be set or selected too."
        elif name == "model.d_ff" and suite.regime != "width":
            yield f"model.d_ff cannot vary: it matches {suite.regime}."
        if not is_list(values) or not values:
            yield f"the values that {name} varies over must be a list, got {values!r}."


def _seeds(suite: "Suite") -> Iterator[str]:
    """Yield an unknown regime, and seeds that are missing, out of range or both selecting and tested."""
    if suite.regime not in REGIMES:
        yield str(unknown_name("regime", suite.regime, REGIMES))
    yield from _unknown_task(suite, "select with more seeds", suite.selection_seeds)
    tested = suite.tested_seeds
    if not tested:
        yield f"seeds must be at least 1, or a list of some, got {suite.seeds}."
    out_of_range: list[str] = []
    with collected(out_of_range):
        check_seed(min(tested, default=0))
        check_seed(max(tested, default=0))
    yield from out_of_range
    selecting = [suite.selecting_seeds(task) for task in suite.tasks]
    if not all(selecting):
        yield f"selection_seeds must be at least 1, got {suite.selection_seeds}."
    if suite.select and any(seed in seeds for seeds in selecting for seed in tested):
        yield f"seeds from {SELECTION_SEED:,} on select and cannot be tested."


def _selection(suite: "Suite") -> Iterator[str]:
    """Yield settings that cannot be selected by validation."""
    for name, values in suite.select.items():
        if name == "model.d_ff" and suite.regime != "width":
            yield f"model.d_ff cannot be selected: it matches {suite.regime}."
        elif suite.regime != "width" and name.startswith(("model.", "data.")) and name != "model.dropout":
            yield f"{name} cannot be selected: rows would not be matched by {suite.regime}."
        elif name == "train.monitor":
            yield "train.monitor cannot be selected: it is what selects."
        elif name.startswith("encoding."):
            yield f"{name} cannot be selected; give each value a row of its own, with --set or in a suite."
        if name in suite.settings:
            yield f"{name} cannot be set and selected too; for one value alone: --select {name}=VALUE"
        yield from _lists(suite, name, values)


def _lists(suite: "Suite", name: str, values: Any) -> Iterator[str]:
    """Yield a mistake where the values to select a setting from are no list, or an empty one."""
    lists, where = [values], ""
    if isinstance(values, Mapping):
        lists, where = [values.get(task) for task in suite.tasks], " on each task"
        yield from _unknown_task(suite, f"select {name}", values)
    for found in lists:
        if not is_list(found) or not found:
            yield f"the values to select {name} from must be a list{where}, got {found!r}."


def margin_names(tasks: Iterable[str]) -> set[str]:
    """Return the names that margins may be declared for: tasks and their metrics."""
    found = {*tasks}
    for name in tasks:
        with contextlib.suppress(UserError):  # unknown tasks are reported elsewhere
            found.add(find_task(name).metric)
    return found


def _margins(suite: "Suite") -> Iterator[str]:
    """Yield margins of unknown names, and those that are not positive."""
    known = margin_names(suite.tasks)
    for name, value in suite.margin.items():
        if name not in known:
            yield str(unknown_name("task or metric of a margin", name, known))
        elif not 0 < value < math.inf:
            yield f"the margin of {name} must be positive, got {value}."


def _rows_compared(suite: "Suite", labels: set[str]) -> Iterator[str]:
    """Yield a reference and contrasts that are not among the rows."""
    if suite.reference not in labels | {REFERENCE_ENCODING}:
        yield f"{unknown_name('reference', suite.reference, labels)} The reference must be among the rows."
    for pair in suite.contrasts:
        for label in pair:
            if label not in labels:
                yield str(unknown_name("encoding of a contrast", label, labels))


def _values_to_select_from(suite: "Suite", kind: RunConfig) -> Iterator[str]:
    """Yield values that a kind of run refuses, in every combination; where one is refused, each value by itself."""
    grid = {}
    for name, values in suite.grid(kind.task).items():
        if is_list(values) and not name.startswith("encoding."):  # others are mistakes that other checks report
            grid[name] = values
    try:
        for combination in combinations(grid):
            override(kind, combination)
    except UserError as error:
        alone: list[str] = []
        for name, values in grid.items():
            for value in values:
                with collected(alone):
                    override(kind, {name: value})
        yield from alone or [str(error)]  # each value may be valid alone, and the combination not
