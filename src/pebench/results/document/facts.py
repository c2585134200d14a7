"""Facts to know of a table and of figures across tasks: settings, provenance, and how sure they are."""

import statistics

from pebench.formatting import counted
from pebench.results.across import MIN_TASKS, Summary
from pebench.results.document import texts
from pebench.results.prose import Prose, prose
from pebench.results.provenance import circumstances, provenance
from pebench.results.tables import REGIME_TEXT, Table
from pebench.results.titles import group_title

MANY_SEEDS = 30
"""Seeds from which on resampled intervals hold about as often as they claim."""


def table_facts(table: Table) -> dict[str, Prose]:
    """Return settings and provenance by name; where rows differ, every value is listed."""
    origin, config = provenance(table), table.config
    found = {name: " / ".join(values) for name, values in origin.items()}
    fingerprints = " / ".join(fingerprint[:12] for fingerprint in origin["data"])
    versions = [f"{name} {found[name]}" for name in ("protocol", "pebench", "torch", "lightning", "commit")]
    metric, mode = table.task.monitored(config.train.monitor)
    places = "; train: places for a window" * (table.task.unit == "windows")
    facts = {
        "Settings": group_title([table]),
        "Matched by": REGIME_TEXT[config.regime],
        "Model": _model(table),
        "Training": _training(table),
        "Input": _input(table),
        "Weights chosen by": f"{texts.BEST[mode]} {metric}{_chosen_at(table)}",
        "Splits": table.task.splits_before.get(table.protocol, table.task.splits),
        "Data": f"SHA-256 {fingerprints} ({found['sizes']}{places})",
        "Versions": ", ".join(versions),
    }
    chances = [record.dataset["chance"] for record in table.records if "chance" in record.dataset]
    if chances:
        facts["Chance"] = f"{table.task.shown(chances[0])}, by the best constant prediction"
    if "plug-ins" in found:
        facts["Plug-ins"] = found["plug-ins"]
    facts["Device"] = _device(table, found)
    if notes := circumstances(table):
        facts["Machines and code"] = " ".join(notes)
    facts["Total wall time"] = _hours(table.wall_time_s)
    return {name: prose(text) for name, text in facts.items()}


def _model(table: Table) -> str:
    model = table.config.model
    shape = {
        "d_model": f"width {model.d_model}", "num_layers": f"depth {model.num_layers}",
        "num_heads": f"attention heads {model.num_heads}", "dropout": f"dropout {model.dropout:g}",
    }  # fmt: skip
    return _without_selected(table, "model", shape)


def _training(table: Table) -> str:
    train = table.config.train
    budget = {
        "batch_size": f"{table.task.unit} in a step {train.batch_size}", "max_steps": f"steps {train.max_steps:,}",
        "warmup": f"warm-up {100 * train.warmup:g} % of them", "clip": f"gradients clipped at {train.clip:g}",
        "weight_decay": f"weight decay {train.weight_decay:g}",
        "learning_rate": f"learning rate {train.learning_rate:g}",
    }  # fmt: skip
    return _without_selected(table, "train", budget)


def _input(table: Table) -> str:
    data = table.config.data
    size = {
        "max_len": f"up to {data.max_len} tokens", "vocab_size": f"vocabulary {data.vocab_size}",
        "patch_size": f"patches of {data.patch_size}x{data.patch_size} pixels",
    }  # fmt: skip
    return _without_selected(table, "data", {name: text for name, text in size.items() if getattr(data, name)})


def _without_selected(table: Table, part: str, settings: dict[str, str]) -> str:
    """Return settings in a list, but for those that were selected for each row."""
    return ", ".join(text for name, text in settings.items() if f"{part}.{name}" not in table.config.selected)


def _device(table: Table, found: dict[str, str]) -> str:
    """Return devices, threads, precision and attention of all runs; of those tested too, where they differ."""
    tested = " / ".join(provenance(table, stage="test")["device"])
    device = found["device"] if tested == found["device"] else f"{found['device']} (those tested: {tested})"
    compiled = {"False": "", "unknown": ""}.get(found["compiled"], f", compiled: {found['compiled']}")
    settings = f"threads {found['threads']}, precision {found['precision']}{compiled}"
    return f"{device}, {settings}, attention {found['attention']}"


def _hours(duration: float) -> str:
    seconds = round(duration)
    return f"{seconds // 3600} h {seconds // 60 % 60:02d} min {seconds % 60:02d} s"


def _chosen_at(table: Table) -> str:
    """Return the step of the weights that were tested, in the middle of all runs."""
    steps = [step for row in table.rows for step in row.known(lambda r: r.metrics.get("best_step"))]
    if not steps:
        return ""
    return f"; tested: step {statistics.median_low(steps):,.0f} of {table.config.train.max_steps:,} (median)"


def across_facts(summary: Summary | None) -> list[str]:
    """Return the facts to know of figures across tasks, a sentence or two each."""
    if summary is None:
        return ["No figures: they need two encodings that have runs of every task at a common seed."]
    seeds = ", ".join(f"{task} ({count})" for task, count in summary.tasks.items())
    fewest = summary.fewest
    drawn = f"Intervals from {summary.replicates:,} resamples." if fewest > 1 else "No intervals: one seed has none."
    facts = [f"Tasks and seeds: {seeds}. {drawn}", _ranks_fact(summary)]
    if 1 < fewest < MANY_SEEDS:
        facts.append(texts.TOO_NARROW.format(seeds=counted(fewest, "seed")))
    facts += [f"Left out: {name}, which has no runs of {', '.join(tasks)}." for name, tasks in summary.lacking.items()]
    if summary.unpaired:
        facts.append(f"Left out: {counted(summary.unpaired, 'run')} at seeds that another encoding lacks.")
    return facts


def _ranks_fact(summary: Summary) -> str:
    """Return which ranks are told apart, in a sentence."""
    if summary.critical_difference is None or summary.friedman_p is None:
        counts = f"{len(summary.tasks)} and {len(summary.rows)}"
        return f"No ranks are told apart here: that takes {MIN_TASKS} tasks and 3 encodings; there are {counts}."
    groups = "; ".join(", ".join(group) for group in summary.groups) or "none"
    return (
        f"Friedman's test: p = {summary.friedman_p:.2g}. Critical difference of average ranks (Nemenyi, 5 %): "
        f"{summary.critical_difference:.2f}. Not told apart: {groups}."
    )
