"""Pages for people, in Markdown. The same records give the same bytes."""

import shlex
import statistics
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

from pebench.formatting import counted
from pebench.results import figures
from pebench.results.across import MIN_TASKS, Summary
from pebench.results.citations import cited, sources
from pebench.results.gates import gates
from pebench.results.grids import (
    NOTHING,
    WORDS,
    Grid,
    beyond,
    changes,
    contrasts,
    costs,
    difference_unit,
    differences,
    group_title,
    margin_text,
    pairs,
    position_shares,
    results,
    series_gap,
    series_title,
    side_by_side,
    standings,
    sweep,
    title,
)
from pebench.results.legend import LEGEND, legend
from pebench.results.missing import absence_lines
from pebench.results.page import Page, Series, shortened
from pebench.results.provenance import command, provenance, series_warnings, warnings
from pebench.results.stats import MIN_PAIRS
from pebench.results.tables import REGIME_TEXT, Row, Table
from pebench.tasks import ROUNDING

CONTROLS = {
    "sliding": "windows of the trained length that overlap by half, which have more context too",
    "shuffled": "the tokens of each text, or the patches of each image, in random order: what a bag of them tells",
}
"""What the test split is put to beside its other sizes."""
DIFFERENCES = (
    "Differences to `{reference}` at equal seeds. `a ± b`: the mean over seeds, and half its 95 % confidence interval. "
    "Better, worse: a paired t-test, corrected for all comparisons of a task, tells them apart.{equivalent} No word: "
    "these seeds cannot tell, which does not mean equal. Intervals are not corrected, so that one may leave out zero "
    "without a word."
)
EQUIVALENT = " Equivalent: another such test finds the difference to be smaller than {margins}."
SHARES = (
    "How much of the residual stream is position: of its variance over the tokens of validation examples, the share "
    "(%) that lies between positions, less what would by chance, so that it may fall below zero. Images have their "
    "middle in common, texts their beginning and length, and a causal model can tell positions by itself, so compare "
    "with `none`."
)
CONTRASTS = "Declared contrasts: the first minus the second at equal seeds, corrected for their number, run or not."
PAIRS = (
    "Every two rows: the encoding at the left minus the one above, at equal seeds, in {unit}. Better and worse are by "
    "paired t-tests at 5 %, corrected over all pairs of rows, run or not: over more than the verdicts above, so that "
    "one of those may be missing here. What was not declared to be compared, this suggests; another study would have "
    "to show it. Their p-values are in the JSON."
)
GATES = (
    "What must hold if the code is right, and what published results lead one to expect, checked over these records. "
    "What does not hold is looked into before anything is claimed: it is a bug, or a finding."
)
SINCE = "Since it was declared:"
OUTCOMES = {True: "Holds", False: "Does not hold", None: "Cannot be told"}
MANY_SEEDS = 30
"""From as many on resampled intervals hold about as often as they say."""
CHANGES = (
    "How far apart two rows are at the first value and at the last, and how that changes, at equal seeds: narrower, "
    "wider or turned (its sign is another) where a paired t-test of the change says so, Holm-corrected over the "
    "changes that are declared."
)
TIED = "Equal scores, of which that of the lowest value counts"
CLOSE = "Ahead by less than one standard deviation over tested seeds, so that another seed might have chosen otherwise"
BEST = {"min": "lowest", "max": "highest"}
DECISION = (
    "An encoding differs from `{reference}` on a task where the paired t-test says so at 5 % after Holm's "
    "correction over the table. It is equivalent where two one-sided tests say so likewise, with {pairs} pairs or "
    "more and the margin below."
)
NOTES = """\
## Notes

- `a ± b`: mean over seeds, and half the width of its 95 % Student-t interval. One seed has no interval.
- Δ to `{reference}`: mean of the differences at equal seeds, with the same kind of interval. For an accuracy
  it is in points, the hundredths of 1.
- Verdict: paired t-test at 5 %, two-sided; p: Holm-adjusted over the comparisons of the table, those included that its
  suite declares and that have not run. Intervals are not adjusted, so that one may leave out zero where the verdict is
  "not separable". That does not mean equal; it means that these seeds cannot tell. "Equivalent within" a margin is said
  where two one-sided paired t-tests, Holm-adjusted likewise, place the difference within the margin that the suite
  declares; never with fewer than {pairs} pairs. A difference can be both: real, and too small to matter.
- n: runs that finished. Failed and missing runs are named; nothing stands in for their values.
- The weights tested are those that validation chose. A run reads the test split once, when its training is over, and
  selects nothing on it. What people changed when tested runs were known is told with what was declared.
- FLOPs: to train on one sample alone once, of texts on one of the median length, forward and backward; what a batch
  shares, such as a projected table, counts in full. Throughput: mean over runs. Memory: the largest of the runs. Both
  vary with what else a machine and a process did: they compare encodings only where runs had it to themselves.
"""

