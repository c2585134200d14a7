"""Partial key offset: the channels of keys that do not turn are those of the token before."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec
from pebench.encodings.partial_rope import PartialRotaryEncoding
from pebench.encodings.registry import register


class Turns(NamedTuple):
    """The state: cosine and sine of the angles (L, r/2) each, and the tokens that none precedes (L,) or (B, L)."""

    cos: Tensor
    sin: Tensor
    first: Tensor


@register("key-offset")
class KeyOffsetEncoding(PartialRotaryEncoding):
    """Partial RoPE in which the key's channels that do not turn are those of the token before (partial key offset).

    A query that matches these channels finds the token after one like its own: induction in one layer. The
    token before is that of the sequence, wherever it is; a text's first token keeps its own channels.

    Args:
        spec: Sizes of the model, causal; ``head_dim`` must be a multiple of 2 and hold channels that do not turn.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        fraction: Share of the channels that turn, in (0, 1); r is rounded down to a multiple of 2, but at least 2.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: As ``partial-rope``; if all channels turn; for a grid or a bidirectional model.

    Source:
        Jordan et al. 2024, "modded-nanogpt", https://github.com/KellerJordan/modded-nanogpt, train_gpt.py since the
        record of 2025-12-14; there is no paper.

    Differs from the paper:
        1. Every layer shifts its keys; in the record those with a long window alone.
        2. There texts share a sequence, and the first token of one has channels of the last token of the one before.
        3. There the base is 1024, and the slowest of n pairs turns by 1/1024, here by theta^(-(n-1)/n).

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = KeyOffsetEncoding(spec)
        >>> k = torch.tensor([[[[1.0, 0.0, 3.0, 4.0], [1.0, 0.0, 5.0, 6.0], [1.0, 0.0, 7.0, 8.0]]]])
        >>> encoding.query_key(k, k, k, encoding.prepare(torch.arange(3.0)[:, None]), layer=0)[1]  # cos 1, sin 1
        tensor([[[[ 1.0000,  0.0000,  3.0000,  4.0000],
                  [ 0.5403,  0.8415,  3.0000,  4.0000],
                  [-0.4161,  0.9093,  5.0000,  6.0000]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i^{1:r}) \cdot (R_{p_j} k_j^{1:r}) + q_i^{r+1:K} \cdot "
        r"k_{\max(1, j-1)}^{r+1:K}}{\sqrt{K}}"
    )
    cite = ("jordan2024modded",)
    aliases = ("keyshift", "partialkeyoffset", "pko")
    axes = (1,)
    causal_only = True
    kv_cache = "needs more"  # the plain key of the token before
    paper = ("relative", "causal_only", "text")
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None, fraction: float = 0.5) -> None:
        super().__init__(spec, theta=theta, fraction=fraction)
        if self.channels == spec.head_dim:
            raise ValueError(
                f"encoding 'key-offset' needs channels that do not turn, got fraction {fraction} of {spec.head_dim}"
            )

    def prepare(self, positions: Tensor) -> Turns:
        """Return the angles at `positions` (L, 1), and that the first token has none before it."""
        first = torch.zeros(len(positions), dtype=torch.bool, device=positions.device)
        first[:1] = True
        cos, sin = super().prepare(positions)
        return Turns(cos, sin, first)

    def padded(self, state: Turns, valid: Tensor) -> Turns:
        """Return the state in which no token after padding has one before it either."""
        return state._replace(first=F.pad(~valid[:, :-1], (1, 0), value=True))

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Turns, layer: int) -> tuple[Tensor, Tensor]:
        """Rotate the first channels of queries and keys, and take the others of keys from the token before."""
        angles, still = state[:2], k[..., self.channels :]
        before = torch.cat((still[:, :, :1], still[:, :, :-1]), dim=2)
        still = torch.where(state.first[..., None, :, None], still, before)  # (L,) to (1, L, 1), (B, L) to (B, 1, L, 1)
        return self._turn(q, angles), torch.cat((self._turn(k, angles)[..., : self.channels], still), dim=-1)
