"""Data sets of texts: local parquet files, or the Hugging Face hub by its own library."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pebench.data.tables import Columns, Rows, checked_rows, joined, read_table
from pebench.errors import UserError
from pebench.formatting import first_line
from pebench.tasks import sources

SPLIT = re.compile(r"(?:^|[^a-z])(train|validation|test)(?:[^a-z]|$)")
"""The split in the name of a file, such as ``train-00000-of-00001``."""


def load_hub(source: sources.Source, data_dir: Path | None, splits: set[str], columns: Columns) -> dict[str, Rows]:
    """Return the splits of a data set by name, checked against the checksums of the published one.

    Args:
        source: The data set on the hub, or a folder of tables like those of the hub.
        data_dir: Folder that holds a local copy, which is read in place of the hub.
        splits: Splits that it must have.
        columns: Columns that each of them must have.

    Raises:
        UserError: If it cannot be had, cannot be read, lacks something, has rows that cannot be, or is another one.
    """
    sources.check_available(source, data_dir)
    tables = _downloaded(source, splits, columns) if data_dir is None else _local(source, data_dir, splits, columns)
    found = dict[str, Rows]()
    for split, place, rows in tables:
        if not rows.texts:
            raise UserError(f"{place} has no rows.")
        sources.check_contents(source, split, rows.sha256, place)
        found[split] = rows
    return found


def _local(
    source: sources.Source, data_dir: Path, splits: set[str], columns: Columns
) -> Iterator[tuple[str, str, Rows]]:
    """Yield the name of each split, its files and its rows."""
    folder, files = data_dir / source.folder, dict[str, list[Path]]()
    for path in sorted(folder.glob("*.parquet")):
        if named := SPLIT.search(path.stem.lower()):
            files.setdefault(named[1], []).append(path)
    if lacking := sorted(splits - {*files}):
        raise UserError(
            f"{folder} lacks what the data set {source.title} has: expected files of the splits "
            f"{', '.join(sorted(splits))}, but none is named {lacking[0]}*.parquet."
        )
    for split in sorted(splits):
        yield split, ", ".join(map(str, files[split])), joined(read_table(path, columns) for path in files[split])


def _downloaded(source: sources.Source, splits: set[str], columns: Columns) -> Iterator[tuple[str, str, Rows]]:
    """Yield the name of each split, where it is from and its rows."""
    cut_off = "HF_HUB_OFFLINE" not in os.environ and sources.downloaded(source) and not sources.reachable(source.site)
    if cut_off:
        os.environ["HF_HUB_OFFLINE"] = "1"  # while datasets is imported: it would retry for half a minute
    try:
        import datasets
    finally:
        if cut_off:  # nobody has forbidden the network
            del os.environ["HF_HUB_OFFLINE"]

    datasets.disable_progress_bars()
    try:
        with sources.writing(sources.hub_folder(), "HF_HOME"):
            data = datasets.load_dataset(source.hub, source.config, revision=source.pin)
    except UserError:
        raise
    except Exception as error:  # of many kinds, some of them pyarrow's
        raise UserError(f"{source.hub} cannot be read as the data set {source.title}: {first_line(error)}") from error
    for split in sorted(splits):
        place = f"{source}, split {split}"
        if split not in data:
            raise UserError(f"{source} lacks what the data set {source.title} has: its split {split} is missing.")
        values = {name: list(data[split][name]) for name in columns.names if name in data[split].column_names}
        yield split, place, checked_rows(values, columns, place)
