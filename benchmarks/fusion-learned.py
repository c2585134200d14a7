"""Every way to fuse a learned table with the content, at equal width, each at its own learning rate."""

from pebench.suites import Suite

LEARNED = {"table": "learned"}

SUITE = Suite(
    name="fusion-learned",
    question="Should a learned table of positions be added to the content, or concatenated, and how?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-imdb", "text-sst2"],
    encodings=[
        "learned", ("add-proj", LEARNED), ("concat", LEARNED), ("concat-proj", LEARNED), ("concat-qk", LEARNED),
        ("gated-add", LEARNED),
    ],
    reference="learned",
    seeds=8,
    tier="core",
    select={"train.learning_rate": [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost=(
        "336 runs, about 7 hours on 2 cores, two at a time (estimated); 56 of them are core's: "
        "`pebench merge results/core.jsonl --out runs/fusion-learned --suite fusion-learned`"
    ),
    expect="As with the sinusoid (suite `fusion`), with smaller differences, since a trained table can leave channels.",
)  # fmt: skip
