"""Characters of Shakespeare at the sizes and budget of nanoGPT's smallest recipe, which has a published loss."""

from pebench import Suite

SUITE = Suite(
    name="shakespeare",
    question=(
        "Does our trunk reach the loss that nanoGPT publishes for its smallest recipe, and what do other encodings do "
        "there, at its length and beyond?"
    ),
    tasks=["lm-shakespeare"],
    encodings=["add", "alibi", "concat", "learned", "none", "rope"],
    seeds=8,
    tier="core",
    margin={"bits_per_byte": 0.01},
    declared="2026-11-22 01:25",
    cost="48 runs, about an hour on 2 cores, two at a time",
    expect=(
        "The learned table, as in nanoGPT, ends within 0.05 nats of 1.88 on validation. Rope is first, then concat, "
        "add, learned and none. At twice the length add's perplexity grows by half or more and alibi's does not grow."
    ),
    shared_machine=True,
    remarks=(
        "The gate on nanoGPT's loss was first written for our validation split alone, which is half of nanoGPT's; the "
        "loss there is 1.83.",
    ),
)
