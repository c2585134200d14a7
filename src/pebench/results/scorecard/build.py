"""A scorecard, built from records: a cell has mean and rank, each with its interval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pebench.encodings.cards import EncodingCard
from pebench.encodings.families import GROUPS, group_of
from pebench.encodings.registry import encoding_cards
from pebench.formatting import natural
from pebench.results.scorecard.costs import Cost, Costs
from pebench.results.scorecard.measures import MEASURES, Measure
from pebench.results.scorecard.ranks import Rank, Values, ranks
from pebench.results.stats import Estimate, estimate
from pebench.results.tables import Table, build_tables
from pebench.runs.records import Record
from pebench.runs.suite import serves

UNMEASURED, REFUSES, UNSERVED = "not measured", "refuses", "does not serve"
"""Texts of cells without a value."""

RATE = "train.learning_rate"


@dataclass(frozen=True)
class Entry:
    """One cell of the scorecard.

    Args:
        estimate: Mean over seeds and its interval; ``None`` where there is no value.
        why: The reason why there is none: `UNMEASURED`, `REFUSES` or `UNSERVED`; empty where there is one.
        rank: Place among the rows with a value, with its interval.
        score: 1 for the best mean of the column, 0 for the worst, and for encodings that refuse this size.
        values: Seed to value.
    """

    estimate: Estimate | None = None
    why: str = ""
    rank: Rank | None = None
    score: float | None = None
    values: Values = field(default_factory=dict, repr=False)

    @property
    def leads(self) -> bool:
        """True if no row of the column is separably better."""
        return self.rank is not None and self.rank.first == 1


@dataclass(frozen=True)
class Line:
    """One row of the scorecard.

    Args:
        label: The encoding.
        card: Its card; ``None`` for one that is not registered here.
        entries: The cells by the key of their column.
        parameters: Parameters of the encoding in the language model, else in the image model; ``None`` if unknown.
        costs: Costs of a training step by the number of tokens.
    """

    label: str
    card: EncodingCard | None
    entries: Mapping[str, Entry]
    parameters: int | None
    costs: Mapping[int, Cost]

    @property
    def fused(self) -> bool | None:
        """True if it changes no logits, so that attention stays a fused kernel; ``None`` if that is not known.

        A wrapper has every hook, and is as the encoding within it.
        """
        if self.card is None or self.card.declared["wraps"]:
            return None
        return "bias" not in self.card.hooks

    @property
    def beyond(self) -> str:
        """Its behaviour at positions outside the trained extent; empty if it is not known, as of a wrapper."""
        return self.card.beyond if self.card else ""

    @property
    def kv_cache(self) -> str:
        """How a cache of keys and values fares with it in causal text; empty if it is not known, or serves no text."""
        return self.card.kv_cache if self.card else ""

    @property
    def measured(self) -> bool:
        """True if any cell has a value."""
        return any(entry.estimate for entry in self.entries.values())

    def complete(self, measures: Iterable[Measure]) -> bool:
        """Return true if any of these columns has a value, and all have one that can."""
        entries = [self.entries[measure.key] for measure in measures]
        return any(entry.estimate for entry in entries) and all(entry.why != UNMEASURED for entry in entries)


@dataclass(frozen=True, eq=False)
class Scorecard:
    """Every encoding on every measure.

    Args:
        lines: The rows, by family and name.
        tables: The table that each column is made of, by its key; none where nothing was measured.
        device: Device on which costs were measured; empty where none were.
    """

    lines: tuple[Line, ...]
    tables: Mapping[str, Table]
    device: str = ""

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The columns of which something is measured."""
        return tuple(m for m in MEASURES if any(line.entries[m.key].estimate for line in self.lines))

    @property
    def unmeasured(self) -> tuple[Measure, ...]:
        """The columns that wait for runs."""
        return tuple(measure for measure in MEASURES if measure not in self.measures)


def scorecard(records: Iterable[Record], costs: Costs | None = None) -> Scorecard:
    """Return the scorecard of some records, a row for each registered encoding and each other one that has runs.

    A column is made of runs that compare: one task and tier, at equal width, with the budget's own settings but for
    the learning rate, which may have been selected, by each row from the grid of its suite. Rows are encodings as they
    are by default.

    Args:
        records: Records of any runs, in any order.
        costs: Costs of a training step; none by default.
    """
    costs = costs or Costs()
    tasks = {(measure.task, measure.tier) for measure in MEASURES}
    wanted = [record for record in records if (record.config.task, record.config.tier) in tasks]
    found = build_tables(without_finer_rates(wanted), allow_unmatched=True)
    tables = {m.key: table for m in MEASURES if (table := _table_of(m, found))}
    cards = encoding_cards()
    labels = {*cards, *(row.label for table in tables.values() for row in table.rows if _is_default(row.label))}
    columns = {measure.key: _column(measure, tables.get(measure.key), labels, cards) for measure in MEASURES}
    lines = []
    for label in labels:
        entries = {key: column[label] for key, column in columns.items()}
        lines.append(Line(label, cards.get(label), entries, _parameters(label, tables), costs.of(label)))
    return Scorecard(tuple(sorted(lines, key=_place)), tables, costs.device)


