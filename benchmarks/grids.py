"""Learning rates, margins, rows and settings that several suites share.

Suites of one task select from one grid, so that their rows can be compared, and so that a run which two suites have in
common is done once. A suite that needs other values names them itself.
"""

CORE_RATES = [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]
"""The grid of `core` for all its tasks. Grids of a single task are parts of it, around the rates that `core` chose."""

WIKITEXT2_RATES = [2e-3, 4e-3, 8e-3, 1.6e-2]
WIKITEXT2_FINE_RATES = [4e-3, 5.6e-3, 8e-3]
"""A factor of 1.4 apart around 5.6e-3, where a parabola through the selecting losses of `core` has its lowest point."""

CIFAR10_RATES = [5e-4, 1e-3, 2e-3, 4e-3]
CIFAR10_FINE_RATES = [1.4e-3, 2e-3, 2.8e-3]
"""A factor of 1.4 apart around the rate that `core` chose for add and for concat."""

CIFAR10_EXTENDED_RATES = [*CIFAR10_RATES, 8e-3]
"""For suites with a row whose best rate was at the edge of `CIFAR10_RATES`."""

SST2_RATES = [1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]
IMDB_RATES = [1e-3, 2e-3, 4e-3, 8e-3]
IMDB_CHOSEN_RATE = [2e-3]
"""The rate that every row of `core` and `fusion` chose on IMDB; where it is the only one, nothing is selected there."""

NEWSGROUPS_RATES = [1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]
FULL_RATES = [1e-3, 2e-3, 4e-3, 8e-3]
"""For models of the tier `full`, which are larger and prefer lower rates."""

FULL_SETTINGS = {"train.max_steps": 2000, "train.evaluations": 10, "train.precision": "bf16-mixed"}
"""The budget of `full` and of the suites beside it, which is a fifth of the tier's steps."""

LANGUAGE_ENCODINGS = [
    "none", "add", "learned", "concat", "rope", "alibi", "t5-bias", "fire", "kerple-log", "partial-rope", "xpos",
    "fox", "path", "cope", "shaw", "transformer-xl", "deberta", "sandwich", "key-offset", "selective-rope", "ssmax",
    "dape", "fope", "grape-ap", "wall", "pope", "p-rope", "hope", "add-qk", "concat-qk", "add-proj", "concat-proj",
    "gated-add", "learnable-fourier", "cpe", "randomized", "random", "multiply",
]  # fmt: skip
"""Rows of the scorecard's suites on language: every encoding for causal text that papers or models stand for."""

IMAGE_ENCODINGS = [
    "none", "add", "learned", "concat", "rope", "rope-mixed", "swin-bias", "cpe", "alibi", "log-cpb",
    "axial-learned", "spiral-rope", "lie-re", "com-rope", "look-here", "pape", "fire", "kerple-log", "t5-bias",
    "shaw", "tupe", "dape", "partial-rope", "p-rope", "hope", "learnable-fourier", "add-qk", "concat-qk",
    "add-proj", "concat-proj", "gated-add", "raster", "random", "multiply",
]  # fmt: skip
"""Rows of the scorecard's suites on images: every encoding for grids that papers or shipped models stand for."""

ACCURACY_MARGIN = {"accuracy": 0.005}
BITS_MARGIN = {"bits_per_byte": 0.005}
MARGIN = ACCURACY_MARGIN | BITS_MARGIN
"""Differences that do not matter: half a point of accuracy, 0.005 bits per byte.

They are those that hold where a suite declares none (`pebench.runs.suite.MARGIN`), repeated here because a declaration
must not change when a default does.
"""
