"""The grid columns of the scorecard: generated images that isolate position, every encoding for grids."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, IMAGE_ENCODINGS

SUITE = Suite(
    name="scorecard-cells",
    question="Which encoding learns where cells of a grid are to each other, and still knows it in larger grids?",
    tasks=["vit-three-cells", "vit-relative-cell"],
    encodings=IMAGE_ENCODINGS,
    seeds=5,
    tier="minute",
    margin=ACCURACY_MARGIN,
    declared="2026-11-29 11:39",
    shared_machine=True,
    cost="340 runs, 3 to 4 hours on 2 cores, two at a time (a run took 50 to 110 s beside another)",
    expect=(
        "Next to a marker: cpe, a convolution, and rotations of mixed directions (rope-mixed, spiral-rope, lie-re) "
        "pass 99 %, axial rope is below them; what acts at the input, and biases that do not see content (swin-bias, "
        "log-cpb, alibi), stay near the 18 % of a model without positions. Nearest of three: rope and rope-mixed are "
        "ahead of cpe, which sees neighbours alone, and cpe of add. In larger grids cpe falls least."
    ),
    decision=(
        "Each row against add, as always, for each task at the trained size; and, on the scorecard, each against the "
        "best mean of its column. Both are corrected for the rows of this suite. Every row has the task's learning "
        "rate, which is not tuned, and 1,600 steps: what a row does not learn here, it may learn with more."
    ),
    remarks=(
        "Known when this was declared, with one seed each. Next to a marker, 2,400 steps: cpe 100 % (after 600), "
        "rope-mixed 99.6, rope 71, shaw 60, add 19, swin-bias 18. Nearest of three, 1,600 steps: rope 99, cpe 87, add "
        "65, none 51.",
    ),
)  # fmt: skip
