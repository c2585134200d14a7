"""PaTH: between key and query stand reflections, one for each token in between, which its content decides."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.halves import joined, padded_to_blocks
from pebench.encodings.registry import register

SHORT = 128
"""Tokens up to which one triangular system is faster than several smaller ones."""

BLOCK = 32


@register("path")
class PathEncoding(PositionalEncoding):
    """PaTH attention: logits q_i·H_i ... H_(j+1) k_j, with H_l = I - beta_l w_l w_l' of every token after the key.

    w is of length 1, a convolution of a projection of the content to ``rank`` channels and back; beta is 2 sigmoid of
    another projection. With beta 2 the key is reflected, with 1 it loses its part along w. Tokens are counted in the
    order of the sequence; positions are not used.

    The products are not taken one by one: the bias solves a triangular system, whose operations PyTorch's count of
    FLOPs leaves out. Beyond 128 tokens it solves one for each 32, in O(L² K) operations for each head; compiled, one of
    all tokens in O(L³). It takes a few times (B, H, L, L) of memory.

    Args:
        spec: Sizes of the model, causal.
        rank: Width of the projection in between; at most ``d_model``.
        taps: Tokens that the convolution spans, the token itself and those before; 1 mixes none.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``rank`` or ``taps`` is below 1; for a grid or a bidirectional model.

    Source:
        Yang et al. 2025, "PaTH Attention", section 3, https://arxiv.org/abs/2505.16381; the closed form of the product
        from its section 3.3, and rank, taps and SiLU from the authors' code in flash-linear-attention.

    Differs from the paper:
        1. The product alone, without the norms of queries and keys and the forget gate that it is offered with.
        2. The bias is the difference to q·k; in kernels of their own that is never computed.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = PathEncoding(spec, taps=1)
        >>> for name, value in {"down": [[1.0, 0.0], [0.0, 1.0]], "up": [[9.0, 0.0], [0.0, 9.0]]}.items():
        ...     _ = getattr(encoding, name).data.copy_(torch.tensor(value))
        >>> _ = encoding.kernel.data.fill_(1.0), encoding.gate.data.fill_(0.0)  # beta 1: the part along w is lost
        >>> x = torch.tensor([[[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]]])  # w is the first axis, nearly, then the second
        >>> q = k = torch.tensor([[[[1.0, 3.0]] * 3]])
        >>> bias = encoding.bias(q, k, x, None, layer=0)[0, 0] * 2**0.5  # of logits 10: 1 along the first, 9 the second
        >>> bias.tril().detach().round(decimals=3) + 0
        tensor([[  0.,   0.,   0.],
                [ -1.,   0.,   0.],
                [-10.,  -9.,   0.]])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i^\top H_i H_{i-1} \cdots H_{j+1} k_j}{\sqrt{K}}, \quad H_l = I - \beta_l w_l w_l^\top, "
        r"\quad \beta_l = 2\sigma(u \cdot x_l + c), \quad \lVert w_l \rVert = 1"
    )
    cite = ("yang2025path",)
    aliases = ("pathattention",)
    axes = (1,)
    causal_only = True
    contextual = True
    relative = True
    kv_cache = "needs more"  # w and beta of all tokens
    size = "num_layers * (2 * d_model * min(32, d_model) + 3 * d_model + num_heads * (d_model + 1))"
    paper = ("contextual", "relative", "causal_only", "text")
    paper_size = 4552  # 2 layers x (32 x 32 down, 32 x 32 up, 3 taps of 32 channels, 4 heads x (32 weights, a shift))

    def __init__(self, spec: EncodingSpec, *, rank: int = 32, taps: int = 3) -> None:
        super().__init__(spec)
        for option, value in (("rank", rank), ("taps", taps)):
            if value < 1:
                raise ValueError(f"{option} of encoding 'path' must be 1 or more, got {value}")
        layers, width, rank = spec.num_layers, spec.d_model, min(rank, spec.d_model)
        self.down = nn.Parameter(torch.empty(layers, rank, width))
        self.up = nn.Parameter(torch.empty(layers, width, rank))
        self.kernel = nn.Parameter(torch.empty(layers, taps, width))
        self.gate = nn.Parameter(torch.empty(layers, spec.num_heads, width))
        self.shift = nn.Parameter(torch.empty(layers, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights so that they keep scales, from N(0, 1 / their inputs); set the shifts to 0."""
        for weight in (self.down, self.up, self.gate):
            nn.init.normal_(weight, std=weight.shape[-1] ** -0.5)
        nn.init.normal_(self.kernel, std=self.kernel.shape[1] ** -0.5)
        nn.init.zeros_(self.shift)

    def prepare(self, positions: Tensor) -> None:
        """Return nothing: positions are not used."""

    def padded(self, state: None, valid: Tensor) -> Tensor:
        """Return which tokens are no padding, for the convolution: (B, L)."""
        return valid

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor | None, layer: int) -> Tensor:
        """Return the product's difference to q·k / sqrt(K), for every pair."""
        with torch.autocast(x.device.type, enabled=False):  # a chain of many products, which 16 bit would blur
            q, k, x = q.float(), k.float(), x.float()
            w, beta = self._directions(x, state, layer), self._strengths(x, layer)
            lost = lost_by_reflection(q, k, w, beta.unsqueeze(-1) * w)
            return lost * -(self.spec.head_dim**-0.5)

    def _directions(self, x: Tensor, valid: Tensor | None, layer: int) -> Tensor:
        """Return the unit vectors w of every token and head: (B, H, L, K)."""
        w = x @ self.down[layer].float().T @ self.up[layer].float().T  # (B, L, D)
        w = w if valid is None else w * valid.unsqueeze(-1)
        kernel, length = self.kernel[layer].float(), x.shape[1]
        before = F.pad(w, (0, 0, len(kernel) - 1, 0))
        mixed = torch.stack([tap * before[:, n : n + length] for n, tap in enumerate(kernel)]).sum(dim=0)
        heads = F.silu(mixed).unflatten(-1, (self.spec.num_heads, -1)).transpose(1, 2)  # (B, L, D) to (B, H, L, K)
        return F.normalize(heads, dim=-1)

    def _strengths(self, x: Tensor, layer: int) -> Tensor:
        """Return beta of every token and head: (B, H, L)."""
        return 2 * F.linear(x, self.gate[layer].float(), self.shift[layer].float()).sigmoid().transpose(1, 2)


def lost_by_reflection(q: Tensor, k: Tensor, w: Tensor, scaled: Tensor) -> Tensor:
    """Return the part of q·k that is lost where each token between the two reflects the key.

    Args:
        q: (B, H, L, K) queries.
        k: (B, H, L, K) keys.
        w: (B, H, L, K) unit vectors.
        scaled: (B, H, L, K) unit vectors times beta.

    Returns:
        (B, H, L, L), 0 at a query's own key and at later ones.
    """
    # Compiled, it is one system at every length: blocks would be a graph for each.
    if torch.compiler.is_compiling() or q.shape[-2] <= SHORT:
        return (q @ w.mT).tril() @ _solved(k, w, scaled)
    return (q @ k.mT).tril(-1) - reflected_products(q, k, w, scaled)


def reflected_products(q: Tensor, k: Tensor, w: Tensor, scaled: Tensor) -> Tensor:
    """Return the products of queries with the keys before them, which each token between the two has reflected.

    Within a block of tokens a triangular system finds all products. Then blocks meet in pairs: queries of the second,
    reflected back to where the two meet, with keys of the first, reflected on to there. Shapes are those of
    `lost_by_reflection`.
    """
    length = q.shape[-2]
    q, k, w, scaled = (padded_to_blocks(part, BLOCK) for part in (q, k, w, scaled))  # (B, H, blocks, BLOCK, K)
    # Beside the keys the axes themselves, by which whatever comes to a block leaves it reflected.
    solved = _solved(k, w, scaled, axes=True)
    parts, axes = solved[..., :BLOCK], solved[..., BLOCK:]
    reach = (q @ w.mT).tril()
    products = (q @ k.mT).tril(-1) - reach @ parts  # (B, H, blocks, BLOCK, BLOCK)
    q, k = q - reach @ axes, k - parts.mT @ w  # queries back to their block's beginning, keys on to its end
    through = torch.eye(q.shape[-1], dtype=q.dtype, device=q.device) - w.mT @ axes  # (B, H, blocks, K, K)
    while products.shape[-3] > 1:
        (q1, q2), (k1, k2), (through1, through2) = (part.unflatten(2, (-1, 2)).unbind(3) for part in (q, k, through))
        products = joined(products, q2 @ k1.mT)
        q, k = torch.cat((q1, q2 @ through1), dim=-2), torch.cat((k1 @ through2.mT, k2), dim=-2)
        through = through2 @ through1
    return products.squeeze(-3)[..., :length, :length]


def _solved(k: Tensor, w: Tensor, scaled: Tensor, axes: bool = False) -> Tensor:
    """Return c (..., L, L), by token and key; with ``axes`` those of the K axes after them: (..., L, L + K)."""
    # c_tj = beta_t w_t·(k_j reflected by the tokens from j + 1 to t - 1): a triangular system in c
    between, right = (scaled @ w.mT).tril(-1), (scaled @ k.mT).tril(-1)
    right = torch.cat((right, scaled), dim=-1) if axes else right
    return torch.linalg.solve_triangular(between, right, upper=False, unitriangular=True)
