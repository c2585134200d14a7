"""One recipe of a language model at three sizes, trained on tokens in proportion to its parameters; on a GPU."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN

SUITE = Suite(
    name="ladder",
    question="How do the leads of concatenation and rotation over addition change with the size of a language model?",
    tasks=["lm-imdb", "lm-wikitext2"],
    encodings=["add", "concat", "rope", "none"],
    contrasts=[("rope", "concat")],
    seeds=5,
    tier="full",
    settings={
        "model.dropout": 0.0, "data.max_len": 256, "data.vocab_size": 2048, "train.batch_size": 16,
        "train.evaluations": 5, "train.precision": "bf16-mixed",
    },
    vary={"model.d_model": [96, 192, 288]},
    along={
        "model.d_model": {
            96: {
                "model.num_layers": 4, "model.num_heads": 3, "train.max_steps": 620, "train.learning_rate": 5.6e-3,
            },
            192: {
                "model.num_layers": 5, "model.num_heads": 6, "train.max_steps": 2200, "train.learning_rate": 2.8e-3,
            },
            288: {
                "model.num_layers": 8, "model.num_heads": 9, "train.max_steps": 6700, "train.learning_rate": 1.9e-3,
            },
        }
    },
    margin=BITS_MARGIN,
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="120 runs, 38 minutes or more on one H100, seven at a time (estimated)",
    expect=(
        "Both leads shrink with size: concatenation's by a half or more over a factor of eleven, rotation's by less. "
        "None falls behind add at every size."
    ),
    decision=(
        "`core` and `full` differ in seven settings at once; here 0.8, 3.0 and 9.2 million parameters differ in width, "
        "depth, and two that follow from them: three tokens of training a parameter, and a rate of 0.54 over the "
        "width, which joins the best rates of `core` (5.6e-3 at 96) and `full` (2e-3 at 256). Nothing is selected. The "
        "slope is that of `python -m benchmarks.ladder`: of a lead against the logarithm of the parameters, for each "
        "corpus, with an interval by bootstrap over seeds; a lead shrinks or grows if the interval leaves out 0. The "
        "text of WikiText-2 is seen 0.7, 2.6 and 7.8 times, that of IMDB less than twice."
    ),
    remarks=(
        "On 2026-11-30, before any run, runs at a time went from 15 to seven, so that a run ends within half a turn of "
        "the queue. The cost says so.",
    ),
)  # fmt: skip
