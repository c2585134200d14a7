"""The lead of a sinusoid added to queries and keys on IMDB, on seeds that its runs have not seen."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, IMDB_CHOSEN_RATE

SUITE = Suite(
    name="confirm-qk",
    question="On IMDB, is a sinusoid added to queries and keys ahead of addition and of no encoding on fresh seeds?",
    tasks=["text-imdb"],
    encodings=["add", "none", "add-qk"],
    contrasts=[("add-qk", "none")],
    regime="parameters",
    seeds=range(8, 20),
    tier="core",
    select={"train.learning_rate": IMDB_CHOSEN_RATE},
    margin=ACCURACY_MARGIN,
    declared="2026-11-26 18:51",
    shared_machine=True,
    cost=(
        "39 runs, about 50 minutes on 2 cores, two at a time (estimated), since 15 are those of other suites"
    ),
    expect=(
        "add-qk is ahead of both, by less than in `fusion-parameters`: of its eleven rows it was looked at because it "
        "came out ahead."
    ),
    decision=(
        "At equal size `fusion-parameters` has add-qk 0.61 ± 0.33 points ahead of addition, which without a single "
        "seed, for six of eight, it would not be called, and 0.35 ± 0.15 ahead of no encoding, which nobody had "
        "declared to compare. The first is confirmed where these twelve seeds alone call it better than addition, the "
        "second where they call it better than none; where they do not, the results call it unconfirmed, whatever all "
        "twenty would say. These seeds are fresh for add-qk and for none; addition's were known (`confirm`). By the "
        "spread of the eight (0.39 and 0.18 points) they see 0.4 points to addition at least three times of four, and "
        "0.2 to none five times of six. Whether a lead is one of position is told by the test with the words in "
        "random order, which is no part of the rule: what add-qk has over none there it has without order. All have "
        "the rate of 2e-3 that every row of `core` and `fusion` chose there."
    ),
)  # fmt: skip
