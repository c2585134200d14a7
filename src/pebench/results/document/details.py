"""Further grids of a table, each with the meaning of its cells."""

import statistics

from pebench.formatting import counted
from pebench.results import grids
from pebench.results.cells import NOTHING, Grid
from pebench.results.document import texts
from pebench.results.document.model import Detail
from pebench.results.page import Page
from pebench.results.prose import prose
from pebench.results.speedup import speedups
from pebench.results.tables import Row, Table
from pebench.results.titles import difference_unit
from pebench.tasks import ROUNDING


def details(table: Table, page: Page) -> list[Detail]:
    """Return the grids that stand below a table's results, without those that have no cells."""
    extrapolation = grids.extrapolation(table)
    found = [
        ("contrasts", "Declared contrasts", texts.CONTRASTS, grids.contrasts(table, page)),
        ("pairs", "Every two rows", texts.PAIRS.format(unit=difference_unit(table.task)), grids.pairs(table)),
        ("speedup", "Effective speedup", _speedup_text(table), grids.speedup(table)),
        ("beyond", "Beyond the trained size", _extrapolation_text(extrapolation), extrapolation),
        ("by position", "Loss by position", _by_position_text(table), grids.by_position(table)),
        ("position shares", "Position in the residual stream", _shares_text(table), grids.position_shares(table)),
        *(
            (f"inside {group}", title, text, grids.inside(table, group))
            for group, (title, text) in texts.INSIDE.items()
        ),
        (
            "selection",
            "Settings that validation chose",
            _selection_text(table) if table.trials else "",
            grids.sweep(table),
        ),
    ]
    return [Detail(name, title, prose(text), grid) for name, title, text, grid in found if grid]


def _speedup_text(table: Table) -> str:
    bound = texts.SPEEDUP_BOUND * any(found.bound for found in speedups(table).values())
    return texts.SPEEDUP.format(reference=table.reference, bound=bound)


def _extrapolation_text(grid: Grid) -> str:
    sizes = texts.OTHER_SIZES if any(name.startswith("at ") for name in grid) else ""
    controls = "".join(f" `{name}`: {text}." for name, text in texts.CONTROLS.items() if name in grid)
    controls += texts.POLICY * ("policy" in grid)
    return texts.EXTRAPOLATION.format(sizes=sizes, controls=controls)


def _by_position_text(table: Table) -> str:
    return texts.BY_POSITION.format(unit=difference_unit(table.task))


def _shares_text(table: Table) -> str:
    for row in table.rows:
        if row.values and not any(record.position_shares for record in row.records if record.ok):
            return f"{texts.SHARES} {NOTHING}: {texts.OLDER}"
    return texts.SHARES


def _selection_text(table: Table) -> str:
    metric, mode = table.task.monitored(table.config.train.monitor)
    seeds = {record.config.seed for record in table.selecting}
    names, count = ", ".join(table.config.selected), counted(len(seeds), "seed")
    head = f"Selected on validation data, at equal budget, over {count} that {'is' if len(seeds) == 1 else 'are'} not"
    text = f"{head} tested: {names}, by the {texts.BEST[mode]} {metric}."
    return text + _further_text(table) + _narrow_text(table, metric)


def _further_text(table: Table) -> str:
    """Return the values that only some rows were tried at, in a sentence: a row at the end of its grid has more."""
    tried: dict[str, list[str]] = {}
    for trial in table.trials:
        tried.setdefault(trial.label, []).append(trial.text)
    shared, found = set.intersection(*map(set, tried.values())), dict[str, list[str]]()
    for label, values in tried.items():
        if further := [value for value in values if value not in shared]:
            found.setdefault(", ".join(further), []).append(label)
    return "".join(f" {texts.FURTHER} {values}: {', '.join(found[values])}." for values in found)


def _narrow_text(table: Table, metric: str) -> str:
    """Return the rows of which another value was as good as the chosen one, or almost, in a sentence."""
    tied, close = [], []
    for row in table.rows:
        lead, tested = _lead(row, table), row.known(lambda record: record.metrics.get(metric))
        if lead is None or row.label in table.outdated:
            continue
        if lead <= ROUNDING:
            tied.append(row.label)
        elif len(tested) > 1 and lead < statistics.stdev(tested):
            close.append(row.label)
    found = ((texts.TIED, tied), (texts.CLOSE, close))
    return "".join(f" {text}: {', '.join(labels)}." for text, labels in found if labels)


def _lead(row: Row, table: Table) -> float | None:
    """Return how far a row's chosen value is ahead of the nearest other one; None unless two or more have scores."""
    values, chosen, others = row.config.selected_values, list[float](), list[float]()
    for trial in table.trials_of(row.label):
        if trial.score is not None:
            (chosen if trial.values == values else others).append(trial.score)
    return min((abs(other - best) for best in chosen for other in others), default=None)
