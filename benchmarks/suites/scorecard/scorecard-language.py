"""The language columns of the scorecard: every encoding for causal text that papers or shipped models stand for."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, LANGUAGE_ENCODINGS, WIKITEXT2_RATES

SUITE = Suite(
    name="scorecard-language",
    question="Which encoding suits a small language model, at its trained length and at four times that?",
    tasks=["lm-wikitext2"],
    encodings=LANGUAGE_ENCODINGS,
    seeds=5,
    tier="core",
    select={"train.learning_rate": WIKITEXT2_RATES},
    select_beyond=1,
    margin=BITS_MARGIN,
    declared="2026-11-28 08:24",
    shared_machine=True,
    cost=(
        "342 runs, of which 90 are published; the others about 20 hours on 2 cores, two at a time (estimated by "
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
        "behind it. The rates are those of `core`, a factor of two apart; a row that chooses the first or the last "
        "of them is tried at one further, and that is said."
    ),
    remarks=(
        "Eleven of these rows were known, at eight seeds, when this was declared (`core`, `fusion`, `site`).",
        "The grid had three rates, up to 8e-3, and a row that chose that was to be tried at 1.6e-2. Since 2026-11-29 "
        "03:23 all rows have the four of `core`, as the known rows have. By then alibi had three selecting runs, the "
        "best at 8e-3 by a little; nothing was tested.",
    ),
)  # fmt: skip
