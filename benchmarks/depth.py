"""How much a model without positions lacks, by its depth, where it is causal and where it is not, each well tuned."""

from pebench.suites import Suite

SUITE = Suite(
    name="depth",
    question="Is no encoding at all nearly as good, and does that depend on depth and on causality?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=["add", "none", "rope"],
    seeds=5,
    tier="core",
    vary={"model.num_layers": [1, 2, 4, 8]},
    select={"train.learning_rate": [1e-3, 2e-3, 4e-3, 8e-3]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost=(
        "216 runs, about 7 hours on 2 cores, two at a time (estimated); 54 of them are core's: "
        "`pebench merge results/core.jsonl --out runs/depth --suite depth`"
    ),
    expect=(
        "Causal (WikiText-2): none is far behind with one layer and closes most of the gap by four, as deeper models "
        "can count what they see. Bidirectional (CIFAR-10): no depth closes it."
    ),
    decision=(
        "By the difference of none to add at each depth: the gap closes where the interval of the difference at eight "
        "layers lies nearer to zero than that at one, and is closed where none is equivalent or not separable."
    ),
    remarks=(
        "Before any of its runs it was declared anew, with a learning rate chosen at every depth: deeper models want a "
        "lower one, and `core` had found the one rate for all too low for every encoding on WikiText-2.",
    ),
)
