"""Tables for programs: CSV and JSON with raw numbers. The same records give the same bytes."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson  # json would take as long as all the rest of it

from pebench.config import SECTIONS, RunConfig
from pebench.results.across import Interval, Summary
from pebench.results.gates import gates
from pebench.results.page import Contrast, Page, Series
from pebench.results.provenance import command, provenance, warnings
from pebench.results.tables import Table, unlike
from pebench.runs.selection import Trial
from pebench.runs.suite import Suite
from pebench.tasks import find_task


def _values(page: Page, table: Table) -> list[dict[str, Any]]:
    """The rows of a table as raw numbers, and those that the suite asked for and of which there is no run."""
    equivalent = page.equivalences(table)
    absent = [absence for absence in page.absences(table) if absence.reason is None and not absence.values]
    found = []
    for row in table.rows:
        mean, difference, small = row.estimate, row.difference, equivalent.get(row.label)
        found.append({
            "encoding": row.config.encoding,
            "encoding_args": dict(sorted(row.config.encoding_args.items())),
            "own_settings": row.own,
            "mean": mean and mean.mean,
            "half_width": mean and mean.half_width,
            "n": len(row.values),
            "difference": difference and difference.mean,
            "difference_half_width": difference and difference.half_width,
            "pairs": difference.n if difference else 0,
            "p_value": difference and difference.p_value,
            "p_adjusted": row.p_adjusted,
            "verdict": row.verdict,
            "margin": small and small.margin,
            "p_equivalent": small and small.p_adjusted,
            "equivalent": small and small.holds,
            "perplexity": row.perplexity,
            "beyond": row.beyond(table.task.metric),
            "position_shares": {stage: seeds for stage, seeds in row.position_shares.items() if seeds},
            **row.costs,
            "throughput_unit": f"{table.task.unit}/s",
            "values": row.values,
            "failed": row.failed,
            "missing": [absence.seed for absence in absent if absence.label == row.label],
        })  # fmt: skip
    for kind in page.lacking(table):
        empty: dict[str, Any] = {name: {} if isinstance(value, dict) else None for name, value in found[0].items()}
        found.append(empty | {
            "encoding": kind.encoding, "encoding_args": dict(sorted(kind.encoding_args.items())), "n": 0, "pairs": 0,
            "throughput_unit": found[0]["throughput_unit"],
            "missing": [absence.seed for absence in absent if absence.label == kind.label],
        })  # fmt: skip
    return found


def _untested(page: Page, kind: RunConfig) -> dict[str, Any]:
    """What is known of a row whose table has no runs."""
    task = find_task(kind.task)
    return {
        "task": kind.task, "tier": kind.tier, "settings": unlike(kind, task.budgets), "encoding": kind.encoding,
        "encoding_args": dict(sorted(kind.encoding_args.items())), "metric": f"test/{task.metric}",
        "higher_is_better": task.higher_is_better, "reference": page.reference, "n": 0, "pairs": 0,
        "missing": list(page.seeds),
    }  # fmt: skip


def _head(table: Table) -> dict[str, Any]:
    """What a table's rows have in common."""
    return {
        "protocol": table.protocol,
        "task": table.task.name,
        "tier": table.config.tier,
        "settings": table.settings,
        "matched_by": table.config.regime,
        "metric": f"test/{table.task.metric}",
        "higher_is_better": table.task.higher_is_better,
        "reference": table.reference,
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    """A declared contrast as raw numbers."""
    small = contrast.equivalent
    return {
        "first": contrast.first, "second": contrast.second, **vars(contrast.difference),
        "p_adjusted": contrast.p_adjusted, "verdict": contrast.verdict, "margin": small and small.margin,
        "p_equivalent": small and small.p_adjusted, "equivalent": small and small.holds,
    }  # fmt: skip


def _series(page: Page, series: Series) -> dict[str, Any]:
    """How differences change along a setting, as raw numbers."""
    return {
        "task": series.first.task.name,
        "setting": series.setting,
        "values": list(series.tables),
        "changes": [
            {
                "first": change.first, "second": change.second, "ends": [vars(end) for end in change.ends],
                **vars(change.difference), "p_adjusted": change.p_adjusted, "verdict": change.verdict,
            }
            for change in page.changes(series)
        ],
    }  # fmt: skip


def _pairs(table: Table) -> list[dict[str, Any]]:
    """Every two rows as raw numbers."""
    return [
        {"first": first, "second": second, **vars(difference), "p_adjusted": p}
        for (first, second), (difference, p) in table.pairs.items()
    ]


def _trial(trial: Trial) -> dict[str, Any]:
    """What a setting was selected by, as raw numbers."""
    encoding = trial.records[0].config
    values = {str(record.config.seed): dict(record.metrics) for record in trial.records}
    return {
        "encoding": encoding.encoding, "encoding_args": dict(sorted(encoding.encoding_args.items())),
        "settings": dict(trial.values), "score": trial.score, "metrics": values,
    }  # fmt: skip


def _summary(tables: Sequence[Table], summary: Summary) -> dict[str, Any]:
    """Figures across tasks. Resampled ones are rounded, as processors differ in the last digits of a product."""
    return {
        "tier": tables[0].config.tier,
        "settings": tables[0].settings,
        "tasks": summary.tasks,
        "replicates": summary.replicates,
        "reference": summary.reference,
        "rows": [
            {
                "encoding": row.label,
                "interquartile_mean": _interval(row.iqm),
                "rank": _interval(row.rank),
                "improvement": row.improvement and _interval(row.improvement),
                "failed": row.failed,
                "interquartile_mean_excluding_failed": _rounded(row.iqm_finished),
            }
            for row in summary.rows
        ],
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


def _suite(suite: Suite) -> dict[str, Any]:
    """What was declared before the runs."""
    return {
        "name": suite.name, "question": suite.question, "expect": suite.expect, "decision": suite.decision,
        "declared": suite.declared_at and suite.declared_at.isoformat(), "remarks": list(suite.remarks),
        "margin": {task: suite.margin_of(task) for task in suite.tasks},
    }  # fmt: skip


def to_csv(page: Page) -> str:
    """One line per encoding and table, with raw numbers."""
    heads = ((table, _head(table) | {"warnings": warnings(table)}) for table in page.tables)
    rows = [head | values for table, head in heads for values in _values(page, table)]
    rows += [dict.fromkeys(rows[0]) | _untested(page, kind) for kind in page.untested]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        nested = {  # seeds are keys too
            name: orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
            for name, value in row.items()
            if isinstance(value, dict | list | bool)
        }
        writer.writerow(row | nested)
    return text.getvalue()


def _shared(table: Table, part: str) -> dict[str, Any]:
    """The settings of a part that all rows share: what was selected or matched is said of each row."""
    settings = asdict(getattr(table.config, part))
    return {name: value for name, value in settings.items() if f"{part}.{name}" not in table.rows[0].own}


def to_json(page: Page) -> str:
    """Everything on a page with raw numbers, every seed's value and the tables' origin."""
    tables = [
        _head(table)
        | {part: _shared(table, part) for part in SECTIONS}
        | {"rows": _values(page, table)}
        | {"contrasts": [_contrast(contrast) for contrast in page.contrasts(table)]}
        | {"pairs": _pairs(table)}
        | {"trials": [_trial(trial) for trial in table.trials]}
        | {"warnings": warnings(table), "command": command(table), "provenance": provenance(table)}
        | {"wall_time_s": table.wall_time_s}
        for table in page.tables
    ]
    across = [_summary(group, summary) for group, summary in page.summaries if summary]
    absent = list(map(asdict, page.absent))
    head = {"suite": page.suite and _suite(page.suite), "finding": page.finding, "absent": absent}
    checked = [
        {"rule": gate.rule, "table": page.tables.index(gate.table), "holds": gate.holds, "found": gate.found}
        for gate in gates(page)
    ]
    values = head | {
        "tables": tables,
        "series": [_series(page, one) for one in page.series],
        "across": across,
        "gates": checked,
    }
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(values, option=option).decode()
