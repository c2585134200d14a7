"""Runs whose token tables other runs take: `train.token_table` names no file, it follows from the configuration."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pebench.config import RunConfig
from pebench.errors import UserError
from pebench.runs.plan import unique_runs
from pebench.runs.records import Record, lacks_weights

SOURCE = "none"
"""Encoding whose runs the tables are of: it gives the model no position, so that no table made room for one."""


def table_source(config: RunConfig) -> RunConfig | None:
    """Return the run whose token table a run takes: the same with the encoding `none`; None if it draws its own."""
    if not config.train.token_table:
        return None
    train = replace(config.train, token_table=None)
    return replace(config, encoding=SOURCE, encoding_args={}, train=train, selected=(), stage="test")


def table_sources(configs: Iterable[RunConfig]) -> list[RunConfig]:
    """Return the runs whose token tables some runs take, each once."""
    return unique_runs(source for config in configs if (source := table_source(config)))


def check_weights(records: Iterable[Record], out: Path) -> None:
    """Refuse finished runs whose token tables are to be taken, but were not kept.

    Args:
        records: Records of runs that `table_sources` named.
        out: Output folder.

    Raises:
        UserError: With the folder of the first, and what to do.
    """
    for record in records:
        if record.ok and lacks_weights(record.config, out):
            raise UserError(
                f"{out / record.config.directory} was made without --keep-weights, so that there is no token table to "
                "take. Choose another folder (--out), or move this one away: the run is then made again."
            )