def without_finer_rates(records: Sequence[Record]) -> list[Record]:
    """Leave out runs with a rate between those that most encodings chose from, which few had to choose from.

    A study of a few encodings may try rates closer together. Beside the others' these rows would have an advantage.
    Rates outside of the common ones stay: those that a row is tried with whose best rate is the first or the last.

    Args:
        records: Records of any runs.
    """
    tried = dict[tuple[str, str], dict[float, set[str]]]()
    for record in records:
        config = record.config
        if config.stage == "select" and RATE in config.selected_values and _is_default(config.label):
            rates = tried.setdefault((config.task, config.tier), {})
            rates.setdefault(config.selected_values[RATE], set()).add(config.label)
    finer = dict[tuple[str, str], set[float]]()
    for place, rates in tried.items():
        most = len(set().union(*rates.values())) / 2
        common = {rate for rate, labels in rates.items() if len(labels) >= most}
        low, high = min(common, default=0.0), max(common, default=0.0)
        finer[place] = {rate for rate in rates if low < rate < high} - common
    return [
        record for record in records
        if record.config.selected_values.get(RATE) not in finer.get((record.config.task, record.config.tier), set())
    ]  # fmt: skip


def _is_default(label: str) -> bool:
    """Return True for the label of an encoding without options."""
    return " (" not in label


def _place(line: Line) -> tuple[int, tuple[object, ...]]:
    families = [*GROUPS]
    family = families.index(group_of(line.card)) if line.card else len(families)
    return family, tuple(natural(line.label))


def _table_of(measure: Measure, tables: Sequence[Table]) -> Table | None:
    """Return the table that a column is made of: of those that may, the one with most encodings."""
    fit = [
        table for table in tables
        if (table.task.name, table.config.tier, table.config.regime) == (measure.task, measure.tier, "width")
        and not table.settings
        and set(table.config.selected) <= {RATE}
    ]  # fmt: skip
    # Of equally many encodings, the newest protocol, and with rates that were selected.
    return max(fit, default=None, key=lambda table: (_size(table), table.protocol, table.config.selected))


def _size(table: Table) -> int:
    return sum(_is_default(row.label) for row in table.rows)


def _parameters(label: str, tables: Mapping[str, Table]) -> int | None:
    for key in ("language", "images"):
        row = tables[key].row(label) if key in tables else None
        if row and row.values:
            found: int | None = row.costs["parameters_encoding"]
            return found
    return None


def _column(
    measure: Measure, table: Table | None, labels: Iterable[str], cards: Mapping[str, EncodingCard]
) -> dict[str, Entry]:
    """Return the cells of a column by label."""
    values = _values(measure, table)
    means = {label: estimate(seeds.values()) for label, seeds in values.items()}
    found = ranks(values, measure.card.higher_is_better)
    order = [means[label].mean for label in found]
    best, worst = (order[0], order[-1]) if order else (0.0, 0.0)
    column = {}
    for label in labels:
        if label not in means:
            column[label] = _without_value(measure, cards.get(label))
            continue
        score = abs(means[label].mean - worst) / abs(best - worst) if best != worst else 1.0
        column[label] = Entry(means[label], "", found[label], score, values[label])
    return column


def _values(measure: Measure, table: Table | None) -> dict[str, Values]:
    """Return the values of each row by seed, without rows that have none."""
    found = dict[str, Values]()
    for row in table.rows if table else ():
        sizes = row.extrapolation(measure.card.metric)
        values = sizes.get(measure.size, {}) if measure.size else row.values
        if values and _is_default(row.label):
            found[row.label] = values
    return found


def _without_value(measure: Measure, card: EncodingCard | None) -> Entry:
    if card and not serves(measure.task, card.name):
        return Entry(why=UNSERVED)
    if card and measure.size and card.declared["beyond"] == REFUSES:
        return Entry(why=REFUSES, score=0.0)
    return Entry(why=UNMEASURED)
