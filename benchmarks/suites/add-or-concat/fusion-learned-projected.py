"""Ways to fuse a projected learned table with the content at equal numbers of parameters."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_EXTENDED_RATES, IMDB_CHOSEN_RATE, MARGIN, SST2_RATES, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_TASKS_GRID

LEARNED = {"table": "learned"}

SUITE = Suite(
    name="fusion-learned-projected",
    question="Does what a projection gains or loses behind a learned table at equal width stand at equal parameters?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-sst2", "text-imdb"],
    encodings=[
        "learned", ("add-proj", LEARNED), ("concat-proj", LEARNED), ("concat-proj", LEARNED | {"start": "identity"}),
    ],
    reference="learned",
    contrasts=[
        ("concat-proj (table=learned)", "add-proj (table=learned)"),
        ("concat-proj (start=identity, table=learned)", "add-proj (table=learned)"),
    ],
    regime="parameters",
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_EXTENDED_RATES,
            "text-sst2": SST2_RATES, "text-imdb": IMDB_CHOSEN_RATE,
        }
    },
    margin=MARGIN,
    declared="2026-11-26 09:40",
    shared_machine=True,
    cost=(
        "188 runs, of which 46 are those of `core`; the others took 3.5 hours on 2 cores, "
        "two at a time"
    ),
    expect=(
        "As at equal width (`fusion-learned`), where a difference was clear: the projections cost 1 to 6 % of what "
        "feed-forward layers have, which is little."
    ),
    decision=(
        "A difference to `learned`, or a contrast, at equal width (`fusion-learned`) stands where it is clear, with "
        "the same sign, here. Matching makes feed-forward layers narrower: 372 and 360 for 384 on WikiText-2, 248 and "
        "240 for 256 on images, 240 and 224 for 256 on sentiment (add-proj and concat-proj). All rows at equal width "
        "were known when this was declared, as was `learned`, which matching does not change, and the seeds are the "
        "same; rows whose layers differ in width share few weights at one seed. A projected table can be no other "
        "function than a learned one, but for content's matrix in concat-proj: a difference is one of optimisation, "
        "whatever the size. On IMDB all have the rate of 2e-3 that every row of `core` and `fusion` chose there. "
        "gated-add has one parameter more than `learned`: it is at equal size in `fusion-learned`. "
        f"{EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        "The grid of rates on images was extended from 4e-3 to 8e-3 on 2026-11-26, by the rule: add-proj and "
        "concat-proj (start=identity) had their best at its edge. Every tested run of the earlier grid was known then.",
    ),
)  # fmt: skip