ACROSS = """\
- Across tasks, a run's score is 0 for the worst finished run of its task and 1 for the best, among the encodings
  compared. Interquartile mean: of the scores of all tasks and seeds without the lowest and the highest quarter. Average
  rank: of the mean scores, over tasks. P(better): the chance that a run scores above one of `{reference}`,
  averaged over tasks. Intervals: the middle 95 % of resamples of the seeds of each task; they hold for these tasks.
  Between its worst and its best a task counts like any other, though nothing may be told apart on it; and one with more
  seeds counts for more in the interquartile mean.
- † A failed run counts as score 0, like the worst one. The last column leaves them out, and so flatters what fails.
"""


def markdown(page: Page, folder: str | None = None) -> str:
    """A page: question, finding, overview, rows, declaration, tables, figures across tasks, commands, origin, gaps.

    Args:
        page: What to write.
        folder: Where its pictures are, as a link from the page; without one it shows none.
    """
    return "\n\n".join(text for part in _parts(page, folder) if (text := part.strip("\n"))) + "\n"


def _parts(page: Page, folder: str | None) -> Iterator[str]:
    shown: dict[str, list[str]] = {}
    for picture in figures.pictures(page) if folder is not None else ():
        link = f"![{picture.title}]({quote(f'{folder}/{picture.name}')}.svg)"
        shown.setdefault(picture.stem, []).append(link)
    name = page.suite.name if page.suite else "Results"
    option = f" --suite {shlex.quote(page.suite.file or name)}" if page.suite else ""
    yield f"# {name}"
    yield f"Generated by `pebench report{option}` from the runs' records; do not edit."
    yield from question(page)
    for series in page.series:
        yield from _along(series, page)
        yield "\n".join(shown.get(figures.series_name(series), ()))
    for group in page.overviews:
        yield f"## Overview ({group_title(group)})\n\n{_overview(group, page)}\n\nCite: {cited(group)}."
    yield _rows(page)
    if declared := [*declaration(page)]:
        yield "\n\n".join(["## What was declared", *declared])
        yield f"**{SINCE}**\n\n{_bullets(page.remarks)}" if page.remarks else ""
    for table, stem in zip(page.tables, figures.stems(page.tables), strict=True):
        yield _section(table, page)
        yield "\n".join(shown.get(stem, ()))
    for (group, summary), stem in zip(page.summaries, figures.ranks_names(page), strict=True):
        yield f"{_across(group, summary)}\n\nCite: {cited(group)}."
        yield "\n".join(shown.get(stem, ()))
    if lines := gate_lines(page):
        yield f"## Gates\n\n{GATES}\n\n{_bullets(lines)}"
    yield _reproduce(page)
    yield f"## Provenance\n\n{_origins(page)}"
    yield f"## Failed and missing runs\n\n{_absences(page)}"
    if lines := limits(page):
        yield f"## Limits\n\n{_bullets(lines)}"
    if folder is not None:
        said = {picture.title.partition(",")[0]: picture.caption for picture in figures.pictures(page)}
        yield "## Pictures\n\n" + _bullets(f"{kind}. {caption}" for kind, caption in said.items()) if said else ""
    yield notes(page)


