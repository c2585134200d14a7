"""The scorecard in Markdown and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from pebench.results.cells import NOTHING, Cell, Grid, count_cell, decimal_cell, interval_cell, numbers, words
from pebench.results.scorecard import MEASURES, Entry, Line, Measure, Scorecard, advice
from pebench.results.scorecard.build import UNMEASURED, UNSERVED
from pebench.results.scorecard.costs import LENGTHS, Cost
from pebench.results.titles import headline
from pebench.results.writers.markdown import pipe

TITLE = "Scorecard"

LEAD = (
    "Every encoding of pebench in one table: how well it does, at the trained size and beyond it. A cell is the mean "
    "over seeds with half its 95 % interval; then the rank in its column, with the ranks that it may have, given which "
    "rows are separable: those whose paired t-test has p < 5 % after Bonferroni's correction over the comparisons of a "
    "row with all others. Bold: rows that may be the best, as none is separably better."
)
"""How to read the table."""

PICKED = (
    "The best of many means is flattered by having been picked: a difference to it is exploratory unless a suite "
    "declared it."
)

CACHE = (
    "KV cache: during generation, a cache of keys and values *works*; *needs more* of each token, "
    "such as gates; or *goes stale*, as they change, be it beyond the trained length alone."
)
"""The words of the column of caches."""

LIMITS = (
    f"{NOTHING}: not measured, or not known. *refuses*: has no positions beyond the trained ones. {CACHE} Models are "
    f"small and training is short ([what results cannot tell](../README.md#what-it-cannot-tell)). {PICKED}"
)

REAL = ("Language", "Images")
"""Groups of columns whose data are not generated."""

COSTS = {"time": "Step time", "memory": "Memory"}
"""Headings of costs, by their attributes."""


def nothing_measured() -> str:
    """Return that no run counts, and which would."""
    tiers = dict.fromkeys(measure.tier for measure in MEASURES)
    tasks = (f"tier {tier}: {', '.join(dict.fromkeys(m.task for m in MEASURES if m.tier == tier))}" for tier in tiers)
    return (
        f"Nothing is measured yet on any task of the scorecard ({'; '.join(tasks)}). Runs count with the tier's own "
        "settings, but for a learning rate that was selected, and encodings without options."
    )


def scorecard_markdown(card: Scorecard, page: str = "") -> str:
    """Return the scorecard as a page: what to take for which need, then every encoding.

    Args:
        card: The scorecard.
        page: Address of the same as HTML, to link to.
    """
    parts = [f"# {TITLE}\n", f"{LEAD} {progress(card)}\n"]
    if page:
        parts.append(f"[Sort it, filter it, weigh its columns]({page}) (a file to open in a browser).\n")
    if not card.measures:
        return "\n".join([*parts, f"{nothing_measured()}\n"])
    parts.append(f"## If you need\n\n{pipe(needs(card))}\n")
    parts.append("## Every encoding\n")
    parts += [f"### {heading}\n\n{pipe(table)}\n\n{rest}\n" for heading, table, rest in tables(card)]
    parts.append("## Where the figures are from\n")
    parts.append("\n".join(f"- {line}" for line in origins(card)) + "\n")
    return "\n".join(parts)


def progress(card: Scorecard) -> str:
    """Return how many encodings have any figure, and how many have all that they can have."""
    found = f"{sum(line.measured for line in card.lines)} of {len(card.lines)} encodings have figures in these tables."
    real, order = _split(card)
    complete = [
        f"{sum(line.complete(measures) for line in card.lines)} in {name}"
        for name, measures in (("language and images", real), ("the order tasks", order))
        if measures
    ]
    if complete:
        found += f" Rows with a value wherever they can have one: {', '.join(complete)}."
    return found


def _split(card: Scorecard) -> tuple[list[Measure], list[Measure]]:
    """Return the columns of real data, and those of generated data."""
    real = [measure for measure in card.measures if measure.group in REAL]
    return real, [measure for measure in card.measures if measure.group not in REAL]


def needs(card: Scorecard) -> Grid:
    """Return what to take for each need, and how sure that is."""
    found = list(advice(card))
    return {
        "You need": words(one.need for one in found),
        "Take": words(", ".join(f"`{label}`" for label in one.take) for one in found),
        "Result": words(one.result for one in found),
        "How sure": words(one.certainty for one in found),
    }


def tables(card: Scorecard) -> Iterator[tuple[str, Grid, str]]:
    """Yield the table in parts that fit a page: heading, rows and columns, and what stands below.

    Rows without any result on the tasks of a part are named below it.
    """
    real, order = _split(card)
    for heading, measures in (
        ("Language and images", real),
        ("Order tasks, at the trained size", [measure for measure in order if not measure.size]),
        ("Order tasks, beyond the trained size", [measure for measure in order if measure.size]),
    ):
        tasks = {measure.task for measure in measures}
        keys = [measure.key for measure in card.measures if measure.task in tasks]
        lines = [line for line in card.lines if any(line.entries[key].estimate for key in keys)]
        if lines:
            yield heading, results_grid(lines, measures), _absent(card, lines, keys)
    yield "Costs and properties", properties_grid(card), LIMITS


def results_grid(lines: Sequence[Line], measures: Sequence[Measure]) -> Grid:
    """Return a table of results: rows encodings, columns measures."""
    found: Grid = {"Encoding": words(line.label for line in lines)}
    for measure in measures:
        cells = (entry_cell(line.entries[measure.key], measure) for line in lines)
        found[column_title(measure)] = numbers(cells, measure.card.higher_is_better)
    return found


def properties_grid(card: Scorecard) -> Grid:
    """Return the table of costs, and of what is known without training."""
    found: Grid = {"Encoding": words(line.label for line in card.lines)}
    found |= {title: numbers(cells) for title, cells in cost_columns(card).items()}
    found["Parameters"] = numbers(count_cell(line.parameters) for line in card.lines)
    found["Fused attention"] = words(yes_or_no(line.fused) for line in card.lines)
    found["KV cache"] = words(line.kv_cache or NOTHING for line in card.lines)
    found["Beyond the trained size"] = words(line.beyond or NOTHING for line in card.lines)
    return found


def _absent(card: Scorecard, shown: Sequence[Line], keys: Sequence[str]) -> str:
    """Return which encodings are not in a table, and why."""
    absent = [line for line in card.lines if line not in shown]
    unserved = [line for line in absent if all(line.entries[key].why == UNSERVED for key in keys)]
    unmeasured = [line for line in absent if line not in unserved]
    return " ".join(
        f"{title}: {', '.join(f'`{line.label}`' for line in lines)}."
        for title, lines in (("Without a row so far", unmeasured), ("For other kinds of model", unserved))
        if lines
    )


def cost_columns(card: Scorecard) -> dict[str, list[Cell]]:
    """Return the cells of time and of memory at each length, by heading; none where no costs were measured."""
    if not card.device:
        return {}
    found = {}
    for name, title in COSTS.items():
        for tokens in LENGTHS:
            costs = (line.costs[tokens] for line in card.lines)
            cells = [Cell(cost.why) if cost.why else decimal_cell(getattr(cost, name), 2) for cost in costs]
            found[f"{title} at {tokens:,} tokens\n× none's ↓"] = cells
    return found


def column_title(measure: Measure) -> str:
    """Return the heading of a column, with the metric, its unit and direction."""
    return f"{measure.group} {measure.title}\n{headline(measure.card)}"


def entry_cell(entry: Entry, measure: Measure) -> Cell:
    """Return a cell as text: mean, interval and rank, or why there is nothing."""
    if entry.estimate is None:
        return Cell(NOTHING if entry.why == UNMEASURED else entry.why)
    task = measure.card
    cell = interval_cell(entry.estimate, task.scale, task.digits, note=f"; {entry.rank.text}" if entry.rank else "")
    return cell.styled("chosen") if entry.leads else cell


def yes_or_no(value: bool | None) -> str:
    """Return a word for a thing that may not be known."""
    return NOTHING if value is None else "yes" if value else "no"


def origins(card: Scorecard) -> Iterator[str]:
    """Yield the task, tier and seeds of each pair of columns, and then those that nothing was measured on."""
    for key in dict.fromkeys(measure.task for measure in card.measures):
        measure = next(measure for measure in card.measures if measure.task == key)
        table = card.tables[measure.key]
        seeds = sorted({entry.estimate.n for line in card.lines if (entry := line.entries[measure.key]).estimate})
        count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        rates = "learning rate selected for each row" if table.config.selected else "one learning rate for all rows"
        runs = f"tier {measure.tier}, {count} seeds, {rates}, protocol {table.protocol}"
        yield f"{measure.group}: `{measure.task}`, {runs}."
    if card.device:
        where = {"cpu": "a CPU", "cuda": "a GPU"}.get(card.device, card.device)
        yield (
            "Costs: seconds of a training step of a small model of causal text over those with `none`, and its peak of "
            f"memory likewise, on {where}; `studies/encoding_costs` has the models."
        )
    else:
        yield "Costs of a training step: not measured yet."
    yield (
        "Fused attention: yes where nothing is added to the attention logits. On a CPU PyTorch's kernel takes a fixed "
        "bias, too; `studies/encoding_costs` says with which encodings."
    )
    if missing := dict.fromkeys(measure.task for measure in card.unmeasured):
        yield f"Not measured yet: {', '.join(f'`{task}`' for task in missing)}."


def scorecard_json(card: Scorecard) -> str:
    """Return the scorecard with raw numbers, and each seed's value."""
    values = {
        "columns": [
            {
                "key": m.key, "title": f"{m.group}, {m.title}", "task": m.task, "tier": m.tier, "size": m.size,
                "metric": m.card.metric, "higher_is_better": m.card.higher_is_better,
            }
            for m in MEASURES
        ],
        "rows": [
            {
                "encoding": line.label, "parameters": line.parameters, "fused": line.fused, "beyond": line.beyond,
                "kv_cache": line.kv_cache, "costs": {tokens: _raw_cost(cost) for tokens, cost in line.costs.items()},
                "cells": {key: _raw(entry) for key, entry in line.entries.items()},
            }
            for line in card.lines
        ],
        "advice": [
            {"need": a.need, "take": a.take, "as_good": a.as_good, "among": a.among, "fewest_seeds": a.fewest}
            for a in advice(card)
        ],
    }  # fmt: skip
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(values, option=option).decode()


def _raw(entry: Entry) -> dict[str, Any]:
    if entry.estimate is None:
        return {"why": entry.why}
    found = entry.estimate
    return {
        "mean": found.mean, "half_width": found.half_width, "n": found.n, "rank": entry.rank and asdict(entry.rank),
        "score": entry.score, "leads": entry.leads, "values": dict(sorted(entry.values.items())),
    }  # fmt: skip


def _raw_cost(cost: Cost) -> dict[str, Any]:
    return {"why": cost.why or UNMEASURED} if cost.time is None else {"time": cost.time, "memory": cost.memory}
