"""The options of every verb but ``run``."""

from pathlib import Path
from typing import Any

from pebench.config import REFERENCE_ENCODING

REFERENCE_HELP = (
    f"compare rows to this one, named by its label in the table (default: the suite's, or {REFERENCE_ENCODING})"
)


def add_verbs(verbs: Any) -> None:
    """Add every verb but ``run`` to the command line, in the order of its help."""
    _list(verbs)
    _doctor(verbs)
    _new(verbs)
    _verify(verbs)
    _status(verbs)
    _show(verbs)
    _compare(verbs)
    _analyze(verbs)
    _merge(verbs)
    _report(verbs)
    _submit(verbs)
    _cite(verbs)
    _plot(verbs)
    _tensorboard(verbs)
    _completion(verbs)


def _list(verbs: Any) -> None:
    verb = verbs.add_parser("list", help="list tasks, encodings, suites or executors")
    verb.add_argument("what", metavar="WHAT", help="tasks, encodings, suites or executors")
    verb.add_argument(
        "--format", default="text", metavar="FORMAT",
        help="how to list encodings: as text (default), or pebench's own ones as markdown or overview",
    )  # fmt: skip
    verb.set_defaults(action=("listing", "list_command"))


def _doctor(verbs: Any) -> None:
    verb = verbs.add_parser("doctor", help="show what this machine can run, and about how long it takes")
    verb.add_argument("--data-dir", type=Path, metavar="DIR", help="folder with local copies of the data sets")
    verb.add_argument("--offline", action="store_true", help="do not ask whether the network is there")
    verb.set_defaults(action=("doctor", "doctor_command"))


def _new(verbs: Any) -> None:
    verb = verbs.add_parser("new", help="write a file for an encoding or a task of your own, with its test")
    verb.add_argument("kind", metavar="KIND", choices=("encoding", "task"), help="encoding or task")
    verb.add_argument("name", metavar="NAME", help="name of the file, without .py: my_encoding")
    verb.set_defaults(action=("new", "new_command"))


def _completion(verbs: Any) -> None:
    verb = verbs.add_parser(
        "completion", help="print a script that completes commands in a shell",
        description='Print a script that completes commands, options and names. For bash: eval "$(pebench completion '
        'bash)"; for zsh the same; for fish: pebench completion fish | source.',
    )  # fmt: skip
    verb.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    verb.set_defaults(action=("completion", "completion_command"))


def _verify(verbs: Any) -> None:
    verb = verbs.add_parser(
        "verify", help="check every property of an encoding or of a task, and print its card",
        description="Check every property that an encoding must have, in small models of all kinds that it serves. If "
        "all hold, print its card: what it acts on, its parameters and its cost. For a task, check its data, metric "
        "and declarations. Exit code 1 if a property is broken.",
    )  # fmt: skip
    verb.add_argument(
        "encoding", metavar="NAME|MODULE:OBJECT", help="an encoding or a task: its name, or the place of your own"
    )
    _settings(verb)
    verb.set_defaults(action=("verify", "verify_command"))


def _settings(verb: Any) -> None:
    verb.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", dest="settings",
        help="set one of its options (repeatable)",
    )  # fmt: skip


def _status(verbs: Any) -> None:
    verb = verbs.add_parser("status", help="show how far a suite is, from any terminal or machine that sees its folder")
    verb.add_argument("out", type=Path, metavar="DIR", help="an output folder")
    verb.set_defaults(action=("inspect", "status_command"))


def _show(verbs: Any) -> None:
    verb = verbs.add_parser("show", help="show everything that is recorded about one run or several")
    verb.add_argument(
        "runs", nargs="+", metavar="RUN", help="a run's folder, the start of its key, or a part of its path: rope/seed0"
    )  # fmt: skip
    verb.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="DIR", help="look for the runs here (default: runs)"
    )
    verb.set_defaults(action=("inspect", "show_command"))


