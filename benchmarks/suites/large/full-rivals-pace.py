"""The leads over addition in the larger language model, where tables are trained at the usual pace; on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, FULL_SETTINGS
from pebench.benchmarks.rules import FULL_RIVAL_STANDS

SUITE = Suite(
    name="full-rivals-pace",
    question="In the larger language model, do the leads over add survive tables trained at the usual pace?",
    tasks=["lm-wikitext2"],
    encodings=["add", "concat", "rope", ("learned", {"pace": 1.0})],
    contrasts=[("rope", "concat")],
    seeds=5,
    tier="full",
    settings={**FULL_SETTINGS, "model.token_pace": 1.0},
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3]},
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="32 runs, 6 minutes on one H100, 15 at a time (estimated)",
    expect="All rows are worse, as a table of unit scale hardly moves at the pace of other weights; both leads stand.",
    decision=(
        "The rival: token tables here move 16 times as fast under Adam as other weights (13.9 times with concat), and "
        "the learned table of positions as well; published models train all alike. Vectors start at a root mean "
        f"square of 1; `full-rivals-small` has those of published models. {FULL_RIVAL_STANDS}"
    ),
)  # fmt: skip
