"""Attention-scale: logits made sharper or flatter, to separate the effect of their temperature from position's."""

from typing import Any

from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("attention-scale")
class AttentionScaleEncoding(Wrapper):
    """Another encoding with its queries multiplied by a factor, and so every product of a query and a key.

    An encoding that adds to queries and keys, or appends channels to them, changes the weight of content's own product:
    to a half with ``add-qk`` at initialisation, to 0.71 with ``concat-qk``. A bias that does not read queries stays as
    it is.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        factor: Number by which queries are multiplied, after the other encoding has changed them.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``factor`` is not positive.

    Source:
        Vaswani et al. 2017, section 3.2.1, https://arxiv.org/abs/1706.03762: products are divided by sqrt(K).

    Differs from the paper:
        1. The factor comes in addition. Training may undo it, as queries and keys are projected.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding, ones = AttentionScaleEncoding(spec, of="none", factor=2.0), torch.ones(1, 1, 1, 2)
        >>> [heads.flatten().tolist() for heads in encoding.query_key(ones, ones, ones, None, layer=0)]
        [[2.0, 2.0], [1.0, 1.0]]
    """

    formula = r"\ell_{ij} = \frac{\mathrm{factor} \cdot q'_i \cdot k'_j}{\sqrt{K}} + b'_{ij}"
    cite = ("vaswani2017attention",)
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "rope", factor: float = 1.4142) -> None:
        super().__init__(spec, of)
        check_positive(self.name, factor=factor)
        self.factor = factor

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Return the other encoding's queries and keys, the queries times the factor."""
        q, k = self.inner.query_key(q, k, x, state, layer)
        return q * self.factor, k
