"""Ways to fuse a sinusoid with the content at equal numbers of parameters, each at its own learning rate."""

from pebench.suites import Suite

SUITE = Suite(
    name="fusion-parameters",
    question="Does what concatenation gains or loses at equal width stand at equal parameters?",
    tasks=["lm-wikitext2"],
    encodings=["add", "add-proj", "concat", "concat-proj", "concat-qk", "concat-wide"],
    contrasts=[("concat-proj", "add-proj"), ("concat-qk", "concat")],
    regime="parameters",
    seeds=8,
    tier="core",
    select={"train.learning_rate": [2e-3, 4e-3, 8e-3, 1.6e-2]},
    margin={"bits_per_byte": 0.005},
    declared="2026-11-22 17:40",
    shared_machine=True,
    cost="72 runs, about 3.5 hours on 2 cores, two at a time (estimated)",
    expect=(
        "As at equal width (suite `fusion`); concat-wide, whose trunk's feed-forward layers shrink most, loses."
    ),
    decision=(
        "A difference of concat to add at equal width stands where it is clear, with the same sign, here. Of concat "
        "itself, ahead in `core` with 6 % fewer parameters, matching can only add to that (feed-forward layers of 448 "
        "for 384, and 604 million operations an example for 566): it is a test of the others. On CIFAR-10 concat has "
        "as many parameters as add at equal width within 0.4 %, so that `core` and `fusion` answer there. Sentiment "
        "is left out: most parameters there are the word table's, so that concat's narrower one would buy "
        "feed-forward layers five times as wide and two to three times the operations. At equal FLOPs concat is as it "
        "is at equal width, to 0.2 %. Where a row's best rate is at the edge of its grid, the grid goes on for all "
        "rows of that task."
    ),
)  # fmt: skip
