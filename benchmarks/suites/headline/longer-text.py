"""A language model for four times as long as in core: does what less than one epoch shows stand?"""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN
from pebench.benchmarks.rules import EDGE_FOR_ALL_BEFORE, EDGE_OF_ROW

SUITE = Suite(
    name="longer-text",
    question="Are concatenation and rotation ahead of addition on a language model that sees its text four times?",
    tasks=["lm-wikitext2"],
    encodings=["add", "concat", "rope"],
    contrasts=[("rope", "concat")],
    seeds=5,
    tier="core",
    settings={"train.max_steps": 6000},
    select={"train.learning_rate": [2e-3, 4e-3, 8e-3]},
    select_beyond=2,
    margin=BITS_MARGIN,
    declared="2026-11-23 06:46",
    shared_machine=True,
    cost="24 runs, about 5 hours on 2 cores, two at a time (estimated)",
    expect=(
        "Everything is better, addition most, so that the gaps of `core` (0.060 bits per byte for concat, 0.106 for "
        "rope) shrink; both stay clear, and rope stays ahead of concat."
    ),
    decision=(
        "What `core` shows after 0.9 epochs is not one of short training where the difference is clear with the same "
        "sign after 3.7; where it is not, `core`'s finding is one of what is learned first, and the results say so. A "
        "difference of `core`'s size is seen by five seeds for certain, and one of a tenth of it two times of five. "
        "How the gaps change between the two budgets is told beside it, without a test, since the rates are chosen "
        f"anew. What `core` found was known when this was declared. {EDGE_OF_ROW}"
    ),
    remarks=(EDGE_FOR_ALL_BEFORE,),
)
