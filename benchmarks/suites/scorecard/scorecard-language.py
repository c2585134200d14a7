"""The language columns of the scorecard: every encoding for causal text that papers or shipped models stand for."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, LANGUAGE_ENCODINGS

SUITE = Suite(
    name="scorecard-language",
    question="Which encoding suits a small language model, at its trained length and at four times that?",
    tasks=["lm-wikitext2"],
    encodings=LANGUAGE_ENCODINGS,
    seeds=5,
    tier="core",
    select={"train.learning_rate": [2e-3, 4e-3, 8e-3]},
    margin=BITS_MARGIN,
    declared="2026-11-28 08:24",
    shared_machine=True,
    cost=(
        "304 runs, of which 80 are published; the others about 18 hours on 2 cores, two at a time (estimated by "
        "`inside`)"
    ),
    expect=(
        "In length, what acts in attention is ahead of what acts at the input, rope and its kin by least among each "
        "other; none is last of those with positions of their own. At four times the length alibi, kerple-log, fire, "
        "t5-bias and fox stay within 0.05 bits per byte of themselves in length, sinusoids at the input rise by more "
        "than 0.2, rope and its kin by about 0.1."
    ),
    decision=(
        "Each row against add, as always; and, on the scorecard, each against the best mean of its column. Both are "
        "corrected for the rows of this suite. A row that is not separable from the best at five seeds may still be "
        "behind it. The three rates are a factor of two apart around those that `core` chose; a row that chooses "
        "8e-3 is tried at 1.6e-2 too, and one that chooses 2e-3 at 1e-3, and that is said."
    ),
    remarks=(
        "Eleven of these rows were known, at eight seeds, when this was declared (`core`, `fusion`, `site`).",
    ),
)  # fmt: skip
