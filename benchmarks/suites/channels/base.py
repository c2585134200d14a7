"""Sinusoids with the base of text and with one for small grids, added and concatenated, on images."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, CIFAR10_RATES
from pebench.benchmarks.rules import EDGE_FOR_ALL_BEFORE, EDGE_OF_ROW

SUITE = Suite(
    name="base",
    question="Is the sinusoid's base of 10,000, made for text, what concatenation lacks on images?",
    tasks=["vit-cifar10"],
    encodings=[
        *("add", ("add", {"base": 100.0}), "concat", ("concat", {"base": 100.0})),
        ("concat", {"base": 100.0, "d_p": 8}),
    ],
    contrasts=[
        ("concat (base=100.0)", "concat"), ("concat (base=100.0)", "add (base=100.0)"),
        ("concat (base=100.0, d_p=8)", "concat"),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": CIFAR10_RATES},
    select_beyond=2,
    margin=ACCURACY_MARGIN,
    declared="2026-11-24 10:00",
    shared_machine=True,
    cost=(
        "60 runs, about 1 hour on 2 cores, two at a time (estimated); 24 of them are core's"
    ),
    expect=(
        "The base of 100, which rope has on grids, helps: rows and columns have eight places, and by 10,000 half of "
        "concat's 16 channels hardly vary, and 38 of add's 64 (standard deviation below 0.05)."
    ),
    decision=(
        "By the contrasts. With a base of 100 8 channels have the two fast wavelengths of concat's four and none of "
        "the slow ones, so that the last contrast is one of channels alone. At an equal ratio what varies between "
        "positions is louder with a base of 100, too: 1.4 times with add, 1.2 times with concat; contrasts of the "
        "bases are of both. Eight seeds see a gap of the size that concat has to add over the twenty of `core` and "
        "`confirm`, 0.5 points, one time of eight after correction for three contrasts: not clear is no evidence "
        "against one. The difference of concat to add with the base of 100 is reported beside that with 10,000; "
        "whether the two differ is not decided. What `core`, `confirm`, `loudness` and `louder` found of add and "
        f"concat was known when this was declared. {EDGE_OF_ROW}"
    ),
    remarks=(
        "Until 2026-11-24 these rows were declared in `split`, on WikiText-2 too; none had run.",
        EDGE_FOR_ALL_BEFORE,
    ),
)  # fmt: skip
