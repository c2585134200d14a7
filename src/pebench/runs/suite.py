"""Suites: declared sets of runs with a question. A suite is a Python file that defines ``SUITE``."""

import contextlib
import functools
import itertools
import math
import re
import runpy
import shlex
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pebench.config import (
    CORE_ENCODINGS,
    REFERENCE_ENCODING,
    REGIMES,
    SELECTION_SEED,
    RunConfig,
    check_seed,
    override,
    python_value,
)
from pebench.encodings.plugins import add_paths
from pebench.encodings.registry import encoding_card, read_encoding
from pebench.errors import UserError, unknown_name
from pebench.runs.costs import matched
from pebench.tasks import TASKS, configure, find_task

if TYPE_CHECKING:
    from pebench import Results

Encoding = str | tuple[str, Mapping[str, Any]]
"""An encoding as on the command line, ``"rope(theta=500.0)"``, or a pair of its name and options."""

MARGIN = {"accuracy": 0.005, "bits_per_byte": 0.005}
"""Differences too small to matter, where a suite declares no other: half a point, and what is about 0.01 nats a token
of three bytes."""

_KINDS = dict.fromkeys(("vary", "select"), Mapping[str, Any])
"""Kinds of fields where not as annotated: what is wrong with these values is told with what else is wrong with them."""


