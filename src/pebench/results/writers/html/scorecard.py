"""The scorecard as one HTML page: it sorts, filters, and ranks by weights that a reader sets."""

from collections.abc import Sequence
from typing import Any

from pebench.results.cells import Cell, words
from pebench.results.grids import by_family
from pebench.results.prose import prose
from pebench.results.scorecard import Line, Measure, Scorecard, advice
from pebench.results.writers.html.content import markup
from pebench.results.writers.html.rendering import render
from pebench.results.writers.scorecard import PARAMETERS, column_title, cost_columns, entry_cell, fused_word
from pebench.results.writers.scorecard_texts import (
    LEAD,
    LEGEND,
    TITLE,
    UNSCORED,
    nothing_measured,
    origins,
    progress,
)  # fmt: skip

FILTERS = {
    "any": "have any result",
    "measured": "are measured in every weighed column",
    "grids": "serve images",
    "bidirectional": "serve bidirectional attention",
    "free": "have no parameters",
    "fused": "keep fused attention",
    "cache": "work with a KV cache",
    "beyond": "go on beyond the trained size",
}
"""Conditions that a reader may set, by their names in the page."""


def scorecard_html(card: Scorecard) -> str:
    """Return the scorecard as one file, which needs no network. The same records give the same bytes."""
    weighed = weighed_at_first(card)
    return render(
        "scorecard.html",
        ["page.css", "scorecard.css"],
        ["page.js", "scorecard.js"],
        title=TITLE,
        lead=markup(prose(f"{LEAD} {progress(card)}")),
        legend=[markup(prose(line.replace("*", ""))) for line in LEGEND],
        unscored=UNSCORED,
        hidden=_hidden(card),
        parameters=PARAMETERS,
        nothing=nothing_measured(),
        costs=[*cost_columns(card)],
        measures=[_measure(measure, measure in weighed) for measure in card.measures],
        filters=FILTERS,
        advice=list(advice(card)),
        families=_families(card),
        origins=[markup(prose(line)) for line in origins(card)],
    )


def weighed_at_first(card: Scorecard) -> list[Measure]:
    """Return the columns that count before a reader weighs any.

    They are of the trained size; each joins as long as half of all rows with a result are measured in all of them.
    """
    chosen, rows = list[Measure](), [line for line in card.lines if line.measured]
    fewest = len(rows) / 2
    for measure in card.measures:
        left = [line for line in rows if line.entries[measure.key].score is not None]
        if not measure.size and len(left) >= fewest:
            chosen, rows = [*chosen, measure], left
    return chosen


def _measure(measure: Measure, weighed: bool) -> dict[str, Any]:
    return {
        "key": measure.key,
        "name": f"{measure.group}, {measure.title}",
        "header": column_title(measure),
        "largest_first": measure.card.higher_is_better,
        "weight": int(weighed),
    }


def _families(card: Scorecard) -> list[tuple[str, list[dict[str, Any]]]]:
    costs = [*cost_columns(card).values()]
    return [
        (family, [_row(place, card, costs) for place in places])
        for family, places in by_family({"Encoding": words(line.label for line in card.lines)})
    ]


def _row(place: int, card: Scorecard, costs: Sequence[Sequence[Cell]]) -> dict[str, Any]:
    line = card.lines[place]
    return {
        "label": line.label,
        "tags": " ".join(_tags(line)),
        "summary": line.card.summary if line.card else "",
        "cells": [
            {
                "cell": entry_cell(entry := line.entries[measure.key], measure, card.usual_seeds[measure.key]),
                "seeds": entry.estimate.n if entry.estimate else 0,
                "score": None if entry.score is None else round(entry.score, 4),
                "leads": entry.leads,
            }
            for measure in card.measures
        ],
        "parameters": line.parameters,
        "costs": [cells[place] for cells in costs],
        "fused": fused_word(line),
        "kv_cache": line.kv_cache,
        "beyond": line.beyond,
    }


def _hidden(card: Scorecard) -> str:
    """Return which rows the conditions hide since their class is not found here; empty where all are known."""
    unknown = [line.label for line in card.lines if line.card is None]
    return f"Conditions hide rows whose properties are not known: {', '.join(unknown)}." if unknown else ""


def _tags(line: Line) -> list[str]:
    """Return the conditions that a row meets; of an encoding that is not known here, those that runs tell."""
    tags = ["any"] if line.measured else []
    tags += ["free"] if line.parameters == 0 else []
    if line.card:
        tags += ["grids"] if 2 in line.card.declared["axes"] else []
        tags += [] if line.card.declared["causal_only"] else ["bidirectional"]
        tags += ["fused"] if line.fused else []
        tags += ["cache"] if line.kv_cache == "works" else []
        tags += ["beyond"] if line.beyond == "goes on" else []
    return tags
