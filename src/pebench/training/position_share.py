"""Position variance share: the part of the residual stream's variance that lies between positions, by layer."""

import copy
import functools
import logging
from collections.abc import Callable
from contextlib import ExitStack

import torch
from torch import Tensor

from pebench.data.base import TensorDataModule
from pebench.encodings.checks import blame
from pebench.errors import InterruptedRunError
from pebench.models.base import SequenceModule
from pebench.training.extrapolation import prepared_batches

EXAMPLES = 512
"""Largest number of validation examples, so that it takes seconds."""


class PositionShare:
    """The share of vectors' variance that lies between positions, summed up batch by batch.

    The share is epsilon squared: the ratio of sums of squares less its expectation by chance, so that it is zero on
    average where vectors do not depend on position, however few they are. What the vectors of an example have in
    common, beside position, lowers it by at most 1/n with n examples of one length, and somewhat more with texts of
    different lengths.

    Args:
        length: Largest number of positions L.
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
        # Variances come of differences of large sums, which cancel: 32 bit would leave few digits.
        self.counts = torch.zeros(length, dtype=torch.float64)
        self.sums = torch.zeros(length, width, dtype=torch.float64)
        self.squares = 0.0

    def update(self, x: Tensor, valid: Tensor | None = None) -> None:
        """Add vectors (B, L, D), where L may be less than `length`, except those where `valid` (B, L) is False."""
        batch, length, _ = x.shape
        x = x.cpu().double()  # not every accelerator has 64 bit
        kept = torch.ones(batch, length, dtype=torch.bool) if valid is None else valid.cpu()
        # Filled, not multiplied by 0, which would leave a NaN at padding what it is.
        x = x.masked_fill(~kept.unsqueeze(-1), 0.0)
        self.counts[:length] += kept.sum(0)
        self.sums[:length] += x.sum(0)
        self.squares += float(x.square().sum())

    def compute(self) -> float | None:
        """Return the share; None where no position has two vectors, all are the same, or some are no numbers."""
        seen = self.counts > 0
        total, groups = float(self.counts.sum()), int(seen.sum())
        # Sums of squares as in an analysis of variance with positions as groups, added up over channels:
        # overall = sum of |x - mean|², between = sum over positions of n |mean of position - mean|².
        whole = self.sums.sum(0).square().sum() / total
        between = (self.sums[seen].square().sum(1) / self.counts[seen]).sum() - whole
        overall = self.squares - whole
        # Less than that is rounding; `not >` is also true of NaN.
        if total <= groups or not overall > 1e-12 * self.squares:
            return None
        # Mean square within positions: without any dependence `between` is (groups - 1) times that on average.
        within = (overall - between) / (total - groups)
        return float((between - (groups - 1) * within) / overall)


def measure_position_share(
    untrained: SequenceModule, trained: SequenceModule, data: TensorDataModule, stop: Callable[[], bool]
) -> dict[str, list[float | None]]:
    """Return the shares in a model as it began and as it ended; nothing where they cannot be measured.

    Args:
        untrained: Model as it began; hooks are left on it.
        trained: Model as it ended; it is copied.
        data: The run's data.
        stop: Asked at every batch whether to stop.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    try:
        # The shares are of 32-bit activations; the caller's model keeps its type and has no hooks left on it.
        return {
            "untrained": position_shares(untrained.to(trained.device), data, stop),
            "trained": position_shares(copy.deepcopy(trained).float(), data, stop),
        }
    except InterruptedRunError:
        raise
    except Exception as error:  # no reason to lose a run
        logging.getLogger(__name__).warning("the shares of position were not measured: %s", blame(error))
        return {}


def position_shares(
    module: SequenceModule, data: TensorDataModule, stop: Callable[[], bool] = lambda: False, start: int = 0
) -> list[float | None]:
    """Return the position variance share of the input of each block, and last of the norm before the output layer.

    Measured on validation examples, each at its own length, without gradients and in 32 bit. Examples have something in
    common at a position even without an encoding: images their middle, texts their beginning and their length. So
    compare with ``none``; in a causal model it too finds positions, after the first block.

    Args:
        module: A copy that was never compiled.
        data: Data of its task.
        stop: Asked at every batch whether to stop.
        start: Number of positions left out at the beginning of every example.

    Returns:
        One share for each block, and one for the output layer.

    Raises:
        InterruptedRunError: If asked to stop.
    """
    trunk = module.eval().trunk
    valid: list[Tensor | None] = [None]
    parts = (*trunk.blocks, trunk.norm)
    shares = [PositionShare(trunk.encoding.spec.max_len, trunk.d_model) for _ in parts]

    def keep_valid(_: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        # A hook sees positional arguments alone, which is how models call the trunk.
        valid[0] = inputs[2] if len(inputs) > 2 else None  # blocks are not given it

    def watch(share: PositionShare, _: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        share.update(inputs[0][:, start:], None if valid[0] is None else valid[0][:, start:])

    examples, _ = data.split("val")
    # A seed of its own: runs of every seed and encoding are measured on the same examples.
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(0))  # type: ignore[arg-type]
    with ExitStack() as hooks, torch.inference_mode():
        hooks.enter_context(trunk.register_forward_pre_hook(keep_valid))
        for part, share in zip(parts, shares, strict=True):
            hooks.enter_context(part.register_forward_pre_hook(functools.partial(watch, share)))
        chosen = [examples[indices] for indices in order[:EXAMPLES].split(data.batch_size)]
        for batch in prepared_batches(chosen, module, data, stop):
            module.loss(batch)  # for the hooks; the loss is not used
    return [share.compute() for share in shares]
