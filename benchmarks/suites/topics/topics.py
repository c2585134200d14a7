"""A control: topics hardly need order, so no encoding should win, not even against a bag of words."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN

SUITE = Suite(
    name="topics",
    question="Does any encoding win where order hardly matters?",
    tasks=["text-20newsgroups"],
    seeds=8,
    tier="core",
    vary={"model.num_layers": [0, 2]},
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2]},
    margin=ACCURACY_MARGIN,
    declared="2026-11-23 02:58",
    shared_machine=True,
    cost="150 runs, which took an hour on 2 cores, two at a time",
    expect="No encoding differs from add by more than half a point or the noise; the bag (no layers) is as good.",
    decision=(
        "Order hardly matters if, with two layers, none is not told from add, or less than two points from it; and the "
        "bag is as good where the mean of its row without an encoding is within two points of add's with two layers. "
        "An encoding that is two points above add is looked into as a mistake. Without layers rope is none to the "
        "last bit, as there is no attention: its row there is no finding, though tests are corrected for it. Where a "
        "row's best rate is at the edge of its grid, the grid goes on for all rows at that depth."
    ),
    remarks=(
        "All rows without layers, and add with two, were best at 8e-3, the edge of the grid that was declared, 1e-3 to "
        "8e-3. So 1.6e-2 was added for every row, with 12 of the 80 tested runs done.",
        "Without layers all are best at 1.6e-2 then, the edge again. So 3.2e-2 was added for every row, with two "
        "tested runs of each bag at 1.6e-2 done; and 6.4e-2 when learned without layers was best at 3.2e-2.",
        "There add without layers is best, at the edge once more, by 0.27 points over 1.6e-2, three documents, and the "
        "others are not. The rule would have the grid go on; it ends there, as rates from 1.6e-2 on differ by less "
        "than seeds do, and with two layers all are far worse.",
    ),
)
