"""Two rows that are behind on IMDB at the rate that others chose, each at its own learning rate."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, IMDB_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="imdb-rates",
    question="On IMDB, are a loud addition and half of the channels for position behind at a rate of their own, too?",
    tasks=["text-imdb"],
    encodings=["add", ("add", {"ratio": 3.0}), "concat", ("concat", {"d_p": 32})],
    contrasts=[("concat (d_p=32)", "concat")],
    seeds=8,
    tier="core",
    select={"train.learning_rate": IMDB_RATES},
    selection_seeds={"text-imdb": 3},
    margin=ACCURACY_MARGIN,
    declared="2026-11-26 13:46",
    shared_machine=True,
    cost=(
        "80 runs; 50 of them are those of `core`, `scale` and `split-text`; the others took 50 minutes on 2 cores, two "
        "at a time"
    ),
    expect=(
        "The loud addition chooses twice the rate and is no longer told from addition; half of the channels chooses "
        "2e-3 and is behind a quarter as before."
    ),
    decision=(
        "By the difference of add (ratio=3.0) to add, and by the contrast. `scale` has the first at -0.62 ± 0.22 "
        "points and `split-text` the second at -0.51 ± 0.17, all at 2e-3, which every row of `core` chose there with "
        "three seeds, of six rates: these two rows had no choice. Where it was tuned (WikiText-2, SST-2, CIFAR-10) a "
        "ratio of three chose twice the rate of a ratio of one, and on SST-2 and CIFAR-10 it is not told from it then. "
        "What stands here, clear and with the same sign, stands; what does not was the rate's. A row that chooses 2e-3 "
        f"has the runs that are known, and is no new test. Three seeds select, as in `core`. {EDGE_OF_GRID}"
    ),
)  # fmt: skip
