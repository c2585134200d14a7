"""Gates: conditions that records must meet before anything is claimed of them. A miss is a bug, or a finding."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean

from pebench.config import REFERENCE_ENCODING
from pebench.results.finding import shortened
from pebench.results.page import Page
from pebench.results.stats import ALPHA, paired_difference
from pebench.results.tables import Table

CHANCE = 1 / 3
"""Accuracy of a guess on text-order."""

TOPICS = ("text-20newsgroups", "text-agnews")
"""Tasks that hardly need order."""

NANOGPT = {"core": 1.88, "full": 1.4697}
"""Validation loss that nanoGPT publishes for the sizes and budget of each tier of lm-shakespeare, in nats."""


@dataclass(frozen=True)
class Gate:
    """One condition, checked on one table.

    Args:
        rule: The condition, as a sentence.
        table: The table that it is checked on.
        holds: The outcome; ``None`` where these records do not decide it.
        found: The figures that it was decided by.
    """

    rule: str
    table: Table
    holds: bool | None
    found: str


Check = Callable[[Page, Table], tuple[bool | None, str] | None]


def _order_blind(page: Page, table: Table) -> tuple[bool, str] | None:
    """Check that shuffling changes nothing without an encoding: a mean over tokens does not depend on their order."""
    row = table.row("none")
    shuffled = row.extrapolation("accuracy").get("shuffled", {}) if row and not table.task.causal else {}
    if not row or not shuffled:
        return None
    # By seed, as changes of opposite sign would cancel in a mean.
    most = max(abs(row.values[seed] - value) for seed, value in shuffled.items() if seed in row.values)
    examples = min(record.dataset.get("sizes", {}).get("test", 1000) for record in row.records if record.ok)
    return most <= max(0.001, 1.5 / examples), f"at most {100 * most:.2f} points"  # 1.5: one example, and rounding


def _order_learned(page: Page, table: Table) -> tuple[bool | None, str] | None:
    means = {row.label: row.estimate.mean for row in table.rows if row.estimate}
    guess = means.pop("none", None)
    if table.task.name != "text-order" or not means:
        return None
    unsolved = [f"{name} {100 * mean:.1f} %" for name, mean in means.items() if mean < 0.95]
    reached = "no none" if guess is None else f"none {100 * guess:.1f} %"
    # 0.03 is about three standard errors of a share of a third among 2,000 test texts.
    holds = None if guess is None else abs(guess - CHANCE) <= 0.03
    return False if unsolved else holds, f"{reached}; unsolved: {shortened(unsolved) or 'by no other'}"


def _images(page: Page, table: Table) -> tuple[bool, str] | None:
    rows = {name: table.row(name) for name in ("none", "learned", "add", "rope")}
    means = {name: 100 * row.estimate.mean for name, row in rows.items() if row and row.estimate}
    if table.task.name != "vit-cifar10" or len(means) < len(rows):
        return None
    holds = (
        means["none"] <= min(means["learned"] - 4, means["add"]) and max(means["learned"], means["add"]) < means["rope"]
    )
    return holds, ", ".join(f"{name} {mean:.2f} %" for name, mean in sorted(means.items(), key=lambda item: item[1]))


def _twice_as_long(page: Page, table: Table) -> tuple[bool, str] | None:
    grown = {}
    for name in ("add", "alibi") if table.task.causal else ():  # an image at twice its resolution is another matter
        row = table.row(name)
        if not row or "2x" not in (longer := row.extrapolation("loss")):
            continue
        usual = {record.config.seed: record.metrics["test/loss"] for record in row.records if record.ok}
        # The ratio of two perplexities is the exponential of the difference of their losses.
        grown[name] = fmean(math.exp(loss - usual[seed]) for seed, loss in longer["2x"].items())
    if not grown:
        return None
    found = ", ".join(f"{name} {grown[name]:.2f} times" if name in grown else f"no {name}" for name in ("add", "alibi"))
    # A row that is not there breaks nothing: its default lies on the limit.
    return grown.get("add", 1.5) >= 1.5 and grown.get("alibi", 1.0) <= 1.02, found


def _topics(page: Page, table: Table) -> tuple[bool, str] | None:
    every = [(row.label, row.difference.mean, row.difference.half_width) for row in table.rows if row.difference]
    gaps = [(label, gap, noise) for label, gap, noise in every if noise is not None]  # as with more seeds than one
    if table.task.name not in TOPICS or not gaps:
        return None
    large = [f"{label} {100 * gap:+.2f} points" for label, gap, noise in gaps if abs(gap) > max(0.005, noise)]
    largest = max(abs(gap) for _, gap, _ in gaps)
    found = f"beyond both: {shortened(large) or 'none'}; largest difference {100 * largest:.2f} points"
    return not large and largest < 0.02, found


def _projections(page: Page, table: Table) -> tuple[bool | None, str] | None:
    concat, add = table.row("concat-proj"), table.row(REFERENCE_ENCODING)
    small = page.equivalences(table).get("concat-proj") if table.reference == REFERENCE_ENCODING else None
    if not concat or not add or small is None or small.p_adjusted is None:  # too few pairs
        return None
    gaps = []
    for row in table.rows:  # concat-proj and add at the same ratio
        other = table.row(row.label.replace("concat-proj", REFERENCE_ENCODING))
        alone = set(row.config.encoding_args) <= {"ratio"}
        if row.config.encoding == "concat-proj" and alone and other:
            gaps.append(paired_difference(row.values, other.values))
    clear = [gap for gap in gaps if gap and gap.half_width is not None and abs(gap.mean) > gap.half_width]
    # A gap at one scale may be due to that scale: it must be clear at several, with one sign.
    survives = len(gaps) > 1 and len(clear) == len(gaps) and len({gap.mean > 0 for gap in clear}) == 1
    different = concat.p_adjusted is not None and concat.p_adjusted < ALPHA
    words = "equivalent" if small.holds else "different" if different else "neither separable nor equivalent"
    outcome = True if small.holds or survives else False if different else None
    return outcome, f"{words}; gap clear at {len(clear)} of {len(gaps)} scales"


def _nanogpt(page: Page, table: Table) -> tuple[bool, str] | None:
    row, target = table.row("learned"), NANOGPT.get(table.config.tier)
    # Runs with other settings than the recipe's are not what its published loss is about.
    changed = table.settings or table.config.selected
    if table.task.name != "lm-shakespeare" or target is None or changed or row is None or not row.values:
        return None
    halves = [(m["val/loss"], m["test/loss"]) for m in row.known(lambda record: record.metrics or None)]
    loss = fmean(map(fmean, halves))  # its validation split, the last tenth, is our validation and test splits
    return abs(loss - target) <= 0.05, f"{loss:.3f} nats, published {target}"


CHECKS: tuple[tuple[str, Check], ...] = (
    (
        "Without an encoding a classifier sees no order: shuffling tokens or patches changes its accuracy by no more "
        "than rounding does.",
        _order_blind,
    ),
    ("An order-only task is at chance without an encoding and solved with any other (95 %).", _order_learned),
    ("Images: none below add and at least 4 points below learned; learned and add below 2-D rope.", _images),
    (
        "At twice the trained length the added sinusoid's perplexity is at least 1.5 times its usual one; alibi's at "
        "most 1.02 times.",
        _twice_as_long,
    ),
    (
        "Topics: no encoding differs from the reference by more than 0.5 points or the noise, and none by 2 points.",
        _topics,
    ),
    (
        f"concat-proj is equivalent to {REFERENCE_ENCODING}, or the gap is clear, and the same way, at every scale.",
        _projections,
    ),
    (
        "At the sizes and budget of nanoGPT's recipe the learned table reaches its validation loss within 0.05 nats.",
        _nanogpt,
    ),
)  # fmt: skip
"""Rules, each with the function that checks it on a table, which returns None where the rule does not apply."""


def gates(page: Page) -> Iterator[Gate]:
    """Yield the outcome of every gate that applies to a table of a page."""
    for rule, check in CHECKS:
        for table in page.tables:
            if (outcome := check(page, table)) is not None:
                yield Gate(rule, table, *outcome)
