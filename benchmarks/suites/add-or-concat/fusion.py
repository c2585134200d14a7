"""Every way to fuse a sinusoid with the content, at equal width, each at its own learning rate."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_RATES, IMDB_RATES, MARGIN, SST2_RATES, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_TASKS_GRID, LOUDNESS_FOUND

SUITE = Suite(
    name="fusion",
    question="Should a fixed sinusoid be added to the content, or concatenated, and how?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-imdb", "text-sst2"],
    encodings=[
        "add", "add-proj", "concat", "concat-proj", ("concat-proj", {"start": "identity"}), "concat-qk", "gated-add",
        ("gated-add", {"pace": 1.0}), "none",
    ],
    contrasts=[
        ("concat-proj", "add-proj"),
        ("concat-proj (start=identity)", "add-proj"),
        ("concat-qk", "concat"),
        ("gated-add", "concat"),
    ],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES,
            "vit-cifar10": CIFAR10_RATES,
            "text-imdb": IMDB_RATES,
            "text-sst2": SST2_RATES,
        }
    },
    selection_seeds={"text-imdb": 3},
    margin=MARGIN,
    declared="2026-11-22 14:43",
    cost=(
        "513 runs, about 14 hours on 2 cores, two at a time; 171 of them are core's"
    ),
    shared_machine=True,
    expect=(
        "On WikiText-2 concat is better than add and concat-qk better than concat; concat-proj, of the same function "
        "class as add-proj, is equivalent to it; on images and sentiment, short or long, nothing but none separates."
    ),
    decision=(
        "An encoding differs from `add` on a task where the paired t-test says so at 5 % after Holm's correction over "
        "the table, and is equivalent where two one-sided tests say so; so do the contrasts. A difference of concat to "
        "add is one of fusing only if it is clear, with the same sign, at equal parameters (suite `fusion-parameters`) "
        "and at every ratio of position to content (suite `scale`); on sentiment, where neither runs, it is one at "
        "equal width and ratio. What `core` found of add, concat and none was known when this was declared; its "
        "verdicts on them stand, whatever the correction over more rows says here. Where words in random order cost "
        "add less than half a point, a model hardly uses position, and equal rows do not say that ways to fuse it are "
        "equal. Going by what seeds differed by in `core`, eight call equal encodings equivalent on CIFAR-10 one time "
        f"of three at best, and on SST-2 never: there not separable is all that can be said. {EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        "concat-proj is of the same function class as add-proj at the same size but for content's matrix, so that a "
        "difference between them, or of it to add, is one of optimisation: content passes a random matrix there, "
        "behind which a random table of 96 channels is as if spread evenly over 47 of them, not 92 (participation "
        "ratio of its covariance). (On images content has two of them before the matrix too, and this explains "
        "nothing.) This was seen when its selecting runs on WikiText-2 were known, which are behind add-proj's. The "
        "row of start=identity, which begins as add-proj does, was added then: if it is level with add-proj where "
        "concat-proj is not, it is the start that differs.",
        "On IMDB three seeds select where one did, since `core` had found one too few; no run of it had begun there.",
        "SST-2's grid, which was 1e-3 to 8e-3, and the words on what its eight seeds can tell were changed after "
        "`core` had been run anew on SST-2. By then four selecting runs of add-proj on WikiText-2 had begun, and none "
        "on SST-2.",
        "SST-2's grid went on to 1e-3, for every row, when all 40 tested runs were known, as the rule asks: the best "
        "rate of concat-qk was 2e-3, and still is; no row's choice changed.",
        "The row of pace=1.0, a gate that moves as other parameters do, as the paper's is read to, was added when "
        "WikiText-2 and SST-2 were complete and the gate of gated-add, sqrt(D) times as fast, had been found shut on "
        "the former: whether that is the gate's doing or its pace's. What is said of words in random order was added "
        "then too, before any row but core's had run on IMDB, where `core` had found that they cost 0.2 points.",
        "With two tested seeds of CIFAR-10's new rows done, and none on IMDB: until `confirm` had run, what eight "
        "seeds can see on CIFAR-10 was put by the spread of `core`'s eight, 0.65 points; that of all twenty is 0.90. "
        "So eight would call equal encodings equivalent there one time of fourteen, where the rule says one of three. "
        "The slow gate can scale position by 0.33 to 1.67 at most on CIFAR-10 at 2e-3, and by 0.64 to 1.36 on IMDB, "
        "since rates and steps bound how far its logit moves, for 0.07 to 1.93 on WikiText-2: being equal to add on "
        "IMDB would be no finding on gates. concat-qk has no ratio; of its position logits what varies over keys "
        "starts half as large on WikiText-2, and 0.22 times on images, beside 0.71 for content's. And what enters the "
        "blocks is 1.4 times as loud with rows that add at the input as with concat, concat-qk and none (`scale`).",
        f"{LOUDNESS_FOUND}, with all but IMDB known here. With twenty seeds `louder` has found that that is enough to "
        "explain what concat may be behind add by on images; concat-qk is ahead in spite of it.",
        "`scale` has found since that on WikiText-2 the difference of concat to add stands at every ratio, and "
        "`fusion-parameters` that it stands at equal parameters: by the rule it is one of fusing there.",
    ),
)  # fmt: skip
