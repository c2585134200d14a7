"""Ways to fuse a sinusoid in the larger language model, on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, FULL_RATES, FULL_SETTINGS

SUITE = Suite(
    name="full-fusion",
    question=(
        "In the larger language model, does concatenation want fewer channels, and does position in queries and keys "
        "do as well as rotation?"
    ),
    tasks=["lm-wikitext2"],
    encodings=[
        *("add", "concat", ("concat", {"d_p": 16}), ("concat", {"d_p": 32}), "add-qk", "concat-qk"),
        *("learned", ("learned", {"ratio": 0.03}), "rope"),
    ],
    contrasts=[
        ("concat (d_p=32)", "concat"), ("concat (d_p=16)", "concat"), ("concat-qk", "rope"), ("add-qk", "rope"),
        ("learned (ratio=0.03)", "learned"),
    ],
    seeds=5,
    tier="full",
    settings=FULL_SETTINGS,
    select={"train.learning_rate": FULL_RATES},
    margin=BITS_MARGIN,
    declared="2026-11-26 07:25",
    shared_machine=True,
    cost=(
        "81 runs, of which 36 are those of `full`; the others took 8 minutes on one H100, 15 at a time"
    ),
    expect=(
        "32 of 256 channels are better than 64, by less than 0.01, and 16 not clearly otherwise; concat-qk and add-qk "
        "are near rotation, and ahead of concat; a quiet table is ahead of the loud one and level with addition."
    ),
    decision=(
        "By the contrasts, and the differences to add. `full` found concat 0.0149 ± 0.0023 and rope 0.0387 ± 0.0030 "
        "ahead of add here, a quarter and three eighths of what they are in `core`, and concat has 64 channels for "
        "position here, a quarter, as there, where `few-channels` finds 8 of 96 better than 24. If 32 or 16 are "
        "clearly better than 64, the lead of concatenation in `full` is that of one number of channels and not of "
        "concatenation. At a ratio of one fewer channels are quieter altogether, which is not taken apart, and leave "
        "more for content, 3 or 5 % more parameters. That place in attention does as well as rotation at this size "
        "stands where concat-qk or add-qk is equivalent to rope within the margin, or clearly ahead; they have 9 % "
        "more parameters at equal width. Five seeds show equivalence seldom, and may miss a difference of 0.01. What "
        "`full` found was known when this was declared, and no other row at this size."
    ),
)  # fmt: skip
