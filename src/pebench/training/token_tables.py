"""A run's token table, taken from another run: kept as it is, or trained on."""

from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from pebench.config import RunConfig
from pebench.layers import TokenEmbedding
from pebench.models.base import SequenceModule
from pebench.runs.token_tables import table_source
from pebench.training.weights import load_weights


def take_table(module: SequenceModule, config: RunConfig, out: Path) -> None:
    """Give a model the token table that its configuration asks for; nothing if it asks for none.

    Where an encoding gives content fewer channels than the table has, as concatenation does, it gets the
    principal components of most energy: where weights are drawn at random, a rotation of channels changes nothing.

    Args:
        module: Untrained model of the run.
        config: The run's configuration.
        out: Output folder that holds the other run's weights.

    Raises:
        UserError: If the other run's weights are not there.
    """
    source = table_source(config)
    if source is None:
        return
    given = cast(TokenEmbedding, load_weights(out / source.directory).get_submodule("input"))
    taken = cast(TokenEmbedding, module.get_submodule("input"))  # a task without one is refused before it runs
    with torch.no_grad():
        vectors = given.table * given.pace  # (V, W), as they enter the model
        taken.table.copy_(principal(vectors, taken.table.shape[1]) / taken.pace)
    taken.table.requires_grad_(config.train.token_table != "frozen")


def principal(vectors: Tensor, width: int) -> Tensor:
    """Return vectors (V, W) with `width` channels: as they are, or their principal components of most energy.

    Args:
        vectors: The vectors.
        width: Number of channels, at most W.
    """
    if width == vectors.shape[1]:
        return vectors
    # Not centred: what all tokens have in common is a part of their energy too.
    _, axes = torch.linalg.eigh((vectors.T @ vectors).double())  # by rising energy
    kept = axes.flip(1)[:, :width]
    # An axis has no direction of its own: its largest component is made positive, so that every machine agrees.
    kept = kept * kept.gather(0, kept.abs().argmax(0, keepdim=True)).sign()
    return (vectors.double() @ kept).to(vectors.dtype)
