"""Position multiplied into the input, channel by channel or by a matrix, in place of added, on real data."""

from pebench import Suite
from pebench.benchmarks.grids import MARGIN

SUITE = Suite(
    name="multiplied",
    question="Why is position added and not multiplied: does a product reach the sum on real data?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-sst2"],
    encodings=["add", "multiply", "position-matrix", "none"],
    contrasts=[("multiply", "none"), ("position-matrix", "none"), ("position-matrix", "multiply")],
    seeds=5,
    tier="core",
    settings={
        "train.learning_rate": {"lm-wikitext2": 5.6e-3, "vit-cifar10": 2e-3, "text-sst2": 4e-3},
    },
    margin=MARGIN,
    declared="2026-11-27 15:10",
    shared_machine=True,
    cost=(
        "60 runs, 1 to 2 hours on 2 cores, two at a time (estimated by `core`); 30 of them are those of `inside`"
    ),
    expect=(
        "multiply is behind add on WikiText-2 and CIFAR-10, and ahead of none there: the sinusoid's fast channels "
        "change the sign of content from one position to the next, so that the same token has no direction of its own. "
        "position-matrix, which adds a small product to content, is between the two. On SST-2 nothing is separable."
    ),
    decision=(
        "By the difference of each to add on each task: the sum is better where it is clear. That a product carries "
        "position at all is its contrast to none, and that it is the diagonal that fails the contrast of "
        "position-matrix, which is trained and adds its product to content, to multiply, which is neither. Each task "
        "has one rate for all rows, that of `inside`, which is what `core` found for add and concat. In runs that "
        "selected, add loses 0.005 bits per byte from 4e-3 to 8e-3 on WikiText-2, and 2 to 3 points by half or twice "
        "the rate on CIFAR-10: a row that is behind by no more may lack its own rate, and is not called worse. On "
        "SST-2, where `core` cannot separate none from add, a product can only lose. Five seeds see less than the "
        "eight of `core`: not separable is no evidence of no difference. Rows of add and none are shared with "
        "`inside`, which was declared before, and whose runs may have begun."
    ),
)  # fmt: skip
