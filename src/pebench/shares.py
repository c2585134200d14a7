"""How much of what each block is given is position: shares of the residual stream's variance, layer by layer."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pebench.data.base import TensorDataModule
from pebench.modules.base import SequenceModule

EXAMPLES = 512
"""Of the validation split at most, so that it takes seconds."""


class PositionShare:
    """The share of vectors' variance that lies between positions: what position alone tells of them.

    Two vectors at one position have that position's mean in common. The share is epsilon squared, which, other than the
    plain ratio of sums of squares, is zero on average where position tells nothing, however few the vectors.

    Args:
        length: Positions L.
        width: Channels D.

    Source:
        Kelley 1935, An Unbiased Correlation Ratio Measure, PNAS 21(9):554-559, summed over channels. Hidden states
        taken apart into means by position and the rest: Song and Zhong 2023, https://arxiv.org/abs/2310.04861.

    Example:
        >>> share = PositionShare(2, 1)
        >>> share.update(torch.tensor([[[0.0], [3.0]], [[1.0], [4.0]]]))
        >>> round(share.compute(), 4)  # of 10, 9 lie between positions, half of one by chance
        0.85
    """

    def __init__(self, length: int, width: int) -> None:
        self.counts = torch.zeros(length, dtype=torch.float64)
        self.sums = torch.zeros(length, width, dtype=torch.float64)
        self.squares = 0.0

    def update(self, x: Tensor, valid: Tensor | None = None) -> None:
        """Count vectors (B, L, D), of a text shorter than the longest too, but those where `valid` (B, L) is False."""
        batch, length, _ = x.shape
        x = x.double().cpu()
        kept = torch.ones(batch, length, dtype=torch.bool) if valid is None else valid.cpu()
        x = x * kept.unsqueeze(-1)
        self.counts[:length] += kept.sum(0)
        self.sums[:length] += x.sum(0)
        self.squares += float(x.square().sum())

    def compute(self) -> float | None:
        """The share; None where it is not known, as no position has two vectors, or all vectors are the same."""
        seen = self.counts > 0
        total, groups = float(self.counts.sum()), int(seen.sum())
        whole = self.sums.sum(0).square().sum() / total
        between = (self.sums[seen].square().sum(1) / self.counts[seen]).sum() - whole
        overall = self.squares - whole
        if total <= groups or overall <= 1e-12 * self.squares:
            return None
        within = (overall - between) / (total - groups)
        return float((between - (groups - 1) * within) / overall)


def position_shares(module: SequenceModule, data: TensorDataModule) -> list[float | None]:
    """The shares of position in what each block is given, and last in what the output layer's norm is.

    Measured on validation examples, each at its own length, without gradients, by the module as it is. Where a position
    is a cell of a grid, or a place in a text, examples have something in common there whatever a model is told: images
    their middle, texts their beginning. So compare with an encoding that tells nothing.

    Args:
        module: Not compiled, since compiled blocks cannot be watched; it is left in evaluation.
        data: Of its task.

    Returns:
        As many as the model has blocks, and one.
    """
    trunk = module.trunk.eval()
    parts = [*trunk.blocks, trunk.norm]
    shares = [PositionShare(trunk.encoding.spec.max_len, trunk.d_model) for _ in parts]
    valid: Tensor | None = None

    def note(part: Any, inputs: tuple[Any, ...]) -> None:
        nonlocal valid
        valid = inputs[2] if len(inputs) > 2 else None

    def watch(share: PositionShare) -> Callable[[Any, tuple[Any, ...]], None]:
        return lambda part, inputs: share.update(inputs[0], valid)

    hooks = [trunk.register_forward_pre_hook(note)]
    hooks += [part.register_forward_pre_hook(watch(share)) for part, share in zip(parts, shares, strict=True)]
    examples, _ = data.split("val")
    count: int = len(examples)  # type: ignore[arg-type]
    chosen = torch.randperm(count, generator=torch.Generator().manual_seed(0))[:EXAMPLES]
    try:
        with torch.inference_mode():
            for index in chosen.split(data.batch_size):
                batch = tuple(part.to(module.device) for part in examples[index])
                module.loss(data.on_after_batch_transfer(batch, 0))
    finally:
        for hook in hooks:
            hook.remove()
    return [share.compute() for share in shares]
