"""The command line. It parses and delegates; what takes time to import is imported where it is used."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pebench import __version__
from pebench.config import CORE_ENCODINGS, TIERS, Options, RunConfig, parse_settings
from pebench.errors import UserError, unknown_name

if TYPE_CHECKING:
    from rich.console import Console

    from pebench.records import Record

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130
VERBS = ("run", "list", "report")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pebench.

    Args:
        arguments: What follows the program's name; ``None`` takes the process's own.

    Returns:
        0 all well, 1 some run failed, 2 a mistake in what was asked, 130 interrupted.
    """
    try:
        try:
            options = parser().parse_args(arguments)
            return int(options.action(options))
        finally:
            sys.stdout.flush()  # here, where a reader that has left is no error
    except UserError as error:
        print(f"pebench: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("pebench: interrupted. Finished runs are kept; the same command goes on from there.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"pebench: error: {error}", file=sys.stderr)
        return EXIT_USAGE


class _Parser(argparse.ArgumentParser):
    """Reports mistakes as `UserError`, like everything else."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}. See: {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The grammar of the command line."""
    top = _Parser(prog="pebench", description="A benchmark of positional encodings for transformers.")
    top.add_argument("--version", action="version", version=f"pebench {__version__}")
    verbs = top.add_subparsers(required=True, metavar="VERB", parser_class=_Parser)

    run = verbs.add_parser("run", help="train encodings on tasks and print a table", description=RUN_HELP)
    run.set_defaults(action=run_command)
    what = run.add_argument_group("what to run")
    what.add_argument("--task", action="append", metavar="NAME", help="a task (repeatable); see: pebench list tasks")
    what.add_argument("--suite", metavar="NAME_OR_FILE", help="a declared set of runs; see: pebench list suites")
    what.add_argument(
        "--pe", action="append", metavar="NAME",
        help=f"an encoding (repeatable); default: {', '.join(CORE_ENCODINGS)}",
    )  # fmt: skip
    what.add_argument("--seeds", type=int, metavar="N", help="run seeds 0 to N-1 (default 3)")
    what.add_argument("--seed", type=int, action="append", metavar="S", help="run this seed (repeatable)")
    what.add_argument(
        "--tier", metavar="TIER", help=f"budget: {', '.join(TIERS)}; default: quick for embedded tasks, else core"
    )
    what.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="change a setting (repeatable): model.*, data.*, train.*, or encoding.* for an encoding's option",
    )  # fmt: skip
    how = run.add_argument_group("how to run it")
    how.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where records go (default: runs)")
    how.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="local data instead of downloads (or PEBENCH_DATA_DIR)"
    )
    how.add_argument("--offline", action="store_true", help="never use the network")
    how.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: one per core; one with a GPU)")
    how.add_argument("--threads", type=int, metavar="N", help="CPU threads per run (default: cores / jobs)")
    how.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto", help="default: auto")
    how.add_argument(
        "--time-limit", type=float, metavar="S", help="end a run after this many seconds; it counts as failed"
    )
    how.add_argument("--retry-failed", action="store_true", help="run failed runs again")
    how.add_argument("--dry-run", action="store_true", help="say what would run, and stop")

    lists = verbs.add_parser("list", help="list tasks, encodings or suites")
    lists.add_argument("what", metavar="WHAT", help="tasks, encodings or suites")
    lists.set_defaults(action=list_command)

    report = verbs.add_parser("report", help="make tables from records")
    report.add_argument("source", type=Path, metavar="DIR", help="an output folder, or a .jsonl file of records")
    report.add_argument(
        "--format", default="markdown", metavar="FORMAT", help="markdown (default), overview, csv or json"
    )
    report.add_argument("--records", type=Path, metavar="FILE", help="also write all records to one .jsonl file")
    report.set_defaults(action=report_command)
    return top


RUN_HELP = (
    "Train each encoding on each task with each seed, choose the weights by validation, test once, and print a table. "
    "Finished runs are skipped, so the same command goes on where it was stopped."
)


def run_command(options: argparse.Namespace) -> int:
    """``pebench run``."""
    from rich.console import Console

    from pebench.records import find_record

    check_run(options)
    plan, console = make_plan(options), Console()
    states = []
    for config in plan:
        record = find_record(config, options.out)
        again = record is None or (options.retry_failed and not record.ok)
        states.append("to do" if again else "done" if record and record.ok else "failed")
    console.print(summary(states), highlight=False, markup=False)
    if options.dry_run:
        for config, state in zip(plan, states, strict=True):
            console.print(f"  {state:6} {config.directory}", highlight=False, markup=False, soft_wrap=True)
        return 0
    if todo := [config for config, state in zip(plan, states, strict=True) if state == "to do"]:
        start(todo, options, console)
    return show([record for config in plan if (record := find_record(config, options.out))], options.out, console)


