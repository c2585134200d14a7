"""Segments of a pair of texts, summed as BERT does or concatenated, with position summed, concatenated or left out."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN

SUITE = Suite(
    name="segments",
    question="Token, segment and position in one sum, as in BERT: does it matter which of them is concatenated?",
    tasks=["text-pairs"],
    encodings=["add", "concat", "none"],
    contrasts=[("concat", "none")],
    seeds=5,
    tier="core",
    vary={"model.segments": [None, "sum", "concat"]},
    margin=ACCURACY_MARGIN,
    declared="2026-11-27 15:45",
    shared_machine=True,
    cost="45 runs, 2.5 to 3 hours on 2 cores, two at a time (estimated by trial runs of 1,000 and 3,000 steps)",
    expect=(
        "Segments help: most of all without positions, where a model has nothing else to tell the two texts apart by. "
        "Summed or concatenated makes no difference that five seeds can see, for segments as for positions: three "
        "terms in one sum are no harder to take apart than two."
    ),
    decision=(
        "BERT's sum is add with model.segments=sum; segments alone concatenated is add with model.segments=concat, "
        "both concatenated is concat with the same, and segments left out is add with None. Position is judged within "
        "each table, by the differences of concat and none to add. Segments are judged between tables, at equal seeds,"
        " as the mean of the paired differences of add's rows, from the records: sum to None, concat to None and "
        "concat to sum, with 98.3 % intervals, as there are three. How a term enters matters where the interval of "
        "concat to sum, or a difference of concat to add, excludes zero. BERT's sum is enough where none does, and no "
        "row is ahead of it by more than half a point. All this asks first that segments serve the task: where sum to "
        "None does not exclude zero, how they enter is not judged. The first text has a random part of the 128 tokens,"
        " from a quarter to three quarters, so that a position in the middle half does not say which text it is of; "
        "the separator does, to a model that finds it. All rows have one rate, 2e-3, and 4,000 steps. One trial run of"
        " add with sum reached 55 % on validation data and 56 % on test data after 3,000 steps, its loss still "
        "falling: the task is hard for models of this size, and nothing is said of models that are trained to the end."
        " With pairs that are all cut in the middle, where a position says which text a token is of, another reached "
        "61 and 62 %. All seeds share one test split of 3,756 pairs."
    ),
)  # fmt: skip
