"""A sinusoid at the input or in queries and keys, in a model with a single layer."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="site-one-layer",
    question="Is it queries and keys, or every layer, that gains where position is told to both?",
    tasks=["lm-wikitext2"],
    encodings=["add", "add-qk", "concat", "concat-qk", "none", "rope"],
    contrasts=[("concat-qk", "add-qk"), ("rope", "add-qk")],
    settings={"model.num_layers": 1},
    seeds=8,
    tier="core",
    select={"train.learning_rate": WIKITEXT2_RATES},
    margin=BITS_MARGIN,
    declared="2026-11-23 06:15",
    shared_machine=True,
    cost=(
        "72 runs, about 2 hours on 2 cores, two at a time (estimated); 36 of them are those of `depth`"
    ),
    expect=(
        "add-qk is ahead of add by most of what it is ahead by with four layers (0.107 bits per byte), as rope is "
        "(0.079 of 0.106); concat-qk and rope are not told from it."
    ),
    decision=(
        "In `site` add-qk and concat-qk tell every layer, and queries and keys: with one layer every layer is one, and "
        "what add-qk is ahead of add by is not owed to being told more than once. It may be owed to its matrices, of "
        "queries and of keys, which add has not (add-proj, with one matrix, is 0.014 ahead in `fusion`), or to leaving "
        "the stream and the values alone: these are not taken apart. That addition is rotation's equal among queries "
        "and keys stands where rope is equivalent to add-qk. What `depth` found of add, none and rope was known when "
        f"this was declared, and what `core`, `fusion` and `site` found with four layers. {EDGE_OF_GRID}"
    ),
)  # fmt: skip
