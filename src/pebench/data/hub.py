"""Data sets of the Hugging Face hub, by its own library."""

import os
from pathlib import Path
from typing import Any

from pebench.errors import UserError
from pebench.tasks import sources


def load_hub(source: sources.Source, data_dir: Path | None, splits: set[str], columns: set[str]) -> Any:
    """Return a data set of the Hugging Face hub, as a `datasets.DatasetDict`.

    Args:
        source: The data set on the hub.
        data_dir: Local data folder, if one is used instead.
        splits: Splits that it must have.
        columns: Columns that each of them must have.

    Raises:
        UserError: If it cannot be had, or the local files cannot be read or lack something.
    """
    sources.check_available(source, data_dir)
    decided = data_dir is not None or "HF_HUB_OFFLINE" in os.environ
    cut_off = not decided and sources.downloaded(source) and not sources.reachable(source.site)
    if cut_off:
        os.environ["HF_HUB_OFFLINE"] = "1"  # while datasets is imported: it would retry for half a minute
    try:
        import datasets
    finally:
        if cut_off:  # nobody has forbidden the network
            del os.environ["HF_HUB_OFFLINE"]

    datasets.disable_progress_bars()
    where = source.hub if data_dir is None else data_dir / source.folder
    try:
        if data_dir is None:
            data = datasets.load_dataset(source.hub, source.config, revision=source.pin)
        else:
            data = datasets.load_dataset(str(where))
    except Exception as error:  # of many kinds, some of them pyarrow's
        raise UserError(f"{where} cannot be read as the data set {source.title}: {error}") from error
    lacking = [split for split in sorted(splits) if split not in data or not columns <= set(data[split].column_names)]
    if lacking:
        raise UserError(
            f"{where} lacks what the data set {source.title} has: expected the splits {sorted(splits)} with the "
            f"columns {sorted(columns)}, but {', '.join(lacking)} is missing or has other columns."
        )
    return data