def _rows(page: Page) -> str:
    lines = legend(page)
    return f"## What the rows are\n\n{LEGEND}\n\n{_bullets(lines)}" if lines else ""


def _along(series: Series, page: Page) -> Iterator[str]:
    yield f"## {series_title(series)}\n\n{_overview(series.ordered, page, series.setting)}"
    if grid := changes(series, page):
        yield f"{CHANGES}\n\n{_pipe(grid)}"
        yield _bullets(f"**{text}**" for text in series_warnings(series.ordered[0], series.ordered[-1]))
    yield f"{series_gap(series)}\n\nCite: {cited(series.ordered)}."


def overview(page: Page) -> str:
    """The overviews alone, for a front page."""
    groups = [group for group, _ in page.summaries]
    shown = {id(table) for group in groups for table in group}
    groups += [[table] for table in page.tables if id(table) not in shown]
    return "\n".join(f"{_overview(group, page)}\n\nWhat to cite: `{sources(group).command}`.\n" for group in groups)


def _overview(group: Sequence[Table], page: Page, along: str = "") -> str:
    values, grid = _pipe(side_by_side(group, page, along)), differences(group, page, along)
    return f"{values}\n\n{differences_text(page)}\n\n{_pipe(grid)}" if grid else values


def differences_text(page: Page) -> str:
    """What a table of differences is."""
    margins = " or ".join(_margins(page))
    return DIFFERENCES.format(
        reference=page.reference, equivalent=EQUIVALENT.format(margins=margins) if margins else ""
    )


def _margins(page: Page) -> dict[str, list[str]]:
    """The margins that the suite declares, in words, each with the tasks that it is for."""
    margins: dict[str, list[str]] = {}
    for table in page.tables:
        if page.suite and (margin := page.suite.margin_of(table.task.name)) is not None:
            margins.setdefault(margin_text(margin, table.task), []).append(table.task.name)
    return margins


def notes(page: Page) -> str:
    """How to read it all."""
    return (NOTES + ACROSS * bool(page.summaries)).format(reference=page.reference, pairs=MIN_PAIRS)


def _pipe(columns: Grid) -> str:
    """A Markdown table, words to the left and numbers to the right."""
    from tabulate import tabulate

    align = ["left" if name in WORDS else "right" for name in columns]
    heads = {name.replace("\n", "<br>"): cells for name, cells in columns.items()}
    return tabulate(heads, headers="keys", tablefmt="pipe", colalign=align, disable_numparse=True)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def question(page: Page) -> Iterator[str]:
    """What was asked, and what was found: a paragraph each."""
    if page.suite:
        yield f"**Question.** {page.suite.question}"
    yield f"**Finding.** {page.finding}"
    if page.suite and page.suite.reference != page.reference:
        yield (
            f"**Not as declared.** These differences are to `{page.reference}`; those that the suite declared are to "
            f"`{page.suite.reference}`. What is found here was looked for afterwards; fresh runs would have to show it."
        )


def declaration(page: Page) -> Iterator[str]:
    """What was expected, by which rule it is decided, and when that was said: a paragraph each."""
    if not (suite := page.suite):
        return
    if suite.expect:
        yield f"**Expected.** {suite.expect[:1].upper()}{suite.expect[1:].rstrip('.')}."
    told = "; ".join(f"{text} ({', '.join(dict.fromkeys(tasks))})" for text, tasks in _margins(page).items())
    rule = suite.decision or DECISION.format(reference=suite.reference, pairs=MIN_PAIRS)
    yield f"**Decision rule.** {rule}" + (f" Margins: {told}." if told else "")
    if suite.declared_at:
        yield f"**Declared.** {_declared(page, suite.declared_at)}"


