"""The fixed sentences of a page. Code stands between backticks, as `pebench.results.prose.prose` reads them."""

LEGEND = (
    "Each encoding, and each option that a row sets. D, or `d_model`, is the width of the model, K the width of a "
    "head, N the number of layers, P the number of axes (one on text, two on images), x the content and p the position."
)
DIFFERENCES = (
    "Differences to `{reference}` at equal seeds: `a ± b` is the mean over seeds with half its 95 % confidence "
    "interval. Better, worse: a paired t-test at 5 %, corrected for all comparisons of a task, finds a difference."
    "{equivalent} No word: not separable with these seeds, which does not mean equal. Intervals are not corrected, so "
    "that one may exclude zero without a verdict."
)
EQUIVALENT = " Equivalent: a second test finds the difference to be smaller than {margins}."
CHANGES = (
    "The difference between two rows at the first value and at the last, and how it changes, at equal seeds. Narrower, "
    "wider, turned (the sign changes) or changed (the means have other signs, and one interval includes zero): a "
    "paired t-test of the change is significant, Holm-corrected over the declared changes."
)
CONTRASTS = "Declared contrasts: the first minus the second at equal seeds, corrected for their number, run or not."
PAIRS = (
    "The encoding at the left minus the one above, at equal seeds, in {unit}. Better and worse: paired t-tests at 5 %, "
    "corrected over all pairs of rows, run or not. That is stricter than the correction above, so that a verdict above "
    "may be missing here. Comparisons that were not declared are suggestions, which a new study would have to confirm. "
    "The p-values are in the JSON."
)
SPEEDUP = (
    "At 1.5 the row passed the lowest validation loss of `{reference}` after two thirds of the steps that "
    "`{reference}` took to it; below 1, `{reference}` passed that of the row first. A seed at which the better one "
    "came there no sooner counts as 1. Steps between evaluations are read off straight lines. Geometric mean over "
    "seeds, with its 95 % interval, which is not corrected. These speedups are too near to 1: a loss is passed before "
    "the learning rate has fallen, and a shorter run would most likely reach it sooner.{bound}"
)
SPEEDUP_BOUND = " *: at a seed the faster one was there by its first evaluation, and so earlier than counted here."
EXTRAPOLATION = "The same test split again{sizes}, without further training.{controls}"
OTHER_SIZES = " at other lengths or resolutions than the trained one"
CONTROLS = {
    "sliding": "windows of the trained length that overlap by half, which give half of the tokens more context",
    "shuffled": "the tokens of each text, or the patches of each image, in random order, which leaves a bag of them",
}
"""Controls of length or resolution extrapolation, each with what the test split is made to be."""

POLICY = (
    " `policy`: where positions are outside the trained ones, an encoding `goes on` to new ones, `clamps` them to the "
    "outermost trained one, `refuses` them, or `interpolates` its tables between their rows."
)
BY_POSITION = (
    "By how much a token's loss in long windows is above that of the same token in windows of the trained length that "
    "overlap by half, in {unit}, by its position in the long window, in trained lengths. Above zero the new positions "
    "harm; below it the longer context helps. In the first half of the trained length long windows have less context "
    "than the overlapping ones, so that a model loses more there. Measured in the longest windows, as far as they "
    "reach. Means over seeds, ± half the 95 % interval."
)
SHARES = (
    "The position variance share: the part (%) of the variance of the residual stream, over the tokens of validation "
    "examples, that lies between positions, less what chance would give, so that it may fall below zero. Images share "
    "their middle, texts their beginning and length, and a causal model can infer positions by itself, so compare with "
    "`none`."
)
_BOTH = " Means over seeds, ± half the 95 % interval; in brackets those of the same models untrained."
INSIDE = {
    "input": (
        "Content and position at the input",
        "Shared channels: 100 % where content and position spread their energy over the same channels, 0 % where they "
        "use different ones. Dimensions of position: over how many directions its energy is spread (participation "
        "ratio). Constant part: the energy of position that is the same vector everywhere. Alignment: D times the mean "
        "squared cosine, weighted by energy. Shift: R² of a linear map from each position to the next, on positions "
        "that it was not fitted on. Margin: the median distance from a sum to the nearest sum of other content, "
        "relative to the norm of content. Without constant channels: those of position that hardly vary set to zero, "
        "and as many others at random, or all others if they are fewer. Rows without figures add nothing at the input."
        + _BOTH,
    ),
    "attention": (
        "Content and position in the attention logits",
        "Shares of the logits' variance over the keys that a query may look at, as means over layers and heads; the "
        "first word names the query's part, the second the key's. What is missing to 100 % belongs to constants of the "
        "norm and the projections. Distance: the mean distance of attention relative to that of uniform attention."
        + _BOTH,
    ),
    "ablation": (
        "Loss without one of the four products",
        "How much the loss on validation examples rises, in nats, if one product is taken from the logits of every "
        "layer. Means over seeds, ± half the 95 % interval.",
    ),
    "layers": (
        "What linear probes read from the layers",
        "Accuracy of linear probes on examples that they were not fitted on: of the exact position, and of the token "
        "among the 256 most frequent ones. Position's R²: of a linear map to the number of the position." + _BOTH,
    ),
    "means": (
        "Loss without each position's mean vector",
        "How much the loss on validation examples rises, in nats, if each position's mean vector is subtracted before "
        "a block; and, as a control, if that of another position is, in a random order of the text's positions, which "
        "leaves position in place and adds as much of a wrong one. Before the first block the vectors are what an "
        "encoding adds to the input, so that all of it is taken away by construction. Means over seeds, ± half the "
        "95 % interval.",
    ),
}
"""Title and meaning of each table of an analysis, by its group."""

