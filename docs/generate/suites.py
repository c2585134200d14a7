"""The list of suites, from their declarations, with links to their published results."""

from generate.markdown import front_matter, plain, table
from generate.published import published
from pebench.runs.suite import Suite, load_suite, suite_files

TITLES = {
    "headline": "The main comparison",
    "add-or-concat": "Added or concatenated",
    "channels": "Channels for position",
    "scale": "The scale of position relative to content",
    "site": "Where position enters",
    "depth": "Depth",
    "inside": "Inside the model, and rivals of the main finding",
    "extrapolation": "Longer texts and larger images",
    "topics": "Topics, which hardly need order",
    "embedded": "All encodings, on tasks that come with the package",
}
"""Titles of the folders of suites, in the order of the page."""


def page() -> str:
    """Return the list of all suites."""
    folders: dict[str, list[Suite]] = {folder: [] for folder in TITLES}
    for name, path in suite_files().items():
        folders.setdefault(path.parent.name, []).append(load_suite(name))
    parts = [
        front_matter("Suites"),
        "# Suites\n\nA suite is a declared set of runs: a question, what is expected, and the rule by which it is "
        "answered, all committed before its runs. `pebench run --suite NAME` makes the runs, "
        "`--dry-run` says first what they cost.\n",
    ]
    for folder, found in folders.items():
        suites = sorted(found, key=lambda suite: suite.name not in published())
        if suites:
            parts.append(f"## {TITLES.get(folder, folder.capitalize())}\n\n{table([_row(suite) for suite in suites])}")
            details = "\n\n".join(_details(suite) for suite in suites)
            parts.append(
                f"<details markdown><summary>What is expected, and costs</summary>\n\n{details}\n\n</details>\n"
            )
    return "\n".join(parts)


def menu() -> list[dict[str, str]]:
    """Return the pages of suites with published results, as a part of the menu."""
    return [{name: f"results/{name}.md"} for name in published()]


def _row(suite: Suite) -> dict[str, str]:
    seeds = suite.seeds if isinstance(suite.seeds, int) else len(suite.seeds)
    return {
        "Suite": f"[{suite.name}]({suite.name}.md)" if suite.name in published() else f"{suite.name} (not published)",
        "Question": plain(suite.question),
        "Tasks": ", ".join(f"[{task}](../tasks/{task}.md)" for task in suite.tasks),
        "Encodings": str(len(suite.encodings)),
        "Seeds": str(seeds),
    }


def _details(suite: Suite) -> str:
    """Return a suite's expectation, the date of its declaration and its cost."""
    declared = f"Declared {suite.declared} UTC. " if suite.declared else ""
    cost = f"Cost: {suite.cost}." if suite.cost else ""
    return f"**{suite.name}.** {plain(suite.expect)} {declared}{cost}"
