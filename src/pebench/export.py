"""Tables for programs: CSV and JSON with raw numbers. The same records give the same bytes."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from pebench.config import REFERENCE_ENCODING
from pebench.origin import commands, provenance, warnings
from pebench.records import Record
from pebench.tables import Row, Table, Trial, build_tables


def _values(table: Table, row: Row) -> dict[str, Any]:
    """A row as raw numbers."""
    mean, difference = row.estimate, row.difference
    return {
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
        "perplexity": row.perplexity,
        **row.costs(),
        "throughput_unit": f"{table.task.unit}/s",
        "values": {str(seed): value for seed, value in row.values.items()},
        "failed": {str(seed): reason for seed, reason in row.failed.items()},
        "missing": list(row.missing),
    }


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
        "reference": REFERENCE_ENCODING,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    """What a setting was selected by, as raw numbers."""
    encoding = trial.records[0].config
    values = {str(record.config.seed): dict(record.metrics) for record in trial.records}
    return {
        "encoding": encoding.encoding, "encoding_args": dict(sorted(encoding.encoding_args.items())),
        "settings": dict(trial.values), "score": trial.score, "metrics": values,
    }  # fmt: skip


def to_csv(records: Iterable[Record], allow_unmatched: bool = False) -> str:
    """One line per encoding and table, with raw numbers."""
    tables = build_tables(records, allow_unmatched)
    rows = [_head(table) | _values(table, row) for table in tables for row in table.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        nested = {name: json.dumps(value) for name, value in row.items() if isinstance(value, dict | list | bool)}
        writer.writerow(row | nested)
    return text.getvalue()


def to_json(records: Iterable[Record], allow_unmatched: bool = False) -> str:
    """The tables with raw numbers, every seed's value and their origin."""
    values = [
        _head(table)
        | {part: asdict(getattr(table.config, part)) for part in ("model", "data", "train")}
        | {"rows": [_values(table, row) for row in table.rows]}
        | {"trials": [_trial(trial) for trial in table.trials]}
        | {"warnings": warnings(table), "commands": commands(table), "provenance": provenance(table)}
        | {"wall_time_s": table.wall_time_s}
        for table in build_tables(records, allow_unmatched)
    ]
    return json.dumps(values, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
