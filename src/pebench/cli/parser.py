"""What can be said on the command line."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from pebench import __version__
from pebench.config import CORE_ENCODINGS, REFERENCE_ENCODING, REGIMES, TIERS
from pebench.errors import UserError, nearest

REFERENCE_HELP = (
    f"the row that others are compared to, by its label in the table (default: the suite's, or {REFERENCE_ENCODING})"
)


OTHER_OPTIONS = {
    "--encoding": "--pe NAME", "--epochs": "--set train.max_steps=N", "--steps": "--set train.max_steps=N",
    "--lr": "--set train.learning_rate=X", "--learning-rate": "--set train.learning_rate=X",
    "--batch-size": "--set train.batch_size=N", "--output": "--out DIR",
    "--gpus": "--devices N",
}  # fmt: skip
"""What other programs call what ``pebench run`` is told otherwise."""


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as `UserError`, like everything else; an unknown option by the verb that it was given to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse; what is left over is an error here, not only at the top, which has no option to suggest."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unknown argument {left[0]!r}.{self._hint(left[0])}")
        return found, left

    def _hint(self, argument: str) -> str:
        name, running = argument.partition("=")[0], "--task" in self._option_string_actions
        if not name.startswith("-"):
            if not running:
                return ""
            from pebench.tasks import TASKS

            if name in TASKS:
                return f" A task is named by --task {name}."
            return " An option with several values is repeated: --pe add --pe rope, --seed 0 --seed 1."
        near = (OTHER_OPTIONS.get(name) if running else None) or nearest(name, self._option_string_actions)
        return f" Did you mean {near}?" if near else ""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.rstrip('.')}{'' if message.endswith('?') else '.'} See: {self.prog} --help")


def _later(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """A function that is imported when it is called."""
    return lambda options: getattr(importlib.import_module(f"pebench.cli.{module}"), name)(options)


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = _Parser(prog="pebench", description="A benchmark of positional encodings for transformers.")
    top.add_argument("--version", action="version", version=f"pebench {__version__}")
    verbs = top.add_subparsers(required=True, metavar="VERB", parser_class=_Parser)
    _run(verbs)

    lists = verbs.add_parser("list", help="list tasks, encodings, suites or executors")
    lists.add_argument("what", metavar="WHAT", help="tasks, encodings, suites or executors")
    lists.add_argument(
        "--format", default="text", metavar="FORMAT",
        help="of encodings: text (default), or of pebench's own alone: markdown, overview",
    )  # fmt: skip
    lists.set_defaults(action=_later("report", "list_command"))

    verify = verbs.add_parser(
        "verify", help="check every property of an encoding or of a task, and print what it is",
        description="Check every property that an encoding is to have, in small models of all kinds that it serves, "
        "and print what it is and costs; or every property that a task is to have, on its data. Exit code 1 if a "
        "property does not hold.",
    )  # fmt: skip
    verify.add_argument(
        "encoding", metavar="NAME|MODULE:CLASS", help="an encoding or a task: its name, or the place of your own"
    )
    verify.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", dest="settings",
        help="an option of the encoding or task (repeatable)",
    )  # fmt: skip
    verify.set_defaults(action=_later("verify", "verify_command"))

    status = verbs.add_parser("status", help="how far a suite is, from another terminal or machine")
    status.add_argument("out", type=Path, metavar="DIR", help="an output folder")
    status.set_defaults(action=_later("report", "status_command"))

    show = verbs.add_parser("show", help="everything about a run, or several")
    show.add_argument(
        "runs", nargs="+", metavar="RUN", help="a run's folder, how its key begins, or a part of its path: rope/seed0"
    )
    show.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where to look for those")
    show.set_defaults(action=_later("report", "show_command"))

    compare = verbs.add_parser("compare", help="two sets of records: what differs, in settings and in outcome")
    for name in ("a", "b"):
        compare.add_argument(name, type=Path, metavar=name.upper(), help="a run's folder, an output folder or a .jsonl")
    compare.set_defaults(action=_later("report", "compare_command"))

    merge = verbs.add_parser("merge", help="join the records of several machines; go on from published ones")
    merge.add_argument("sources", type=Path, nargs="+", metavar="SOURCE", help="output folders or .jsonl files")
    merge.add_argument("--records", type=Path, metavar="FILE", help="the .jsonl file to write")
    merge.add_argument("--out", type=Path, metavar="DIR", help="the output folder to write, where pebench run goes on")
    merge.add_argument("--suite", metavar="NAME_OR_FILE", help="only the runs that this suite shares with them")
    merge.add_argument("--prefer-first", action="store_true", help="where records contradict, keep the first source's")
    merge.set_defaults(action=_later("merge", "merge_command"))

    report = verbs.add_parser("report", help="make tables from records")
    report.add_argument("source", type=Path, metavar="DIR", help="an output folder, or a .jsonl file of records")
    report.add_argument(
        "--format", metavar="FORMAT", help="print as markdown (default), overview, html, latex, csv or json"
    )
    report.add_argument(
        "--output",
        type=Path,
        metavar="PREFIX",
        help="write PREFIX.md, .html, .tex, .csv, .json, .jsonl (the records) and pictures in PREFIX-figures",
    )
    report.add_argument(
        "--suite", metavar="NAME_OR_FILE", help="what the runs are for: question, expectation, margin, planned runs"
    )
    report.add_argument("--reference", metavar="LABEL", help=REFERENCE_HELP)
    report.add_argument(
        "--strict", action="store_true", help="accept no failed or missing run (of the suite, if one is named)"
    )
    report.add_argument("--records", type=Path, metavar="FILE", help="also write all records to one .jsonl file")
    report.add_argument(
        "--allow-unmatched", action="store_true", help="show, with a mark, tables whose rows break their regime"
    )
    report.set_defaults(action=_later("report", "report_command"))

    cite = verbs.add_parser("cite", help="BibTeX of what results stand on: encodings, data sets, pebench itself")
    cite.add_argument(
        "names", nargs="*", metavar="NAME", help="encodings, tasks or suites; without a name, pebench itself"
    )
    cite.set_defaults(action=_later("report", "cite_command"))
    _plot(verbs)

    board = verbs.add_parser("tensorboard", help="curves, bands over seeds, and a row per run, in a browser")
    board.add_argument("out", type=Path, metavar="DIR", help="an output folder")
    board.add_argument("--port", type=int, default=6006, metavar="N", help="default: 6006; 0 takes any that is free")
    board.add_argument("--host", default="127.0.0.1", metavar="H", help="default: 127.0.0.1, this machine alone")
    board.add_argument("--public", action="store_true", help="allow a host by which other machines get in")
    board.set_defaults(action=_later("tensorboard", "tensorboard_command"))
    return top


def _plot(verbs: Any) -> None:
    plot = verbs.add_parser(
        "plot-encoding", help="draw an encoding: what it tells, and how alike positions are by their distance",
        description="Draw what an encoding tells the input, the residual stream or the attention logits of a model, "
        "and how alike positions become by their distance; on a grid, each patch and the one in the middle.",
    )  # fmt: skip
    plot.set_defaults(action=_later("plot", "plot_command"))
    plot.add_argument("encoding", metavar="NAME|MODULE:CLASS", help="an encoding's name, or a class of your own")
    plot.add_argument("--output", type=Path, metavar="FILE", help=".svg, .png or .pdf (default: NAME.svg)")
    plot.add_argument("--length", type=int, default=100, metavar="L", help="positions, or patches (default: 100)")
    plot.add_argument("--grid", action="store_true", help="a square of patches, not a text")
    plot.add_argument("--causal", action="store_true", help="no token sees its future")
    plot.add_argument("--d-model", type=int, default=128, metavar="D", help="width of the model (default: 128)")
    plot.add_argument("--heads", type=int, default=4, metavar="H", help="attention heads (default: 4)")
    plot.add_argument("--seed", type=int, default=0, metavar="S", help="of trained parameters, which are as they start")
    plot.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", dest="settings",
        help="an option of the encoding (repeatable)",
    )  # fmt: skip


RUN_HELP = (
    "Train each encoding on each task with each seed, choose the weights by validation, test once, and print a table. "
    "Finished runs are skipped, so the same command goes on where it was stopped."
)


def _run(verbs: Any) -> None:
    run = verbs.add_parser("run", help="train encodings on tasks and print a table", description=RUN_HELP)
    run.set_defaults(action=_later("run", "run_command"))
    what = run.add_argument_group("what to run")
    what.add_argument(
        "--task",
        action="append",
        metavar="NAME",
        help="a task, such as vit-digits or 'my_module:my_task(length=32)' (repeatable); see: pebench list tasks",
    )
    what.add_argument(
        "--suite", metavar="NAME_OR_FILE",
        help="a declared set of runs, or with --task its part on those tasks; see: pebench list suites",
    )  # fmt: skip
    what.add_argument(
        "--config",
        action="append",
        type=Path,
        metavar="FILE",
        help="exactly the run of a record.json, or of the folder that holds it (repeatable)",
    )
    what.add_argument(
        "--pe", action="append", metavar="NAME",
        help="an encoding, such as rope or 'concat(d_p=16)' (repeatable); default: the suite's, or "
        + ", ".join(CORE_ENCODINGS),
    )  # fmt: skip
    what.add_argument("--seeds", type=int, metavar="N", help="run seeds 0 to N-1 (default: the suite's, or 3)")
    what.add_argument("--seed", type=int, action="append", metavar="S", help="run this seed (repeatable)")
    what.add_argument(
        "--tier", metavar="TIER", help=f"budget: {', '.join(TIERS)}; default: quick for embedded tasks, else core"
    )
    what.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="change a setting (repeatable): model.*, data.*, train.*, or encoding.* for an encoding's option",
    )  # fmt: skip
    what.add_argument(
        "--vary", action="append", default=[], metavar="KEY=V1,V2,...",
        help="make a table for each value of a setting, such as model.num_layers=1,2,4",
    )  # fmt: skip
    what.add_argument(
        "--select", action="append", default=[], metavar="KEY=V1,V2,...",
        help="choose a setting by validation, per task and encoding, before testing (repeatable)",
    )  # fmt: skip
    what.add_argument("--selection-seeds", type=int, metavar="N", help="seeds that each value selects with (default 1)")
    what.add_argument("--regime", metavar="REGIME", help=f"what rows have in common: {', '.join(REGIMES)}")
    what.add_argument("--reference", metavar="LABEL", help=REFERENCE_HELP)
    how = run.add_argument_group("how to run it")
    how.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where records go (default: runs)")
    how.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="local data instead of downloads (or PEBENCH_DATA_DIR)"
    )
    how.add_argument("--offline", action="store_true", help="never use the network")
    how.add_argument("--executor", default="local", metavar="NAME", help="see: pebench list executors")
    how.add_argument(
        "--executor-option", action="append", default=[], metavar="KEY=VALUE",
        help="a setting of a cluster's executor (repeatable)",
    )  # fmt: skip
    how.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: one per core or GPU)")
    how.add_argument("--threads", type=int, metavar="N", help="CPU threads per run (default: cores / jobs)")
    how.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")
    how.add_argument("--devices", type=int, default=1, metavar="N", help="devices per run, joined by DDP (default: 1)")
    how.add_argument(
        "--time-limit", type=float, metavar="S", help="end a run after this many seconds; it counts as failed"
    )
    how.add_argument("--retry-failed", action="store_true", help="run failed runs again")
    how.add_argument("--dry-run", action="store_true", help="say what would run, at what cost, and stop")
