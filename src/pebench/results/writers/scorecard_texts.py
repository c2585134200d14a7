"""The sentences of the scorecard: how to read it, and where its figures are from. Markdown and HTML share them."""

from collections.abc import Iterator

from pebench.results.cells import NOTHING
from pebench.results.grids.measurements import size_factor
from pebench.results.scorecard import MEASURES, Measure, Scorecard
from pebench.results.scorecard.costs import IDLE
from pebench.results.scorecard.measures import SLIDING
from pebench.results.scorecard.ranks import FEWEST
from pebench.results.tables import Table

TITLE = "Scorecard"

LEAD = (
    "Every encoding of pebench in one table, at the trained size and beyond it. A cell has the mean over seeds with "
    "half its 95 % interval, and the rank in its column; in brackets stand the ranks that the seeds leave open. Bold: "
    "no other row is separably better. Two rows are separable if a paired t-test over the seeds that both have finds a "
    "difference at 5 %, corrected (Bonferroni) for comparing a row with all others. n stands where a row has fewer "
    "seeds than most."
)
"""How to read the table."""

CACHE = (
    "KV cache, during generation: it *works*; it *needs more* than keys and values, such as gates; or it *goes stale*: "
    "keys of earlier tokens change as the text grows, with some encodings only beyond the trained length. `xpos` goes "
    "stale only since this implementation counts positions from the middle of the text."
)
"""The words of the column of caches."""

LEGEND = (
    f"{NOTHING}: not measured or not known; *refuses*: no positions beyond the trained ones (its table can be "
    "interpolated, which is not measured here); *does not serve*: made for texts or images alone, or for causal "
    "models.",
    f"No rank: a row that shares fewer than {FEWEST} seeds with most others, or has a failed run, as its other runs "
    "are those that went well. It is neither bold nor advised. *(n=4, 1 failed)*: four runs have a value, one failed.",
    "Fused attention: *yes* where nothing is added to the attention logits; *with a bias* where PyTorch's kernel took "
    "a fixed bias on the device of the costs, at the shortest length; longer texts are computed in blocks by pebench.",
    CACHE,
    "Parameters: of the encoding in the language model, else in the image model, else in the first order task.",
    "If you need: a condition, such as a fused kernel, leaves fewer rows. Each is then compared with fewer others, so "
    "the correction is milder, and a difference may be separable there that is not without the condition.",
    "Models are small and training is short. The best of many means looks better than it is, because it was picked: "
    "differences to it are exploratory unless a suite declared them.",
)
"""The words of the tables, a sentence or more each. Words between asterisks stand in cells."""

UNSCORED = (
    f"{NOTHING} in Score: a weighed column has no value, or no rank; set images to 0 to rank encodings for text alone. "
    "Scores have no interval."
)
"""Explanation of a row without a score, where a reader weighs columns."""


def nothing_measured() -> str:
    """Return that no run counts, and which would."""
    tiers = dict.fromkeys(measure.tier for measure in MEASURES)
    tasks = (f"tier {tier}: {', '.join(dict.fromkeys(m.task for m in MEASURES if m.tier == tier))}" for tier in tiers)
    return (
        f"Nothing is measured yet on any task of the scorecard ({'; '.join(tasks)}). Runs count with the tier's own "
        "settings, but for a learning rate that was selected, and encodings without options."
    )


def progress(card: Scorecard) -> str:
    """Return how many encodings have any figure, and how many have all that they can have."""
    found = f"{sum(line.measured for line in card.lines)} of {len(card.lines)} encodings have figures in these tables."
    real, order = split(card)
    complete = [
        f"{sum(line.complete(measures) for line in card.lines)} in {name}"
        for name, measures in (("language and images", real), ("the order tasks", order))
        if measures
    ]
    return f"{found} Complete rows: {', '.join(complete)}." if complete else found


def split(card: Scorecard) -> tuple[list[Measure], list[Measure]]:
    """Return the columns of real data, and those of generated data."""
    real = [measure for measure in card.measures if measure.real]
    return real, [measure for measure in card.measures if not measure.real]


def origins(card: Scorecard) -> Iterator[str]:
    """Yield the runs and sizes of each group of columns, then costs, then the tasks that nothing was measured on."""
    for key in dict.fromkeys(measure.task for measure in card.measures):
        measures = [measure for measure in card.measures if measure.task == key]
        measure, table = measures[0], card.tables[measures[0].key]
        seeds = sorted({entry.estimate.n for line in card.lines if (entry := line.entries[measure.key]).estimate})
        count = f"{seeds[0]} seeds"
        if len(seeds) > 1:
            count = f"{seeds[0]} to {seeds[-1]} seeds, mostly {card.usual_seeds[measure.key]}"
        rates = "learning rate selected for each row" if table.config.selected else "one learning rate for all rows"
        runs = f"tier {measure.tier}, {count}, {rates}, protocol {table.protocol}"
        yield f"{measure.group}: `{measure.task}`, {runs}; {_sizes(measures, table)}."
    if any(measure.size == SLIDING for measure in card.measures):
        yield (
            "Language, in overlapping windows: the test text in windows of the trained length that overlap by half. "
            "Every token is read twice, and half of the tokens have more context."
        )
    yield _costs(card)
    measured = {measure.task for measure in card.measures}
    if missing := dict.fromkeys(measure.task for measure in card.unmeasured if measure.task not in measured):
        yield f"Not measured yet: {', '.join(f'`{task}`' for task in missing)}."


def _sizes(measures: list[Measure], table: Table) -> str:
    """Return steps, trained size, sizes beyond it and parameters of a task's models."""
    task, data = table.task, table.config.data
    trained = task.image[1] if task.image else data.max_len
    unit = f"pixels a side, in patches of {data.patch_size} × {data.patch_size}" if task.image else "tokens"
    factors = [factor for measure in measures if (factor := size_factor(measure.size))]
    beyond = "".join(f", beyond it {trained * factor:g}" for factor in factors if trained)
    counts = [count for row in table.rows if row.values and (count := row.costs["parameters_total"])]
    low, high = (f"{count:,}" for count in (min(counts, default=0), max(counts, default=0)))
    parameters = low if low == high else f"{low} to {high}"
    return f"{table.config.train.max_steps:,} steps at {trained} {unit}{beyond}; {parameters} parameters"


def _costs(card: Scorecard) -> str:
    """Return how costs were measured, and how far they scatter."""
    if not card.device:
        return "Costs of a training step: not measured yet."
    where = {"cpu": "a CPU", "cuda": "a GPU"}.get(card.device, card.device)
    text = (
        f"Costs: time and peak memory of a training step of a small causal language model on {where}, divided by those "
        "with `none`; columns of patches: of a small vision transformer. `studies/encoding_costs` has the models."
    )
    costs = [(line.label, c) for line in card.lines for c in (*line.costs.values(), *line.image_costs.values())]
    measured = [cost for _, cost in costs if cost.time is not None]
    times = [cost.time for label, cost in costs if label in IDLE and cost.time is not None]
    memories = [cost.memory for label, cost in costs if label in IDLE and cost.memory is not None]
    if times and memories:
        text += (
            f" {sum(cost.rounds == 1 for cost in measured)} of {len(measured)} costs are of one round. Noise: rows "
            f"with next to no work of their own ({', '.join(f'`{label}`' for label in IDLE)}) lie between "
            f"{min(times):.2f} and {max(times):.2f} in time, {min(memories):.2f} and {max(memories):.2f} in memory."
        )
    return text
