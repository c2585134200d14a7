"""The pace at which a learned table is trained, on a language model, each pace at its own learning rate."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_FOR_ALL_BEFORE, EDGE_OF_ROW

SUITE = Suite(
    name="table-pace-text",
    question="On a language model, does the pace of a learned table decide how far it is behind the sinusoid?",
    tasks=["lm-wikitext2"],
    encodings=[
        *("add", "learned", ("learned", {"ratio": 0.3}), "none"),
        *(("learned", {"pace": 1.0} | ratio) for ratio in ({}, {"ratio": 0.3})),
    ],
    contrasts=[
        ("learned (pace=1.0)", "learned"),
        ("learned (pace=1.0, ratio=0.3)", "learned (ratio=0.3)"),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": WIKITEXT2_RATES},
    select_beyond=2,
    margin=BITS_MARGIN,
    declared="2026-11-26 13:46",
    shared_machine=True,
    cost=(
        "72 runs, of which 48 are those of `core` and `scale-learned`; the others about an hour on "
        "2 cores, two at a time (estimated)"
    ),
    expect=(
        "At the pace of other weights a table keeps more of its loud noise and is further behind; from a quiet start "
        "it hardly moves and is between no encoding and the fast one."
    ),
    decision=(
        "By the contrasts, and by the differences to add. Tables of positions and of tokens move sqrt(D) = 9.8 times "
        "as fast as other weights here; language models as they are published train both at the pace of all else, and "
        "start them at a standard deviation of 0.02. The pace of the token table, which no row varies, stays: it is "
        "part of every row. Where a slow table is clearly further behind, `core`'s gap of the learned table to "
        "addition is a finding about its pace, too, and is smaller than it would be at the usual one; where it is not "
        "behind, tables were hurt by their pace. `table-pace` has the same on images, where slow is worse from either "
        f"start. The rows without a pace were known when this was declared, and the seeds are theirs. {EDGE_OF_ROW}"
    ),
    remarks=(EDGE_FOR_ALL_BEFORE,),
)  # fmt: skip
