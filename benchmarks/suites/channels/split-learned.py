"""The number of channels of a learned table that is concatenated."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_EXTENDED_RATES, IMDB_CHOSEN_RATE, MARGIN, SST2_RATES, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_TASKS_GRID

LEARNED = {"table": "learned"}

SUITE = Suite(
    name="split-learned",
    question="How many channels does a learned table want that is concatenated, where no wavelengths come with them?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-sst2", "text-imdb"],
    encodings=[
        "learned", ("concat", LEARNED), ("concat", LEARNED | {"d_p": 8}), ("concat", LEARNED | {"d_p": 32}),
    ],
    reference="learned",
    contrasts=[
        ("concat (d_p=8, table=learned)", "concat (table=learned)"),
        ("concat (d_p=32, table=learned)", "concat (table=learned)"),
    ],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_EXTENDED_RATES,
            "text-sst2": SST2_RATES, "text-imdb": IMDB_CHOSEN_RATE,
        }
    },
    margin=MARGIN,
    declared="2026-11-26 23:00",
    shared_machine=True,
    cost=(
        "188 runs, of which 94 are those of `core` and `fusion-learned`; the "
        "others took 2.5 hours on 2 cores, two at a time"
    ),
    expect=(
        "On WikiText-2 8 of 96 channels are not separable from the quarter, 24, and 32 are worse, as with the sinusoid "
        "(`split`). On images 8 of 64 are not separable from 16: with the sinusoid they were worse, by what few "
        "wavelengths tell of patches, which a table need not lack; half of the width is worse, as content is. On "
        "sentiment half is worse on IMDB, and nothing else is separable."
    ),
    decision=(
        "By the contrasts; the differences to `learned` say whether a split is ahead of the table added. With the "
        "sinusoid channels and wavelengths change together; a learned table of 8 channels can tell as many positions "
        "apart as one of 32, so that here it is channels, and how loud they are altogether where they start: at a "
        "ratio of one each is as loud as one of content's, so that more are louder, but trained, tables grow. "
        "Parameters differ by content's embedding. `concat` at half the ratio is in `fusion-learned`: on WikiText-2 it "
        "is not separable from one, on images it is better, so that there 8 channels may gain by being quieter: better "
        "is of fewer channels only if it is more than that row's lead. Rows of the table added and of the quarter were "
        "known when this was declared, as was `split`. Eight seeds see a point on images, and on SST-2 more. On IMDB "
        "all have the rate that every row of `core` and `fusion` chose there; half of the channels at a rate of its "
        f"own is asked of the sinusoid, in `imdb-rates`. {EDGE_OF_TASKS_GRID}"
    ),
)  # fmt: skip
