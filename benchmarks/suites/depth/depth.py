"""A model without positions beside one with them, by its depth, causal and not, each well tuned."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_EXTENDED_RATES, MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_TASKS_GRID, LOUDNESS_FOUND

SUITE = Suite(
    name="depth",
    question="Is no encoding at all nearly as good, and does depth change that, on causal text and on images?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=["add", "none", "rope"],
    contrasts=[("none", "rope")],
    seeds=8,
    tier="core",
    vary={"model.num_layers": [1, 2, 4, 8]},
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_EXTENDED_RATES,
        }
    },
    margin=MARGIN,
    declared="2026-11-22 14:25",
    shared_machine=True,
    cost=(
        "300 runs, about 9 hours on 2 cores, two at a time; 75 of them are core's"
    ),
    expect=(
        "Causal (WikiText-2): none is far behind with one layer and closes most of the gap by four, as deeper models "
        "can count what they see. Bidirectional (CIFAR-10): no depth closes it. To rope as to add."
    ),
    decision=(
        "By the difference of none to add, and to rope, at each depth: the gap narrows from one layer to eight where "
        "its change at equal seeds is clear by a paired t-test and brings it nearer to zero, and is closed where none "
        "is equivalent. Causality is not told apart from what else sets a language model apart from images; sentiment, "
        "where `untuned` tells none from nothing, could not show a gap closing. What `core` found with four layers was "
        f"known when this was declared. {EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        "8e-3 was added on CIFAR-10, for every row and depth, when with one layer addition was best at 4e-3, the "
        "edge; nothing had been tested there but at four layers.",
        "With one layer and four tested, and before any run of two or eight, the rule was put into better words: it "
        "asked that the two intervals do not overlap where the test of the change at equal seeds is the right one, "
        "called closing what only narrows, and the question named causality, which the rule says is not told apart. "
        "Of what is known the change of words changes this: on CIFAR-10 the gap to add narrows from one layer to four "
        "by either rule, but is not closed.",
        "Before any run of two or eight layers this was added to the rule: where addition itself does not gain at "
        "least 0.03 bits per byte, or 2 points, from one layer to eight, models do not use their depth, and a gap "
        "that does not narrow says nothing of what depth does. From one layer to four addition gains 0.022 bits per "
        "byte.",
        f"{LOUDNESS_FOUND}, with one layer and four complete there and before any run of two or eight there. So on "
        "images what the gaps of none and rope to add do with depth may be what loudness does with depth; the "
        "difference of none to rope, whose inputs are equally loud, is free of it.",
    ),
)  # fmt: skip