OLDER = "the records are older than this measurement."
FURTHER = "Tried besides at"
TIED = "Equal scores, of which the lowest value was taken"
CLOSE = "Ahead by less than one standard deviation over seeds, so another seed might have chosen another value"
BEST = {"min": "lowest", "max": "highest"}
"""Words for the direction in which a metric is best."""

QUALITY_TITLE = "How good these models are"
BESIDE_PUBLISHED = (
    "The best and the median row on the test split stand beside published models that saw no other data. Those "
    "differ from ours in more than position, so that they place our models and do not judge encodings."
)
LATE_CHANGES = (
    "The learning rate falls to a tenth by the end, so that a late change of validation is no forecast of longer "
    "training."
)
WORDS = (
    "Word perplexity is 2 to the power of the bits per byte times the {ratio:.2f} bytes of a word of the test split. "
    "Models of words choose from a closed list, and carry their state over the whole text; ours may spell anything in "
    "byte pairs, and see one window. Both read rare words as `<unk>`."
)

GATES_TITLE = "Expected results, checked"
GATES = (
    "Conditions that hold if the code is right, and results that published work leads one to expect, checked on these "
    "records. A failure is a bug or a finding, and is examined before anything is claimed."
)
TIMINGS = "Throughput and memory do not compare here: runs had different machines, or shared them. See the provenance."
VALUES = "The same results as means over seeds, each with half its 95 % interval."
OUTCOMES = {True: "Holds", False: "Does not hold", None: "Undecided"}
"""Words for the outcome of a gate."""

SINCE = "Since it was declared:"
DECISION = (
    "An encoding differs from `{reference}` on a task where the paired t-test says so at 5 % after Holm's "
    "correction over the table. It is equivalent where two one-sided tests say so likewise, with {pairs} pairs or "
    "more and the margin below."
)
TOO_NARROW = (
    "With {seeds} of a task these intervals are too narrow: the middle 95 % of resamples of "
    "a mean hold 75 % of the time with three seeds, and 89 % with eight."
)

# Items of lists, one after each dash, with line breaks where Markdown has them.
NOTES = """\
- `a ± b`: mean over seeds, and half the width of its 95 % Student-t interval. One seed has no interval.
- Δ to `{reference}`: mean of the differences at equal seeds, with the same kind of interval. For an accuracy it is in
  percentage points.
- Verdict: a paired, two-sided t-test at 5 %. p is Holm-adjusted over the comparisons of the table, those included that
  its suite declares and that have not run. Intervals are not adjusted, so that one may exclude zero where the verdict
  is "not separable". That does not mean equal; it means that these seeds cannot decide. "Equivalent within" a margin:
  two one-sided paired t-tests, Holm-adjusted likewise, place the difference within the margin that the suite declares;
  never with fewer than {pairs} pairs. A difference can be both significant and too small to matter.
- n: runs that finished. Failed and missing runs are named; nothing stands in for their values.
- The tested weights are those that validation chose. A run reads the test split once, when its training is over, and
  selects nothing on it. Changes that people made after tested runs were known are listed with the declaration.
- FLOPs: for one training step on a single sample (a text of median length), forward and backward; work that a batch
  shares, such as a projected table, counts in full. Throughput: mean over runs. Memory: the largest of the runs. Both
  depend on what else the machine did, and compare encodings only where runs had it to themselves.
"""
NOTES_ACROSS = """\
- Across tasks, a run's score is 0 for the worst finished run of its task and 1 for the best, among the encodings
  compared. Interquartile mean: of the scores of all tasks and seeds without the lowest and the highest quarter. Average
  rank: of the mean scores, over tasks. P(better): the chance that a run scores above one of `{reference}`,
  averaged over tasks. Intervals: the middle 95 % of resamples of the seeds of each task; they hold for these tasks.
  A task counts as much as any other even where nothing is separable on it; one with more seeds counts for more in the
  interquartile mean.
- † A failed run counts as score 0, like the worst one. The last column leaves failed runs out, and so favours encodings
  that fail.
"""

FRONT_PAGE = "Means over {seeds}."
"""Sentence under the table of a front page."""
FRONT_PAGE_ALONE = "Values of one seed."
"""Sentence instead, where there is nothing to take a mean of."""
FRONT_PAGE_VERDICTS = (
    " Better or worse: than `{reference}`, by a paired t-test at 5 %, corrected for the comparisons of a task. No "
    "word: these seeds do not separate the two."
)
"""Sentences that follow, where a test compares rows."""