@dataclass(frozen=True)
class Suite:
    """Tasks x encodings x seeds, and why.

    Args:
        name: What it is called on the command line and in results.
        question: What it is to answer.
        tasks: Names of tasks.
        encodings: Encodings as on the command line, ``"concat(d_p=16)"``, or pairs of a name and options.
        seeds: Seeds 0 to this minus one, or the seeds themselves.
        tier: One of the tasks' tiers; ``None`` takes each task's default.
        settings: Dotted names to values, for all runs, ``{"train.max_steps": 100}``, or to those of each task by its
            name; a task without one keeps its own.
        regime: What is equal between rows: ``width``, ``parameters`` or ``FLOPs`` (see `pebench.runs.costs`).
        vary: Settings that each value of makes tables of its own, dotted names to values:
            ``{"model.num_layers": [1, 2, 4]}``. All combinations run.
        select: Settings to be chosen by validation, per task and encoding, before anything is tested: dotted
            names to the values to try, or to those of each task by its name. All combinations run, at equal budget,
            with seeds of their own.
        selection_seeds: How many seeds each combination runs with, or how many on each task by its name; one on the
            tasks without.
        where_served: Leave an encoding out where its card says that it does not serve the task, such as one for
            grids on text; else that is a mistake.
        cost: What it was measured to cost, with the machine.
        expect: What the authors expect to see.
        decision: By which rule the question will be answered; empty for that of every page.
        declared: When, in UTC: ``"2026-11-21 21:53"``; pages say how many runs had begun before.
        shared_machine: Whether its runs shared a machine with other work, so that their timings do not compare.
        remarks: What has come up since it was declared: what was changed, and what is wrong with its records.
        reference: Label of the encoding that the others are compared to, and matched to: ``add``, ``concat (d_p=16)``.
        contrasts: Pairs of labels, beside those with the reference, whose difference (the first minus the second) the
            decision rests on; each table is corrected for their number.
        margin: The largest difference to the reference that does not matter, by name of a task or a headline metric,
            in the metric's unit (an accuracy is a share of 1). Declared before the runs; `MARGIN` holds for the rest.
        file: Where it was read from, if it is none of pebench's; `load_suite` fills it in.
    """

    name: str
    question: str
    tasks: Sequence[str]
    encodings: Sequence[Encoding] = CORE_ENCODINGS
    seeds: int | Sequence[int] = 3
    tier: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    regime: str = "width"
    vary: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    select: Mapping[str, Sequence[Any] | Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    selection_seeds: int | Mapping[str, int] = 1
    where_served: bool = False
    cost: str = ""
    expect: str = ""
    decision: str = ""
    declared: str = ""
    shared_machine: bool = False
    remarks: Sequence[str] = ()
    contrasts: Sequence[tuple[str, str]] = ()
    margin: Mapping[str, float] = field(default_factory=dict)
    reference: str = REFERENCE_ENCODING
    file: str = ""

    def __post_init__(self) -> None:
        found = ((f.name, _KINDS.get(f.name, f.type), getattr(self, f.name)) for f in fields(self))
        wrong = [
            f"{name} must be {_text(kind)}, got {value!r}." for name, kind, value in found if not _fits(value, kind)
        ]
        if wrong:
            raise UserError("\n".join(wrong))
        object.__setattr__(self, "contrasts", tuple((first, second) for first, second in self.contrasts))  # from lists

    def run(self, out: Path | str = "runs", **options: Any) -> "Results":
        """Make the runs of the suite that are left, and return the results of all; see `pebench.run_suite`.

        Args:
            out: Output folder of the records.
            **options: How runs are made: ``executor``, ``jobs``, ``device`` and others of `pebench.run_suite`.
        """
        import pebench  # whose names are loaded on first use: the engine lies above suites

        return pebench.run_suite(self, out, **options)

    @property
    def command(self) -> str:
        """What runs it."""
        return shlex.join(["pebench", "run", "--suite", self.file or self.name])

    @property
    def declared_at(self) -> datetime | None:
        """When it was declared, if it says so."""
        if not self.declared:
            return None
        when = datetime.fromisoformat(self.declared)
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)

    @property
    def tested_seeds(self) -> tuple[int, ...]:
        """The seeds that are tested."""
        return tuple(range(self.seeds) if isinstance(self.seeds, int) else dict.fromkeys(self.seeds))

    def selecting_seeds(self, task: str) -> range:
        """The seeds that settings are selected with on a task, where any are."""
        told = self.selection_seeds
        count = told.get(task, 1) if isinstance(told, Mapping) else told
        return range(SELECTION_SEED, SELECTION_SEED + count)

    def kinds(self) -> list[RunConfig]:
        """One run of each task with each encoding, as costly as the regime asks; seeds and selection come later.

        Raises:
            UserError: Everything that does not exist or cannot work, in one message.
        """
        problems = [*self._declaration(), *self._addressees(), *self._variation(), *self._selection(), *self._margins()]
        kinds = []
        varied = _combinations(self.vary) if not problems else [{}]
        for task, values, encoding in itertools.product(self.tasks, varied, self.encodings):
            with _collected(problems):
                if self.where_served and not serves(task, encoding):
                    continue
                kinds.append(replace(override(self._configure(task, encoding), values), regime=self.regime))
        if not kinds and not problems:
            problems.append("none of these encodings serves any of these tasks.")
        labels = {kind.label for kind in kinds}
        if kinds and self.reference not in labels | {REFERENCE_ENCODING}:
            problems.append(
                f"{unknown_name('reference', self.reference, labels)} The reference must be among the rows."
            )
        strangers = [label for pair in self.contrasts for label in pair if kinds and label not in labels]
        problems += [str(unknown_name("encoding of a contrast", label, labels)) for label in strangers]
        problems += self._values(kinds)
        if self.regime != "width" and not problems:
            kinds = self._matched(kinds, problems)
        if problems:
            raise UserError("\n".join(dict.fromkeys(problems)))
        return list({config.kind_key: config for config in kinds}.values())

    def part(self, tasks: Sequence[str]) -> "Suite":
        """The same suite on some of its tasks alone.

        Raises:
            UserError: If one is not among them.
        """
        if strangers := [task for task in tasks if task not in self.tasks]:
            raise unknown_name(f"task of suite {self.name}", strangers[0], self.tasks)
        left_out = _margin_names(self.tasks) - _margin_names(tasks)
        margin = {name: value for name, value in self.margin.items() if name not in left_out}
        settings, select = ({k: _among(tasks, v) for k, v in told.items()} for told in (self.settings, self.select))
        settings = {name: value for name, value in settings.items() if value != {}}  # of these tasks nothing is told
        seeds = _among(tasks, self.selection_seeds)
        return replace(self, tasks=tasks, margin=margin, settings=settings, select=select, selection_seeds=seeds)

    def candidates(self, kind: RunConfig) -> list[RunConfig]:
        """A kind of run with each combination of the values to select from."""
        return [override(kind, values) for values in _combinations(self._grid(kind.task))] if self.select else []

    def _grid(self, task: str) -> dict[str, Sequence[Any]]:
        """The values that are tried on a task of each setting that is selected."""
        return dict.fromkeys(self.select, ()) | _of_task(self.select, task)

    def margin_of(self, task: str) -> float | None:
        """The largest difference that does not matter on a task; ``None`` where none is declared."""
        metric = find_task(task).metric
        return self.margin.get(task, self.margin.get(metric, MARGIN.get(metric)))

    def _margins(self) -> Iterator[str]:
        """What is wrong with the margins."""
        known = _margin_names(self.tasks)
        for name, value in self.margin.items():
            if name not in known:
                yield str(unknown_name("task or metric of a margin", name, known))
            elif not 0 < value < math.inf:
                yield f"the margin of {name} must be positive, got {value}."

    def _values(self, kinds: list[RunConfig]) -> list[str]:
        """What is wrong with the values to select from, in every combination; where one is refused, each by itself."""
        problems: list[str] = []
        for kind in kinds:
            usable = {name: values for name, values in self._grid(kind.task).items() if _is_list(values)}
            grid = {name: values for name, values in usable.items() if not name.startswith("encoding.")}
            try:
                for values in _combinations(grid):
                    override(kind, values)
            except UserError as error:
                alone: list[str] = []
                for name, value in ((name, value) for name, values in grid.items() for value in values):
                    with _collected(alone):
                        override(kind, {name: value})
                problems += alone or [str(error)]
        return problems

    def _matched(self, kinds: list[RunConfig], problems: list[str]) -> list[RunConfig]:
        """The same runs, each as costly as its task's reference."""
        found = []
        for config in kinds:
            rows = [
                row
                for row in kinds
                if row.task == config.task and row.values_of(self.vary) == config.values_of(self.vary)
            ]
            reference = next((row for row in rows if row.label == self.reference), None)
            with _collected(problems):
                if reference is None:
                    raise UserError(f"{config.task}: rows are matched to {self.reference}, which must be one of them.")
                found.append(matched(config, reference))
        return found

    def _configure(self, task: str, encoding: Encoding) -> RunConfig:
        name, options = _parts(encoding)
        prefix = "encoding."
        told = _of_task(self.settings, task)
        common = {k.removeprefix(prefix): v for k, v in told.items() if k.startswith(prefix)}
        known = encoding_card(name).options
        options = {k: python_value(v) for k, v in common.items() if k in known} | dict(options)
        settings = {k: v for k, v in told.items() if not k.startswith(prefix)}
        return configure(task, name, 0, self.tier, settings, options)

    def _declaration(self) -> Iterator[str]:
        """What is wrong with when it says that it was declared."""
        try:
            _ = self.declared_at
        except ValueError:
            yield f"declared must be a date and time, UTC, such as '2026-11-21 21:53', got {self.declared!r}."

    def _addressees(self) -> Iterator[str]:
        """What is wrong with whom settings are for: tasks and options of encodings that are none."""
        known = {f"encoding.{option}" for encoding in self.encodings for option in _options(encoding)}
        for setting, value in self.settings.items():
            yield from self._unknown_task(f"set {setting}", value)
            if setting.startswith("encoding.") and setting not in known:
                valid = known or {"(none: these encodings have no options)"}
                yield str(unknown_name("encoding option", setting, valid))

    def _variation(self) -> Iterator[str]:
        """What is wrong with what varies between tables."""
        for name, values in self.vary.items():
            if name.startswith("encoding."):
                yield f"{name} cannot vary; give each value a row of its own: --pe 'NAME(option=value)'."
            elif name in self.settings or name in self.select:
                yield f"{name} cannot vary and be set or selected too."
            elif name == "model.d_ff" and self.regime != "width":
                yield f"model.d_ff cannot vary: it matches {self.regime}."
            if not _is_list(values) or not values:
                yield f"the values that {name} varies over must be a list, got {values!r}."

    def _selection(self) -> Iterator[str]:
        """What is wrong with what is to be selected."""
        if self.regime not in REGIMES:
            yield str(unknown_name("regime", self.regime, REGIMES))
        yield from self._unknown_task("select with more seeds", self.selection_seeds)
        if not self.tested_seeds:
            yield f"seeds must be at least 1, or a list of some, got {self.seeds}."
        wrong: list[str] = []
        with _collected(wrong):
            check_seed(min(self.tested_seeds, default=0))
            check_seed(max(self.tested_seeds, default=0))
        yield from wrong
        if not all(self.selecting_seeds(task) for task in self.tasks):
            yield f"selection_seeds must be at least 1, got {self.selection_seeds}."
        if self.select and any(seed in self.selecting_seeds(task) for task in self.tasks for seed in self.tested_seeds):
            yield f"seeds from {SELECTION_SEED:,} on select and cannot be tested."
        for name, values in self.select.items():
            if name == "model.d_ff" and self.regime != "width":
                yield f"model.d_ff cannot be selected: it matches {self.regime}."
            elif self.regime != "width" and name.startswith(("model.", "data.")) and name != "model.dropout":
                yield f"{name} cannot be selected: rows would not be matched by {self.regime}."
            elif name == "train.monitor":
                yield "train.monitor cannot be selected: it is what selects."
            elif name.startswith("encoding."):
                yield f"{name} cannot be selected; give each value a row of its own, with --set or in a suite."
            yield from self._lists(name, values)

    def _unknown_task(self, what: str, told: Any) -> Iterator[str]:
        """A task that something is told of, by its name, and that is none of the suite's."""
        if isinstance(told, Mapping) and (strangers := sorted(told.keys() - {*self.tasks})):
            yield str(unknown_name(f"task to {what} on", strangers[0], self.tasks))

    def _lists(self, name: str, values: Any) -> Iterator[str]:
        """What is wrong with the values to select a setting from."""
        lists, where = [values], ""
        if name in self.settings:
            yield f"{name} cannot be set and selected too; for one value alone: --select {name}=VALUE"
        if isinstance(values, Mapping):
            lists, where = [values.get(task) for task in self.tasks], " on each task"
            yield from self._unknown_task(f"select {name}", values)
        for found in lists:
            if not _is_list(found) or not found:
                yield f"the values to select {name} from must be a list{where}, got {found!r}."


