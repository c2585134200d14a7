"""Ways to fuse a sinusoid with the content at equal numbers of parameters, each at its own learning rate."""

from pebench.suites import Suite

SUITE = Suite(
    name="fusion-parameters",
    question="Does what concatenation gains or loses at equal width stand at equal parameters?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-imdb", "text-sst2"],
    encodings=["add", "concat", "concat-proj", "concat-qk", "concat-wide"],
    regime="parameters",
    seeds=8,
    tier="core",
    select={"train.learning_rate": [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost="280 runs, about 6 hours on 2 cores, two at a time (estimated)",
    expect=(
        "On WikiText-2 and CIFAR-10 as at equal width (suite `fusion`); concat-wide, whose trunk's feed-forward layers "
        "shrink most, loses."
    ),
    decision=(
        "A difference of concat to add at equal width stands where it is clear, with the same sign, here. On sentiment "
        "most parameters are the word table's, so that concat's narrower one buys feed-forward layers five times as "
        "wide and two to three times the operations: there equal width is the comparison that counts."
    ),
)
