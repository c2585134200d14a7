"""How loud position is beside the content, where it is added, concatenated, or concatenated and projected."""

from pebench.suites import Suite

SUITE = Suite(
    name="scale",
    question="Does the difference of concatenation to addition hang on how loud position is?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=[
        *("add", "concat", "concat-proj"),
        *((name, {"ratio": ratio}) for name in ("add", "concat", "concat-proj") for ratio in (0.1, 0.3, 3.0)),
    ],
    seeds=5,
    tier="core",
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3, 8e-3]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost="216 runs, about 6 hours on 2 cores, two at a time (estimated)",
    expect="The added sinusoid has a best ratio below one; concatenation hardly minds.",
    decision=(
        "The gap of concat to add survives if it is clear, with the same sign, between rows of equal ratio at every "
        "ratio, and between the best ratio of each, chosen by validation."
    ),
)
