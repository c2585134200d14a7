"""Provenance of a table: the command that makes it again, versions and devices, and warnings before comparing rows."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pebench.config import CORE_ENCODINGS, REFERENCE_ENCODING, RunConfig, assignments, literal, sort_key
from pebench.encodings import registry
from pebench.encodings.origins import SHORT, origin_text
from pebench.formatting import counted, format_encoding, seeds_text
from pebench.results.tables import Table
from pebench.runs.records import Record
from pebench.tasks import registry as tasks


def command(table: Table) -> str:
    """Return the command line that makes a table's records."""
    rows, names = table.rows, tuple(_with_options(row.config) for row in table.rows)
    seeds = sorted({record.config.seed for row in rows for record in row.records})
    words = ["pebench", "run", "--task", table.task.name, "--tier", table.config.tier]
    if names != CORE_ENCODINGS:
        words += [word for name in names for word in ("--pe", name)]
    if seeds == [*range(len(seeds))]:  # what --seeds N means
        words += ["--seeds", str(len(seeds))]
    else:
        words += [word for seed in seeds for word in ("--seed", str(seed))]
    # Not those of the protocol that the runs were made under: the command is run by today's pebench.
    settings = dict(table.settings_today)
    if table.config.regime != "width":
        settings |= _width_of_the_reference(table)
    words += [word for item in assignments(settings) for word in ("--set", item)]
    if table.config.regime != "width":
        words += ["--regime", table.config.regime]
    if table.reference != REFERENCE_ENCODING and table.row(table.reference):
        words += ["--reference", table.reference]
    for name, values in table.grid.items():
        words += ["--select", f"{name}={','.join(literal(value) for value in values)}"]
    selecting = {record.config.seed for record in table.selecting}
    if len(selecting) > 1:
        words += ["--selection-seeds", str(len(selecting))]
    return shlex.join(words)


def _with_options(config: RunConfig) -> str:
    """Return an encoding as the command line takes it: ``concat(d_p=16)``."""
    return format_encoding(config.encoding, dict(sorted(config.encoding_args.items())), literal=True)


def _width_of_the_reference(table: Table) -> dict[str, Any]:
    """Return the width that the rows of a matched table are matched to, if it is not that of the task's budget."""
    budget = table.task.budgets.get(table.config.tier)
    reference = table.row(table.reference)
    if reference is None or (budget and reference.config.model.d_ff == budget.model.d_ff):
        return {}
    return {"model.d_ff": reference.config.model.d_ff}


def provenance(table: Table, stage: str | None = None) -> dict[str, list[str]]:
    """Return versions, devices and data of records, each with every value that occurs, or ``unknown``.

    Args:
        table: The table whose records are read.
        stage: ``test`` or ``select``; ``None`` reads both.
    """
    records = [record for record in table.origins if stage in (None, record.config.stage)]
    found: dict[str, set[Any]] = {"protocol": {record.protocol for record in records}}
    for name in ("pebench", "torch", "lightning"):
        found[name] = {record.environment.get("versions", {}).get(name) for record in records}
    for name in ("commit", "device", "threads", "precision", "compiled", "attention"):
        found[name] = {record.environment.get(name) for record in records}
    found["data"] = {record.dataset.get("fingerprint") for record in records}
    found["sizes"] = {_sizes(record) for record in records}
    if plugins := [*plugins_of(records), *_tasks_of(records)]:
        found["plug-ins"] = {f"{name}: {origin_text(facts)}" for name, facts in plugins}
    return {name: sorted(str(v) for v in values if v is not None) or ["unknown"] for name, values in found.items()}


def _sizes(record: Record) -> str | None:
    sizes = record.dataset.get("sizes", {})
    return ", ".join(f"{split} {sizes[split]:,}" for split in ("train", "val", "test") if split in sizes) or None


def plugins_of(records: Iterable[Record]) -> list[tuple[str, dict[str, str]]]:
    """Return name and origin of every encoding that was not one of ours, as each record has it."""
    return [item for record in records for item in record.environment.get("plugins", {}).items()]


def _tasks_of(records: Iterable[Record]) -> list[tuple[str, dict[str, str]]]:
    """Return the name and origin of every task that is not pebench's own, once for each record."""
    return [(record.config.task, facts) for record in records if (facts := record.environment.get("task"))]


