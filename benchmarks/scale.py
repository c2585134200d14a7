"""How loud position is beside the content: added, learned, concatenated, or concatenated and projected."""

from pebench.suites import Suite

SUITE = Suite(
    name="scale",
    question="Does the difference of concatenation to addition hang on how loud position is?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=[
        *("add", "concat", "concat-proj", "learned"),
        *((name, {"ratio": ratio}) for name in ("add", "concat") for ratio in (0.1, 0.3, 3.0)),
        *(("concat-proj", {"ratio": ratio}) for ratio in (0.3, 3.0)),
        *(("learned", {"ratio": ratio}) for ratio in (0.03, 0.3)),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    cost="392 runs, about 10 hours on 2 cores, two at a time (estimated)",
    expect=(
        "The added sinusoid has a best ratio below one; concatenation hardly minds. The learned table, which varies "
        "from position to position more than a sinusoid of equal root mean square does, has its best below one too, "
        "and on images comes nearer to add there."
    ),
    decision=(
        "The gap of concat to add survives if it is clear, with the same sign, between rows of equal ratio at every "
        "ratio, and between any ratio of one and any of the other. Equal ratio is equal root mean square, not equal "
        "loudness of what tells positions apart: of the sinusoid on 64 patches 16 % of the square varies, in concat's "
        "channels 25 %, of a learned table nearly all."
    ),
)
