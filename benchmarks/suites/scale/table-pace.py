"""The pace at which a learned table is trained, on images, each pace at its own learning rate."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, CIFAR10_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="table-pace",
    question="On images, is a learned table behind the sinusoid because it is trained faster than other weights?",
    tasks=["vit-cifar10"],
    encodings=[
        *("add", "learned", ("learned", {"ratio": 0.03}), "none"),
        *(("learned", {"pace": 1.0} | ratio) for ratio in ({}, {"ratio": 0.03})),
    ],
    contrasts=[
        ("learned (pace=1.0)", "learned"),
        ("learned (pace=1.0, ratio=0.03)", "learned (ratio=0.03)"),
        ("learned (pace=1.0, ratio=0.03)", "learned (pace=1.0)"),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": CIFAR10_RATES},
    margin=ACCURACY_MARGIN,
    declared="2026-11-25 21:59",
    shared_machine=True,
    cost=(
        "72 runs, about 2 hours on 2 cores, two at a time; 48 of them are those of `scale-learned`"
    ),
    expect=(
        "From a quiet start the pace hardly matters. From a loud one a slow table takes less of its noise back, and is "
        "behind the fast one. All are behind add."
    ),
    decision=(
        "By the contrasts, and by the differences to add. Tables here move sqrt(D) = 8 times as fast as other weights, "
        "as tables of tokens do, which images have not: vision transformers train theirs at the pace of all else, from "
        "a standard deviation of 0.02, as the row of a ratio of 0.03 and a pace of 1 does about. Where that row is not "
        "behind add, what `core` says of learned tables on images is a finding about their start and pace; where it is "
        "clearly behind, tables are. That the start matters is known (`scale-learned`: 0.03 gains 3.62 ± 0.71 points, "
        "and is -1.22 ± 0.79 from add); its seeds are these, so that only the two rows of a pace are new, of which "
        "nothing has run. By the spread of twenty seeds (0.90 points) eight see 1.5 points four times of five and 0.5 "
        f"points one time of twelve: what is not clear is no evidence. {EDGE_OF_GRID}"
    ),
)  # fmt: skip
