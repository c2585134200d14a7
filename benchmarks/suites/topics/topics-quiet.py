"""A learned table on topics, where order hardly matters, with a quiet start."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, NEWSGROUPS_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="topics-quiet",
    question="Is a learned table behind where order hardly matters because it starts as loud as the content?",
    tasks=["text-20newsgroups"],
    encodings=["add", "learned", ("learned", {"ratio": 0.03}), "none"],
    contrasts=[("learned (ratio=0.03)", "learned"), ("learned (ratio=0.03)", "none")],
    seeds=8,
    tier="core",
    settings={"model.num_layers": 2},
    select={"train.learning_rate": NEWSGROUPS_RATES},
    margin=ACCURACY_MARGIN,
    declared="2026-11-26 11:25",
    shared_machine=True,
    cost="52 runs, of which 39 are those of `topics`; the others took 10 minutes on 2 cores, two at a time",
    expect="The quiet table is level with no encoding at all, and ahead of the loud one.",
    decision=(
        "`topics` finds the learned table behind addition by more than two points with two layers, which its gate does "
        "not allow: it is a mistake, or an effect of scale, as the table starts as loud as the content and is trained "
        "fast. It is one of scale if the first contrast is clear and the quiet table is less than two points behind "
        f"addition. All of `topics` but its last five runs was known when this was declared. {EDGE_OF_GRID}"
    ),
)
