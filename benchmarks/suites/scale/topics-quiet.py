"""Whether a learned table loses on topics, where order hardly matters, because it starts as loud as the content."""

from pebench.runs.suite import Suite

SUITE = Suite(
    name="topics-quiet",
    question="Is a learned table behind where order hardly matters because it starts as loud as the content?",
    tasks=["text-20newsgroups"],
    encodings=["add", "learned", ("learned", {"ratio": 0.03}), "none"],
    contrasts=[("learned (ratio=0.03)", "learned"), ("learned (ratio=0.03)", "none")],
    seeds=8,
    tier="core",
    settings={"model.num_layers": 2},
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"accuracy": 0.005},
    declared="2026-11-26 11:25",
    shared_machine=True,
    cost=(
        "52 runs, of which 39 are those of `topics`: `pebench merge results/topics.jsonl --out runs/topics-quiet "
        "--suite topics-quiet`; the others took 10 minutes on 2 cores, two at a time"
    ),
    expect="The quiet table is level with no encoding at all, and ahead of the loud one.",
    decision=(
        "`topics` finds the learned table behind addition by more than two points with two layers, which its gate does "
        "not allow: it is a mistake, or an effect of scale, as the table starts as loud as the content and is trained "
        "fast. It is one of scale if the first contrast is clear and the quiet table is less than two points behind "
        "addition. All of `topics` but its last five runs was known when this was declared. Where a row's best rate is "
        "at the edge of its grid, the grid goes on for all rows."
    ),
)
