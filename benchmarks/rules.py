"""Sentences that several suites share: rules of decision, and remarks on what later suites have found.

Pages print them, word for word, so that a change here changes every page of a suite that uses them.
"""

EDGE_OF_GRID = "Where a row's best rate is at the edge of its grid, the grid goes on for all rows."
EDGE_OF_ROW = "A row whose best rate is at the edge of its grid is tried at up to two further ones there."
EDGE_FOR_ALL_BEFORE = (
    "Until 2026-11-29 17:30 the grid was to go on for all rows, not only for the one at its edge; by then only runs "
    "that other suites share had been made."
)
EDGE_OF_TASKS_GRID = "Where a row's best rate is at the edge of its grid, the grid goes on for all rows of that task."

CONFIRM_WIDENED_SPREAD = (
    "Until `confirm` had run, what eight seeds can see on CIFAR-10 was put by the spread of `core`'s eight, 0.65 "
    "points; that of all twenty is 0.90."
)
LOUDNESS_FOUND = (
    "`loudness` has found since that on CIFAR-10 addition is 1.23 ± 0.59 points worse where its input is as quiet "
    "as that of concat, none and rope, or a little quieter (1.08 at the start, on training's crops, where theirs "
    "is 1.11 to 1.15 and add's 1.52)"
)
"""The suite's remark goes on with what had run when this was found."""

LOUDER_FOUND = (
    "`louder` has found with twenty seeds that with an input as loud as add's concat is not behind it there "
    "(+0.36 ± 0.41 points), and rope is (-1.09 ± 0.36)."
)

RIVAL_STANDS = (
    "Concat's lead over add stands against a rival if with its setting on both sides it is still separable and larger "
    "than 0.01 bits per byte, and add with the setting closes less than half of the lead without it. The lead is "
    "explained if with the setting on both sides it is below 0.01 or not separable. It is partly explained otherwise: "
    "add with the setting closes half of the lead or more, and concat with the setting leads again."
)
"""The rule of `rivals` and of the suites beside it; the lead is the difference in bits per byte on the test split."""

FULL_RIVAL_STANDS = (
    "The leads over add are those of `full`: 0.0149 bits per byte for concat, 0.0387 for rope. With the setting in "
    "every row a lead stands where it is still separable and at least half as large. It is explained where it is not "
    "separable, and the row's own gain by the setting is smaller than add's by half of the lead or more. All else is "
    "left open. The rows without the setting are those of `full`, of the same seeds and rates."
)
"""The rule of the suites `full-rivals-*`."""
