"""Images for four times as long as in core: does what two epochs show stand?"""

from pebench.suites import Suite

SUITE = Suite(
    name="longer",
    question="Does the order of encodings on images, after two epochs, stand after eight?",
    tasks=["vit-cifar10"],
    encodings=["add", "learned", "none", "rope"],
    seeds=5,
    tier="core",
    settings={"train.learning_rate": 1e-3},
    vary={"train.max_steps": [1500, 6000]},
    margin={"accuracy": 0.005},
    cost="40 runs, about 4 hours on 2 cores, two at a time (estimated)",
    expect=(
        "The learned table catches up with the fixed sinusoid and ends at least four points above none, and rope is no "
        "longer below add: the gate on images, which core's two epochs do not pass, holds or comes nearer."
    ),
    decision=(
        "The gate on images is missed for lack of training if, after 6,000 steps, the mean of learned minus none is "
        "four points or more and rope is not called worse than add. The learning rate is one for all, the lower of the "
        "two that core chose, so that the tables differ in the length of training alone."
    ),
)
