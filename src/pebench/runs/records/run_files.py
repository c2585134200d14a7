"""The files of one run in its folder: its record, and its configuration."""

import contextlib
import json
from pathlib import Path

import orjson

from pebench.atomic import write_text
from pebench.config import PROTOCOL_VERSION, RunConfig
from pebench.errors import UserError
from pebench.runs.records.record import DAMAGE, FAILURE, FILE_NAME, WEIGHTS, Record, check_whole, damage_text
from pebench.tasks import reconfigure


def write_record(record: Record, out: Path) -> Path:
    """Write a record so that it is there completely or not at all, even if the machine stops.

    Args:
        record: Record to write.
        out: Output folder; the record goes to its configuration's directory under it.

    Returns:
        The file written.
    """
    folder = out / record.config.directory
    path = folder / (FILE_NAME if record.ok else FAILURE)
    # JSON has no NaN: a file that has one is not read by other programs.
    text = json.dumps(record.to_dict(), indent=1, sort_keys=True, allow_nan=False)
    write_text(path, f"{text}\n", durable=True)
    if record.ok:
        (folder / FAILURE).unlink(missing_ok=True)  # afterwards, so that there is a record at every moment
    return path


def write_config(config: RunConfig, out: Path) -> Path:
    """Write a run's configuration to its folder, for ``pebench run --config``, and return the file."""
    path = out / config.directory / "config.json"
    write_text(path, f"{json.dumps(config.to_dict(), indent=1, sort_keys=True)}\n")
    return path


def read_config(path: Path) -> RunConfig:
    """Return the configuration in a file that `write_config` wrote, or in a record.

    Args:
        path: The file, or a finished run's folder.

    Raises:
        UserError: If there is none, or it cannot work.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        values = orjson.loads(path.read_bytes())
        if "config" in values:
            check_whole(values)  # of a record, which is not for hands to change
        return reconfigure(values.get("config", values))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror or error}. Expected a record.json, or the folder of one finished run."
        ) from error
    except DAMAGE as error:
        raise UserError(f"{path} holds no configuration of a run ({damage_text(error)}).") from error


def lacks_weights(config: RunConfig, out: Path) -> bool:
    """Return True if a finished run that was tested has no weights in its folder; one that selects never has."""
    return config.stage == "test" and not (out / config.directory / WEIGHTS).is_file()


def find_record(config: RunConfig, out: Path) -> Record | None:
    """Return the record of a run under an output folder; None if it has none that can be read, or another run's."""
    record = read_record(out / config.directory)
    return record if record and not _strangeness(record, config) else None


def record_in(out: Path, directory: str) -> Record | None:
    """Return the record in a run's folder, named as below an output folder, as `find_record` does without its run."""
    record = read_record(out / directory)
    return record if record and is_in_place(record, directory) else None


def is_in_place(record: Record, directory: str) -> bool:
    """Return whether a record is of the run that a folder is named after; one of another protocol has another name."""
    return (record.config.directory == directory) == (record.protocol == PROTOCOL_VERSION)


def read_record(folder: Path) -> Record | None:
    """Return the record in a run's folder; None if it has none that can be read."""
    # In this order: a crash may leave the failure of an earlier attempt behind, and a finished run counts.
    for name in (FILE_NAME, FAILURE):
        with contextlib.suppress(OSError, *DAMAGE):
            return Record.from_dict(orjson.loads((folder / name).read_bytes()))
    return None


def damage(config: RunConfig, out: Path) -> str:
    """Return why a run's file of its record is not taken for it, in a line; empty if it is, or there is none."""
    try:
        record = Record.from_dict(orjson.loads((out / config.directory / FILE_NAME).read_bytes()))
    except OSError:
        return ""
    except DAMAGE as error:
        return damage_text(error)
    return _strangeness(record, config)


def _strangeness(record: Record, config: RunConfig) -> str:
    """Return whose record it is, if it is not that of this run under today's protocol."""
    if (record.config.key, record.protocol) == (config.key, PROTOCOL_VERSION):
        return ""
    return f"it is the record of {record.config.directory}, protocol {record.protocol}"
