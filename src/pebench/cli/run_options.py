"""The options of ``pebench run``."""

from pathlib import Path
from typing import Any

from pebench.cli.verbs import REFERENCE_HELP
from pebench.config import CORE_ENCODINGS, REGIMES, TIERS

DESCRIPTION = (
    "Train each encoding on each task with each seed, choose the weights by validation, test once, and print a table. "
    "Finished runs are skipped, so the same command continues where it was stopped."
)


def add_run(verbs: Any) -> None:
    """Add ``run`` to the command line."""
    run = verbs.add_parser("run", help="train encodings on tasks and print a table", description=DESCRIPTION)
    run.set_defaults(action=("run", "run_command"))
    _add_what(run.add_argument_group("what to run"))
    _add_how(run.add_argument_group("how to run it"))


def _add_what(group: Any) -> None:
    """Add the options that choose runs."""
    group.add_argument(
        "--task", action="append", metavar="NAME",
        help="a task, such as vit-digits or my_module:my_task (repeatable); see: pebench list tasks",
    )  # fmt: skip
    group.add_argument(
        "--data", action="append", metavar="PATH",
        help="a task on data of your own (repeatable): a table of labelled texts, a text, or a folder of images",
    )  # fmt: skip
    group.add_argument(
        "--suite", metavar="NAME_OR_FILE",
        help="a declared set of runs; with --task, only its runs on those tasks; see: pebench list suites",
    )  # fmt: skip
    group.add_argument(
        "--config", action="append", type=Path, metavar="FILE",
        help="exactly the run of this record.json, or of the folder that holds it (repeatable)",
    )  # fmt: skip
    group.add_argument(
        "--pe", action="append", metavar="NAME",
        help="an encoding, such as rope or 'concat(d_p=16)' (repeatable); default: the suite's, or "
        + ", ".join(CORE_ENCODINGS),
    )  # fmt: skip
    group.add_argument("--seeds", type=int, metavar="N", help="run seeds 0 to N-1 (default: the suite's, or 3)")
    group.add_argument("--seed", type=int, action="append", metavar="S", help="run this seed (repeatable)")
    group.add_argument(
        "--tier", metavar="TIER",
        help=f"budget: {', '.join(TIERS)}; default: minute for tasks that need no download, else core",
    )  # fmt: skip
    group.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="change a setting (repeatable): model.*, data.*, train.*, or encoding.* for an encoding's option",
    )  # fmt: skip
    group.add_argument(
        "--vary", action="append", default=[], metavar="KEY=V1,V2,...",
        help="make a table for each value of a setting, such as model.num_layers=1,2,4",
    )  # fmt: skip
    group.add_argument(
        "--select", action="append", default=[], metavar="KEY=V1,V2,...",
        help="choose a setting by validation, per task and encoding, before testing (repeatable)",
    )  # fmt: skip
    group.add_argument(
        "--selection-seeds", type=int, metavar="N", help="number of seeds that each value is tried with (default: 1)"
    )
    group.add_argument(
        "--select-beyond",
        type=int,
        metavar="N",
        help="try up to N further values beyond an end of the grid while a row's best is there (default: 0)",
    )
    group.add_argument(
        "--beyond",
        metavar="F1,F2",
        help="test these lengths or image sides too, in multiples of the trained one: 2,4,8",
    )
    group.add_argument("--regime", metavar="REGIME", help=f"quantity that is equal between rows: {', '.join(REGIMES)}")
    group.add_argument("--reference", metavar="LABEL", help=REFERENCE_HELP)


def _add_how(group: Any) -> None:
    """Add the options that decide nothing about the outcome of runs."""
    group.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="DIR", help="folder of records (default: runs)"
    )
    group.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="use local data instead of downloads (default: PEBENCH_DATA_DIR)"
    )
    group.add_argument("--offline", action="store_true", help="never use the network")
    group.add_argument(
        "--executor", default="local", metavar="NAME", help="where to run (default: local); see: pebench list executors"
    )
    group.add_argument(
        "--executor-option", action="append", default=[], metavar="KEY=VALUE",
        help="a setting of a cluster's executor (repeatable)",
    )  # fmt: skip
    group.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: one per core or GPU)")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads per run (default: cores / jobs)")
    group.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto (default) takes a GPU if there is one"
    )
    group.add_argument(
        "--devices", type=int, default=1, metavar="N", help="devices per run, joined by DDP (default: 1)"
    )
    group.add_argument(
        "--time-limit", type=float, metavar="S", help="end a run after this many seconds; it counts as failed"
    )
    group.add_argument("--retry-failed", action="store_true", help="run failed runs again")
    group.add_argument("--open", action="store_true", help="open the page of the results in a browser at the end")
    group.add_argument(
        "--keep-weights", action="store_true",
        help="keep the weights that were tested, as weights.safetensors in the run's folder; finished runs are not "
        "made again for it",
    )  # fmt: skip
    group.add_argument(
        "--analyze", action="store_true",
        help="measure in each trained model where content and position are, as pebench analyze does",
    )  # fmt: skip
    group.add_argument(
        "--logger", action="append", default=[], metavar="LOGGER",
        help="log to this Lightning logger too, beside TensorBoard (repeatable): lightning.pytorch.loggers.CSVLogger, "
        "'my_module:MyLogger(option=value)'",
    )  # fmt: skip
    published = group.add_mutually_exclusive_group()
    published.add_argument(
        "--published", type=Path, metavar="DIR",
        help="take runs that are published in this folder (default: results of a clone, for a declared suite)",
    )  # fmt: skip
    published.add_argument(
        "--no-published", action="store_const", const=False, dest="published", help="make published runs again"
    )
    group.add_argument("--dry-run", action="store_true", help="print what would run, and its cost, and stop")
