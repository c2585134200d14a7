"""Attention-scale: logits made sharper or flatter, so that their temperature can be told from position."""

from typing import Any

from torch import Tensor

from pebench.encodings.base import EncodingSpec, check_positive
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("attention-scale")
class AttentionScaleEncoding(Wrapper):
    """Another encoding with its queries multiplied by a factor, and so every product of a query and a key.

    What an encoding adds to queries and keys, or puts beside them, changes how much content's own product weighs:
    half as much with ``add-qk`` at the start, 0.71 times with ``concat-qk``. A bias that does not read queries stays
    as it is.

    Args:
        spec: The model.
        of: The other encoding: a name, alone or with options.
        factor: What queries are multiplied by, behind what the other encoding does to them.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``factor`` is not positive.

    Source:
        Vaswani et al. 2017, section 3.2.1, https://arxiv.org/abs/1706.03762: products are divided by sqrt(K).

    Differs from the paper:
        1. The factor comes on top of that. Training may undo it, as queries and keys are projected.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding, ones = AttentionScaleEncoding(spec, of="none", factor=2.0), torch.ones(1, 1, 1, 2)
        >>> [told.flatten().tolist() for told in encoding.query_key(ones, ones, ones, None, layer=0)]
        [[2.0, 2.0], [1.0, 1.0]]
    """

    cite = ("vaswani2017attention",)

    def __init__(self, spec: EncodingSpec, *, of: str = "rope", factor: float = 1.4142) -> None:
        super().__init__(spec, of)
        check_positive(self.name, factor=factor)
        self.factor = factor

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """What the other encoding makes of them, the queries times the factor."""
        q, k = self.inner.query_key(q, k, x, state, layer)
        return q * self.factor, k
