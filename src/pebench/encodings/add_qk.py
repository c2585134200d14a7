"""Add-qk: position added to every query and key, never to the values."""

from torch import Tensor

from pebench.encodings.concat_qk import ConcatQkEncoding
from pebench.encodings.registry import register


def summed(content: Tensor, position: Tensor) -> Tensor:
    """Return content (B, H, L, K) plus position (H, L, K), divided by sqrt(2)."""
    return (content + position.to(content.dtype)) * 2**-0.5


@register("add-qk")
class AddQkEncoding(ConcatQkEncoding):
    """Fixed sinusoid, projected and added to queries and keys of every layer: logits (q + U p)·(k + V p).

    The control of ``concat-qk``: the same vectors, matrices and layers, with the cross terms that a sum brings. The
    residual stream and the values have no position. Both sums are divided by sqrt(2), so that logits start
    at the scale of other models'.

    Args:
        spec: Sizes of the model.
        d_p: Channels of a position's vector, a multiple of 2P for a sinusoid; ``None`` takes ``d_model``.
        base: Base of the wavelengths, dimensionless.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none outside the extent.
        centered: Subtract the sinusoid's mean over the trained positions, from every position, before it is scaled.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``d_p`` is not a multiple of 2P, ``base`` is not positive, there is no such ``table``, or a
            learned one or one position is to be centred.

    Source:
        Carion et al. 2020 (DETR), https://arxiv.org/abs/2005.12872, whose encoder adds fixed sinusoids to queries
        and keys of every layer; of language models Press, Smith and Lewis 2021 (Shortformer), section 5,
        https://arxiv.org/abs/2012.15832.

    Differs from the paper:
        1. Positions have projections of their own; in both papers they share the content's.
        2. The sums are divided by sqrt(2).

    Example:
        >>> import torch
        >>> from pebench.encodings.base import EncodingSpec
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = AddQkEncoding(spec)
        >>> _ = encoding.queries.data.copy_(torch.eye(2)), encoding.keys.data.copy_(torch.eye(2))
        >>> x = torch.zeros(1, 1, 2, 2)
        >>> q, k = encoding.query_key(x, x, x, encoding(encoding.prepare(torch.tensor([[0.0], [1.0]]))), layer=0)
        >>> (q @ k.mT)[0, 0].detach()  # cos 0, cos 1: the sinusoid's square of 2, over 2
        tensor([[1.0000, 0.5403],
                [0.5403, 1.0000]])
    """

    formula = r"\ell_{ij} = \frac{(q_i + U s(p_i)) \cdot (k_j + V s(p_j))}{2 \sqrt{K}}"
    cite = ("carion2020detr", "press2021shortformer")
    mark = 47
    size = "2 * num_layers * d_model * d_model"
    joined = staticmethod(summed)
    paper = ()
    paper_size = 4096  # 2 layers x 2 matrices of 32 x 32