def _text(kind: Any) -> str:
    """A kind in short, as who writes a suite thinks of it.

    Example:
        >>> _text(int | Sequence[int]), _text(str)
        ('int | list[int]', 'str')
    """
    short = re.sub(r"<class '(\w+)'>|[\w.]+\.", r"\1", str(kind))
    return short.replace("Sequence", "list").replace("Mapping", "dict")  # of which a text is none, and a tuple is one


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind, as the fields of a suite are annotated."""
    whole, parts = get_origin(kind) or kind, get_args(kind)
    if whole is UnionType:
        return any(_fits(value, part) for part in parts)
    if whole is Mapping:
        return isinstance(value, Mapping) and all(_fits(k, parts[0]) and _fits(v, parts[1]) for k, v in value.items())
    if whole is tuple:
        return isinstance(value, tuple | list) and len(value) == len(parts) and all(map(_fits, value, parts))
    if whole is Sequence:
        return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(v, parts[0]) for v in value)
    if isinstance(value, bool):  # which Python counts among the numbers
        return whole in (bool, Any)
    return whole is Any or isinstance(value, float | int if whole is float else whole)


def _among(tasks: Sequence[str], told: Any) -> Any:
    """What is told, without what is told of other tasks by their names."""
    return {task: told[task] for task in tasks if task in told} if isinstance(told, Mapping) else told


def _of_task(told: Mapping[str, Any], task: str) -> dict[str, Any]:
    """What is told of a task, where some is told by task; what is told of others alone is left out."""
    by_task = {name: value if isinstance(value, Mapping) else {task: value} for name, value in told.items()}
    return {name: values[task] for name, values in by_task.items() if task in values}


def _margin_names(tasks: Iterable[str]) -> set[str]:
    """What margins may be declared for: tasks and their metrics."""
    return {*tasks, *(TASKS[name].metric for name in tasks if name in TASKS)}


def _is_list(values: Any) -> bool:
    return isinstance(values, Sequence) and not isinstance(values, str)


def _combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Each combination of the values of settings, as a mapping."""
    names = tuple(sorted(grid))
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(grid[name] for name in names))]


