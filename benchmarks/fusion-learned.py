"""Every way to fuse a learned table with the content, at equal width, each at its own learning rate."""

from pebench.suites import Suite

LEARNED = {"table": "learned"}

SUITE = Suite(
    name="fusion-learned",
    question="Should a learned table of positions be added to the content, or concatenated, and how?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-imdb", "text-sst2"],
    encodings=[
        "learned", ("add-proj", LEARNED), ("concat", LEARNED), ("concat-proj", LEARNED), ("concat-qk", LEARNED),
        ("gated-add", LEARNED), "none",
    ],
    reference="learned",
    contrasts=[
        ("concat-proj (table=learned)", "add-proj (table=learned)"),
        ("concat-qk (table=learned)", "concat (table=learned)"),
    ],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": [2e-3, 4e-3, 8e-3, 1.6e-2],
            "vit-cifar10": [5e-4, 1e-3, 2e-3, 4e-3],
            "text-imdb": [1e-3, 2e-3, 4e-3, 8e-3],
            "text-sst2": [2e-3, 4e-3, 8e-3, 1.6e-2],
        }
    },
    selection_seeds={"text-imdb": 3},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    declared="2026-11-22 17:40",
    shared_machine=True,
    cost=(
        "392 runs, about 11 hours on 2 cores, two at a time (estimated); 96 of them are core's: `pebench merge "
        "results/core.jsonl --out runs/fusion-learned --suite fusion-learned`"
    ),
    expect="As with the sinusoid (suite `fusion`), with smaller differences, since a trained table can leave channels.",
    decision=(
        "As in `fusion`, with `learned` for `add`. Behind a trained table, add-proj, gated-add and concat-proj can be "
        "no other function than `learned`: a difference of theirs is one of optimisation. No difference of concat to "
        "`learned` is called one of fusing: it is not held against loudness or equal size here. What `core` found of "
        "`learned` and none was known when this was declared. On IMDB three seeds select, since `core` had found one "
        "too few. `learned` draws its table from another stream than the others at the same seed, so that pairing "
        "covers all but the table."
    ),
)  # fmt: skip
