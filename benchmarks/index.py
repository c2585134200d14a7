"""Index of the published pages, by the question that their suites ask: `python -m benchmarks.index` prints it."""

from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
SUITES = Path(__file__).parent / "suites"


def index() -> str:
    """Return a Markdown list, a line for each folder of suites, that links from results/ to published pages."""
    lines = []
    for folder in sorted(path for path in SUITES.iterdir() if path.is_dir()):
        names = sorted(path.stem for path in folder.glob("*.py"))
        links = [f"[{name}]({name}/page.md)" for name in names if (RESULTS / name / "page.md").exists()]
        if links:
            title = folder.name.replace("-", " ").capitalize()
            lines.append(f"- **{title}:** {', '.join(links)}.\n")
    return "".join(lines)


if __name__ == "__main__":
    print(index(), end="")
