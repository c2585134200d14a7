"""Two steps of a small run of each large suite, on processors and on data of this package."""

import sys
from collections.abc import Sequence
from pathlib import Path

from pebench.runs.suite import Suite, load_suite
from pebench.runs.suite.values import settings_for

STAND_INS = {
    "lm": ("lm-grammar", {"data.vocab_size": 35, "data.max_len": 128}),
    "vit": ("vit-digits", {}),
}
"""Embedded tasks that a smoke run trains in place of others, and their settings, by the first word of a task's name."""

TINY = {
    "model.d_model": 32, "model.num_layers": 1, "model.num_heads": 2, "train.max_steps": 2, "train.batch_size": 64,
    "train.evaluations": 1, "train.beyond": "2", "train.precision": "32-true",
}  # fmt: skip


def small(suite: Suite) -> Suite:
    """Return a suite of two steps of the last row of a suite, at its smallest size, on data of this package."""
    task, settings = STAND_INS[suite.tasks[0].partition("-")[0]]
    found = settings_for(suite.tasks[0], suite.settings)
    for name, values in suite.vary.items():
        found |= {name: values[0], **suite.along.get(name, {}).get(values[0], {})}
    return Suite(
        f"smoke of {suite.name}", suite.question, [task], suite.encodings[-1:], 1, "smoke", found | TINY | settings
    )


def smoke(suites: Sequence[str], out: Path) -> int:
    """Make two steps of a small run of every suite.

    Args:
        suites: Their names.
        out: Folder of the suites' folders.

    Returns:
        The exit status: 1 if a run fails.
    """
    from pebench.engine.run import run_suite  # here, as it loads torch

    failed = 0
    for name in suites:
        found = run_suite(small(load_suite(name)), out / name, executor="sequential", device="cpu", threads=1)
        bad = [record for record in found.records if not record.ok]
        print(f"{name}: {'failed' if bad else 'ok'}", flush=True)
        for record in bad:
            print(f"  {record.config.label}: {record.error}", file=sys.stderr)
        failed += len(bad)
    return 1 if failed else 0
