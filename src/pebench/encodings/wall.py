"""Wall attention: every channel of a key fades on its own, at a rate that each token decides by its content."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register


@register("wall")
class WallEncoding(PositionalEncoding):
    """Wall attention: channel c of q·k times the product of sigmoid(w_c·x_l + b_c) over the tokens l after the key.

    ``fox`` takes one such product for a whole head, and adds its logarithm; here what fades is the channel's own
    part of the logit. Every channel of every layer has its own w and b. Tokens are counted in the order of the
    sequence; positions are not used. It needs (B, H, L, L, K) of memory.

    Args:
        spec: Sizes of the model, causal.
        b: Initial value of all b; the larger, the slower channels fade at first.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: For a grid or a bidirectional model, or a b that is infinite or not a number.

    Source:
        Averbuch and Pai 2026, Tilde Research, in flash-linear-attention,
        https://github.com/fla-org/flash-linear-attention (fla/layers/wall_attn.py, fla/ops/wall_attn/naive.py).

    Differs from the paper:
        1. There is none; the layer offers norms of queries and keys, an output gate and a gate as of ``fox`` besides.
        2. There b begins at 8, with which a channel keeps 92 % over 256 tokens. Here it begins at 2, with which it
           halves in five, as models are small and trained for short.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = WallEncoding(spec)
        >>> _ = encoding.weight.data.fill_(0.0), encoding.shift.data.copy_(torch.tensor([0.0, 100.0]))  # a half, all
        >>> x = torch.zeros(1, 3, 2)
        >>> q = torch.tensor([[[[8.0, 1.0]] * 3]])
        >>> encoding.bias(q, q, x, None, layer=0)[0, 0, 2].detach() * 2**0.5  # 64 is 16, 32, 64; the other stays
        tensor([-48.0000, -32.0000,   0.0000])
    """

    formula = r"\ell_{ij} = \sum_c \frac{q_{ic} k_{jc}}{\sqrt{K}} \prod_{l=j+1}^{i} \sigma(w_c \cdot x_l + b_c)"
    cite = ("averbuch2026wall",)
    aliases = ("wallattention",)
    axes = (1,)
    causal_only = True
    contextual = True
    relative = True
    kv_cache = "needs more"  # a sum of log gates for each channel
    size = "num_layers * d_model * (d_model + 1)"
    paper = ("contextual", "relative", "causal_only", "text")
    paper_size = 2112  # 2 layers x 32 channels x (32 weights and a shift)

    def __init__(self, spec: EncodingSpec, *, b: float = 2.0) -> None:
        super().__init__(spec)
        if not math.isfinite(b):
            raise ValueError(f"b of encoding 'wall' must be finite, got {b}")
        self.b = b
        self.weight = nn.Parameter(torch.empty(spec.num_layers, spec.d_model, spec.d_model))
        self.shift = nn.Parameter(torch.empty(spec.num_layers, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 1/D), and set the shifts to ``b``."""
        nn.init.normal_(self.weight, std=self.spec.d_model**-0.5)
        nn.init.constant_(self.shift, self.b)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """Return what fading takes from q·k / sqrt(K), for every pair."""
        with torch.autocast(x.device.type, enabled=False):  # differences of long sums lose their digits in 16 bit
            gates = F.logsigmoid(F.linear(x.float(), self.weight[layer].float(), self.shift[layer].float()))
            total = gates.cumsum(dim=1).unflatten(-1, (self.spec.num_heads, -1)).transpose(1, 2)  # (B, H, L, K)
            # factors of later keys, which are hidden, would overflow
            fade = (total.unsqueeze(-2) - total.unsqueeze(-3)).clamp(max=0)  # (B, H, L, L, K), query by key
            lost = torch.einsum("bhic,bhjc,bhijc->bhij", q.float(), k.float(), torch.expm1(fade))
            return lost * self.spec.head_dim**-0.5
