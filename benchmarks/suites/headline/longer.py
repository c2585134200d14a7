"""Images for four times as long as in core: does what two epochs show stand?"""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, CIFAR10_RATES
from pebench.benchmarks.rules import CONFIRM_WIDENED_SPREAD, EDGE_FOR_ALL_BEFORE, EDGE_OF_ROW, LOUDNESS_FOUND

SUITE = Suite(
    name="longer",
    question="Does the order of encodings on images, after two epochs, stand after eight?",
    tasks=["vit-cifar10"],
    seeds=5,
    tier="core",
    settings={"train.max_steps": 6000},
    select={"train.learning_rate": CIFAR10_RATES},
    select_beyond=2,
    margin=ACCURACY_MARGIN,
    declared="2026-11-23 02:58",
    shared_machine=True,
    cost="45 runs, about 5 hours on 2 cores, two at a time (estimated)",
    expect=(
        "The learned table catches up with the fixed sinusoid and ends at least four points above none, and rope is "
        "no longer below add: the gate on images, which core's two epochs do not pass, holds or comes nearer."
    ),
    decision=(
        "The gate on images is missed for lack of training if it holds here; nearly, if the mean of learned minus none "
        "is four points or more and the interval of rope minus add lies above -0.5 points. That rope is not separable "
        "from add would not do: five seeds may miss a difference. Five seeds hardly see a difference of the size that "
        "concat has to add over the twenty of `core` and `confirm`, so that it is not decided here. How loud the "
        "learned table starts is another reason for which the gate may be missed; `scale-learned` is for it. "
        f"{EDGE_OF_ROW}"
    ),
    remarks=(
        f"{CONFIRM_WIDENED_SPREAD} The rule's words on it came then, before any run.",
        f"{LOUDNESS_FOUND}, before any run of this. So that rope is behind add after eight epochs, if it is, may be "
        "one of loudness as well.",
        EDGE_FOR_ALL_BEFORE,
    ),
)