def _compare(verbs: Any) -> None:
    verb = verbs.add_parser("compare", help="compare two sets of records, in settings and in outcome")
    for name in ("a", "b"):
        verb.add_argument(
            name, type=Path, metavar=name.upper(), help="a run's folder, an output folder or a .jsonl file"
        )
    _own_tasks(verb)
    verb.set_defaults(action=("inspect", "compare_command"))


def _own_tasks(verb: Any) -> None:
    verb.add_argument(
        "--task", action="append", default=[], metavar="MODULE:TASK", dest="tasks",
        help="import this task of your own, which records of it do not by themselves (repeatable)",
    )  # fmt: skip


def _analyze(verbs: Any) -> None:
    verb = verbs.add_parser(
        "analyze", help="measure where trained models keep content and position",
        description="Measure, on the weights of finished runs, where content and position are in their vectors and how "
        "attention uses them, beside the same model untrained. The figures go into the records, and pages show them.",
    )  # fmt: skip
    verb.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN_OR_DIR", help="a run's folder, or an output folder with weights"
    )
    verb.add_argument("--data-dir", type=Path, metavar="DIR", help="folder with local copies of the data sets")
    verb.add_argument("--again", action="store_true", help="measure runs again that have figures already")
    verb.set_defaults(action=("analyze", "analyze_command"))


def _merge(verbs: Any) -> None:
    verb = verbs.add_parser("merge", help="join the records of several machines, or continue from published ones")
    verb.add_argument("sources", type=Path, nargs="+", metavar="SOURCE", help="output folders or .jsonl files")
    verb.add_argument("--records", type=Path, metavar="FILE", help="write the records to this .jsonl file")
    verb.add_argument(
        "--out", type=Path, metavar="DIR", help="write them to this output folder, where pebench run continues"
    )
    verb.add_argument("--suite", metavar="NAME_OR_FILE", help="keep only the runs that are part of this suite")
    verb.add_argument("--prefer-first", action="store_true", help="where records contradict, keep the first source's")
    verb.set_defaults(action=("merge", "merge_command"))


def _report(verbs: Any) -> None:
    verb = verbs.add_parser("report", help="make tables from records")
    verb.add_argument(
        "source", type=Path, nargs="?", metavar="DIR",
        help="an output folder, or a .jsonl file of records; with --scorecard the first of its folders",
    )  # fmt: skip
    verb.add_argument(
        "--scorecard", type=Path, metavar="DIR", nargs="+",
        help="in place of a page of runs: every encoding in one table, made of all records in DIR, such as results; "
        "of several, as in results runs, costs are from the first that has them; "
        "--format markdown, html or json, --output, --publish, --open",
    )  # fmt: skip
    verb.add_argument(
        "--format", metavar="FORMAT",
        help="print one format: markdown (default), overview, html, latex, csv or json; in a terminal, html is written "
        "to a file",
    )  # fmt: skip
    verb.add_argument(
        "--output", type=Path, metavar="PREFIX",
        help="write PREFIX.md, .html, .tex, .csv, .json, .jsonl (the records) and pictures in PREFIX-figures",
    )  # fmt: skip
    verb.add_argument(
        "--publish", type=Path, metavar="FOLDER",
        help="write FOLDER/page.md, the records (runs.jsonl) and the page's pictures (figures), as in results/",
    )  # fmt: skip
    verb.add_argument(
        "--suite", metavar="NAME_OR_FILE",
        help="show the question, expectation and margin of this suite, and which of its runs are missing",
    )  # fmt: skip
    _own_tasks(verb)
    verb.add_argument("--reference", metavar="LABEL", help=REFERENCE_HELP)
    verb.add_argument("--open", action="store_true", help="open the HTML page in a browser")
    verb.add_argument("--strict", action="store_true", help="fail if a run failed, or if one of the suite is missing")
    verb.add_argument("--records", type=Path, metavar="FILE", help="write all records to one .jsonl file, too")
    verb.add_argument(
        "--allow-unmatched", action="store_true", help="show tables whose rows break their regime, with a mark"
    )
    verb.set_defaults(action=("report", "report_command"))


