"""Addition in a stream as wide as concat-wide's: is that ahead by its width, or by position's own channels?"""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_RATES, MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_TASKS_GRID

SUITE = Suite(
    name="wider",
    question="Is concat-wide ahead of addition by its wider stream, or by channels that are position's alone?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=["add", "concat", "concat-wide", "widened"],
    contrasts=[("concat-wide", "widened"), ("concat-wide", "concat")],
    regime="parameters",
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_RATES,
        }
    },
    margin=MARGIN,
    declared="2026-11-25 04:15",
    shared_machine=True,
    cost=(
        "96 runs, about 4 hours on 2 cores, two at a time (estimated); 72 of them, all but one hour's, are those of "
        "`fusion-parameters`"
    ),
    expect=(
        "On WikiText-2 addition gains by the wider stream about what concat-wide has over concat, 0.03 bits per byte, "
        "and concat-wide stays ahead of it. On CIFAR-10 nothing is told apart."
    ),
    decision=(
        "At equal size `fusion-parameters` found concat-wide 0.0799 ± 0.0051 bits per byte ahead of add on WikiText-2 "
        "and 0.0279 ± 0.0055 ahead of concat, and not told from add on CIFAR-10 (-1.00 ± 0.81 points); this was known "
        "when this was declared. Its stream has 120 channels for 96 on text and 80 for 64 on images, which no row of "
        "addition had. widened is addition in a stream as wide, all four of one size by their feed-forward layers; "
        "concat-wide is widened(of='concat(d_p=24)'), on images 16, so that the four rows are two forms at two widths. "
        "Their wider streams are paid for by feed-forward layers of 119 (widened, whose word table is wider too) and "
        "170 (concat-wide) for 384 on WikiText-2, and of 145 and 147 for 256 on CIFAR-10. That concat-wide is ahead of "
        "addition by position's own channels stands where concat-wide is clearly better than widened; that its wider "
        "stream gains, where widened is clearly better than add, and then the part of concat-wide's lead over add that "
        "the stream has without them is told, without a test, as the ratio of the two differences. Where neither is "
        "clear nothing is said. On WikiText-2 eight seeds see 0.01 bits per byte nearly always; on CIFAR-10, by the "
        "spread of twenty (0.90 points), 1.5 points four times of five and 0.5 points one time of twelve, and less "
        "where feed-forward layers differ, as rows share few weights then: what is not clear there is no evidence. "
        f"{EDGE_OF_TASKS_GRID}"
    ),
)  # fmt: skip
