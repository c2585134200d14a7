"""Every way to fuse a sinusoid with the content, at equal width, each at its own learning rate."""

from pebench.suites import Suite

SUITE = Suite(
    name="fusion",
    question="Should a fixed sinusoid be added to the content, or concatenated, and how?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-imdb", "text-sst2"],
    encodings=["add", "add-proj", "concat", "concat-proj", "concat-qk", "gated-add"],
    seeds=8,
    tier="core",
    select={"train.learning_rate": [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost=(
        "336 runs, about 7 hours on 2 cores, two at a time (estimated); 112 of them are core's: "
        "`pebench merge results/core.jsonl --out runs/fusion --suite fusion`"
    ),
    expect=(
        "On WikiText-2 concat is better than add and concat-qk better than concat; concat-proj, of the same function "
        "class as add-proj, is equivalent to it; on images and sentiment, short or long, nothing separates."
    ),
    decision=(
        "An encoding differs from `add` on a task where the paired t-test says so at 5 % after Holm's correction over "
        "the table, and is equivalent where two one-sided tests say so. A difference of concat to add is one of fusing "
        "only if it is clear, with the same sign, at equal parameters (suite `fusion-parameters`) and at every ratio "
        "of position to content (suite `scale`)."
    ),
)