def _submit(verbs: Any) -> None:
    verb = verbs.add_parser(
        "submit", help="check rows of your own encoding, and lay them out for the leaderboard's pull request",
        description="Check records of runs of the suite core with your encoding: protocol, budget, seeds, data, "
        "sources. Accepted rows go to results/submissions/NAME of a clone, and the leaderboard there is made again.",
    )  # fmt: skip
    verb.add_argument("runs", type=Path, metavar="RUNS", help="an output folder, or a .jsonl file of records")
    for name, metavar, text in (
        ("name", "NAME", "name of the submission, and of its folder"),
        ("title", "TEXT", "what the encoding is called (default: NAME)"),
        ("paper", "TEXT", "where it is described: a citation, a DOI or an address"),
        ("by", "TEXT", "who submits it"),
        ("code", "URL", "where its code is"),
        ("licence", "TEXT", "the code's licence, such as MIT"),
    ):
        verb.add_argument(f"--{name}", metavar=metavar, help=text)
    verb.add_argument("--check", action="store_true", help="look at the records alone, and write nothing")
    verb.add_argument("--replace", action="store_true", help="write over a submission of this name")
    verb.add_argument("--results", type=Path, metavar="DIR", help="folder of published results (default: the clone's)")
    verb.set_defaults(action=("submit", "submit_command"))


def _cite(verbs: Any) -> None:
    verb = verbs.add_parser("cite", help="print BibTeX entries of encodings, data sets and pebench itself")
    verb.add_argument(
        "names", nargs="*", metavar="NAME", help="encodings, tasks or suites; without a name, pebench itself"
    )
    verb.set_defaults(action=("report", "cite_command"))


def _plot(verbs: Any) -> None:
    verb = verbs.add_parser(
        "plot-encoding", help="draw encodings, and the similarity of positions by their distance",
        description="Draw what an encoding adds to the input, the residual stream or the attention logits of a model, "
        "and how similar two positions are, by their distance; on a grid, each patch and the one in the middle. "
        "Several encodings are drawn on one scale.",
    )  # fmt: skip
    verb.set_defaults(action=("plot", "plot_command"))
    verb.add_argument(
        "encodings", nargs="+", metavar="NAME|MODULE:CLASS", help="an encoding's name, or a class of your own"
    )
    verb.add_argument("--output", type=Path, metavar="FILE", help="an .svg, .png or .pdf file (default: NAME.svg)")
    verb.add_argument(
        "--length", type=int, default=100, metavar="L", help="number of positions or patches (default: 100)"
    )
    verb.add_argument("--grid", action="store_true", help="use a square of patches instead of a text")
    verb.add_argument("--causal", action="store_true", help="hide the future from every token")
    verb.add_argument("--d-model", type=int, default=128, metavar="D", help="width of the model (default: 128)")
    verb.add_argument("--heads", type=int, default=4, metavar="H", help="number of attention heads (default: 4)")
    verb.add_argument(
        "--seed", type=int, default=0, metavar="S", help="seed of trained parameters, drawn as initialised (default: 0)"
    )
    _settings(verb)


def _tensorboard(verbs: Any) -> None:
    verb = verbs.add_parser("tensorboard", help="show curves, bands over seeds and a row per run in a browser")
    verb.add_argument("out", type=Path, metavar="DIR", help="an output folder")
    verb.add_argument("--port", type=int, default=6006, metavar="N", help="port (default: 6006); 0 takes any free one")
    verb.add_argument(
        "--host", default="127.0.0.1", metavar="H", help="address (default: 127.0.0.1, this machine alone)"
    )
    verb.add_argument("--public", action="store_true", help="allow a host that other machines can reach")
    verb.set_defaults(action=("tensorboard", "tensorboard_command"))