def check_run(options: argparse.Namespace) -> None:
    """Take the environment into account, and refuse what cannot be.

    Raises:
        UserError: With what was expected.
    """
    if options.offline:
        os.environ |= {"PEBENCH_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    if options.data_dir is None and os.environ.get("PEBENCH_DATA_DIR"):
        options.data_dir = Path(os.environ["PEBENCH_DATA_DIR"])
    if options.data_dir is not None and not options.data_dir.is_dir():
        raise UserError(f"--data-dir expects a folder, but {str(options.data_dir)!r} is none.")
    if options.out.exists() and not options.out.is_dir():
        raise UserError(f"--out expects a folder, but {str(options.out)!r} is a file.")
    for name in ("jobs", "threads", "time_limit"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise UserError(f"--{name.replace('_', '-')} must be at least 1, got {value:g}.")


def make_plan(options: argparse.Namespace) -> list[RunConfig]:
    """The runs that were asked for, each once.

    Raises:
        UserError: For anything that does not exist or cannot work.
    """
    from dataclasses import replace

    from pebench.suites import Suite, check_encoding_settings, load_suite

    if bool(options.suite) == bool(options.task):
        raise UserError("expected either --task NAME or --suite NAME. Try: pebench run --suite quickstart")
    if options.seeds is not None and options.seed:
        raise UserError("expected either --seeds N or --seed S, got both.")
    if options.seeds is not None and options.seeds < 1:
        raise UserError(f"--seeds must be at least 1, got {options.seeds}.")
    suite = load_suite(options.suite) if options.suite else Suite("command line", "", tasks=options.task)
    if seeds := options.seed or options.seeds:
        suite = replace(suite, seeds=seeds)
    if options.pe:
        suite = replace(suite, encodings=options.pe)
    if options.tier:
        if options.tier not in TIERS:
            raise unknown_name("tier", options.tier, TIERS)
        suite = replace(suite, tier=options.tier)
    suite = replace(suite, settings={**suite.settings, **parse_settings(options.settings)})
    plan = suite.plan()
    check_encoding_settings(suite)
    return list({config.key: config for config in plan}.values())


def summary(states: Sequence[str]) -> str:
    """How many runs are planned and in which state, in a line."""
    count = {state: states.count(state) for state in ("to do", "done", "failed")}
    text = f"{len(states)} runs: {count['to do']} to do, {count['done']} done"
    return text + (f", {count['failed']} failed (run them again with --retry-failed)" if count["failed"] else "")


def start(todo: list[RunConfig], options: argparse.Namespace, console: "Console") -> None:
    """Do the runs that are left."""
    from pebench.display import Display
    from pebench.executor import cores, execute
    from pebench.tasks import find_task

    for config in {(config.task, config.data): config for config in todo}.values():
        find_task(config.task).check_available(config.data, options.data_dir)
    gpu = options.device == "cuda" or (options.device == "auto" and Path("/dev/nvidiactl").exists())
    jobs = min(len(todo), options.jobs or (1 if gpu else cores()))
    threads = options.threads or max(1, cores() // jobs)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    where = Options(
        options.out.resolve(),
        options.data_dir and options.data_dir.resolve(),
        options.device,
        threads,
        options.time_limit,
    )
    with Display(todo, console) as display:
        execute(todo, where, jobs, display)


def show(records: list["Record"], out: Path, console: "Console") -> int:
    """Print the table of what was asked for, and where the rest is."""
    from pebench.report import terminal

    terminal(records, console)
    console.print(f"\nRecords: {out}/   Markdown: pebench report {out}   Curves: tensorboard --logdir {out}",
                  highlight=False, markup=False, soft_wrap=True)  # fmt: skip
    return 0 if all(record.ok for record in records) else EXIT_FAILED


def list_command(options: argparse.Namespace) -> int:
    """``pebench list``."""
    rows: list[tuple[str, str]]
    if options.what == "tasks":
        from pebench.tasks import TASKS

        rows = [(task.name, f"{task.summary} [{', '.join(task.budgets)}]") for task in TASKS.values()]
    elif options.what == "encodings":
        from pebench.registry import encoding_cards

        rows = [
            (card.name, card.summary + "".join(f"; {k}={v}" for k, v in card.options.items()))
            for card in encoding_cards().values()
        ]
    elif options.what == "suites":
        from pebench.suites import load_suite, suite_files

        rows = [(name, f"{(suite := load_suite(name)).question} ({suite.cost})") for name in suite_files()]
    else:
        raise unknown_name("list", options.what, ("tasks", "encodings", "suites"))
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:{width}}  {text}" for name, text in rows))
    return 0


def report_command(options: argparse.Namespace) -> int:
    """``pebench report``."""
    from pebench import export, report
    from pebench.records import read_records, write_jsonl

    formats = {
        "markdown": report.markdown, "overview": report.overview, "csv": export.to_csv, "json": export.to_json,
    }  # fmt: skip
    if options.format not in formats:
        raise unknown_name("format", options.format, formats)
    records = read_records(options.source)
    if options.records:
        write_jsonl(records, options.records)
    sys.stdout.write(formats[options.format](records))
    return 0
