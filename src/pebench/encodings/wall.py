"""Wall attention: every channel of a key fades on its own, at a rate that each token decides by its content."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.halves import joined, padded_to_blocks
from pebench.encodings.registry import register


@register("wall")
class WallEncoding(PositionalEncoding):
    """Wall attention: channel c of q·k times the product of sigmoid(w_c·x_l + b_c) over the tokens l after the key.

    ``fox`` takes one such product for a whole head, and adds its logarithm; here what fades is the channel's own
    part of the logit. Every channel of every layer has its own w and b. Tokens are counted in the order of the
    sequence; positions are not used.

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
            gates = gates.unflatten(-1, (self.spec.num_heads, -1)).transpose(1, 2)  # (B, H, L, K)
            q, k, scale = q.float(), k.float(), self.spec.head_dim**-0.5
            if torch.compiler.is_compiling():
                # Halves of halves would be a graph for each length; a compiler sums the channels as it makes them.
                total = gates.cumsum(dim=-2)
                # factors of later keys, which are hidden, would overflow
                fade = (total.unsqueeze(-2) - total.unsqueeze(-3)).clamp(max=0)  # (B, H, L, L, K), query by key
                return torch.einsum("bhic,bhjc,bhijc->bhij", q, k, torch.expm1(fade)) * scale
            plain = (q @ k.mT).tril(-1)  # a token's own key does not fade
            return (faded_products(q, k, gates) - plain) * scale


def faded_products(q: Tensor, k: Tensor, gates: Tensor) -> Tensor:
    """Return the products of queries with the keys before them, each channel times its gates between the two.

    A gate between a query and a key is one from the key to a token that lies between, times one from there to the
    query. So the late half of a text meets the early half in one matrix product, both faded to the token where the
    halves meet, and then each half is cut in halves in turn. Factors are at most 1, so nothing overflows.

    Args:
        q: (B, H, L, K) queries.
        k: (B, H, L, K) keys.
        gates: (B, H, L, K) logarithms of each token's gates, 0 or less.

    Returns:
        (B, H, L, L), 0 at a query's own key and at later ones.
    """
    length = q.shape[-2]
    q, k, gates = (padded_to_blocks(part, 1).squeeze(-2) for part in (q, k, gates))
    total = gates.cumsum(dim=-2)
    found, half = q.new_zeros(*q.shape[:-1], 1, 1), 1  # (B, H, blocks, 1, 1): no key of a block of one token is before
    while half < q.shape[-2]:
        late = q.unflatten(-2, (-1, 2, half)).select(-3, 1)  # (B, H, blocks, half, K)
        early = k.unflatten(-2, (-1, 2, half)).select(-3, 0)
        before, after = total.unflatten(-2, (-1, 2, half)).unbind(-3)
        middle = before[..., -1:, :]
        across = (late * (after - middle).exp()) @ (early * (middle - before).exp()).mT  # (B, H, blocks, half, half)
        found, half = joined(found, across), 2 * half
    return found.squeeze(-3)[..., :length, :length]
