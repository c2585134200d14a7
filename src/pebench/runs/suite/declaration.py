"""The class `Suite`: tasks x encodings x seeds, and the question that they answer."""

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from pebench.config import CORE_ENCODINGS, REFERENCE_ENCODING, SELECTION_SEED, RunConfig, override, python_value
from pebench.encodings.registry import encoding_card
from pebench.errors import UserError, unknown_name
from pebench.runs.costs import matched
from pebench.runs.suite import checks
from pebench.runs.suite.encodings import Encoding, name_and_options, serves
from pebench.runs.suite.values import combinations, fits, further_values, only_for, settings_for, utc
from pebench.tasks import configure, find_task

MARGIN = {"accuracy": 0.005, "bits_per_byte": 0.005}
"""Differences too small to matter, by metric, where a suite declares no others: half a point, and what is about 0.01
nats a token of three bytes."""

LOOSE_TYPES: dict[str, Any] = {"vary": Mapping[str, Any], "select": Mapping[str, Any]}
"""Types of fields whose values have a check of their own, which reports them together with other mistakes."""


@dataclass(frozen=True)
class Suite:
    """Tasks x encodings x seeds, and the question that they answer.

    Args:
        name: Name on the command line and in results.
        question: Question that it is to answer.
        tasks: Names of tasks.
        encodings: Encodings as on the command line, ``"concat(d_p=16)"``, or pairs of a name and options.
        seeds: Number of seeds, which are then 0 to this minus one, or the seeds themselves.
        tier: One of the tasks' tiers; ``None`` takes each task's default.
        settings: Dotted names to values, for all runs, ``{"train.max_steps": 100}``, or to those of each task by its
            name; a task without one keeps its own.
        regime: Quantity that is equal between rows: ``width``, ``parameters`` or ``FLOPs`` (see `pebench.runs.costs`).
        vary: Settings of which each value makes tables of its own, dotted names to values:
            ``{"model.num_layers": [1, 2, 4]}``. All combinations run.
        along: Settings that change with one that varies, by its name and values:
            ``{"model.d_model": {64: {"model.num_heads": 2}, 128: {"model.num_heads": 4}}}``.
        select: Settings to be chosen by validation, per task and encoding, before anything is tested: dotted
            names to the values to try, or to those of each task by its name. All combinations run, at equal budget,
            with seeds of their own.
        selection_seeds: Number of seeds that each combination runs with, or this number by the task's name; one on the
            tasks without.
        select_beyond: Number of further values that a row is tried at, one by one, beyond an end of its grid while the
            best is at that end: after 2e-3 and 4e-3 comes 8e-3.
        where_served: Leave an encoding out where its card declares that it does not serve the task, such as one for
            grids on text; otherwise that is a mistake.
        cost: Measured cost, with the machine.
        expect: Result that the authors expect.
        decision: Rule by which the question will be answered; empty for that of every page.
        declared: Date of the declaration, in UTC: ``"2026-11-21 21:53"``; pages state how many runs had begun before.
        shared_machine: True if its runs shared a machine with other work, so that their timings do not compare.
        remarks: Notes since it was declared: what was changed, and what is wrong with its records.
        contrasts: Pairs of labels, besides those with the reference, whose difference (the first minus the second) the
            decision rests on; each table is corrected for their number.
        margin: Largest difference to the reference that does not matter, by name of a task or a headline metric,
            in the metric's unit (an accuracy is a share of 1). Declared before the runs; `MARGIN` holds for the rest.
        reference: Label of the encoding that the others are compared to, and matched to: ``add``, ``concat (d_p=16)``.
        file: File that it was read from, if it is none of pebench's; `load_suite` fills it in.

    Raises:
        UserError: For every field of another type, in one message. Values are checked by `kinds`.
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
    along: Mapping[str, Mapping[Any, Mapping[str, Any]]] = field(default_factory=dict)
    select: Mapping[str, Sequence[Any] | Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    selection_seeds: int | Mapping[str, int] = 1
    select_beyond: int = 0
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
        mistakes = []
        for f in fields(self):
            kind, value = LOOSE_TYPES.get(f.name, f.type), getattr(self, f.name)
            if not fits(value, kind):
                mistakes.append(checks.type_mistake(f.name, kind, value))
        if mistakes:
            raise UserError("\n".join(mistakes))
        pairs = tuple((first, second) for first, second in self.contrasts)  # they may have been given as lists
        object.__setattr__(self, "contrasts", pairs)

    @property
    def command(self) -> str:
        """The command that runs it."""
        return shlex.join(["pebench", "run", "--suite", self.file or self.name])

    @property
    def declared_at(self) -> datetime | None:
        """The date of its declaration in UTC; None if it has none.

        Raises:
            ValueError: If `declared` is no date.
        """
        return utc(self.declared)

    @property
    def tested_seeds(self) -> tuple[int, ...]:
        """The seeds that are tested, each once."""
        if isinstance(self.seeds, int):
            return tuple(range(min(self.seeds, checks.MOST_SEEDS + 1)))  # of more, one is enough to be refused
        return tuple(dict.fromkeys(self.seeds))

    def selecting_seeds(self, task: str) -> range:
        """Return the seeds that settings are selected with on a task, where any are."""
        count = self.selection_seeds
        if isinstance(count, Mapping):
            count = count.get(task, 1)
        return range(SELECTION_SEED, SELECTION_SEED + count)

    def margin_of(self, task: str) -> float | None:
        """Return the largest difference that does not matter on a task; None where none is declared."""
        metric = find_task(task).metric
        return self.margin.get(task, self.margin.get(metric, MARGIN.get(metric)))

    def part(self, tasks: Sequence[str]) -> "Suite":
        """Return the same suite on some of its tasks alone.

        Raises:
            UserError: If one is not among them.
        """
        if strangers := [task for task in tasks if task not in self.tasks]:
            raise unknown_name(f"task of suite {self.name}", strangers[0], self.tasks)
        dropped = checks.margin_names(self.tasks) - checks.margin_names(tasks)
        settings = {name: only_for(tasks, value) for name, value in self.settings.items()}
        return replace(
            self,
            tasks=tasks,
            margin={name: value for name, value in self.margin.items() if name not in dropped},
            settings={name: value for name, value in settings.items() if value != {}},  # {}: for other tasks alone
            select={name: only_for(tasks, values) for name, values in self.select.items()},
            selection_seeds=only_for(tasks, self.selection_seeds),
        )

    def kinds(self) -> list[RunConfig]:
        """Return one run of each task with each encoding, as costly as the regime asks; seeds and selection come later.

        Raises:
            UserError: Everything that does not exist or cannot work, in one message.
        """
        mistakes = list(self._mistakes())
        kinds = self._configured(mistakes)
        if not kinds and not mistakes:
            mistakes.append("none of these encodings serves any of these tasks.")
        if kinds:
            mistakes += checks.check_comparisons(self.reference, self.contrasts, {kind.label for kind in kinds})
        for kind in kinds:
            mistakes += checks.check_selected_values(kind, self.grid(kind.task))
            for values in itertools.chain(*self.beyond(kind.task)):
                with checks.collected(mistakes):
                    override(kind, values)
        if self.regime != "width" and not mistakes:
            kinds = self._matched(kinds, mistakes)
        if mistakes:
            raise UserError("\n".join(dict.fromkeys(mistakes)))
        return list({config.kind_key: config for config in kinds}.values())

    def candidates(self, kind: RunConfig) -> list[RunConfig]:
        """Return a kind of run with each combination of the values to select from; none if nothing is selected."""
        return [self.candidate(kind, values) for values in combinations(self.grid(kind.task))] if self.select else []

    def candidate(self, kind: RunConfig, values: Mapping[str, Any]) -> RunConfig:
        """Return a kind of run with one combination of the values to select from, as a run that selects."""
        # The stage is part of a run's key: selecting and tested runs are never taken for each other.
        return replace(override(kind, values), selected=tuple(sorted(self.select)), stage="select")

    def grid(self, task: str) -> dict[str, Sequence[Any]]:
        """Return the values that are tried on a task, by the setting that is selected."""
        return dict.fromkeys(self.select, ()) | settings_for(task, self.select)

    def beyond(self, task: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the values that a row may be tried at below a task's grid and above it, the nearest first."""
        below, above = list[dict[str, Any]](), list[dict[str, Any]]()
        for name, values in self.grid(task).items():  # one setting: `check_select_beyond` refuses several
            lower, higher = further_values(values, self.select_beyond)
            below += [{name: value} for value in lower]
            above += [{name: value} for value in higher]
        return below, above

    def _mistakes(self) -> Iterator[str]:
        """Yield the mistakes that can be found before any run is configured."""
        selecting = [self.selecting_seeds(task) for task in self.tasks]
        yield from checks.check_name(self.name)
        yield from checks.check_rows(self.tasks, self.encodings)
        yield from checks.check_date(self.declared)
        yield from checks.check_settings(self.settings, self.tasks, self.encodings)
        yield from checks.check_variation(self.vary, self.settings, self.select, self.regime)
        yield from checks.check_along(self.along, self.vary, self.settings, self.select)
        yield from checks.check_regime(self.regime)
        yield from checks.check_tasks("select with more seeds", self.selection_seeds, self.tasks)
        yield from checks.check_tested_seeds(self.tested_seeds, self.seeds)
        yield from checks.check_selecting_seeds(selecting, self.tested_seeds, self.selection_seeds, bool(self.select))
        yield from checks.check_select_beyond(self.select_beyond, [self.grid(task) for task in self.tasks])
        yield from checks.check_selection(self.select, self.settings, self.regime, self.tasks)
        yield from checks.check_margins(self.margin, self.tasks)

    def _configured(self, mistakes: list[str]) -> list[RunConfig]:
        """Return a run for each task, combination of varied values and encoding; mistakes are added to the list."""
        kinds = []
        varied = [{}] if mistakes else combinations(self.vary)  # which may be no lists
        for task, values, encoding in itertools.product(self.tasks, varied, self.encodings):
            with checks.collected(mistakes):
                if (usual := find_task(task).name) != task:  # or settings by task would miss it
                    raise UserError(f"write task {task!r} as {usual!r} in a suite: records and tables name it so.")
                if self.where_served and not serves(task, encoding):
                    continue
                # At once, as some are only valid together: heads must divide the width.
                chosen = values | self._with(values)
                kinds.append(replace(override(self._configure(task, encoding), chosen), regime=self.regime))
        return kinds

    def _with(self, varied: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that go along with the values of what varies."""
        found: dict[str, Any] = {}
        for name, by_value in self.along.items():
            if name not in varied:  # a mistake, which `check_along` reports
                continue
            value = python_value(varied[name])  # text, from a command line
            if value not in by_value:
                known = ", ".join(map(str, by_value))
                raise UserError(f"suite {self.name} says what goes along with {name} of {known}, got {value}.")
            found |= by_value[value]
        return found

    def _configure(self, task: str, encoding: Encoding) -> RunConfig:
        """Return the run of a task with an encoding; of common options each encoding takes those that it has."""
        name, options = name_and_options(encoding)
        known = encoding_card(name).options
        settings, common = {}, {}
        for setting, value in settings_for(task, self.settings).items():
            section, _, leaf = setting.partition(".")
            if section != "encoding":
                settings[setting] = value
            elif leaf in known:
                common[leaf] = python_value(value)
        return configure(task, name, 0, self.tier, settings, common | dict(options))

    def _matched(self, kinds: list[RunConfig], mistakes: list[str]) -> list[RunConfig]:
        """Return the same runs, each as costly as the reference with its task and varied values."""
        references: dict[tuple[Any, ...], RunConfig] = {}
        for config in kinds:
            if config.label == self.reference:
                references.setdefault(self._table(config), config)
        found = []
        for config in kinds:
            with checks.collected(mistakes):
                reference = references.get(self._table(config))
                if reference is None:
                    raise UserError(
                        f"{config.task}: rows are matched to {self.reference}, which must be one of them "
                        f"(--pe {shlex.quote(self.reference)}, or --reference NAME for another)."
                    )
                found.append(matched(config, reference))
        return found

    def _table(self, config: RunConfig) -> tuple[Any, ...]:
        """Return what the runs of one table have in common: their task and the values of what varies."""
        return config.task, *config.values_of(self.vary).values()
