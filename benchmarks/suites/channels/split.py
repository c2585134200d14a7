"""The number of channels of a position that is concatenated."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_EXTENDED_RATES, MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import CONFIRM_WIDENED_SPREAD, EDGE_OF_TASKS_GRID, LOUDNESS_FOUND

SUITE = Suite(
    name="split",
    question="How should the width be split between content and position?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=[
        *("add", "concat"),
        *(("concat", {"d_p": channels}) for channels in (4, 8, 32)),
        *(("concat", {"d_p": channels, "ratio": ratio}) for channels, ratio in ((4, 2.5), (32, 0.7))),
    ],
    contrasts=[
        ("concat (d_p=4)", "concat"), ("concat (d_p=8)", "concat"), ("concat (d_p=32)", "concat"),
        ("concat (d_p=4, ratio=2.5)", "concat (d_p=4)"), ("concat (d_p=32, ratio=0.7)", "concat (d_p=32)"),
    ],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES, "vit-cifar10": CIFAR10_EXTENDED_RATES,
        }
    },
    margin=MARGIN,
    declared="2026-11-23 06:15",
    shared_machine=True,
    cost=(
        "175 runs, about 6 hours on 2 cores, two at a time; 50 of them are core's"
    ),
    expect=(
        "Few channels are enough: 8 do as well as the quarter that concat has otherwise (24 of 96, 16 of 64), and 4 "
        "fall behind on WikiText-2, louder or not."
    ),
    decision=(
        "By the contrasts; as well is equivalent, which eight seeds can seldom show on CIFAR-10. At a ratio of one "
        "fewer channels are quieter altogether: what they add up to beside the content is that of concat in the rows "
        "with a ratio of their own (0.9 to 1.2 times; of what varies, 4 channels are 2.2 times as loud on images, "
        "whose axes then have one wavelength each: the number of channels and the frequencies change together). Half "
        "of the width is tried on images alone; where the best number on WikiText-2, by the mean validation loss of "
        "tested runs, is 4 or 32, the numbers go on there to 2 or 48. A 4x4 patch of three colours is 48 numbers, so "
        "that on images content loses none behind 16 channels of position or fewer: only 32 of them narrow it. Whether "
        "it is channels of their own that count, or fewer wavelengths, is what `channels` is declared for. On CIFAR-10 "
        "eight seeds see a gap of the size that concat has to add over the twenty of `core` and `confirm`, 0.5 points, "
        "one time of eleven after correction for five contrasts: not clear is no evidence against one there. On images "
        "four of 8 channels hardly vary, so that 8 tell little that 4 do not: with either, patches six rows or columns "
        "apart, nearly a wavelength, are most alike. What `core` found of add and concat was known when this was "
        f"declared. Long and short texts are added if `fusion` tells concat from add on them. {EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        f"{CONFIRM_WIDENED_SPREAD} The rule's words on it, on the loudness of a base and on 8 channels came then, "
        "before any run.",
        f"{LOUDNESS_FOUND}, before any run of this. So on images rows of concat compare with each other, whose inputs "
        "start at 0.95 to 1.28, and with add only where they are ahead of it.",
        "Declared were rows with the base of 100 too, on both tasks. They have a suite of their own since (`base`), on "
        "images, where they can decide something. Nothing of either had run. The contrasts here are corrected for "
        "five since, not for eight.",
        "On CIFAR-10 concat (d_p=32) was best at 4e-3, the edge of the grid that was declared, 5e-4 to 4e-3. So 8e-3 "
        "was added there for every row, with all of them tested.",
        "On WikiText-2 4 channels at a ratio of 2.5 have the lowest mean validation loss of tested runs, 3.618 nats (8 "
        "at one 3.622, 24 3.625). So the numbers go on to 2 there, in a suite of their own (`few-channels`), as 2 do "
        "not serve on images.",
    ),
)  # fmt: skip
