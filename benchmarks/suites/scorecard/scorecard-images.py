"""The image columns of the scorecard: every encoding for grids that papers or shipped models stand for."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, IMAGE_ENCODINGS

SUITE = Suite(
    name="scorecard-images",
    question="Which encoding suits a small vision transformer, at its trained size and at 1.5 times that?",
    tasks=["vit-cifar10"],
    encodings=IMAGE_ENCODINGS,
    seeds=5,
    tier="core",
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3]},
    select_beyond=1,
    margin=ACCURACY_MARGIN,
    declared="2026-11-28 08:24",
    shared_machine=True,
    cost=(
        "272 runs, of which 80 are published; the others about 10 hours on 2 cores, two at a time (estimated by `core`)"
    ),
    expect=(
        "In size, biases of the offset on both axes (swin-bias, log-cpb) and cpe are ahead of add, by one to four "
        "points; directions beside the axes (rope-mixed, spiral-rope, lie-re) are ahead of rope. On larger images cpe, "
        "alibi and look-here fall least, tables that are learned refuse."
    ),
    decision=(
        "Each row against add, as always; and, on the scorecard, each against the best mean of its column. Both are "
        "corrected for the rows of this suite. A row that is not separable from the best at five seeds may still be "
        "behind it. The three rates are a factor of two apart around those that `core` chose; a row that chooses "
        "4e-3 is tried at 8e-3 too, and one that chooses 1e-3 at 5e-4, and that is said."
    ),
    remarks=(
        "Ten of these rows were known, at eight seeds and more, when this was declared (`core`, `fusion`, `site`).",
    ),
)  # fmt: skip
