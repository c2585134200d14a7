"""Sentences on what a page cannot show: gates, gaps, and limits that its tables show themselves."""

from pebench.formatting import counted
from pebench.results import figures
from pebench.results.document import texts
from pebench.results.finding import shortened
from pebench.results.gates import gates
from pebench.results.page import Page
from pebench.results.prose import Prose, prose
from pebench.results.stats import MIN_PAIRS
from pebench.results.titles import heading


def gate_lines(page: Page) -> list[Prose]:
    """Return a sentence for every gate that applies to a table."""
    return [
        prose(
            f"**{texts.OUTCOMES[gate.holds]}** on {heading(gate.table, page.tables)}. {gate.rule} Found: {gate.found}."
        )
        for gate in gates(page)
    ]


def complete(page: Page) -> str:
    """Return a sentence that nothing failed or is missing; empty where something is."""
    if page.absent:
        return ""
    finished = sum(record.ok for table in page.tables for record in table.every)
    diverged = sum(not record.ok for table in page.tables for record in table.selecting)
    but = f", but for {counted(diverged, 'run')} that selected and diverged" if diverged else ""
    return f"None: every run finished{but} ({finished:,})."


def limits(page: Page) -> list[Prose]:
    """Return what the tables cannot show, as far as they show it themselves, a sentence each."""
    lines = []
    fewest = min((len(row.values) for table in page.tables for row in table.rows if row.values), default=0)
    if page.suite and fewest < MIN_PAIRS:
        lines.append(f"With fewer than {MIN_PAIRS} seeds nothing is called equivalent; the fewest here are {fewest}.")
    untuned = [table.task.name for table in page.tables if "train.learning_rate" not in table.config.selected]
    if untuned:
        lines.append(f"One learning rate for all encodings, tuned for none: {', '.join(dict.fromkeys(untuned))}.")
    long = [table.task.name for table in page.tables if len(table.rows) > figures.FEW_ROWS]
    if long:
        lines.append(
            f"Tables with more than {figures.FEW_ROWS} rows have a picture of their differences alone: "
            f"{', '.join(dict.fromkeys(long))}."
        )
    if unplanned := page.coverage.unplanned:
        lines.append(f"Not planned by the suite: {shortened(unplanned)}.")
    return [prose(line) for line in lines]
