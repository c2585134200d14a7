"""Learnable Fourier features: a small network of sines of trained frequencies, added to the input."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive, check_ratio
from pebench.encodings.registry import register
from pebench.layers import Linear


@register("learnable-fourier")
class LearnableFourierEncoding(PositionalEncoding):
    """Sines and cosines of trained frequencies through a network with one hidden layer, added to the input.

    p = W2 GELU(W1 [cos(F x); sin(F x)] / sqrt(D)), with all axes in one x, so that p follows distances in the plane
    and not along each axis.

    Args:
        spec: Sizes of the model; ``d_model`` must be even, for there are D/2 frequencies.
        hidden: Width of the hidden layer.
        gamma: Frequencies are drawn from N(0, 1/gamma²), in radians per token or patch.
        ratio: Root mean square of p relative to the content's at initialisation, over many draws.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_model`` is odd, ``hidden`` or ``gamma`` is not positive, or ``ratio`` is negative.

    Source:
        Li et al. 2021, "Learnable Fourier Features for Multi-Dimensional Spatial Positional Encoding",
        equations 2 to 5, https://arxiv.org/abs/2106.02795.

    Differs from the paper:
        1. The two layers are drawn so that p has the declared scale; the paper does not specify it. Much of p is the
           same at every position: on 8x8 patches a tenth of its power differs between them at first.
        2. Frequencies train at the rate of all weights, so that a position's vector moves the faster the farther it is
           from zero: in a text of 128 tokens the last one's, in the first steps, moves ten times as fast as a row of
           a learned table. The paper is on grids.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = LearnableFourierEncoding(spec, hidden=1)
        >>> for weight, value in zip(encoding.parameters(), (1.0, [[1.0, 0.0]], 0.0, [[1.0], [2.0]], 0.0)):
        ...     _ = weight.data.copy_(torch.tensor(value))
        >>> state = encoding.prepare(torch.tensor([[0.0]]))  # GELU of cos 0 / sqrt(2)
        >>> encoding.embed(torch.zeros(1, 1, 2), encoding(state)).detach()
        tensor([[[0.5376, 1.0752]]])
    """

    formula = r"x + W_2\,\mathrm{GELU}\left(W_1 \frac{[\cos F p\,;\,\sin F p]}{\sqrt{D}} + c_1\right) + c_2"
    cite = ("li2021learnable",)
    aliases = ("fourier", "fourierfeatures")
    mark = 21
    size = "d_model // 2 * num_axes + 32 * d_model + 32 + 32 * d_model + d_model"
    paper = ()
    paper_size = 2128  # 16 frequencies, and layers from 32 to 32 and on to 32

    def __init__(self, spec: EncodingSpec, *, hidden: int = 32, gamma: float = 10.0, ratio: float = 1.0) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        check_positive(self.name, hidden=hidden, gamma=gamma)
        if spec.d_model % 2:
            raise ValueError(f"encoding 'learnable-fourier' needs an even d_model, got {spec.d_model}")
        self.gamma = gamma
        self.frequencies = nn.Parameter(torch.empty(spec.d_model // 2, spec.num_axes))
        # the input has root mean square 1/sqrt(2D), and GELU makes 0.652 of a standard normal variable's
        self.first = Linear(spec.d_model, hidden, gain=math.sqrt(2 * spec.d_model))
        self.second = Linear(hidden, spec.d_model, gain=ratio / 0.652)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the frequencies from N(0, 1/gamma²)."""
        nn.init.normal_(self.frequencies, std=1 / self.gamma)

    def forward(self, state: Tensor) -> Tensor:
        """Return the vectors p at the positions: (L, D)."""
        # products of elements, not a matrix product, which autocast would compute in 16 bit
        angles = (state.unsqueeze(1) * self.frequencies.float()).sum(dim=-1)  # (L, D / 2, P) to (L, D / 2)
        features = torch.cat((angles.cos(), angles.sin()), dim=-1) * self.spec.d_model**-0.5
        output: Tensor = self.second(F.gelu(self.first(features.to(self.first.weight.dtype))))
        return output

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus p."""
        return x + state.to(x.dtype)
