"""Selective RoPE: rotations by an angle that every token adds to, as its content decides."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.encodings.rope import rotate


@register("selective-rope")
class SelectiveRotaryEncoding(PositionalEncoding):
    """Rotary embedding in which pair c of a head turns by theta^(-c/n) times the sum of u_c·x over all tokens so far.

    x is the content at length 1, u a trained vector of every pair of every head in every layer, of a low rank. A
    logit depends on the tokens after the key up to the query, as with ``path``, whose reflections here are rotations
    in planes. Tokens are counted in the order of the sequence; positions are not used.

    Args:
        spec: Sizes of the model, causal; ``head_dim`` must be a multiple of 2.
        theta: Base of the factors, dimensionless.
        rank: Rank of the projection of all heads together; at most ``d_model``.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is odd, ``theta`` not positive or ``rank`` below 1; for a grid or a bidirectional
            model.

    Source:
        Movahedi et al. 2025, "Selective Rotary Position Embedding", https://arxiv.org/abs/2511.17388, with the low rank
        and the base of the authors' code (selective_rope/modules/rotary.py); the same sums as rotations of softmax
        attention, Godavarti 2026, "Why Do Accumulated Transformations Extrapolate?", https://arxiv.org/abs/2606.24975.

    Differs from the paper:
        1. Without the convolution over four tokens that the authors' code has after the projection by default.
        2. The authors' code takes each head's share of the content at length 1, here all of it is.
        3. The projection is drawn so that u·x has variance 1.
        4. The rank is 16, the default of the authors' class; their settings for language models take 32.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = SelectiveRotaryEncoding(spec, rank=1)
        >>> _ = encoding.down.data.copy_(torch.tensor([[[1.0, 0.0]]])), encoding.up.data.fill_(0.5)
        >>> x = torch.tensor([[[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]]])  # tokens turn by 1/2, 0 and 1/2
        >>> q = torch.tensor([[[[1.0, 0.0]] * 3]])
        >>> encoding.query_key(q, q, x, None, layer=0)[0].detach()  # cos and sin of 1/2, 1/2, 1
        tensor([[[[0.8776, 0.4794],
                  [0.8776, 0.4794],
                  [0.5403, 0.8415]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_i q_i) \cdot (R_j k_j)}{\sqrt{K}}, \quad R_i = \mathrm{diag}\left(\rho(\alpha_{i1}), "
        r"\dots, \rho(\alpha_{in})\right), \quad \alpha_{ic} = \theta^{-c/n} \sum_{l \le i} u_c \cdot "
        r"\frac{x_l}{\lVert x_l \rVert}"
    )
    cite = ("movahedi2025selective", "godavarti2026accumulated")
    aliases = ("accumulatedrope",)
    axes = (1,)
    causal_only = True
    contextual = True
    relative = True
    kv_cache = "needs more"  # the angles so far
    size = "num_layers * min(16, d_model) * (d_model + d_model // 2)"
    paper = ("contextual", "relative", "causal_only", "text")
    paper_size = 1536  # 2 layers x 16 x (32 down, 4 heads x 4 pairs up)

    def __init__(self, spec: EncodingSpec, *, theta: float = 500000.0, rank: int = 16) -> None:
        super().__init__(spec)
        if spec.head_dim % 2:
            raise ValueError(f"encoding 'selective-rope' needs a head width that is even, got {spec.head_dim}")
        check_positive(self.name, theta=theta)
        if rank < 1:
            raise ValueError(f"rank of encoding 'selective-rope' must be 1 or more, got {rank}")
        self.theta, rank = theta, min(rank, spec.d_model)
        self.down = nn.Parameter(torch.empty(spec.num_layers, rank, spec.d_model))
        self.up = nn.Parameter(torch.empty(spec.num_layers, spec.d_model // 2, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projections from N(0, 1) and N(0, 1 / rank), so that u·x has variance 1."""
        nn.init.normal_(self.down)
        nn.init.normal_(self.up, std=self.up.shape[-1] ** -0.5)

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate queries and keys alike."""
        with torch.autocast(x.device.type, enabled=False):  # 16 bit would blur the angles, which add up
            unit = F.normalize(x.float(), dim=-1)
            steps = unit @ self.down[layer].float().T @ self.up[layer].float().T  # (B, L, D/2)
            total = steps.cumsum(dim=1).unflatten(-1, (self.spec.num_heads, -1)).transpose(1, 2)  # (B, H, L, K/2)
            pair = torch.arange(total.shape[-1], device=x.device, dtype=torch.float32)
            angles = total * self.theta ** (-pair / total.shape[-1])
            cos, sin = angles.cos(), angles.sin()
        return rotate(q, cos, sin), rotate(k, cos, sin)
