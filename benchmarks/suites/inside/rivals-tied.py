"""Addition and concatenation on a language model that predicts with its token table."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, WIKITEXT2_FINE_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID, RIVAL_STANDS

SUITE = Suite(
    name="rivals-tied",
    question="Does concat's lead over add survive a tied output layer?",
    tasks=["lm-wikitext2"],
    encodings=["add", "concat"],
    seeds=8,
    tier="core",
    settings={"model.tied": True},
    select={"train.learning_rate": [*WIKITEXT2_FINE_RATES, 1.12e-2]},
    selection_seeds=2,
    margin=BITS_MARGIN,
    declared="2026-11-27 14:26",
    shared_machine=True,
    cost="32 runs, 1 to 1.5 hours on 2 cores, two at a time (estimated by `scale` and `core`)",
    expect="The lead stands, and is smaller: the narrower table of concat has fewer weights to predict with.",
    decision=(
        "The rival: an output layer of its own lets concat read position's channels, and its token table has 49 "
        "thousand weights fewer. Tied, the output reads content's channels alone in both rows. The setting is "
        "model.tied, on both sides; the lead as it is, and add as it is, are those of `rivals`, with the same seeds "
        f"and grid. {RIVAL_STANDS} {EDGE_OF_GRID}"
    ),
    remarks=(
        "The grid went on to 1.12e-2, for both rows, when the 28 runs of the first one were known, as the rule asks: "
        "the best rate of both was 8e-3.",
    ),
)
