"""Images for five times as long as in core: does what two epochs show stand?"""

from pebench.suites import Suite

SUITE = Suite(
    name="longer",
    question="Does the order of encodings on images, after two epochs, stand after ten?",
    tasks=["vit-cifar10"],
    seeds=3,
    tier="core",
    settings={"train.max_steps": 7500, "train.learning_rate": 1e-3},
    margin={"accuracy": 0.005},
    cost="15 runs, about 2.5 hours on 2 cores, two at a time (estimated)",
    expect=(
        "The learned table catches up with the fixed sinusoid, ends at least four points above none, and rope is no "
        "longer below add: the gate on images, which core's two epochs do not pass, holds or comes nearer."
    ),
    decision=(
        "The gate on images is explained by too little training if learned is four points or more above none, and the "
        "difference of rope to add is nearer to zero than core's or above it. Learning rate: half of what core chose."
    ),
)