def _declared(page: Page, when: datetime) -> str:
    """When the suite was declared, and how many of its runs had begun by then."""
    began = [record.started for table in page.tables for record in table.every if record.started]
    began += [record.started for record in page.selecting if record.started]
    before = sum(datetime.fromisoformat(time) < when for time in began)
    earlier = f"when {before:,} of" if before else "before any of"
    later = " What has come up since is told next." if page.remarks else ""
    return f"{when:%Y-%m-%d %H:%M} UTC, {earlier} {counted(len(began), 'run')} here had begun.{later}"


def _section(table: Table, page: Page) -> str:
    parts = [f"## {title(table)}", f"{table.task.summary}.", _pipe(results(table, page) | costs(table))]
    parts += [f"Cite: {cited([table])}."]
    parts += [f"{text}\n\n{_pipe(grid)}" for _, text, grid in details(table, page)]
    parts += [_bullets(f"**{text}**" for text in warnings(table))]
    return "\n\n".join(part for part in parts if part)


def details(table: Table, page: Page) -> list[tuple[str, str, Grid]]:
    """What is told of a table below its results: in a word, what its cells are, and the cells."""
    further = beyond(table)
    found = [
        ("contrasts", CONTRASTS, contrasts(table, page)),
        ("pairs", PAIRS.format(unit=difference_unit(table.task)), pairs(table)),
        ("beyond", _beyond(further), further),
        ("position shares", _shares(table), position_shares(table)),
        ("selection", _selection(table), sweep(table) if table.trials else {}),
    ]
    return [part for part in found if part[2]]


def _shares(table: Table) -> str:
    unknown = any(row.values and not any(r.position_shares for r in row.records if r.ok) for row in table.rows)
    return f"{SHARES} {NOTHING}: the records are older than this measurement." if unknown else SHARES


def _beyond(grid: Grid) -> str:
    sizes = (
        " at other lengths or resolutions than the trained one" if any(name.startswith("at ") for name in grid) else ""
    )
    controls = "".join(f" `{name}`: {text}." for name, text in CONTROLS.items() if name in grid)
    return f"The same test split again{sizes}, without further training.{controls}"


def _selection(table: Table) -> str:
    metric, mode = table.task.monitored(table.config.train.monitor)
    seeds = {record.config.seed for record in table.selecting}
    names, count = ", ".join(table.config.selected), counted(len(seeds), "seed")
    head = f"Selected on validation data, at equal budget, over {count} that {'is' if len(seeds) == 1 else 'are'} not"
    return f"{head} tested: {names}, by the {BEST[mode]} {metric}.{_narrow(table, metric)}"


def _narrow(table: Table, metric: str) -> str:
    """Which rows had another value as good as the chosen one, or nearly so beside what seeds differ by, in words."""
    tied, close = [], []
    for row in table.rows:
        lead, tested = _lead(row, table), row.known(lambda record: record.metrics.get(metric))
        if lead is None or row.label in table.outdated:
            continue
        if lead <= ROUNDING:
            tied.append(row.label)
        elif len(tested) > 1 and lead < statistics.stdev(tested):
            close.append(row.label)
    told = ((TIED, tied), (CLOSE, close))
    return "".join(f" {text}: {', '.join(labels)}." for text, labels in told if labels)


def _lead(row: Row, table: Table) -> float | None:
    """How far a row's chosen value was from the nearest other one, where two or more could be measured."""
    values = row.config.selected_values
    scores = [(t.values == values, t.score) for t in table.trials_of(row.label) if t.score is not None]
    chosen, others = ([score for mine, score in scores if mine is wanted] for wanted in (True, False))
    return min((abs(other - best) for best in chosen for other in others), default=None)


def gate_lines(page: Page) -> list[str]:
    """A line for every gate that applies to a table."""
    return [
        f"**{OUTCOMES[gate.holds]}** on {title(gate.table)}. {gate.rule} Found: {gate.found}." for gate in gates(page)
    ]


