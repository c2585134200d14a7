"""``pebench analyze``: where trained models keep content and position, measured on the weights of finished runs."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pebench.errors import UserError
from pebench.formatting import counted


def analyze_command(options: argparse.Namespace) -> int:
    """Analyze the runs of folders that have weights, keep the figures in their records, and print them."""
    from pebench.engine.options import check_data_dir
    from pebench.runs.records import read_record, write_record

    check_data_dir(options.data_dir)
    folders = [folder for source in options.runs for folder in run_folders(source)]
    from pebench.data import datamodule_of
    from pebench.training.analysis import analyze
    from pebench.training.runner import build
    from pebench.training.weights import load_weights

    measured = 0
    for number, folder in enumerate(folders, 1):
        record = read_record(folder)
        if record is None or not record.ok:
            raise UserError(f"expected the folder of a finished run, got {str(folder)!r}.")
        keep = record.analysis and not options.again
        state = "known" if keep else "measured"
        print(f"{number}/{len(folders)} {record.config.directory}: {state}", file=sys.stderr, flush=True)
        if not keep:
            data, out = datamodule_of(record.config, options.data_dir), folder.parents[2]
            figures = analyze(load_weights(folder), data, build(record.config, data, out)).as_dict()
            record = replace(record, analysis=figures)
            write_record(record, out)
            measured += 1
    known = len(folders) - measured
    print(
        f"{counted(measured, 'run')} analyzed"
        + (f", {known} known (--again measures them again)" if known else "")
        + "; the records hold the figures: pebench report shows them."
    )
    return 0


def run_folders(source: Path) -> Iterator[Path]:
    """Yield the folders of finished runs with weights at a path: the run's own folder, or an output folder.

    Raises:
        UserError: If there is none.
    """
    from pebench.runs.records import FILE_NAME, WEIGHTS

    if (source / FILE_NAME).is_file():
        yield source
        return
    found = sorted(path.parent for path in source.glob(f"*/*/*/{WEIGHTS}") if (path.parent / FILE_NAME).is_file())
    if not found:
        raise UserError(
            f"expected a finished run, or a folder of runs with weights, got {str(source)!r}. Weights are kept with "
            "pebench run --keep-weights; pebench run --analyze measures a run as soon as it is trained, and keeps none."
        )
    yield from found
