"""The recipe of `ladder` at 29 million parameters, on the larger corpus alone; on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN

SUITE = Suite(
    name="ladder-29m",
    question="Do the leads at 29 million parameters lie where the slope of the smaller sizes puts them?",
    tasks=["lm-imdb"],
    encodings=["add", "concat", "rope", "none"],
    contrasts=[("rope", "concat")],
    seeds=3,
    tier="full",
    settings={
        "model.d_model": 448, "model.num_layers": 11, "model.num_heads": 14, "model.dropout": 0.0,
        "data.max_len": 256, "data.vocab_size": 2048, "train.batch_size": 16, "train.max_steps": 20_800,
        "train.learning_rate": 1.2e-3, "train.evaluations": 10, "train.precision": "bf16-mixed",
    },
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="12 runs, 49 minutes or more on one H100, one at a time (estimated)",
    expect="Both leads lie within the intervals that the three sizes of `ladder` predict for 28 million parameters.",
    decision=(
        "`python -m benchmarks.ladder` fits the three sizes of `ladder` alone, predicts this one, and then fits all "
        "four. The smaller sizes' slope stands if both leads lie within their predicted intervals. Three tokens a "
        "parameter are 85 million here, about five times through the reviews."
    ),
    remarks=(
        "On 2026-11-30, before any run, runs at a time went from six to one, so that a run ends within half a turn of "
        "the queue. The cost says so.",
    ),
)  # fmt: skip
