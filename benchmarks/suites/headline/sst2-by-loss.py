"""The SST-2 part of `core` as it was first run: 2,000 steps, the lowest validation loss choosing the weights."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, CORE_RATES

SUITE = Suite(
    name="sst2-by-loss",
    question="What do the rows of SST-2 say if the lowest validation loss chooses weights and rates?",
    tasks=["text-sst2"],
    seeds=8,
    tier="core",
    settings={"train.max_steps": 2000, "train.evaluations": 4, "train.monitor": "loss"},
    select={"train.learning_rate": CORE_RATES},
    margin=ACCURACY_MARGIN,
    declared="2026-11-21 21:53",
    cost="70 runs, about half an hour on 2 cores that did other work too, two at a time",
    expect="Nothing separates, and add, concat and learned are equivalent.",
    shared_machine=True,
    remarks=(
        "This was SST-2's part of `core`, declared there and then, and moved here when it was known.",
        "The weights of lowest validation loss are those of step 500 of 2,000 in 23 of 40 tested runs, while accuracy "
        "still rises behind it: these are models stopped early. In `core` accuracy chooses since, after 1,000 steps.",
    ),
)
