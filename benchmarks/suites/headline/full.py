"""The headline comparison of a language model at the size of the literature, on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, FULL_RATES, FULL_SETTINGS

SUITE = Suite(
    name="full",
    question="Does what five encodings do in a small language model stand in one of nine million parameters?",
    tasks=["lm-wikitext2"],
    contrasts=[("rope", "concat")],
    seeds=5,
    tier="full",
    settings=FULL_SETTINGS,
    select={"train.learning_rate": FULL_RATES},
    margin=BITS_MARGIN,
    declared="2026-11-26 06:23",
    shared_machine=True,
    cost="45 runs, 8 minutes on one H100, 15 at a time",
    expect=(
        "The order of `core` stands: rope, concat, add, learned, none. With six layers, many more tokens seen and "
        "dropout the gaps to addition are smaller than the 0.106 bits per byte of rope and the 0.060 of concat there, "
        "and clear; none is nearer to addition than 0.087, as depth helps a causal model without positions."
    ),
    decision=(
        "A difference that `core` found on WikiText-2 stands where it is clear here, with the same sign. The model is "
        "that of the tier `full`: 256 wide, six layers, eight heads, windows of 256 of 8,192 byte pairs, dropout; the "
        "budget is not, which is 10,000 steps there, 28 times through the text: it is what 45 runs can have in the "
        "minutes of a GPU that could be had. Everything differs from `core` at once (size, window, vocabulary, "
        "dropout, budget, precision), so that what does not stand has no cause told. Bits per byte compare over "
        "vocabularies; how gaps differ from `core`'s is told without a test. Five seeds may miss a difference of 0.01. "
        "What `core` found was known when this was declared, and nothing of this size. Where a row's best rate is at "
        "the edge of its grid, that is said: there may be no GPU to go on with."
    ),
    remarks=(
        "The tier's 10,000 steps are 31 times through the text, not 28; the 2,000 here are six times. That number was "
        "chosen by how fast 300 steps of addition alone ran on this GPU, with twelve seeds of which these five are "
        "some; what they scored was seen, and of no other row.",
    ),
)
