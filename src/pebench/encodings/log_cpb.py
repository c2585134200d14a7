"""Log-CPB: a small network of the logarithm of the offset, as in Swin Transformer V2."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, Pairs, pair_bias, unique_offsets
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register


@register("log-cpb")
class LogCpbEncoding(PositionalEncoding):
    """Log-spaced continuous position bias: 16 sigmoid of a network of the offset's logarithm, per layer.

    An offset x enters as sign(x) log2(1 + 8 abs(x) / (n - 1)) / 3 on an axis of n trained positions, so that
    a larger image brings few values that training does not have.

    Args:
        spec: Sizes of the model.
        hidden: Width of the network's hidden layer.

    Shape:
        bias: (1, H, L, L).

    Raises:
        ValueError: If ``hidden`` is not positive.

    Source:
        Liu et al. 2021, "Swin Transformer V2", section 3.3, equations 3 and 4,
        https://arxiv.org/abs/2111.09883; hidden width, 8 and 16 from the authors' code.

    Differs from the paper:
        1. Attention is over the whole image or text, by dot products; the paper's is in windows, by cosines.
        2. An offset is the key's position minus the query's; the authors' is the opposite, which makes no difference to
           a network.
        3. The network starts at the scale of logits; the authors draw it with a standard deviation of 0.02, so that on
           8x8 patches the biases of a head start within 0.08 of each other, not within 6.5.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(9,), causal=False)
        >>> encoding = LogCpbEncoding(spec, hidden=1)
        >>> encoding.prepare(torch.tensor([[0.0], [1.0], [7.0]]))[0].flatten()  # log2 of 2, 7, 8 over 3, both ways
        tensor([-1.0000, -0.9358, -0.3333,  0.0000,  0.3333,  0.9358,  1.0000])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + 16\,\sigma\left(f_h(\delta_{ij})\right), \quad \delta = "
        r"\mathrm{sign}(d)\,\frac{\log_2\left(1 + 8\,|d| / (n - 1)\right)}{3}, \quad d = j - i"
    )
    cite = ("liu2022swin",)
    aliases = ("continuouspositionbias", "cpb", "swinv2")
    mark = 23
    relative = True
    size = "num_layers * 512 * (num_axes + 1 + num_heads)"
    paper = ("relative",)
    paper_size = 6144  # 2 layers x (512 weights, 512 shifts, 512 x 4 weights)

    def __init__(self, spec: EncodingSpec, *, hidden: int = 512) -> None:
        super().__init__(spec)
        check_positive(self.name, hidden=hidden)
        self.hidden = hidden
        self.first = nn.Parameter(torch.empty(spec.num_layers, hidden, spec.num_axes))
        self.shift = nn.Parameter(torch.empty(spec.num_layers, hidden))
        self.second = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads, hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both layers so that they keep scales, from N(0, 2/P) and N(0, 1/hidden); set the shift to zero."""
        nn.init.normal_(self.first, std=math.sqrt(2 / self.spec.num_axes))
        nn.init.zeros_(self.shift)
        nn.init.normal_(self.second, std=self.hidden**-0.5)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Pairs]:
        """Return the logarithms of the different offsets (U, P), and which of them every pair has."""
        different, pairs = unique_offsets(positions)
        # an axis of one position would divide by zero
        reach = torch.tensor(self.spec.extent, device=positions.device, dtype=positions.dtype).sub(1).clamp(min=1)
        # 3 is log2 8, which brings the trained offsets near [-1, 1]
        return different.sign() * torch.log2(1 + 8 * different.abs() / reach) / 3, pairs

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Pairs], layer: int) -> Tensor | PairBias:
        """Return the layer's bias of every pair."""
        different, pairs = state
        # per distinct offset, 2L - 1 of them in a plain text, instead of per pair
        hidden = F.relu(F.linear(different.to(self.first.dtype), self.first[layer], self.shift[layer]))  # (U, hidden)
        return pair_bias(16 * F.linear(hidden, self.second[layer]).sigmoid(), pairs)
