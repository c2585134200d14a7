"""Prints a command line for each run instead of making it, for GNU parallel, Kubernetes or a batch system."""

import shlex
import sys
from collections.abc import Sequence

from pebench.config import Options, RunConfig
from pebench.engine.executors import Resources
from pebench.engine.observer import Observer
from pebench.runs.records import write_config
from pebench.tasks.sources import offline


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
    """Print the lines; see `pebench.engine.executors.Executor`. Each runs alone, in any order and on any machine."""
    # Each line makes its run in its own process: how many go on at a time is for the other scheduler to say.
    how = ["--out", str(options.out), "--device", options.device, "--executor", "sequential"]
    how += ["--offline"] if offline() else []
    how += ["--keep-weights"] if options.keep_weights else []
    how += ["--analyze"] if options.analyze else []
    how += ["--retry-failed"] if options.retried else []
    how += [word for text in options.loggers for word in ("--logger", text)]
    for name, value in (
        ("--data-dir", options.data_dir), ("--threads", options.threads), ("--time-limit", options.time_limit_s),
        ("--devices", options.devices if options.devices > 1 else None),
    ):  # fmt: skip
        if value is not None:
            how += [name, str(value)]
    for config in plan:
        # A file, not options: `run --config` makes exactly this run, whatever defaults the pebench there has.
        words = ["pebench", "run", "--config", str(write_config(config, options.out)), *how]
        sys.stdout.write(_python_path(options) + shlex.join(words) + "\n")


def _python_path(options: Options) -> str:
    """Return an assignment by which Python finds the modules of encodings, wherever the line is run."""
    # The variable that is there is left for the shell that runs the line, which may be on another machine.
    return f'PYTHONPATH={shlex.quote(":".join(options.folders))}:"$PYTHONPATH" ' if options.folders else ""
