"""The leads over addition in the larger language model, where it predicts with its token table; on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, FULL_SETTINGS
from pebench.benchmarks.rules import FULL_RIVAL_STANDS

SUITE = Suite(
    name="full-rivals-tied",
    question="In the larger language model, do the leads over add survive a tied output layer?",
    tasks=["lm-wikitext2"],
    encodings=["add", "concat", "rope", "learned"],
    contrasts=[("rope", "concat")],
    seeds=5,
    tier="full",
    settings={**FULL_SETTINGS, "model.tied": True},
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3]},
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="32 runs, 6 minutes on one H100, 15 at a time (estimated)",
    expect="Rotation's lead stands. Concatenation's is smaller: its narrower table has fewer weights to predict with.",
    decision=(
        "The rival: an output layer of its own lets concat read position's channels, and published models tie it to "
        f"the token table. {FULL_RIVAL_STANDS}"
    ),
)  # fmt: skip
