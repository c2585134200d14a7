"""How many channels position gets where it is concatenated."""

from pebench.suites import Suite

SUITE = Suite(
    name="split",
    question="How should the width be split between content and position?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-imdb"],
    encodings=["add", *(("concat", {"d_p": channels}) for channels in (4, 8, 16, 32))],
    seeds=5,
    tier="core",
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3, 8e-3]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost="135 runs, about 4 hours on 2 cores, two at a time (estimated)",
    expect="Few channels are enough: 8 to 16 do as well as 32, and 4 fall behind on WikiText-2.",
)
