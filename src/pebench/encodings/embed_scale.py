"""Embed-scale: what enters the blocks made louder or quieter, so that loudness can be told from position."""

from typing import Any

from torch import Tensor

from pebench.encodings.base import EncodingSpec, check_positive
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("embed-scale")
class EmbedScaleEncoding(Wrapper):
    """Another encoding with the input of the blocks multiplied by a factor (embedding multiplier).

    Behind norms this changes nothing but how much what blocks add to the stream counts beside what entered it: at the
    start ``1/factor`` times as much. The default factor makes an input of content alone as loud as that of ``add``.

    Args:
        spec: The model.
        of: The other encoding: a name, alone or with options.
        factor: What content, with position where that is told there, is multiplied by.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``factor`` is not positive.

    Source:
        Vaswani et al. 2017, section 3.4, https://arxiv.org/abs/1706.03762: embeddings are multiplied by sqrt(D).

    Differs from the paper:
        1. Here embeddings have a root mean square of one without it; the factor comes on top, and is not the width's.
        2. Position that is told at the input is multiplied too.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = EmbedScaleEncoding(spec, of="add", factor=2.0)
        >>> encoding.embed(torch.ones(1, 1, 2), encoding.prepare(torch.tensor([[0.0]])))  # twice 1, and 1 + sqrt 2
        tensor([[[2.0000, 4.8284]]])
    """

    cite = ("vaswani2017attention",)

    def __init__(self, spec: EncodingSpec, *, of: str = "add", factor: float = 1.4142) -> None:
        super().__init__(spec, of)
        check_positive(self.name, factor=factor)
        self.factor = factor

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """What the other encoding makes of it, times the factor."""
        return self.inner.embed(x, state) * self.factor
