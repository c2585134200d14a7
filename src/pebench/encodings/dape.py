"""DAPE: a network that adapts another encoding's bias to the content's own logits."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec
from pebench.encodings.pairs import whole
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Companion


class Neighbours(NamedTuple):
    """Keys around each key (L, kernel), L for none, and which keys each query sees (B, L, L, 1) or (1, L, L, 1)."""

    keys: Tensor
    seen: Tensor


@register("dape")
class DataAdaptiveEncoding(Companion):
    """Another encoding whose bias is b + f(a, b), a and b the logits and biases of all heads (DAPE).

    f is a network of one hidden layer in every layer of the model, from the 2H numbers of a pair of tokens to H. With a
    kernel of more than 1 both of its layers are convolutions over neighbouring keys (DAPE's second version), found by
    their positions. It needs (B, L, L, hidden times kernel) of memory.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options. One without a bias counts as one of 0.
        hidden: Width of the hidden layer.
        kernel: Keys that each layer of f spans, an odd number: a key, and as many before it as after it; on text alone.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``hidden`` is below 1, or ``kernel`` not odd and positive; for a larger kernel on a grid.

    Source:
        Zheng et al. 2024, "DAPE: Data-Adaptive Positional Encoding for Length Extrapolation", equation 3,
        https://arxiv.org/abs/2405.14722; widths, the leaky kink and initial variances from the authors' code. Kernels:
        Zheng et al. 2024, "DAPE V2: Process Attention Score as Feature Map for Length Extrapolation",
        https://arxiv.org/abs/2410.04798.

    Differs from the paper:
        1. The second layer has no shifts: softmax takes out what all keys share.
        2. The paper is on causal text. What f is given here are logits before any mask, as in the authors' code.
        3. With a kernel, logits of keys that a query may not see are 0, as in the authors' code, and what the hidden
           layer has at such keys too: there a text's last query would be another in a longer text.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(2,), causal=True)
        >>> encoding = DataAdaptiveEncoding(spec, of="alibi", hidden=1)
        >>> _ = encoding.first.data.copy_(torch.tensor([[[1.0, 2.0]]])), encoding.shift.data.fill_(3.0)
        >>> _ = encoding.second.data.fill_(10.0)
        >>> q = torch.ones(1, 1, 2, 1)  # b = -1/256 for the first token seen from the second
        >>> encoding.bias(q, q, q, encoding.prepare(torch.tensor([[0.0], [256.0]])), layer=0)[0, 0, 1].detach()
        tensor([19., 40.])
    """

    formula = (
        r"\ell_{ij} = a_{ij} + b_{ij} + f(a_{ij}, b_{ij}), \quad f(z) = V\,\mathrm{LeakyReLU}(U z + c), \quad a_{ij} = "
        r"\frac{q'_i \cdot k'_j}{\sqrt{K}}"
    )
    cite = ("zheng2024dape", "zheng2025dape")
    paper = ("relative", "isotropic", "mirror_blind")
    paper_size = 848  # 2 layers x (8 x 32, 32 and 32 x 4), and the 16 of kerple-log

    def __init__(self, spec: EncodingSpec, *, of: str = "kerple-log", hidden: int = 32, kernel: int = 1) -> None:
        super().__init__(spec, of)
        if hidden < 1:
            raise ValueError(f"hidden of encoding 'dape' must be 1 or more, got {hidden}")
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel of encoding 'dape' must be odd and 1 or more, got {kernel}")
        if kernel > 1 and spec.num_axes > 1:
            raise ValueError(f"kernel of encoding 'dape' must be 1 on a grid, whose keys have no one row, got {kernel}")
        self.kernel = kernel
        self.mirror_blind = self.mirror_blind and kernel == 1  # the keys before weigh other than those after
        layers, heads = spec.num_layers, spec.num_heads
        self.first = nn.Parameter(torch.empty(layers, hidden, kernel * 2 * heads))
        self.shift = nn.Parameter(torch.empty(layers, hidden))
        self.second = nn.Parameter(torch.empty(layers, heads, kernel * hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and shifts from U(-1/sqrt(n), 1/sqrt(n)), n the inputs of their layer."""
        for values, inputs in ((self.first, self.first), (self.shift, self.first), (self.second, self.second)):
            bound = inputs.shape[-1] ** -0.5
            nn.init.uniform_(values, -bound, bound)

    def parameter_count(self) -> int:
        """Return the number of parameters that the other encoding declares, and those of the networks."""
        return super().parameter_count() + sum(own.numel() for own in (self.first, self.shift, self.second))

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's bias and what the network makes of it and the logits."""
        b = whole(super().bias(q, k, x, state, layer))
        with torch.autocast(q.device.type, enabled=False):  # small differences of large biases are lost in 16 bit
            width = self.model_width // self.spec.num_heads  # the model scales by the plain width
            a = q.float() @ k.float().mT * width**-0.5  # (B, H, L, L)
            b = torch.zeros_like(a) if b is None else b.float().expand_as(a)
            pairs = torch.cat((a, b), dim=1).movedim(1, -1)  # (B, L, L, 2H)
            around = self._around(pairs, state[1])
            kinked = F.leaky_relu(F.linear(around, self.first[layer].float(), self.shift[layer].float()))
            return b + F.linear(self._around(kinked, state[1]), self.second[layer].float()).movedim(-1, 1)

    def own(self, positions: Tensor) -> Neighbours | None:
        """Return where the keys of a kernel are; None where it is of one key."""
        if self.kernel == 1:
            return None
        steps = torch.arange(self.kernel, device=positions.device, dtype=positions.dtype) - self.kernel // 2
        there = positions[:, None, None, 0] + steps[:, None] == positions[:, 0]  # (L, kernel, L)
        found, index = there.max(dim=-1)
        seen = torch.ones(2 * (len(positions),), dtype=torch.bool, device=positions.device)
        seen = seen.tril() if self.spec.causal else seen
        return Neighbours(torch.where(found, index, len(positions)), seen[None, :, :, None])

    def own_padded(self, own: Neighbours | None, valid: Tensor) -> Neighbours | None:
        """Return the same, with padding among the keys that no query sees."""
        return own and own._replace(seen=own.seen & valid[:, None, :, None])

    def _around(self, pairs: Tensor, own: Neighbours | None) -> Tensor:
        """Return the numbers of each pair and of the same query's with the keys around: (B, L, L, kernel times C)."""
        if own is None:
            return pairs
        padded = F.pad(pairs.masked_fill(~own.seen, 0.0), (0, 0, 0, 1))  # a key of zeros at index L, for no neighbour
        return padded[:, :, own.keys].flatten(-2)  # (B, L, L, kernel, C)
