"""A random code for positions, the sinusoid and a learned table by the width of the model."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN

RATES = {32: 9.7e-3, 64: 6.9e-3, 128: 4.8e-3, 256: 3.4e-3}
"""5.6e-3 at the width 96 of `core`, times sqrt(96 / width)."""

SUITE = Suite(
    name="random-width",
    question="Does a random code for positions reach the sinusoid and a learned table where the model is wide enough?",
    tasks=["lm-wikitext2"],
    encodings=["add", "learned", "random", "none"],
    contrasts=[("random", "learned"), ("random", "none")],
    seeds=5,
    tier="core",
    settings={"model.num_layers": 2, "train.max_steps": 800, "train.evaluations": 2},
    vary={"model.d_model": [32, 64, 128, 256]},
    along={
        "model.d_model": {
            width: {"model.num_heads": width // 32, "train.learning_rate": rate} for width, rate in RATES.items()
        }
    },
    margin=BITS_MARGIN,
    declared="2026-11-27 15:10",
    shared_machine=True,
    cost=(
        "80 runs, 2 to 3 hours on 2 cores, two at a time (estimated by `core`, and by the floating-point operations of "
        "each width); a width of 512 would be 5 to 7 hours more, and is left out"
    ),
    expect=(
        "random is behind add at every width, and by less the wider the model: random vectors are the nearer to right "
        "angles, and the easier to tell apart from content, the more channels they have. It is behind learned, which "
        "starts as it does and can move, and ahead of none, at every width."
    ),
    decision=(
        "Width helps a random code if the difference of random to add changes from a width of 32 to one of 256 by a "
        "clear paired t-test, and is nearer to zero at 256. It is enough where random is equivalent to add. That it "
        "serves as a code at all is its contrast to none; what a table gains by training is its contrast to learned, "
        "which starts alike. Each width has one rate for all rows, 5.6e-3 times sqrt(96 / width) to two digits: 5.6e-3 "
        "is the best of add and concat at width 96 by a parabola through `core`'s selecting losses, with four layers "
        "and 1,500 steps, and the root a rule, which is not tested here. So a change over width may be one of the rate "
        "where rows want different rates, and a width of 256 with 800 steps is trained less, by its size, than one of "
        "32. Heads are 32 channels wide at every width. Two layers in place of `core`'s four and 800 steps in place "
        "of 1,500 let 256 channels fit into three hours: no row compares with `core`'s. Runs of `inside`, which has "
        "random and learned at width 96, may have begun when this was declared."
    ),
)  # fmt: skip