def _sources(plugins: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, list[str]]:
    """Return each plug-in's name to the different sources that it had, as their SHA-256.

    Args:
        plugins: Name and origin, once for each record.
    """
    found: dict[str, list[str]] = {}
    for name, facts in plugins:
        found.setdefault(name, []).append(facts.get("sha256", "unknown"))
    return {name: sorted(set(sources)) for name, sources in found.items()}


def changed_plugins(records: Iterable[Record]) -> list[str]:
    """Return a sentence for each plug-in that has changed since its runs were done.

    Args:
        records: Records of these runs, which are kept.
    """
    records, texts = list(records), []
    for kind, source_now, plugins in (
        ("encoding", registry.source_now, plugins_of(records)),
        ("task", tasks.source_now, _tasks_of(records)),
    ):
        for name, sources in _sources(plugins).items():
            now = source_now(name)  # nothing where the plug-in is not installed: no change can be seen
            if now and set(sources) - {now, "unknown"}:  # a record may not know its source
                texts.append(
                    f"{kind} {name!r} has changed since runs here were done with it: its source was "
                    f"{', '.join(s[:SHORT] for s in sources if s != now)} and is {now[:SHORT]} now. They are kept; "
                    "another --out does them again."
                )
    return texts


def _mixed_sources(records: Sequence[Record]) -> list[str]:
    """Return a sentence for each plug-in that was not the same in all its runs."""
    texts = []
    for name, sources in _sources([*plugins_of(records), *_tasks_of(records)]).items():
        if len(sources) > 1:
            digests = ", ".join(source[:SHORT] for source in sources)
            texts.append(f"Runs of {name} were not made with the same source of it: {digests}.")
    return texts


def _code(record: Record) -> tuple[str | None, ...]:
    versions = record.environment.get("versions", {})
    return versions.get("pebench"), versions.get("torch"), record.environment.get("commit")


def _codes(records: Iterable[Record]) -> set[tuple[str | None, ...]]:
    return {_code(record) for record in records if record.environment}  # a run that failed early has none


def _selecting(table: Table, label: str) -> Iterator[Record]:
    """Return the records of the runs that selected the settings of a row."""
    return (record for trial in table.trials_of(label) for record in trial.records)


def series_warnings(*tables: Table) -> list[str]:
    """Return a sentence on differences between tables of a series that pairing by seed does not take out."""
    every = [provenance(table, stage="test") for table in tables]
    mixed = []
    for name in ("device", "threads", "torch"):
        if len({tuple(found[name]) for found in every}) > 1:
            mixed.append(name)
    text = f"The two ends differ in {' and '.join(mixed)}, and so in rounding, which pairing by seed does not remove."
    return [text] if mixed else []


def _differ_at_one_seed(found: Iterable[tuple[int, Any]]) -> bool:
    """Return True if values differ between rows at one seed, and not only between seeds.

    Args:
        found: Seed and value of each run.
    """
    of_seed: dict[int, set[Any]] = {}
    for seed, value in found:
        of_seed.setdefault(seed, set()).add(value)
    return any(len(values) > 1 for values in of_seed.values())


def _mixed_code(records: Iterable[Record]) -> str:
    """Return a sentence on code that differs between rows, or only between seeds, which pairing takes out."""
    if _differ_at_one_seed((record.config.seed, code) for record in records for code in _codes([record])):
        return "Rows were not measured with the same code."
    return "Seeds were not all run with the same code; of each seed, all rows were."


def _mixed_devices(table: Table) -> str:
    """Return sentences on devices that differ between rows, or only between seeds, and on which rows ran where."""
    runs = [(row.label, r.config.seed, r.environment) for row in table.rows for r in row.records if r.environment]
    # The number of threads is named only where it differs, as it then rounds sums in another order.
    several = len({found.get("threads") for *_, found in runs}) > 1
    places: dict[str, dict[str, list[int]]] = {}
    for label, seed, found in runs:
        place = str(found.get("device")) + (f", threads {found.get('threads')}," if several else "")
        places.setdefault(place, {}).setdefault(label, []).append(seed)
    if _differ_at_one_seed(
        (seed, place) for place, rows in places.items() for seeds in rows.values() for seed in seeds
    ):
        text = "Rows were not measured on the same device, which may round otherwise; pairing by seed leaves that in."
    else:
        text = "Seeds were not all run on the same device; of each seed, all rows were."
    number = Counter(label for label, *_ in runs)
    # The place that ran most is named last, without its rows: the others are the exceptions.
    *fewer, most = sorted(places, key=lambda place: sum(map(len, places[place].values())))
    where = []
    for place in fewer:
        ran = []
        for label, seeds in places[place].items():
            # A row that ran there with all its seeds needs no list of them.
            ran.append(label if len(seeds) == number[label] else f"{label} ({seeds_text(seeds)})")
        where.append(f"{place} ran {', '.join(ran)}")
    return f"{text} Throughput and memory do not compare. {'; '.join([*where, f'{most} ran all else'])}."


