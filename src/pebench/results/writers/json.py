"""Pages as JSON with raw numbers. The same records give the same bytes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson  # json would take as long as all the rest of it

from pebench.config import SECTIONS, section_values
from pebench.results.across import Interval, Summary
from pebench.results.contrasts import Contrast, Series
from pebench.results.finding import finding
from pebench.results.gates import gates
from pebench.results.page import Page
from pebench.results.provenance import command, provenance, warnings
from pebench.results.quality import late_changes, seen, word_perplexity
from pebench.results.raw import raw_equivalence, raw_rows, table_head
from pebench.results.speedup import speedups
from pebench.results.tables import Table
from pebench.runs.selection import Trial
from pebench.runs.suite import Suite


def to_json(page: Page) -> str:
    """Return everything on a page with raw numbers, every seed's value and the tables' origin."""
    values = {
        "suite": page.suite and _suite(page.suite),
        "finding": finding(page),
        "absent": list(map(asdict, page.absent)),
        "tables": [_table(page, table) for table in page.tables],
        "series": [_series(page, series) for series in page.series],
        "across": [_summary(group, summary) for group, summary in page.summaries if summary],
        "gates": [
            {"rule": gate.rule, "table": page.tables.index(gate.table), "holds": gate.holds, "found": gate.found}
            for gate in gates(page)
        ],
    }
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(values, option=option).decode()


def _suite(suite: Suite) -> dict[str, Any]:
    """Return what was declared before the runs."""
    return {
        "name": suite.name, "question": suite.question, "expect": suite.expect, "decision": suite.decision,
        "declared": suite.declared_at and suite.declared_at.isoformat(), "remarks": list(suite.remarks),
        "margin": {task: suite.margin_of(task) for task in suite.tasks},
    }  # fmt: skip


def _table(page: Page, table: Table) -> dict[str, Any]:
    return {
        **table_head(table),
        **{part: _shared_settings(table, part) for part in SECTIONS},
        "rows": raw_rows(page, table),
        "contrasts": [_contrast(contrast) for contrast in page.contrasts(table)],
        "pairs": _pairs(table),
        "trials": [_trial(trial) for trial in table.trials],
        "warnings": warnings(table),
        "command": command(table),
        "provenance": provenance(table),
        "wall_time_s": table.wall_time_s,
        "quality": _quality(table),
        "speedup": {label: asdict(found) for label, found in speedups(table).items()},
    }


def _quality(table: Table) -> dict[str, Any]:
    """Return published results on the task, what the runs saw, and how much validation still changed."""
    found, rows = seen(table), [row for row in table.rows if row.values]
    return {
        "published": list(map(asdict, table.task.published)),
        "seen": asdict(found),
        "tokens_per_parameter": {row.label: found.per_parameter(row) for row in rows},
        "word_perplexity": {
            row.label: asdict(value) for row in rows if (value := word_perplexity(row, table)) is not None
        },
        "late_changes": {
            label: {**asdict(change), "per_doubling": change.per_doubling}
            for label, change in late_changes(table).items()
        },
    }


def _shared_settings(table: Table, part: str) -> dict[str, Any]:
    """Return the settings of a part that all rows share: those selected or matched stand in each row."""
    settings = section_values(table.config, part)
    return {name: value for name, value in settings.items() if f"{part}.{name}" not in table.rows[0].own}


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "first": contrast.first, "second": contrast.second, **vars(contrast.difference),
        "p_adjusted": contrast.p_adjusted, "verdict": contrast.verdict.text, **raw_equivalence(contrast.equivalent),
    }  # fmt: skip


def _pairs(table: Table) -> list[dict[str, Any]]:
    return [
        {"first": first, "second": second, **vars(difference), "p_adjusted": p}
        for (first, second), (difference, p) in table.pairs.items()
    ]


def _trial(trial: Trial) -> dict[str, Any]:
    encoding = trial.records[0].config
    values = {str(record.config.seed): dict(record.metrics) for record in trial.records}
    return {
        "encoding": encoding.encoding, "encoding_args": dict(sorted(encoding.encoding_args.items())),
        "settings": dict(trial.values), "score": trial.score, "metrics": values,
    }  # fmt: skip


def _series(page: Page, series: Series) -> dict[str, Any]:
    changes = [
        {
            "first": change.first, "second": change.second, "ends": [vars(end) for end in change.ends],
            **vars(change.difference), "p_adjusted": change.p_adjusted, "verdict": change.verdict.text,
        }
        for change in page.changes(series)
    ]  # fmt: skip
    return {
        "task": series.first.task.name,
        "setting": series.setting,
        "values": list(series.tables),
        "changes": changes,
    }


def _summary(tables: Sequence[Table], summary: Summary) -> dict[str, Any]:
    """Return figures across tasks; resampled ones rounded, as processors differ in the last digits of a product."""
    rows = [
        {
            "encoding": row.label,
            "interquartile_mean": _interval(row.iqm),
            "rank": _interval(row.rank),
            "improvement": row.improvement and _interval(row.improvement),
            "failed": row.failed,
            "interquartile_mean_excluding_failed": _rounded(row.iqm_finished),
        }
        for row in summary.rows
    ]
    return {
        "tier": tables[0].config.tier,
        "settings": tables[0].settings,
        "tasks": summary.tasks,
        "replicates": summary.replicates,
        "reference": summary.reference,
        "rows": rows,
        "left_out": {name: list(tasks) for name, tasks in summary.lacking.items()},
        "unpaired_runs": summary.unpaired,
        "friedman_p": _rounded(summary.friedman_p),
        "critical_difference": _rounded(summary.critical_difference),
        "groups": [list(group) for group in summary.groups],
    }


def _interval(value: Interval) -> dict[str, float | None]:
    return {name: _rounded(x) for name, x in value._asdict().items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
