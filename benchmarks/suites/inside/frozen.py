"""Token tables of models without position, kept as they are or trained on: does a sum need words that make room?"""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN

SUITE = Suite(
    name="frozen",
    question="Does adding position hurt when the token table cannot make room for it?",
    tasks=["lm-wikitext2"],
    encodings=[
        "add", ("add", {"ratio": 0.3}), ("add", {"ratio": 3.0}), "concat", "rope", "none",
    ],
    contrasts=[(name, "none") for name in ("concat", "rope", "add (ratio=0.3)", "add (ratio=3.0)")],
    seeds=5,
    tier="core",
    settings={"train.learning_rate": 5.6e-3},
    vary={"train.token_table": ["trained", "frozen"]},
    margin=BITS_MARGIN,
    declared="2026-11-27 18:02",
    shared_machine=True,
    cost=(
        "60 runs, and five of none with a table of its own, which are made first and give the others theirs: 1.5 to 4 "
        "hours on 2 cores, two at a time (estimated by `core`)"
    ),
    expect=(
        "Frozen, every row loses against its table that trains on, and add loses most: its words cannot move out of "
        "position's channels. It loses less where position is quiet (ratio 0.3) than where it is loud (3). concat and "
        "rope lose the same as none."
    ),
    decision=(
        "The tables are those of none, seed by seed, with the same rate and steps, so that no word made room for "
        "position; in both tables of results every row starts from them. Adding hurts frozen words if add's loss by "
        "freezing is larger than that of none: the mean over seeds of (add frozen - add trained) - (none frozen - none "
        "trained), from the records, with its 95 % interval, and the same for each other row. Within each table rows "
        "are judged by their differences to add, as everywhere. concat has 72 channels for words, and gets the 72 "
        "principal components of most energy; the share of energy that it loses is reported, and where that is above "
        "5 %, concat's loss by freezing is said to be of fewer channels as well. All rows have one rate, that of "
        "`inside`, which `core` found for add and concat; a frozen table may want another, which is not looked for. "
        "Five seeds see less than the eight of `core`: not separable is no evidence of no difference."
    ),
    remarks=(
        "The rule asks for each row's loss by freezing relative to that of none. For the two other scales no contrast "
        "said so; both were added on 2026-11-30 at 14:10, when their runs were under way: validation losses of single "
        "runs had been seen in the log, no test.",
    ),
)  # fmt: skip
