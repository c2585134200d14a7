"""The rows of tables as raw numbers, for formats that programs read."""

from typing import Any

from pebench.config import RunConfig
from pebench.results.contrasts import Equivalence
from pebench.results.page import Page
from pebench.results.tables import Row, Table, changed_settings
from pebench.tasks import find_task


def table_head(table: Table) -> dict[str, Any]:
    """Return what a table's rows have in common."""
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


def raw_rows(page: Page, table: Table) -> list[dict[str, Any]]:
    """Return a table's rows, and those that the suite asked for and of which there is no run."""
    equivalent = page.equivalences(table)
    missing: dict[str, list[int]] = {}
    for absence in page.coverage.absences(table):
        if absence.reason is None and not absence.values:  # tested runs; failed ones have a column of their own
            missing.setdefault(absence.label, []).append(absence.seed)
    rows = []
    for row in table.rows:
        rows.append(_raw_row(row, table, equivalent.get(row.label)) | {"missing": missing.get(row.label, [])})
    # A row without runs has the columns of the others, so that every line of the CSV has as many.
    empty: dict[str, Any] = {name: {} if isinstance(value, dict) else None for name, value in rows[0].items()}
    for kind in page.coverage.lacking(table):
        rows.append(empty | {
            **_encoding(kind), "n": 0, "pairs": 0, "throughput_unit": rows[0]["throughput_unit"],
            "missing": missing.get(kind.label, []),
        })  # fmt: skip
    return rows


def _encoding(config: RunConfig) -> dict[str, Any]:
    return {"encoding": config.encoding, "encoding_args": dict(sorted(config.encoding_args.items()))}


def _raw_row(row: Row, table: Table, equivalent: Equivalence | None) -> dict[str, Any]:
    mean, difference = row.estimate, row.difference
    return {
        **_encoding(row.config),
        "own_settings": row.own,
        "mean": mean and mean.mean,
        "half_width": mean and mean.half_width,
        "n": len(row.values),
        "difference": difference and difference.mean,
        "difference_half_width": difference and difference.half_width,
        "pairs": difference.n if difference else 0,
        "p_value": difference and difference.p_value,
        "p_adjusted": row.p_adjusted,
        "verdict": row.verdict and row.verdict.text,
        **raw_equivalence(equivalent),
        "perplexity": row.perplexity,
        "beyond": row.extrapolation(table.task.metric),
        "position_shares": {stage: seeds for stage, seeds in row.position_shares.items() if seeds},
        **beyond(row),
        **analysis(row),
        **row.costs,
        "throughput_unit": f"{table.task.unit}/s",
        "values": row.values,
        "failed": row.failed,
    }


def beyond(row: Row) -> dict[str, Any]:
    """Return the policy at other sizes and the loss by position of runs by seed; nothing for older runs alone."""
    found = {
        name: {record.config.seed: record.beyond[name] for record in row.finished if name in record.beyond}
        for name in ("policy", "by_position")
    }
    return {name: seeds for name, seeds in found.items() if seeds}


def analysis(row: Row) -> dict[str, Any]:
    """Return the figures of analyzed runs by seed; nothing where none was, so that older files stay as they are."""
    found = {record.config.seed: record.analysis for record in row.finished if record.analysis}
    return {"analysis": found} if found else {}


def raw_equivalence(equivalent: Equivalence | None) -> dict[str, Any]:
    """Return margin, p-value and outcome of a test of equivalence; ``None`` each without one."""
    return {
        "margin": equivalent and equivalent.margin,
        "p_equivalent": equivalent and equivalent.p_adjusted,
        "equivalent": equivalent and equivalent.holds,
    }


def untested_row(page: Page, kind: RunConfig) -> dict[str, Any]:
    """Return what is known of a row whose table has no runs."""
    task = find_task(kind.task)
    return {
        "task": kind.task, "tier": kind.tier, "settings": changed_settings(kind, task.budgets), **_encoding(kind),
        "metric": f"test/{task.metric}", "higher_is_better": task.higher_is_better, "reference": page.reference,
        "n": 0, "pairs": 0, "missing": list(page.coverage.seeds),
    }  # fmt: skip
