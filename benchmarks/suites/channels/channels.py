"""The sinusoid of concat, added: channels of position's own, or fewer of them and fewer wavelengths?"""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_RATES, MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import CONFIRM_WIDENED_SPREAD, EDGE_OF_TASKS_GRID, LOUDNESS_FOUND

SUITE = Suite(
    name="channels",
    question="Is what concatenation gains or loses one of keeping content out of position's channels?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=["add", "add-proj", ("add", {"d_p": 16}), ("add", {"d_p": 24}), "concat", "none"],
    contrasts=[("concat", "add (d_p=24)"), ("concat", "add (d_p=16)")],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_RATES,
        }
    },
    margin=MARGIN,
    declared="2026-11-23 06:15",
    shared_machine=True,
    cost=(
        "144 runs, about 5 hours on 2 cores, two at a time (estimated); 96 of them are those of `core` and `fusion`"
    ),
    expect=(
        "On WikiText-2 the sinusoid of concat, added to the last 24 of 96 channels, is most of the way from add to "
        "concat: what gains is that three quarters of the channels are left alone and that wavelengths are few, more "
        "than that content keeps out of the rest. On CIFAR-10 nothing but none separates."
    ),
    decision=(
        "add (d_p=24) on WikiText-2, and add (d_p=16) on CIFAR-10, tell the very vectors that concat tells, in the "
        "same channels, and differ from it in one thing: content is embedded in those channels too. A difference of "
        "concat to add is one of fusing (of keeping content out) where concat differs from that row, and one of "
        "channels and wavelengths, of which add has four times as many, where that row differs from add; both may be, "
        "and either only where it is clear with the sign that concat has to add. At a ratio of one, taken together, "
        "position is 0.50 times as loud as content there, 0.58 times with concat. The other number on each task says "
        "how much hangs on it, and add-proj, whose matrix could do what any of them does, what training finds by "
        "itself. What `core`, `fusion` and `site` found of the other rows was known when this was declared. On "
        "CIFAR-10 eight seeds see a gap of the size that concat has to add over the twenty of `core` and `confirm`, "
        "0.5 points, one time of five after correction for two contrasts: not clear is no evidence against it there. "
        f"{EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        f"{CONFIRM_WIDENED_SPREAD} The rule's words on it came then, with WikiText-2 complete and before any run on "
        "CIFAR-10 but core's.",
        f"{LOUDNESS_FOUND}, before any run there but core's. The input of add (d_p=16) starts at 1.25: so on images "
        "concat differs from it in two things, and from add in three. There the rule says fusing, or channels, only of "
        "a difference against what loudness brings.",
    ),
)  # fmt: skip
