"""The rivals of a constant vector and of position's scale, on images."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, CIFAR10_FINE_RATES
from pebench.benchmarks.rules import EDGE_FOR_ALL_BEFORE, EDGE_OF_ROW

SUITE = Suite(
    name="rivals-images",
    question="Do a centred sinusoid or a larger scale of position change what add and concat reach on images?",
    tasks=["vit-cifar10"],
    encodings=[
        (name, rival)
        for rival in ({}, {"centered": True}, {"ratio": 1.4}, {"ratio": 2.0})
        for name in ("add", "concat")
    ],
    contrasts=[
        ("concat", "add"),
        ("concat (centered=True)", "add (centered=True)"),
        ("concat (ratio=1.4)", "add (ratio=1.4)"),
        ("concat (ratio=2.0)", "add (ratio=2.0)"),
        ("concat (centered=True)", "concat"),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": CIFAR10_FINE_RATES},
    selection_seeds=2,
    select_beyond=2,
    margin=ACCURACY_MARGIN,
    declared="2026-11-27 14:26",
    shared_machine=True,
    cost="112 runs, 2 to 4 hours on 2 cores, two at a time (estimated by `scale` and `core`)",
    expect="No pair is separable: what varies is louder where the sinusoid is centred, and images do not need it.",
    decision=(
        "Here add and concat are not separable, so that there is no lead to explain. By the contrasts: a rival matters "
        "on images where the two sides are separable with its setting, or where a setting separates a row from itself "
        "without it. `core`, `confirm`, `scale` and `louder` were known when this was declared. Eight seeds see half a "
        f"point one time of eight: not separable is no evidence of no difference. {EDGE_OF_ROW}"
    ),
    remarks=(EDGE_FOR_ALL_BEFORE,),
)  # fmt: skip
