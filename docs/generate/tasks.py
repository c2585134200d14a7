"""A page for each task, and a table of all, from their declarations."""

from collections.abc import Iterable

from generate.markdown import code, front_matter, plain, table
from generate.published import suites_on
from pebench.config import dotted_settings
from pebench.results.citations import bibtex
from pebench.results.titles import headline
from pebench.tasks import TASKS, Task, default_tier


def pages() -> dict[str, str]:
    """Return the page of every task and the table of all, by address."""
    return {"tasks/index.md": _index(), **{f"tasks/{name}.md": _page(task) for name, task in TASKS.items()}}


def menu() -> list[dict[str, str]]:
    """Return the pages' part of the menu."""
    return [{"All tasks": "tasks/index.md"}, *({name: f"tasks/{name}.md"} for name in TASKS)]


def _index() -> str:
    rows = [
        {
            "Task": f"[`{task.name}`]({task.name}.md)",
            "What it is": task.summary,
            "Kind": task.kind.name,
            "Metric": headline(task),
            "Chance": _chance(task),
            "Tiers": ", ".join(task.budgets),
        }
        for task in TASKS.values()
    ]
    return (
        f"{front_matter('Tasks')}# Tasks\n\nEvery task trains the same transformer. Those marked as embedded come with "
        "the package; the others are downloaded, pinned by revision or checksum, or read from a folder of your own "
        f"([data](../guides/data.md)).\n\n{table(rows)}\n"
        "A task of your own needs no change here: [your own task](../guides/own-task.md).\n"
    )


def _page(task: Task) -> str:
    suites = ", ".join(f"[{suite}](../results/{suite}.md)" for suite in suites_on(task.name))
    parts = [
        f"{front_matter(task.name)}# {task.name}\n\n{task.summary}.\n",
        table([{"Property": name, "Value": value} for name, value in _facts(task).items()]),
        f"## Budgets\n\nSettings by tier; `{default_tier(task)}` is the default. `--set` changes any of them.\n",
        table(list(_budgets(task))),
        code(f"pebench run --task {task.name}\npebench verify {task.name}", "bash"),
        f"## Results\n\nPublished tables on it are in: {suites}.\n" if suites else "",
        f"## Source\n\n{_source(task)}\n\n{code(bibtex([task.name]), 'bibtex')}",
    ]
    return "\n".join(part for part in parts if part)


def _facts(task: Task) -> dict[str, str]:
    better = "higher" if task.higher_is_better else "lower"
    facts = {
        "Kind": f"{task.kind.name}; a token sees {'only those before it' if task.causal else 'all others'}",
        "Metric": f"{headline(task)} on the test split ({better} is better)",
        "Chance": f"{_chance(task)}: what the best constant prediction reaches on the test split",
        "Splits": plain(task.splits),
        "Tested beyond": ", ".join(f"{factor:g}" for factor in task.beyond) + " times the trained "
        + ("side of the image" if task.image else "length"),
        "Classes": str(task.num_classes or ""),
        "Image": "{} channels, {} by {} pixels".format(task.image[0], *2 * task.image[1:]) if task.image else "",
    }  # fmt: skip
    if not task.beyond:
        del facts["Tested beyond"]
    return {name: value for name, value in facts.items() if value}


def _budgets(task: Task) -> Iterable[dict[str, str]]:
    """Yield a row for each setting, with its value at each tier; settings that no tier has are left out."""
    tiers = {tier: dotted_settings(budget) for tier, budget in task.budgets.items()}
    for name in next(iter(tiers.values())):
        values = [settings[name] for settings in tiers.values()]
        if any(value is not None for value in values):
            shown = ["4 d_model" if name == "model.d_ff" and value is None else f"{value}" for value in values]
            yield {"Setting": f"`{name}`", **dict(zip(tiers, shown, strict=True))}


def _chance(task: Task) -> str:
    return "not measured" if task.chance is None else task.shown(task.chance)


def _source(task: Task) -> str:
    if task.source is None:
        return "It is made by the package; nothing is downloaded."
    return (
        f"Downloaded from {plain(str(task.source))}. "
        f"A local copy lies in `{task.source.local}` of the folder that `--data-dir` names."
    )
