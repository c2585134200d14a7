"""The scorecard in Markdown and JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from pebench.results.cells import NOTHING, Cell, Grid, count_cell, decimal_cell, interval_cell, numbers, words
from pebench.results.scorecard import MEASURES, Entry, Line, Measure, Scorecard, advice
from pebench.results.scorecard.build import UNMEASURED, UNSERVED
from pebench.results.scorecard.costs import LENGTHS, PATCHES, Cost
from pebench.results.titles import headline, runs_note
from pebench.results.writers.markdown import pipe
from pebench.results.writers.scorecard_texts import LEAD, LEGEND, TITLE, nothing_measured, origins, progress, split

PARAMETERS = "Parameters\n(language model,\nelse image model)"
"""Heading of the column of parameters."""

COSTS = {"time": "Step time", "memory": "Memory"}
"""Headings of costs, by their attributes."""


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
    for heading, table, rest in tables(card):
        parts.append(f"### {heading}\n\n{pipe(table)}\n" + f"\n{rest}\n" * bool(rest))
    for heading, lines in (("Words of the tables", LEGEND), ("Where the figures are from", origins(card))):
        parts.append(f"## {heading}\n\n" + "".join(f"- {line}\n" for line in lines))
    return "\n".join(parts)


def needs(card: Scorecard) -> Grid:
    """Return what to take for each need, how sure that is, and what it costs."""
    found = list(advice(card))
    grid = {
        "You need": words(one.need for one in found),
        "Take": words(", ".join(f"`{label}`" for label in one.take) for one in found),
        "Result": words(one.result for one in found),
        "How sure": words(one.certainty for one in found),
    }
    if any(one.step_time for one in found):
        grid["Training step"] = words(one.step_time or NOTHING for one in found)
    return grid


def tables(card: Scorecard) -> Iterator[tuple[str, Grid, str]]:
    """Yield the table in parts that fit a page: heading, rows and columns, and what stands below.

    Rows without any result on the tasks of a part are named below it.
    """
    real, order = split(card)
    for heading, measures in (
        ("Language and images", real),
        ("Order tasks, at the trained size", [measure for measure in order if not measure.beyond]),
        ("Order tasks, beyond the trained size", [measure for measure in order if measure.beyond]),
    ):
        tasks = {measure.task for measure in measures}
        keys = [measure.key for measure in card.measures if measure.task in tasks]
        lines = [line for line in card.lines if any(line.entries[key].estimate for key in keys)]
        if lines:
            yield heading, results_grid(card, lines, measures), _absent(card, lines, keys)
    yield "Costs and properties", properties_grid(card), ""


def results_grid(card: Scorecard, lines: Sequence[Line], measures: Sequence[Measure]) -> Grid:
    """Return a table of results: rows encodings, columns measures."""
    found: Grid = {"Encoding": words(line.label for line in lines)}
    for measure in measures:
        cells = (entry_cell(line.entries[measure.key], measure, card.usual_seeds[measure.key]) for line in lines)
        found[column_title(measure)] = numbers(cells, measure.card.higher_is_better)
    return found


def properties_grid(card: Scorecard) -> Grid:
    """Return the table of costs, and of what is known without training."""
    found: Grid = {"Encoding": words(line.label for line in card.lines)}
    found |= {title: numbers(cells) for title, cells in cost_columns(card).items()}
    found[PARAMETERS] = numbers(count_cell(line.parameters) for line in card.lines)
    found["Fused attention"] = words(fused_word(line) for line in card.lines)
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
        columns = {f"{tokens:,} tokens": [line.costs[tokens] for line in card.lines] for tokens in LENGTHS}
        columns |= {f"{size:,} patches": [line.image_costs[size] for line in card.lines] for size in PATCHES}
        for size, costs in columns.items():
            cells = [Cell(cost.why) if cost.why else decimal_cell(getattr(cost, name), 2) for cost in costs]
            found[f"{title} at {size}\n× none's ↓"] = cells
    return found


def column_title(measure: Measure) -> str:
    """Return the heading of a column, with the metric, its unit and direction."""
    return f"{measure.group} {measure.title}\n{headline(measure.card)}"


def entry_cell(entry: Entry, measure: Measure, usual: int) -> Cell:
    """Return a cell as text: mean, interval, runs and rank, or why there is nothing.

    Args:
        entry: The cell.
        measure: Its column.
        usual: The number of seeds that most rows of the column have.
    """
    if entry.estimate is None:
        nothing = NOTHING if entry.why == UNMEASURED else entry.why
        return Cell(nothing + runs_note(usual, usual, entry.failed))
    task = measure.card
    note = runs_note(entry.estimate.n, usual, entry.failed) + (f"; {entry.rank.text}" if entry.rank else "")
    cell = interval_cell(entry.estimate, task.scale, task.digits, note=note)
    return cell.styled("chosen") if entry.leads else cell


def fused_word(line: Line) -> str:
    """Return a word for how a row fares with fused attention."""
    if line.fused is None:
        return NOTHING
    return "yes" if line.fused else "with a bias" if line.biased_kernel else "no"


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
                "image_costs": {patches: _raw_cost(cost) for patches, cost in line.image_costs.items()},
                "cells": {key: _raw(entry) for key, entry in line.entries.items()},
            }
            for line in card.lines
        ],
        "advice": [
            {"need": a.need, "take": a.take, "as_good": [*a.as_good], "among": a.among, "fewest_seeds": a.fewest}
            for a in advice(card)
        ],
    }  # fmt: skip
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(values, option=option).decode()


def _raw(entry: Entry) -> dict[str, Any]:
    if entry.estimate is None:
        return {"why": entry.why} | ({"failed": entry.failed} if entry.failed else {})
    found = entry.estimate
    return {
        "mean": found.mean, "half_width": found.half_width, "n": found.n, "rank": entry.rank and asdict(entry.rank),
        "failed": entry.failed, "score": entry.score, "leads": entry.leads,
        "values": dict(sorted(entry.values.items())),
    }  # fmt: skip


def _raw_cost(cost: Cost) -> dict[str, Any]:
    return {"why": cost.why or UNMEASURED} if cost.time is None else {"time": cost.time, "memory": cost.memory}