def _across(tables: Sequence[Table], summary: Summary | None) -> str:
    head, facts = f"## Across tasks ({group_title(tables)})", _bullets(across_facts(summary))
    return f"{head}\n\n{_pipe(standings(summary))}\n\n{facts}" if summary else f"{head}\n\n{facts}"


def across_facts(summary: Summary | None) -> list[str]:
    """What to know of figures across tasks, a line each."""
    if summary is None:
        return ["No figures: they need two encodings that have runs of every task at a common seed."]
    seeds = ", ".join(f"{task} ({count})" for task, count in summary.tasks.items())
    fewest = summary.fewest
    drawn = f"Intervals from {summary.replicates:,} resamples." if fewest > 1 else "No intervals: one seed has none."
    facts = [f"Tasks and seeds: {seeds}. {drawn}", _apart(summary)]
    if 1 < fewest < MANY_SEEDS:
        facts.append(
            f"With {counted(fewest, 'seed')} of a task these intervals are too narrow: the middle 95 % of resamples of "
            "a mean hold 75 % of the time with three seeds, and 89 % with eight."
        )
    facts += [f"Left out: {name}, which has no runs of {', '.join(tasks)}." for name, tasks in summary.lacking.items()]
    if summary.unpaired:
        facts.append(f"Left out: {counted(summary.unpaired, 'run')} at seeds that another encoding lacks.")
    return facts


def _apart(summary: Summary) -> str:
    """What the ranks tell apart, in words."""
    if summary.critical_difference is None or summary.friedman_p is None:
        counts = f"{len(summary.tasks)} and {len(summary.rows)}"
        return f"No ranks are told apart here: that takes {MIN_TASKS} tasks and 3 encodings; there are {counts}."
    groups = "; ".join(", ".join(group) for group in summary.groups) or "none"
    return (
        f"Friedman's test: p = {summary.friedman_p:.2g}. Critical difference of average ranks (Nemenyi, 5 %): "
        f"{summary.critical_difference:.2f}. Not told apart: {groups}."
    )


def _reproduce(page: Page) -> str:
    lines = [command(table) for table in page.tables]
    whole = f"```bash\n{page.suite.command}\n```\n\nor each table as its records were made:\n\n" if page.suite else ""
    return "## Reproduce\n\n" + whole + "\n".join(["```bash", *lines, "```"])


def _origins(page: Page) -> str:
    """Where tables come from: first what they share, then what is each one's own."""
    origins = [table_facts(table) for table in page.tables]
    shared = {name: text for name, text in origins[0].items() if all(o.get(name) == text for o in origins)}
    parts = [_bullets(f"{name}: {text}" for name, text in shared.items())]
    for table, origin in zip(page.tables, origins, strict=True):
        own = [f"{name}: {text}" for name, text in origin.items() if name not in shared]
        parts.append(f"### {title(table)}\n\n{_bullets(own)}" if own else "")
    return "\n\n".join(part for part in parts if part)


