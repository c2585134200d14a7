"""Paragraphs on a suite: what was declared before the runs, and where a page departs from it."""

from collections.abc import Iterator
from datetime import datetime

from pebench.formatting import counted
from pebench.results.document import texts
from pebench.results.page import Page
from pebench.results.prose import Prose, prose
from pebench.results.stats import MIN_PAIRS
from pebench.results.titles import margin_text


def departure(page: Page) -> Prose | None:
    """Return a paragraph that the differences are not those that were declared; ``None`` where they are."""
    if not page.suite or page.suite.reference == page.reference:
        return None
    return prose(
        f"**Not as declared.** These differences are to `{page.reference}`; those that the suite declared are to "
        f"`{page.suite.reference}`. What is found here was looked for afterwards; fresh runs would have to show it."
    )


def declaration(page: Page) -> Iterator[Prose]:
    """Yield the expectation, the decision rule, and the time of the declaration, a paragraph each."""
    if not (suite := page.suite):
        return
    if suite.expect:
        yield prose(f"**Expected.** {suite.expect[:1].upper()}{suite.expect[1:].rstrip('.')}.")
    declared = "; ".join(f"{text} ({', '.join(dict.fromkeys(tasks))})" for text, tasks in margins(page).items())
    rule = suite.decision or texts.DECISION.format(reference=suite.reference, pairs=MIN_PAIRS)
    yield prose(f"**Decision rule.** {rule}" + (f" Margins: {declared}." if declared else ""))
    if suite.declared_at:
        yield prose(f"**Declared.** {_declared(page, suite.declared_at)}")


def _declared(page: Page, when: datetime) -> str:
    """Return when the suite was declared, and how many of its runs had begun by then."""
    began = [record.started for table in page.tables for record in table.every if record.started]
    began += [record.started for record in page.selecting if record.started]
    before = sum(datetime.fromisoformat(time) < when for time in began)
    earlier = f"when {before:,} of" if before else "before any of"
    later = " What has come up since follows." if page.remarks else ""
    return f"{when:%Y-%m-%d %H:%M} UTC, {earlier} {counted(len(began), 'run')} here had begun.{later}"


def margins(page: Page) -> dict[str, list[str]]:
    """Return the margins that the suite declares, in words, each with the tasks that it is for."""
    found: dict[str, list[str]] = {}
    for table in page.tables:
        if (margin := page.margin_of(table)) is not None:
            found.setdefault(margin_text(margin, table.task), []).append(table.task.name)
    return found
