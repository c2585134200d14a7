"""The language columns of the scorecard at the size of the literature, on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, FULL_SETTINGS, LANGUAGE_ENCODINGS

SUITE = Suite(
    name="full-scorecard",
    question="Which encoding suits a language model of nine million parameters, at its trained length and beyond?",
    tasks=["lm-wikitext2"],
    encodings=LANGUAGE_ENCODINGS,
    seeds=3,
    tier="full",
    settings=FULL_SETTINGS,
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3]},
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="228 runs, of which 42 are published; the others 56 minutes on one H100, 12 at a time (estimated)",
    expect=(
        "Rows are ordered as in `scorecard-language`: what acts in attention is ahead of what acts at the input, and "
        "biases of the distance keep their loss at four times the length. Gaps to add are smaller than there."
    ),
    decision=(
        "Each row against add, paired by seed. Three seeds see 3 standard deviations or more: a row that is not "
        "separable from add, or from the best, may still differ, and no row is called equivalent. The recipe is that "
        "of `full`. Five seeds of nine rows were known when this was declared (`full`, `full-fusion`); the three rates "
        "are those around the one that all nine chose, and a row that chooses 1e-3 or 4e-3 is said to be at the edge. "
        "A row that runs out of memory is run again with fewer at a time."
    ),
)  # fmt: skip
