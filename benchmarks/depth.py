"""How much a model without positions lacks, by its depth, where it is causal and where it is not."""

from pebench.suites import Suite

SUITE = Suite(
    name="depth",
    question="Is no encoding at all nearly as good, and does that depend on depth and on causality?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=["add", "none", "rope"],
    seeds=5,
    tier="core",
    vary={"model.num_layers": [1, 2, 4, 8]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost="120 runs, about 4 hours on 2 cores, two at a time (estimated)",
    expect=(
        "Causal (WikiText-2): none is far behind with one layer and closes most of the gap by four, as deeper models "
        "can count what they see. Bidirectional (CIFAR-10): no depth closes it."
    ),
    decision=(
        "By the difference of none to add at each depth: the gap closes where the interval of the difference at eight "
        "layers lies nearer to zero than that at one, and is closed where none is equivalent or not separable."
    ),
)