def warnings(table: Table) -> list[str]:
    """Return the facts that a reader must know before comparing the rows, a sentence each."""
    return [text for text, _ in _warnings(table)]


def cautions(table: Table) -> list[str]:
    """Return those of `warnings` that bear on what may be claimed."""
    return [text for text, origin in _warnings(table) if not origin]


def circumstances(table: Table) -> list[str]:
    """Return those of `warnings` that say where, and with which code, runs were made."""
    return [text for text, origin in _warnings(table) if origin]


def _warnings(table: Table) -> Iterator[tuple[str, bool]]:
    """Yield a sentence, and True if it is about machines and code alone, for each fact to know of a table."""
    yield from ((f"Not matched: {text}.", False) for text in table.unmatched)
    yield from ((text, False) for text in _selections(table))
    yield from _mixed_origins(table)
    yield from ((text, False) for text in _mixed_sources(table.origins))
    for row in table.rows:
        if len({(p.get("encoding"), p.get("total")) for p in row.known(lambda r: r.parameters or None)}) > 1:
            yield f"Runs of {row.label} have different numbers of parameters; the largest is shown.", False
    for row in table.rows:
        if row.difference and row.verdict and (seeds := table.fragile.get(row.label)):
            of = f"{seeds} of the {row.difference.n} seeds"
            yield f"With any one of {of} left out, {row.label} would not be called {row.verdict.text}.", False
    reference = table.row(table.reference)
    if reference is None:
        text = (
            f"No row is called {table.reference}: there are no differences. Name another row to compare with "
            "(--reference), or run that one too."
        )
        yield text, False
    elif not reference.values:
        yield f"No run of {table.reference} finished: there are no differences to it.", False


def _is_an_end(value: Any, tried: set[Any]) -> bool:
    """Return True if a value is the lowest or the highest of several."""
    return len(tried) > 1 and value in (min(tried, key=sort_key), max(tried, key=sort_key))


def _selections(table: Table) -> Iterator[str]:
    """Yield the facts to know of settings that were selected, a sentence each."""
    if table.config.selected and not table.trials:
        yield "The runs that selected settings are not among these records."
    for name in table.grid:
        tried = {row.label: {trial.values[name] for trial in table.trials_of(row.label)} for row in table.rows}
        edge = [row.label for row in table.rows if _is_an_end(row.own[name], tried[row.label])]
        if edge:
            yield f"The best {name} is at the edge of its grid for {', '.join(edge)}."
    for row in table.rows:
        if chosen := table.outdated.get(row.label):
            tested, now = (", ".join(assignments(values)) for values in (row.config.selected_values, chosen))
            yield f"{row.label} was tested with {tested}; by now the runs that select choose {now}."
    kinds = Counter((r.config.label, *assignments(r.config.selected_values)) for r in table.superseded)
    for (label, *values), count in kinds.items():
        text = f"{counted(count, 'run')} of {label} with {', '.join(values)}"
        yield f"Left out: {text}, a choice that further selecting runs have changed."


def _mixed_origins(table: Table) -> Iterator[tuple[str, bool]]:
    """Yield a sentence for each circumstance that runs should have in common and have not; True for all but data."""
    tested = provenance(table, stage="test")
    code = ("pebench", "torch", "commit")
    if len(tested["data"]) > 1:
        yield "Rows were not measured on the same data.", False
    if any(len(tested[name]) > 1 for name in code):
        yield _mixed_code(table.records), True
    codes = [(_codes(row.records), _codes(_selecting(table, row.label))) for row in table.rows]
    if any(ours and other and ours != other for ours, other in codes):
        yield "The runs that selected settings were not all made with the code of those that are tested.", True
    if not table.one_machine:
        yield _mixed_devices(table), True
    elif table.shared_machine:
        yield "Runs shared their machine with other work: throughput and memory do not compare.", True
