"""The loudness of position beside the content, added and concatenated, each at its own learning rate."""

from pebench import Suite
from pebench.benchmarks.grids import CIFAR10_EXTENDED_RATES, IMDB_CHOSEN_RATE, MARGIN, SST2_RATES, WIKITEXT2_RATES
from pebench.benchmarks.rules import CONFIRM_WIDENED_SPREAD, EDGE_OF_TASKS_GRID, LOUDNESS_FOUND

SUITE = Suite(
    name="scale",
    question="Does the difference of concatenation to addition hang on how loud position is?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-sst2", "text-imdb"],
    encodings=[
        *("add", "concat", "none"),
        *(("add", {"ratio": ratio}) for ratio in (0.1, 0.3, 0.6, 3.0)),
        *(("concat", {"ratio": ratio}) for ratio in (0.5, 1.7)),
    ],
    contrasts=[
        ("concat (ratio=0.5)", "add (ratio=0.3)"),
        ("concat", "add (ratio=0.6)"),
        ("concat (ratio=1.7)", "add"),
    ],
    seeds=8,
    tier="core",
    select={
        "train.learning_rate": {
            "lm-wikitext2": WIKITEXT2_RATES,
            "vit-cifar10": CIFAR10_EXTENDED_RATES,
            "text-sst2": SST2_RATES,
            "text-imdb": IMDB_CHOSEN_RATE,
        }
    },
    margin=MARGIN,
    declared="2026-11-23 06:15",
    shared_machine=True,
    cost="423 runs, about 9 hours on 2 cores, two at a time; 141 of them are core's",
    expect=(
        "The added sinusoid has a best ratio below one; concatenation hardly minds, and stays ahead on WikiText-2 at "
        "equal loudness. On SST-2, which hardly asks for order, only an addition three times as loud as the content "
        "loses."
    ),
    decision=(
        "A ratio is of root mean squares, a channel at a time. The quarter of the channels that concat has for "
        "position is 0.58 times (the root of a third) as loud, taken together, beside the three quarters of content, "
        "as add's is at the same ratio; so the contrasts pair a ratio of concat with that of add which is as loud "
        "taken together. (Of what differs between positions concat's is then as loud as add's on WikiText-2, and 1.23 "
        "to 1.25 times as loud on 8x8 patches.) The gap of concat to add survives on a task if it is clear with one "
        "sign in all three, and if the best concat is beyond the best add: best by the mean validation loss of tested "
        "runs (on SST-2, accuracy), beyond by a paired t-test at 5 % without correction (both are in the page's JSON). "
        "Addition has five ratios to choose from and concatenation three, so that where concatenation is behind, its "
        "best may be beaten by choice alone. Where a best is at the edge, the ratios go on for its encoding. What "
        "enters the blocks is not equally loud either: its root mean square is 1.4 where something is added at a ratio "
        "of one (3.2 at three), 1.0 with concat and none, 1.2 with concat (ratio=1.7). What blocks add to it starts "
        "alike, so that they count for less behind a louder input: a ratio of add changes both, and in the three pairs "
        "concat's input is 0.87 times as loud as add's. On CIFAR-10 the rule decides nothing of concat: of its gap in "
        "`core` and `confirm`, 0.5 points over their twenty seeds, eight see one contrast of three one time of eight, "
        "and all three at once hardly ever; its rows only bound what scale does there. What `core` found at a ratio of "
        f"one was known when this was declared. {EDGE_OF_TASKS_GRID}"
    ),
    remarks=(
        f"{CONFIRM_WIDENED_SPREAD} The rule's words on concat there, and on how loud what enters the blocks is, came "
        "then, before any run.",
        f"{LOUDNESS_FOUND}, before any run of this but those of other suites. So on images a ratio of add above one "
        "may gain by what it does to the input, and is not a finding on position alone.",
        "Declared were rows of add-proj, concat-proj and the learned table at other ratios too, on all three tasks. "
        "They have suites of their own since (`scale-projected`, `scale-learned`), on the tasks where they can decide "
        "something. Then four runs that select the rate of add (ratio=0.3) on WikiText-2 had been made, and nothing "
        "had been tested. The three contrasts here are corrected for themselves alone since, not for eight.",
        "On SST-2 the best concat by validation is that with 1.7, the edge, by 0.02 points above 1. None of the three "
        "contrasts is clear there, so that the gap does not survive whatever a louder one brings: none was added.",
        "On CIFAR-10 add (ratio=3.0) was best at 4e-3, the edge of the grid that was declared, 5e-4 to 4e-3. So 8e-3 "
        "was added there for every row, with all of them tested.",
        "There the best concat by validation is that with 1.7 too. The three contrasts do not have one sign, so that "
        "the rule's answer is the same whatever a louder one brings: none was added.",
        "IMDB came into this on 2026-11-24 at 19:57, when the other tasks were complete and none of its rows had run "
        "but core's, because the long text had no loudness but one. All rows have 2e-3 there, which every row of "
        "`core` and `fusion` chose. Expected is that only an addition three times as loud loses, and that nothing "
        "else is told apart: words in random order cost these models 0.2 points, and even no encoding is not behind.",
        "There the best of both by validation is the quietest, addition at 0.1 and concatenation at 0.5, the edges. "
        "None of the three contrasts is clear, so that the gap does not survive whatever a quieter one brings: none "
        "was added.",
    ),
)
