"""``pebench merge``: one collection of records from several."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from pebench.errors import UserError
from pebench.formatting import counted

if TYPE_CHECKING:
    from pebench.runs.records import Record


def merge_command(options: argparse.Namespace) -> int:
    """Write the records of several sources to a file, an output folder, or both."""
    from pebench.config import PROTOCOL_VERSION
    from pebench.engine.plans import make_plan
    from pebench.runs.published import equal_already, with_costs
    from pebench.runs.records import find_record, holds_records, merge, read_records, write_jsonl, write_record

    if not (options.records or options.out):
        raise UserError(
            "expected where to write: --records FILE (one .jsonl file), --out DIR (an output folder), or both."
        )
    if options.out and options.out.is_file():
        raise UserError(f"expected an output folder after --out, but {str(options.out)!r} is a file; see --records.")
    # First, so that runs that are in the folder already stay as they are where records contradict each other.
    there = [options.out] if options.out and holds_records(options.out) else []
    collections = [read_records(source) for source in (*there, *options.sources)]
    records, conflicts = merge(collections)
    lines = [f"{a.config.directory}: {_outcome(a, b)} against {_outcome(b, a)}" for a, b in conflicts]
    if conflicts and not options.prefer_first:
        raise UserError(
            f"{counted(len(conflicts), 'run')} recorded with contradictory outcomes, and nothing was written:\n  "
            + "\n  ".join(lines)
            + "\nIf that is rounding, --prefer-first keeps those of the source named first"
            + (", after what --out holds." if there else ".")
        )
    if options.suite:
        plan = make_plan(options.suite)
        records, _ = merge([records, equal_already(records, plan.suite.regime)])
        found = {record.config.key: record for record in records}
        # Which runs are tested depends on what the selecting ones choose, so these records decide it, not the suite
        # alone.
        wanted = {config.key for config in (*plan.selecting(found), *plan.testing(found))}
        records = with_costs([record for record in records if record.config.key in wanted])
        if not records:
            raise UserError(f"none of these runs is one of the suite {options.suite!r}: nothing was written.")
    given, failed = sum(map(len, collections)), sum(not record.ok for record in records)
    text = f"{counted(len(records), 'run')} from {counted(given, 'record')} written to %s"
    text += f", {failed} of them failed" if failed else ""
    if options.records:
        write_jsonl(records, options.records)
        sys.stdout.write(f"{text % options.records}\n")
    if options.out:
        # A run's folder is named by its key under today's protocol. A record of another one would lie there as done.
        now = [record for record in records if record.protocol == PROTOCOL_VERSION]
        new = [record for record in now if find_record(record.config, options.out) != record]
        for record in new:
            write_record(record, options.out)
        old, kept = len(records) - len(now), len(now) - len(new)
        sys.stdout.write(
            f"{counted(len(new), 'run')} laid out in {options.out}"
            + (f", {kept} more there already" if kept else "")
            + (f"; left out: {old} of another protocol than {PROTOCOL_VERSION}" if old else "")
            + f"{_next_command(options) if now else ''}\n"
        )
    sys.stdout.writelines(f"contradicted, the first kept: {line}\n" for line in lines)
    return 0


def _next_command(options: argparse.Namespace) -> str:
    """Return the sentence on the command that goes on from the records that were laid out."""
    runs = f"--suite {shlex.quote(str(options.suite))}" if options.suite else "..."
    return f". To go on from there: pebench run {runs} --out {shlex.quote(str(options.out))}"


def _outcome(record: "Record", other: "Record") -> str:
    """Return the metrics of a record, and its data where the other record has other data."""
    values = record.metrics.items()
    words = [f"{name} {value:.6g}" for name, value in values if name.startswith(("test/", "val/loss"))]
    if record.dataset != other.dataset:
        words.append(f"data {record.dataset.get('fingerprint', 'unknown')[:12]}")
    return ", ".join(words)
