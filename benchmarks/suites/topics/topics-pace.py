"""A learned table on topics, where order hardly matters, trained at the pace of other weights."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, NEWSGROUPS_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

AT_PACE = ("learned", {"ratio": 0.03, "pace": 1.0})

SUITE = Suite(
    name="topics-pace",
    question="Is a learned table behind where order hardly matters because it is trained faster than other weights?",
    tasks=["text-20newsgroups"],
    encodings=["add", "learned", ("learned", {"ratio": 0.03}), AT_PACE, "none"],
    contrasts=[
        ("learned (pace=1.0, ratio=0.03)", "learned (ratio=0.03)"),
        ("learned (pace=1.0, ratio=0.03)", "none"),
    ],
    seeds=8,
    tier="core",
    settings={"model.num_layers": 2},
    select={"train.learning_rate": NEWSGROUPS_RATES},
    margin=ACCURACY_MARGIN,
    declared="2026-11-26 11:55",
    shared_machine=True,
    cost="65 runs, of which 52 are those of `topics-quiet`; the others took 10 minutes on 2 cores, two at a time",
    expect="At the pace of other weights the quiet table stays quiet and is level with no encoding at all.",
    decision=(
        "`topics-quiet` finds that a quiet start is no help. The pace explains what the table is behind by if the "
        "first contrast is clear, or else is no part of it that eight seeds see: they see two points half of the time, "
        "by the spread of what is known. A table that is quiet and slow hardly moves in a thousand steps, and is then "
        "nearly no encoding at all, so that being level with that is no finding on tables. All of `topics-quiet` was "
        f"known when this was declared. {EDGE_OF_GRID}"
    ),
)
