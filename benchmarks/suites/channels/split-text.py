"""The number of channels of a position that is concatenated, on sentiment."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, IMDB_CHOSEN_RATE, SST2_RATES

SUITE = Suite(
    name="split-text",
    question="Does it matter on sentiment how the width is split between content and position?",
    tasks=["text-sst2", "text-imdb"],
    encodings=["add", "concat", ("concat", {"d_p": 8}), ("concat", {"d_p": 32}), "none"],
    contrasts=[("concat (d_p=8)", "concat"), ("concat (d_p=32)", "concat")],
    seeds=8,
    tier="core",
    select={"train.learning_rate": {"text-sst2": SST2_RATES, "text-imdb": IMDB_CHOSEN_RATE}},
    margin=ACCURACY_MARGIN,
    declared="2026-11-26 07:00",
    shared_machine=True,
    cost="110 runs on 2 cores, two at a time; the 44 new ones took 37 minutes, and 66 of them are core's",
    expect=(
        "Nothing separates, on either. Half of the channels for position halves the word table, which is nine tenths "
        "of these models, and if anything is told apart it is that, as less to overfit or less to know."
    ),
    decision=(
        "By the contrasts, and the differences to add. `split` asks the same of the language model and of images; its "
        "rule would have added these tasks only if `fusion` told concat from add on them, which it did not: they run "
        "for completeness. A row that differs from concat does so by its word table as well as by position: 8 channels "
        "leave 56 for content, 16 leave 48, 32 leave 32, and parameters follow. Position at a ratio of one is the "
        "louder altogether the more channels it has. These models hardly use order, and equal rows do not say that "
        "splits are equal where order counts. Eight seeds call equal rows equivalent on SST-2 never, on IMDB often. On "
        "IMDB all have the rate that every row of `core` and `fusion` chose there. What `core` and `fusion` found of "
        "add, concat and none was known when this was declared. Where a row's best rate on SST-2 is at the edge of its "
        "grid, the grid goes on for all rows."
    ),
)