def table_facts(table: Table) -> dict[str, str]:
    """Provenance by name; where rows differ, every value is listed."""
    origin, config = provenance(table), table.config
    tested = provenance(table, stage="test")
    found = {name: " / ".join(values) for name, values in origin.items()}
    prints = " / ".join(fingerprint[:12] for fingerprint in origin["data"])
    versions = ", ".join(f"{name} {found[name]}" for name in ("protocol", "pebench", "torch", "lightning", "commit"))
    machine = found["device"]
    if tested["device"] != origin["device"]:
        machine += f" (those tested: {' / '.join(tested['device'])})"
    machine += f", threads {found['threads']}, precision {found['precision']}"
    machine += {"False": "", "unknown": ""}.get(found["compiled"], f", compiled: {found['compiled']}")
    seconds, model, data, train = round(table.wall_time_s), config.model, config.data, config.train
    metric, mode = table.task.monitored(train.monitor)
    shape = {
        "d_model": f"width {model.d_model}", "num_layers": f"depth {model.num_layers}",
        "num_heads": f"attention heads {model.num_heads}", "dropout": f"dropout {model.dropout:g}",
    }  # fmt: skip
    given = {
        "max_len": f"up to {data.max_len} tokens", "vocab_size": f"vocabulary {data.vocab_size}",
        "patch_size": f"patches of {data.patch_size}x{data.patch_size} pixels",
    }  # fmt: skip
    budget = {
        "batch_size": f"{table.task.unit} in a step {train.batch_size}", "max_steps": f"steps {train.max_steps:,}",
        "warmup": f"warm-up {100 * train.warmup:g} % of them", "clip": f"gradients clipped at {train.clip:g}",
        "weight_decay": f"weight decay {train.weight_decay:g}",
        "learning_rate": f"learning rate {train.learning_rate:g}",
    }  # fmt: skip
    return {
        "Matched by": REGIME_TEXT[config.regime],
        "Model": ", ".join(text for name, text in shape.items() if f"model.{name}" not in config.selected),
        "Training": ", ".join(text for name, text in budget.items() if f"train.{name}" not in config.selected),
        "Input": ", ".join(
            text for name, text in given.items() if getattr(data, name) and f"data.{name}" not in config.selected
        ),
        "Weights chosen by": f"{BEST[mode]} {metric}{_chosen_at(table)}",
        "Splits": table.task.splits_before.get(table.protocol, table.task.splits),
        "Data": f"SHA-256 {prints} ({found['sizes']}{'; train: places for a window' * table.task.causal})",
        "Versions": versions,
        **({"Plug-ins": found["plug-ins"]} if "plug-ins" in found else {}),
        "Device": f"{machine}, attention {found['attention']}",
        "Total wall time": f"{seconds // 3600} h {seconds // 60 % 60:02d} min {seconds % 60:02d} s",
    }


def _chosen_at(table: Table) -> str:
    """Where along the runs the weights were best that were tested."""
    steps = [step for row in table.rows for step in row.known(lambda r: r.metrics.get("best_step"))]
    if not steps:
        return ""
    return f"; tested: step {statistics.median_low(steps):,.0f} of {table.config.train.max_steps:,} (median)"


def _absences(page: Page) -> str:
    parts = []
    for table in page.tables:
        if absent := absence_lines(page.absences(table), code="`"):
            parts.append(f"### {title(table)}\n\n{_bullets(absent)}")
    parts += [page.gap] if page.gap else []
    return "\n\n".join(parts) or complete(page)


def complete(page: Page) -> str:
    """That nothing failed or is missing; empty where something is."""
    finished = sum(record.ok for table in page.tables for record in table.every)
    diverged = sum(not record.ok for table in page.tables for record in table.selecting)
    but = f", but for {counted(diverged, 'run')} that selected and diverged" if diverged else ""
    return "" if page.absent else f"None: every run finished{but} ({finished:,})."


def limits(page: Page) -> list[str]:
    """What the tables cannot tell, as far as they show it themselves."""
    lines = []
    fewest = min((len(row.values) for table in page.tables for row in table.rows if row.values), default=0)
    if page.suite and fewest < MIN_PAIRS:
        lines.append(f"With fewer than {MIN_PAIRS} seeds nothing is called equivalent; the fewest here are {fewest}.")
    if untuned := [t.task.name for t in page.tables if "train.learning_rate" not in t.config.selected]:
        lines.append(f"One learning rate for all encodings, tuned for none: {', '.join(dict.fromkeys(untuned))}.")
    if long := [table.task.name for table in page.tables if len(table.rows) > figures.FEW_ROWS]:
        lines.append(
            f"Of tables with more than {figures.FEW_ROWS} rows the differences alone are drawn: "
            f"{', '.join(dict.fromkeys(long))}."
        )
    if page.unplanned:
        lines.append(f"Not planned by the suite: {shortened(page.unplanned)}.")
    return lines
