"""The leads over addition in the larger language model, where tokens and positions start small; on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, FULL_SETTINGS
from pebench.benchmarks.rules import FULL_RIVAL_STANDS

SMALL = {"ratio": 0.02}

SUITE = Suite(
    name="full-rivals-small",
    question="In the larger language model, do the leads over add survive tokens that start as small as in GPT-2?",
    tasks=["lm-wikitext2"],
    encodings=[("add", SMALL), ("concat", SMALL), "rope", ("learned", {**SMALL, "pace": 1.0})],
    reference="add (ratio=0.02)",
    contrasts=[("rope", "concat (ratio=0.02)")],
    seeds=5,
    tier="full",
    settings={**FULL_SETTINGS, "model.token_scale": 0.02, "model.token_pace": 1.0},
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3]},
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="32 runs, 6 minutes on one H100, 15 at a time (estimated)",
    expect="Rows are closer to those of `full` than at the usual pace alone, and both leads stand.",
    decision=(
        "The rival: token vectors start at a root mean square of 1 here, and at 0.02 in GPT-2. They have the usual "
        "pace, as with that of `full` they would leave 0.02 behind at the first step. Positions at the input start at "
        f"0.02 too, so that their ratio to content stays 1. {FULL_RIVAL_STANDS}"
    ),
)  # fmt: skip
