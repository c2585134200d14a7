"""Images for four times as long as in core: does what two epochs show stand?"""

from pebench.suites import Suite

SUITE = Suite(
    name="longer",
    question="Does the order of encodings on images, after two epochs, stand after eight?",
    tasks=["vit-cifar10"],
    seeds=8,
    tier="core",
    settings={"train.learning_rate": 1e-3, "train.max_steps": 6000},
    margin={"accuracy": 0.005},
    cost="40 runs, about 4 hours on 2 cores, two at a time (estimated)",
    expect=(
        "The learned table catches up with the fixed sinusoid and ends at least four points above none, and rope is no "
        "longer below add: the gate on images, which core's two epochs do not pass, holds or comes nearer."
    ),
    decision=(
        "The gate on images is missed for lack of training if it holds here; nearly, if the mean of learned minus none "
        "is four points or more and the interval of rope minus add lies above -0.5 points. That rope is not separable "
        "from add would not do: eight seeds may miss a difference. One learning rate for all, the lower of the two "
        "that core chose, as longer training asks for."
    ),
)
