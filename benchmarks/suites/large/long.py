"""The larger language model trained at 1,024 tokens and tested up to sixteen times that, on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN

SUITE = Suite(
    name="long",
    question="Which encodings keep their loss from 1,024 trained tokens to 16,384?",
    tasks=["lm-wikitext2"],
    encodings=["rope", "alibi", "fire", "fox", "kerple-log", "none", "sandwich", "t5-bias", "xpos"],
    reference="rope",
    seeds=3,
    tier="full",
    settings={
        "data.max_len": 1024, "train.batch_size": 8, "train.max_steps": 2000, "train.evaluations": 10,
        "train.learning_rate": 2e-3, "train.precision": "bf16-mixed", "train.beyond": "2,4,8,16",
    },
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="27 runs, 17 minutes on one H100, two at a time (estimated)",
    expect=(
        "alibi, sandwich, kerple-log and fox are within 0.02 bits per byte of themselves at every length; t5-bias and "
        "fire up to 4,096; none and xpos rise from there on, and rope from twice the length."
    ),
    decision=(
        "Eight encodings that papers or our own pages say go on beyond the trained length, and rope, which does not, "
        "as the reference. An encoding keeps its loss at a length if the loss there is within 0.02 bits per byte of "
        "that at 1,024, for each seed. All rows have the rate that all rows of `full` chose. Biases of 16,384 by "
        "16,384 take gigabytes: a length that does not fit in memory is missing from the table, which is no failure of "
        "the encoding, and fire's network is the first to miss it."
    ),
)  # fmt: skip
