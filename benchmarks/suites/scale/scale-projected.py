"""The loudness of position behind a trained matrix: added, or concatenated and projected back."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="scale-projected",
    question="Does the difference of concat-proj to add-proj hang on how loud position is?",
    tasks=["lm-wikitext2"],
    encodings=[(name, {"ratio": ratio}) for name in ("add", "add-proj", "concat-proj") for ratio in (0.3, 1.0, 3.0)],
    contrasts=[
        ("concat-proj (ratio=0.3)", "add-proj (ratio=0.3)"),
        ("concat-proj", "add-proj"),
        ("concat-proj (ratio=3.0)", "add-proj (ratio=3.0)"),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": WIKITEXT2_RATES},
    margin=BITS_MARGIN,
    declared="2026-11-24 10:00",
    shared_machine=True,
    cost=(
        "108 runs, about 3 hours on 2 cores, two at a time (estimated); 60 of them are those of `core`, `fusion` and "
        "`scale`"
    ),
    expect="At every ratio concat-proj is worse than add-proj, as at a ratio of one, and than add.",
    decision=(
        "At every ratio the gap of concat-proj to add-proj, of the same function class, is clear with one sign, or it "
        "is equivalent. (The protocol's check, among the page's gates, asks that of its gap to add.) The ratio is a "
        "pace too: behind a trained matrix vectors three times as loud move three times as fast. On WikiText-2 alone, "
        "where `fusion` tells concat-proj from add. What `fusion` found at a ratio of one was known when this was "
        f"declared. {EDGE_OF_GRID}"
    ),
    remarks=("Until 2026-11-24 these rows were declared in `scale`, on three tasks; none had run.",),
)
