"""The number of channels of a position that is concatenated, at equal numbers of parameters."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="split-parameters",
    question="At equal parameters, how should the width be split between content and position?",
    tasks=["lm-wikitext2"],
    encodings=["add", "concat", ("concat", {"d_p": 8, "ratio": 1.7}), ("concat", {"d_p": 32})],
    contrasts=[("concat (d_p=8, ratio=1.7)", "concat"), ("concat (d_p=32)", "concat")],
    regime="parameters",
    seeds=8,
    tier="core",
    select={"train.learning_rate": WIKITEXT2_RATES},
    margin=BITS_MARGIN,
    declared="2026-11-26 09:40",
    shared_machine=True,
    cost=(
        "48 runs, of which 24 are those of `core` and `fusion-parameters`; the others took 71 "
        "minutes on 2 cores that did other work too, two at a time"
    ),
    expect=(
        "8 channels, as loud altogether as 24, are no longer better than 24, as 4 % of their parameters were in the "
        "token table, and not worse; 32 stay behind, by less than at equal width."
    ),
    decision=(
        "By the contrasts. At equal width 8 of 96 channels are better than 24 (`few-channels`) and 32 worse by 0.0120 "
        "± 0.0035 (`split`), and the fewer there are, the more parameters the token table has. Matching takes them "
        "from feed-forward layers: 405 wide with 8 channels, 448 with 24, 469 with 32, and 384 with none of their own "
        "(add). A number of channels is better than another at equal size where its contrast is clear here. What is "
        "equal is the count: parameters of a token table and of a feed-forward layer do different work, and 8 channels "
        "have 4 % fewer operations than 24 here. All rows at equal width, and add and concat here, were known when "
        "this was declared, and the seeds are theirs. By the spread of what is known eight seeds see 0.01 bits per "
        "byte nearly always and 0.006 half of the time. Images are left out, where matching changes the width of "
        "feed-forward layers by 1 % at most and `split` has answered, and so is sentiment, where matching makes "
        f"feed-forward layers five times as wide. {EDGE_OF_GRID}"
    ),
)  # fmt: skip
