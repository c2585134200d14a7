"""Whether a learned table loses on topics, where order hardly matters, by being trained faster than the rest."""

from pebench.runs.suite import Suite

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
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"accuracy": 0.005},
    declared="2026-11-26 11:55",
    shared_machine=True,
    cost=(
        "65 runs, of which 52 are those of `topics-quiet`: `pebench merge results/topics-quiet.jsonl --out "
        "runs/topics-pace --suite topics-pace`; the others took 10 minutes on 2 cores, two at a time"
    ),
    expect="At the pace of other weights the quiet table stays quiet and is level with no encoding at all.",
    decision=(
        "`topics-quiet` finds that a quiet start is no help. The pace explains what the table is behind by if the "
        "first contrast is clear, or else is no part of it that eight seeds see: they see two points half of the time, "
        "by the spread of what is known. A table that is quiet and slow hardly moves in a thousand steps, and is then "
        "nearly no encoding at all, so that being level with that is no finding on tables. All of `topics-quiet` was "
        "known when this was declared. Where a row's best rate is at the edge of its grid, the grid goes on for all "
        "rows."
    ),
)
