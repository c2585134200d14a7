"""CPE: a depth-wise convolution over neighbours, added to the residual stream after the first block."""

import itertools

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register


@register("cpe")
class CpeEncoding(PositionalEncoding):
    """Conditional encoding (CPE): x plus a 3 or 3x3 depth-wise convolution of x, before the second block.

    Neighbours are the tokens at positions one away, wherever they are in the sequence; where there is
    none, the convolution has zeros, which mark the border. Padding counts as no neighbour, and in a causal
    model later tokens do as well.

    Args:
        spec: Sizes of the model; in a model of one block the convolution is before that block.

    Shape:
        residual: (B, L, D) to (B, L, D).

    Source:
        Chu et al. 2021, "Conditional Positional Encodings for Vision Transformers", section 3.2,
        https://arxiv.org/abs/2102.10882: PEG, kernel 3, after the first block.

    Differs from the paper:
        1. On text the kernel has one axis; in a causal model it reaches back two tokens instead of one each way.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(8,), causal=False)
        >>> encoding = CpeEncoding(spec)
        >>> _ = encoding.weight.data.copy_(torch.tensor([[10.0], [0.0], [1.0]]))  # before, here, after
        >>> state = encoding.prepare(torch.arange(3.0)[:, None])
        >>> encoding.residual(torch.tensor([[[1.0], [2.0], [3.0]]]), None, state, layer=0).flatten().detach()
        tensor([ 3., 15., 23.])
    """

    formula = r"x_p + w_0 + \sum_{\delta \in \{-1, 0, 1\}^P} w_\delta \odot x_{p + \delta}"
    cite = ("chu2023conditional",)
    aliases = ("cpvt", "peg")
    mark = 12
    relative = True
    kv_cache = "needs more"  # the neighbours that the convolution reads
    size = "(3 ** num_axes + 1) * d_model"
    paper = ("relative",)
    paper_size = 128  # a kernel of 3 and a shift, for each of 32 channels

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        first = -2 if spec.causal and spec.num_axes == 1 else -1
        # on a causal grid the past lies on all sides, so that the kernel stays centred and `prepare` drops later tokens
        self.steps = list(itertools.product(range(first, first + 3), repeat=spec.num_axes))
        self.weight = nn.Parameter(torch.empty(len(self.steps), spec.d_model))
        self.shift = nn.Parameter(torch.empty(spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the kernel so that it keeps scales, from N(0, 1/3) on text, N(0, 1/9) on grids; set the shift to 0."""
        nn.init.normal_(self.weight, std=len(self.steps) ** -0.5)
        nn.init.zeros_(self.shift)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the index of the token at every step from every token, L where there is none: (S, L), S steps."""
        length = len(positions)
        steps = torch.tensor(self.steps, device=positions.device, dtype=positions.dtype)
        # compared by position: a sparse or shuffled sequence has the same neighbours
        there = (positions[None, :, None] + steps[:, None, None] == positions[None, None]).all(dim=-1)  # (S, L, L)
        if self.spec.causal:
            there = there.tril()
        # at most one match per step where positions differ; max of booleans gives its index
        found, index = there.max(dim=-1)  # (S, L) each
        return torch.where(found, index, length)

    def residual(self, x: Tensor, valid: Tensor | None, state: Tensor, layer: int) -> Tensor:
        """Return the residual stream, before one block plus the convolution of it."""
        # the paper's PEG is after the first block: there tokens have seen some context already
        if layer != min(1, self.spec.num_layers - 1):
            return x
        seen = x if valid is None else x * valid.unsqueeze(-1).to(x.dtype)  # (B, L, 1): padding is zero
        seen = torch.cat((seen, torch.zeros_like(seen[:, :1])), dim=1)  # a zero token at index L, for no neighbour
        output = x + self.shift.to(x.dtype)
        for weight, neighbours in zip(self.weight.to(x.dtype), state, strict=True):
            output = output + weight * seen[:, neighbours]
        return output
