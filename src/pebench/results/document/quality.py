"""Paragraphs on how good the models of a page are: beside published ones, and by how far they were trained."""

from collections.abc import Sequence

from pebench.formatting import si_text
from pebench.results import grids
from pebench.results.citations import link
from pebench.results.document import texts
from pebench.results.document.model import Quality
from pebench.results.page import Page
from pebench.results.prose import Prose, prose
from pebench.results.quality import LateChange, best_and_median, late_changes, seen, turned
from pebench.results.tables import Table
from pebench.results.titles import own_part


def quality(page: Page) -> tuple[Quality, ...]:
    """Return a part for each task of a page that has results, and of which more is known than its settings."""
    tasks: dict[str, list[Table]] = {}
    for table in page.tables:
        known = table.task.published or seen(table).epochs is not None or late_changes(table)
        if known and any(row.values for row in table.rows):
            tasks.setdefault(table.task.name, []).append(table)
    return tuple(_quality(name, tables, page) for name, tables in tasks.items())


def quality_text(page: Page, parts: Sequence[Quality]) -> str:
    """Return how to read these parts of a page; empty where they explain themselves."""
    found = [texts.BESIDE_PUBLISHED] if any(part.grid for part in parts) else []
    found += [texts.LATE_CHANGES] if any(map(late_changes, page.tables)) else []
    return " ".join(found)


def _quality(name: str, tables: list[Table], page: Page) -> Quality:
    task = tables[0].task
    keys = dict.fromkeys(one.cite for one in task.published)
    links = [part for key in keys for part in (link(key), ", ")][:-1]
    facts = [_facts(table, page) for table in tables]
    if task.published and task.test_text:
        ratio = task.test_text.bytes / task.test_text.words
        facts.append(prose(texts.WORDS.format(ratio=ratio)))
    return Quality(name, grids.quality(tables, page.tables), tuple(facts), ("Sources: ", *links, ".") if links else ())


def _facts(table: Table, page: Page) -> Prose:
    """Return what the runs of a table saw, and how much validation still changed at their end."""
    found = seen(table)
    name, steps = own_part(table, page.tables), table.config.train.max_steps
    # Beside published models the grid has them.
    epochs = "" if found.epochs is None or table.task.published else f", {grids.epochs_text(found.epochs)}"
    text = f"Each run saw {si_text(found.count)} {found.unit} in {steps:,} steps{epochs}."
    return prose(f"**{name}.** " * bool(name) + text + _late_text(table))


def _late_text(table: Table) -> str:
    changes = late_changes(table)
    if not changes:
        return " How far training was from its end is not known: its curves have too few points."
    (_, best), *_ = best_and_median(table)
    shown = best.label if best.label in changes else next(iter(changes))
    change = changes[shown]
    metric = change.metric.partition("/")[2].replace("_", " ")
    half = change.change.half_width
    amount = _amount(change.change.mean, change, table)
    interval = "" if half is None else f" ± {_number(half, change, table)}"
    doubled = _amount(change.per_doubling, change, table)
    text = (
        f" From step {change.start:,} to {change.end:,}, the validation {metric} of `{shown}` changed by "
        f"{amount}{interval}{_unit(change, table)} ({doubled} for a doubling of steps)"
    )
    others = sorted(one.change.mean for label, one in changes.items() if label != shown)
    ends = list(dict.fromkeys(_amount(value, change, table) for value in (others[:1] + others[-1:])))
    text += f", that of the other rows by {' to '.join(ends)}." if ends else "."
    return text + _turned_text(table, changes, change.start)


def _amount(value: float, change: LateChange, table: Table) -> str:
    """Return a change with its sign, in percent of a loss, or in the unit of the headline metric."""
    return ("+" if value > 0 else "") + _number(value, change, table)


def _number(value: float, change: LateChange, table: Table) -> str:
    if change.relative:
        return f"{100 * value:z.1f}"
    return f"{table.task.scale * value:z.{1 if table.task.percent else table.task.digits}f}"


def _unit(change: LateChange, table: Table) -> str:
    if change.relative:
        return " %"
    return " points" if table.task.percent else ""


def _turned_text(table: Table, changes: dict[str, LateChange], start: int) -> str:
    """Return how many rows differ from the reference, and which of them were on its other side before."""
    found = turned(table, changes)
    if found is None:
        return ""
    count, labels = found
    rows = "1 row differs" if count == 1 else f"{count} rows differ"
    same = f"{'it' if count == 1 else 'all of them'} on the same side"
    sides = f"{', '.join(f'`{label}`' for label in labels)} on the other side" if labels else same
    return f" {rows} from `{table.reference}` in the test; validation at step {start:,} had {sides}."
