"""Capture of a forward pass: the vectors of a model on some held-out examples, which every measure reads."""

import functools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pebench.data.base import TensorDataModule
from pebench.encodings.base import PositionalEncoding
from pebench.models.base import SequenceModule
from pebench.models.transformer import Block

TOKENS = 16384
"""Tokens or patches that a capture aims at: enough for means by position, and a few seconds on two cores."""

AFFINE = 1e-4
"""Largest relative difference by which a hook still counts as affine; rounding in 32 bit stays below it."""


@dataclass(frozen=True)
class Layer:
    """The input of one block.

    Args:
        x: (B, L, D), the residual stream before the block's norm.
        block: The block.
        state: State of the encoding that the block was given.
        masks: Masks that the block was given.
        index: Number of the block, from 0.
    """

    x: Tensor
    block: Block
    state: Any
    masks: Any
    index: int


@dataclass(frozen=True)
class Parts:
    """The residual stream before a block as a sum: position (L, D), and constant (D); content is what is left.

    Content and position have no mean: a vector that all tokens have in common tells neither.
    """

    position: Tensor
    constant: Tensor


@dataclass(frozen=True)
class Capture:
    """Vectors of one forward pass.

    Args:
        module: The model, in evaluation mode.
        batch: The batch that was passed.
        tokens: (B, L) token ids; None for images.
        positions: (L, P), the position of each token or patch.
        valid: (B, L), False at padding.
        content: (B, L, D), content as it enters the first block, without position.
        position: (L, D), what the encoding adds to the input at each position; None where it adds nothing there, or
            where it is not a sum of a function of content and one of position.
        additive: True if what enters is such a sum, with or without a part of position.
        layers: Inputs of the blocks.
        output: (B, L, D), input of the norm before the output layer.
    """

    module: SequenceModule
    batch: Any
    tokens: Tensor | None
    positions: Tensor
    valid: Tensor
    content: Tensor
    position: Tensor | None
    additive: bool
    layers: tuple[Layer, ...]
    output: Tensor

    @property
    def encoding(self) -> PositionalEncoding:
        """The model's encoding."""
        return self.module.trunk.encoding

    @functools.cached_property
    def fit(self) -> slice:
        """The first half of the examples, on which probes and means are fitted."""
        return slice(0, len(self.valid) // 2)

    @functools.cached_property
    def held_out(self) -> slice:
        """The second half of the examples, on which everything is measured."""
        return slice(len(self.valid) // 2, len(self.valid))

    @functools.cached_property
    def held_out_batch(self) -> tuple[Tensor, ...]:
        """The second half of the batch."""
        return tuple(part[self.held_out] for part in self.batch)

    @functools.cached_property
    def loss(self) -> float:
        """The loss of the held-out examples in nats, which measures compare that of a changed model with."""
        with torch.no_grad():
            return float(self.module.loss(self.held_out_batch))

    @functools.cached_property
    def parts(self) -> tuple[Parts, ...]:
        """The parts of position and of constant before each block: what all examples have in common.

        Before the first block position is what the encoding adds there less its mean, exactly, if it adds.
        Elsewhere it is the mean over the examples of the first half, so that on the second half what is left is no
        artefact of the fit.
        """
        return tuple(self._parts(layer) for layer in self.layers)

    def _parts(self, layer: Layer) -> Parts:
        x, valid = layer.x[self.fit], self.valid[self.fit].unsqueeze(-1)
        constant, counts = (x * valid).sum((0, 1)) / valid.sum(), valid.sum(0)  # (D), (L, 1)
        if layer.index == 0 and self.additive:
            added = torch.zeros_like(x[0]) if self.position is None else self.position
            return Parts(added - (added * counts).sum(0) / counts.sum(), constant)
        means = (x * valid).sum(0) / counts.clamp(min=1)  # (L, D)
        return Parts(torch.where(counts > 0, means - constant, torch.zeros_like(means)), constant)

    def vectors(self) -> Iterator[Tensor]:
        """Yield the residual stream (B, L, D) before each block, and before the output layer's norm."""
        for layer in self.layers:
            yield layer.x
        yield self.output

    def rows(self) -> Tensor:
        """Return the content vectors (N, D) of all tokens that are not padding."""
        return self.content[self.valid]

    def position_rows(self) -> Tensor:
        """Return what is added at the input (N, D) to each token that is not padding; zeros if nothing is."""
        added = torch.zeros_like(self.content[0]) if self.position is None else self.position
        return added.expand_as(self.content)[self.valid]

    @functools.cached_property
    def shuffled(self) -> Tensor:
        """A random order (B, L) of the tokens of each example of the second half, which leaves padding in place."""
        valid = self.valid[self.held_out]
        order = torch.randperm(valid.shape[1], generator=torch.Generator().manual_seed(0)).to(valid.device)
        found = torch.arange(valid.shape[1], device=valid.device).repeat(len(valid), 1)
        for row, real in zip(found, valid, strict=True):
            row[real] = order[real[order]]
        return found


def capture(module: SequenceModule, data: TensorDataModule, tokens: int = TOKENS) -> Capture:
    """Return the vectors of a model on validation examples, the same ones for every model of a task.

    Args:
        module: Model; it is put into evaluation mode.
        data: Data of its task, prepared and set up.
        tokens: Tokens or patches to aim at.

    Raises:
        ValueError: If there are fewer than four validation examples.
    """
    examples, _ = data.split("val")
    count = min(len(examples), max(4, tokens // module.trunk.encoding.spec.max_len))  # type: ignore[arg-type]
    if count < 4:
        raise ValueError(f"expected 4 validation examples or more, got {count}")
    # A seed of its own: runs of every seed and encoding are measured on the same examples.
    chosen = torch.randperm(len(examples), generator=torch.Generator().manual_seed(0))[:count]  # type: ignore[arg-type]
    batch = data.on_after_batch_transfer(tuple(part.to(module.device) for part in examples[chosen]), 0)
    return capture_batch(module, batch)


def capture_batch(module: SequenceModule, batch: Any) -> Capture:
    """Return the vectors of a model on one batch.

    Args:
        module: Model; it is put into evaluation mode.
        batch: Batch of its task, on the model's device.
    """
    trunk = module.eval().trunk
    seen: dict[str, Any] = {}
    layers: list[Layer] = []

    def watch_input(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen["input"] = inputs[0]

    def watch_trunk(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen["content"], seen["trunk"] = inputs[0], inputs[1:]

    def watch_block(block: Block, inputs: tuple[Any, ...]) -> None:
        x, _, state, masks = inputs
        layers.append(Layer(x, block, state, masks, len(layers)))

    def watch_output(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen["output"] = inputs[0]

    with ExitStack() as hooks, torch.no_grad():
        hooks.enter_context(trunk_input(module).register_forward_pre_hook(watch_input))
        hooks.enter_context(trunk.register_forward_pre_hook(watch_trunk))
        hooks.enter_context(trunk.norm.register_forward_pre_hook(watch_output))
        for block in trunk.blocks:
            hooks.enter_context(block.register_forward_pre_hook(watch_block))
        module.loss(batch)
    content = seen["content"]
    given, valid = (*seen["trunk"], None, None)[:2]
    positions = trunk._default_positions(content.shape[1], content.device) if given is None else given
    if valid is None:
        valid = torch.ones(content.shape[:2], dtype=torch.bool, device=content.device)
    position, additive = position_at_input(trunk.encoding, content, positions)
    entering = layers[0].x if position is None else layers[0].x - position
    tokens = seen["input"] if not seen["input"].is_floating_point() and seen["input"].ndim == 2 else None
    return Capture(module, batch, tokens, positions, valid, entering, position, additive, tuple(layers), seen["output"])


def trunk_input(module: SequenceModule) -> nn.Module:
    """Return the layer that makes content vectors of tokens or patches; every model here calls it ``input``."""
    return module.get_submodule("input")


def position_at_input(encoding: PositionalEncoding, content: Tensor, positions: Tensor) -> tuple[Tensor | None, bool]:
    """Find what an encoding adds to the input of the first block at each position.

    Args:
        encoding: The encoding.
        content: (B, L, content_width), as the model gives it to the encoding.
        positions: (L, P).

    Returns:
        Position (L, D), None where the encoding leaves the input alone or where the input is no sum of a part of
        content and one of position, as with a product; and True if it is a sum.
    """

    def entering(content: Tensor) -> Tensor:
        # Copies: a hook may write into its argument.
        return encoding.residual(encoding.embed(content.clone(), state), None, state, 0).clone()

    with torch.no_grad():
        state = encoding.state(positions)
        position = entering(torch.zeros_like(content[:1]))[0]  # (L, D)
        part = entering(content) - position
        elsewhere = entering(content.roll(1, dims=1)) - position
    # A sum of both: content has the same part wherever it stands.
    additive = torch.allclose(elsewhere, part.roll(1, dims=1), atol=AFFINE * float(part.abs().max()), rtol=0)
    return position if additive and bool(position.abs().max() > 0) else None, additive
