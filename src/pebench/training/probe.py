"""Counts made on a model before it is trained."""

from dataclasses import dataclass

import torch
from torch import Tensor

from pebench.data.base import TensorDataModule
from pebench.encodings.pairs import PairBias
from pebench.models.attention import stand_in
from pebench.models.base import SequenceModule
from pebench.models.counting import count_flops


@dataclass(frozen=True)
class Probe:
    """Result of one pass before training.

    Args:
        flops: Floating-point operations of forward and backward on one example.
        bias: Stand-in for the bias of the attention logits, by which a kernel is chosen; None where there is none. Of
            several kinds it is of one that needs a gradient, if there is such.
    """

    flops: int
    bias: Tensor | PairBias | None


def probe(module: SequenceModule, data: TensorDataModule) -> Probe:
    """Count the floating-point operations on one training example of median length.

    Args:
        module: Model to probe; its gradients are cleared.
        data: Data of its task, set up.
    """
    examples, lengths = data.split("train")
    median = 0 if lengths is None else int(lengths.argsort(stable=True)[len(lengths) // 2])
    batch = data.on_after_batch_transfer(examples[torch.tensor([median])], 0)
    bias: Tensor | PairBias | None = None

    def watch(q: Tensor, mask: Tensor | PairBias | None) -> str:
        nonlocal bias
        if mask is not None and (bias is None or mask.requires_grad):
            bias = stand_in(mask)
        return "matmul"  # the counter cannot look into the fused kernel

    with module.trunk.using_kernel(watch):
        flops = count_flops(lambda: module.loss(batch))
    module.zero_grad()  # the count ran backward, and training must not begin with its gradients
    return Probe(flops, bias)
