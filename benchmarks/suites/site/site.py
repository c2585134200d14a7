"""A sinusoid at the input, in every layer, or in queries and keys alone; added or concatenated at the same site."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_RATES, MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_TASKS_GRID, LOUDNESS_FOUND

SUITE = Suite(
    name="site",
    question="Is it where position enters that tells encodings apart, or how it is fused?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=[
        "add", "add-every-layer", ("add-every-layer", {"ratio": 0.25}), "add-qk", "concat", "concat-qk", "none", "rope",
    ],
    contrasts=[("concat-qk", "add-qk"), ("rope", "add-qk")],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_RATES,
        }
    },
    margin=MARGIN,
    declared="2026-11-22 21:45",
    shared_machine=True,
    cost=(
        "192 runs, about 8 hours on 2 cores, two at a time (estimated); 120 of them are those of `core` and of "
        "`fusion`"
    ),
    expect=(
        "On WikiText-2 sinusoids of every layer are better than the one at the input, and add-qk is as good as "
        "concat-qk: much of what rope and concat-qk are ahead by is that they tell position in every layer. On "
        "CIFAR-10 nothing but none separates from add."
    ),
    decision=(
        "How matters at one site where concat-qk and add-qk differ, whose vectors, matrices and layers are the same. "
        "Where matters where add-every-layer differs from add, with the same sign at both ratios: the sums add up, so "
        "that at a ratio of 1 the last of four blocks is told four times as loudly as by add, and at 0.25 as loudly, "
        "and the first a quarter as loudly. Rope is more than a sinusoid at its own site where it differs from add-qk; "
        "that comparison has more parameters on the side of add-qk (9 % on WikiText-2, 16 % on CIFAR-10). That "
        "add-every-layer tells values too, has no matrices of its own and adds up, while add-qk does none of this, is "
        "not taken apart; nor are every layer and queries and keys, as no row tells those of one layer alone. What "
        f"`core` and `fusion` found of the others was known when this was declared. {EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        "The rule's words on what is not taken apart came on 2026-11-23 at 02:56, when this had begun to run; they "
        "change no verdict.",
        f"{LOUDNESS_FOUND}, before any run there but core's and `fusion`'s. add-qk and concat-qk start at 1.15, and "
        "add-every-layer grows louder with every block. So on images a quieter row that is behind add says nothing of "
        "sites, and one that is ahead is so in spite of it.",
    ),
)  # fmt: skip
