"""How loud position is beside the content: added, concatenated, learned."""

from pebench.suites import Suite

RATIOS = (0.1, 0.3, 3.0)

SUITE = Suite(
    name="scale",
    question="Does the difference of concatenation to addition hang on how loud position is?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=[
        *("add", "concat", "learned", "none"),
        *((name, {"ratio": ratio}) for name in ("add", "concat") for ratio in RATIOS),
        *(("learned", {"ratio": ratio}) for ratio in (0.03, 0.3)),
    ],
    contrasts=[
        *((f"concat (ratio={ratio})", f"add (ratio={ratio})") for ratio in RATIOS),
        *((f"learned (ratio={ratio})", "learned") for ratio in (0.03, 0.3)),
    ],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": [2e-3, 4e-3, 8e-3, 1.6e-2], "vit-cifar10": [5e-4, 1e-3, 2e-3, 4e-3],
        }
    },
    margin={"accuracy": 0.005, "bits_per_byte": 0.005},
    declared="2026-11-22 17:40",
    shared_machine=True,
    cost=(
        "288 runs, about 9 hours on 2 cores, two at a time (estimated); 96 of them are core's: `pebench merge "
        "results/core.jsonl --out runs/scale --suite scale`"
    ),
    expect=(
        "The added sinusoid has a best ratio below one; concatenation hardly minds. The learned table, which varies "
        "from position to position more than a sinusoid of equal root mean square does, has its best below one too, "
        "and on images comes nearer to add there."
    ),
    decision=(
        "The gap of concat to add survives if it is clear, with the same sign, at every ratio (at one, `core` found "
        "it, which was known when this was declared), and the best concat is beyond the best add: best by the mean "
        "validation loss of its tested runs, beyond by a paired t-test at 5 %. Where that best is at the edge, the "
        "ratios go on for its encoding. Equal ratio is equal root mean square, not equal loudness of what tells "
        "positions apart: of the sinusoid on 64 patches 16 % of the square varies, in concat's channels 25 %, of a "
        "learned table nearly all; and in all channels together concat's position is 0.58 times as loud beside its "
        "content as add's. A ratio of the learned table is where it starts; it moves at the same pace from there. The "
        "gap on CIFAR-10 in `core`, 0.6 points, is so small beside what seeds differ by that eight see it two times "
        "of three without any correction: not clear is no evidence against it there, and on images only the ratios of "
        "add and of the learned table are decided. Where a row's best rate is at the edge of its grid, the grid goes "
        "on for all rows of that task."
    ),
)  # fmt: skip
