"""Leaderboard of submitted encodings beside the published ones: `python -m benchmarks.submissions` prints it."""

from pathlib import Path

from pebench.results.submissions.board import board, load_shared, load_submissions

RESULTS = Path(__file__).parents[1] / "results"


def leaderboard() -> str:
    """Return the text of results/submissions/README.md; every submission is checked once more."""
    shared = load_shared(RESULTS)
    return board(shared, load_submissions(RESULTS, shared))


if __name__ == "__main__":
    print(leaderboard(), end="")