def _parts(encoding: Encoding) -> tuple[str, Mapping[str, Any]]:
    """An encoding's name and options."""
    return read_encoding(encoding) if isinstance(encoding, str) else encoding


def _options(encoding: Encoding) -> Iterable[str]:
    """The options that an encoding has; none of one that does not exist, which is told elsewhere."""
    with contextlib.suppress(UserError):
        return encoding_card(_parts(encoding)[0]).options
    return ()


@contextlib.contextmanager
def _collected(problems: list[str]) -> Iterator[None]:
    """Note a mistake and go on, so that all of them are told at once."""
    try:
        yield
    except UserError as error:
        problems.append(str(error))


def serves(task: str, encoding: Encoding) -> bool:
    """Whether an encoding's card says that it serves a task."""
    declared, card = encoding_card(_parts(encoding)[0]).declared, find_task(task)
    return (2 if card.image else 1) in declared["axes"] and (card.causal or not declared["causal_only"])


@functools.cache
def suite_files() -> dict[str, Path]:
    """The suites that come with pebench, by name."""
    return {path.stem: path for path in sorted(shipped("benchmarks").glob("suites/*/*.py"), key=lambda path: path.stem)}


def shipped(name: str) -> Path:
    """A file or folder of the repository's top level that comes with pebench, in a wheel or a checkout."""
    package = Path(__file__).parents[1]
    return package / name if (package / name).exists() else package.parents[1] / name


def load_suite(name_or_file: str) -> Suite:
    """A suite by its name, or from a file of the user's own, which may import modules beside it.

    Raises:
        UserError: If there is none, or the file does not define one.
    """
    path = suite_files().get(name_or_file) or Path(name_or_file)
    if not path.is_file():
        if path.suffix == ".py":
            raise UserError(f"expected a suite file, but {name_or_file!r} does not exist.")
        raise unknown_name("suite", name_or_file, suite_files())
    if name_or_file not in suite_files():
        add_paths([str(path.resolve().parent)])
    try:
        suite = runpy.run_path(str(path)).get("SUITE")
    except UserError as error:
        raise UserError(f"suite file {path}: {error}") from error
    except (Exception, SystemExit) as error:
        lines = [
            number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)
        ]
        where = f"{path}, line {lines[-1]}," if lines else path
        raise UserError(f"suite file {where} cannot be read: {type(error).__name__}: {error}") from error
    if not isinstance(suite, Suite):
        got = f"SUITE is {type(suite).__name__}" if suite is not None else "it defines none"
        raise UserError(f"suite file {path} must define SUITE = pebench.Suite(...), but {got}.")
    return suite if name_or_file in suite_files() else replace(suite, file=name_or_file)
