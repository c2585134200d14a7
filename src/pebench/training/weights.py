"""The weights that a run was tested with: kept beside its record if asked for, and loaded into a model again."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from pebench.atomic import replacing
from pebench.config import RunConfig
from pebench.errors import UserError, given_path
from pebench.models.base import SequenceModule
from pebench.runs.records import WEIGHTS, Record, read_config
from pebench.tasks import find_task

KEY, HYPERPARAMETERS, CHECKSUM = "key", "hyperparameters", "sha256"
"""Metadata of a file of weights: the run's key, the arguments of its module as JSON, and the checksum of all of it."""


def keep_weights(module: SequenceModule, config: RunConfig, out: Path) -> Path:
    """Write a module's weights to its run's folder, completely or not at all.

    Args:
        module: Model with the weights that were tested.
        config: The run's configuration.
        out: Output folder.

    Returns:
        The file, in the format safetensors, which holds numbers and text and no code.
    """
    # Copies: the format refuses tensors that share memory, as those of an encoding used twice do.
    weights = {name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
               for name, value in module.state_dict().items()}  # fmt: skip
    about = {KEY: config.key, HYPERPARAMETERS: json.dumps(dict(module.hparams))}
    about[CHECKSUM] = _checksum(weights, about)
    path = out / config.directory / WEIGHTS
    with replacing(path, durable=True) as file:
        file.write(safetensors.torch.save(weights, about))
    return path


def load_weights(run: Record | Path | str, out: Path | str = "runs") -> SequenceModule:
    """Return the model of a finished run with the weights that were tested, in evaluation mode, on the CPU.

    Its sizes are kept with the weights, so that no data is needed.

    Args:
        run: The run's folder, the file of weights in it, or its record.
        out: Output folder that the record is of; not used with a folder.

    Raises:
        UserError: If there is no record or no weights, or they are damaged or another run's.
    """
    folder = given_path("out", out) / run.config.directory if isinstance(run, Record) else given_path("run", run)
    folder = folder.parent if folder.name == WEIGHTS else folder
    config = run.config if isinstance(run, Record) else read_config(folder)
    path = folder / WEIGHTS
    if not path.is_file():
        raise UserError(
            f"{folder} has no {WEIGHTS}: the run was made without --keep-weights, or its record alone was copied here. "
            "A finished run is not made again for them; make it in another folder: "
            f"pebench run --config {folder} --out FOLDER --keep-weights"
        )
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        key, written = about[KEY], about.pop(CHECKSUM, None)
        if written and written != _checksum(weights, about):  # older files have none
            raise ValueError("their checksum is not that of the content: the file is damaged")
        module: SequenceModule = find_task(config.task).model_class()(**json.loads(about[HYPERPARAMETERS]))
        module.load_state_dict(weights)
    except (SafetensorError, OSError, KeyError, ValueError, RuntimeError) as error:
        raise UserError(f"{path} holds no weights of this run's model ({type(error).__name__}: {error})") from error
    if key != config.key:
        raise UserError(f"{path} holds the weights of run {key}, expected those of {config.key}.")
    return module.eval()


def _checksum(weights: Mapping[str, torch.Tensor], about: Mapping[str, str]) -> str:
    """Return the SHA-256 of weights and what is known of them, which the format itself does not check."""
    found = hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode())
    for name, value in sorted(weights.items()):
        found.update(f"{name} {value.dtype} {[*value.shape]}".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
