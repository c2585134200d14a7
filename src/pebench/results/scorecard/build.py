"""A scorecard, built from records: a cell has mean and rank, each with its interval."""

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pebench.encodings.cards import EncodingCard
from pebench.encodings.families import GROUPS, group_of
from pebench.encodings.registry import encoding_card, encoding_cards
from pebench.errors import UserError
from pebench.formatting import natural
from pebench.results.scorecard.costs import Cost, Costs
from pebench.results.scorecard.measures import MEASURES, Measure
from pebench.results.scorecard.ranks import Rank, Values, may_be_ranked, ranks
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
        rank: Place among the ranked rows, with its interval; ``None`` for a row that `may_be_ranked` leaves out.
        score: 1 for the best mean of ranked rows, 0 for the worst, and for encodings that refuse this size.
        values: Seed to value.
        failed: Number of runs without a value, since they failed or their value is infinite.
    """

    estimate: Estimate | None = None
    why: str = ""
    rank: Rank | None = None
    score: float | None = None
    values: Values = field(default_factory=dict, repr=False)
    failed: int = 0

    @property
    def leads(self) -> bool:
        """True if no row of the column is separably better."""
        return self.rank is not None and self.rank.first == 1


@dataclass(frozen=True)
class Line:
    """One row of the scorecard.

    Args:
        label: The encoding.
        card: Its card; ``None`` for one that is neither registered nor found here.
        entries: The cells by the key of their column.
        parameters: Parameters of the encoding in the language model, else in the image model, else in the first other
            task that has them; ``None`` if unknown.
        costs: Costs of a training step by the number of tokens.
        image_costs: Likewise by the number of patches of an image.
    """

    label: str
    card: EncodingCard | None
    entries: Mapping[str, Entry]
    parameters: int | None
    costs: Mapping[int, Cost]
    image_costs: Mapping[int, Cost]

    @property
    def fused(self) -> bool | None:
        """True if it changes no logits, so that attention stays a fused kernel; ``None`` if that is not known.

        A wrapper has every hook, and is as the encoding within it.
        """
        if self.card is None or self.card.declared["wraps"]:
            return None
        return "bias" not in self.card.hooks

    @property
    def biased_kernel(self) -> bool:
        """True if the fused kernel took its bias where costs were measured, at the shortest length."""
        return any(next(iter(c.values())).kernel == "sdpa with bias" for c in (self.costs, self.image_costs))

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

    @cached_property
    def usual_seeds(self) -> Mapping[str, int]:
        """The number of seeds that most rows of a column have, by its key; of several, the smallest."""
        found = {}
        for key in (measure.key for measure in self.measures):
            counts = Counter(entry.estimate.n for line in self.lines if (entry := line.entries[key]).estimate)
            found[key] = min(counts, key=lambda n: (-counts[n], n))
        return found

    @property
    def unmeasured(self) -> tuple[Measure, ...]:
        """The columns that wait for runs."""
        return tuple(measure for measure in MEASURES if measure not in self.measures)


def scorecard(records: Iterable[Record], costs: Costs | None = None) -> Scorecard:
    """Return the scorecard of some records, a row for each registered encoding and each other with runs or costs.

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
    labels = {row.label for table in tables.values() for row in table.rows if _is_default(row.label)}
    labels |= encoding_cards().keys() | costs.cells.keys() | costs.images.keys()
    cards = _cards(labels)
    columns = {measure.key: _column(measure, tables.get(measure.key), labels, cards) for measure in MEASURES}
    lines = []
    for label in labels:
        entries = {key: column[label] for key, column in columns.items()}
        parameters = _parameters(label, tables, cards.get(label))
        lines.append(Line(label, cards.get(label), entries, parameters, costs.of(label), costs.of_images(label)))
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


def _cards(labels: Iterable[str]) -> dict[str, EncodingCard]:
    """Return the cards of encodings; of those of others, which a reader may not have, the ones that are found."""
    cards = dict(encoding_cards())
    for label in labels:
        if label not in cards:
            with contextlib.suppress(UserError):
                cards[label] = encoding_card(label)
    return cards


def _place(line: Line) -> tuple[int, tuple[object, ...]]:
    families = [*GROUPS]
    family = families.index(group_of(line.card)) if line.card and line.label in encoding_cards() else len(families)
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


def _parameters(label: str, tables: Mapping[str, Table], card: EncodingCard | None) -> int | None:
    """Return the parameters of an encoding in the first model that has it; 0 where its class declares that."""
    for table in tables.values():  # in the order of columns: language, images, order tasks
        row = table.row(label)
        if row and row.values:
            found: int | None = row.costs["parameters_encoding"]
            return found
    return 0 if card and card.declared["size"] == "0" and not card.declared["wraps"] else None


def _column(
    measure: Measure, table: Table | None, labels: Iterable[str], cards: Mapping[str, EncodingCard]
) -> dict[str, Entry]:
    """Return the cells of a column by label."""
    values, failed = _values(measure, table), _failed(measure, table)
    means = {label: estimate(seeds.values()) for label, seeds in values.items()}
    found = ranks(may_be_ranked(values, failed), measure.card.higher_is_better)
    order = [means[label].mean for label in found]
    best, worst = (order[0], order[-1]) if order else (0.0, 0.0)
    column = {}
    for label in labels:
        if label not in means:
            column[label] = replace(_without_value(measure, cards.get(label)), failed=failed.get(label, 0))
            continue
        score = None
        if label in found:
            score = abs(means[label].mean - worst) / abs(best - worst) if best != worst else 1.0
        column[label] = Entry(means[label], "", found.get(label), score, values[label], failed.get(label, 0))
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


def _failed(measure: Measure, table: Table | None) -> dict[str, int]:
    """Return the number of runs of each row that failed, or whose value at the column's size is not finite."""
    metric = f"test/{measure.card.metric}@{measure.size}"
    return {
        row.label: len(row.failed) + sum(not math.isfinite(r.metrics.get(metric, 0.0)) for r in row.finished)
        for row in (table.rows if table else ())
    }


def _without_value(measure: Measure, card: EncodingCard | None) -> Entry:
    if card and not serves(measure.task, card.name):
        return Entry(why=UNSERVED)
    if card and measure.beyond and card.declared["beyond"] == REFUSES:
        return Entry(why=REFUSES, score=0.0)
    return Entry(why=UNMEASURED)
