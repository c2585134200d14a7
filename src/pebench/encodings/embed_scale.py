"""Embed-scale: the input of the blocks scaled, to separate the effect of its scale from position's."""

from typing import Any

from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("embed-scale")
class EmbedScaleEncoding(Wrapper):
    """Another encoding with the input of the blocks multiplied by a factor (embedding multiplier).

    Behind norms this changes nothing but the weight of the blocks' outputs in the residual stream, relative to the
    input: ``1/factor`` times as much at initialisation. The default factor gives an input of content alone the root
    mean square of ``add``'s input.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        factor: Multiplier of the input: of content, and of position where the other encoding writes it there.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``factor`` is not positive.

    Source:
        Vaswani et al. 2017, section 3.4, https://arxiv.org/abs/1706.03762: embeddings are multiplied by sqrt(D).

    Differs from the paper:
        1. Here embeddings have a root mean square of one without it; the factor comes in addition, and does not depend
           on the width.
        2. Position in the input is multiplied too.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = EmbedScaleEncoding(spec, of="add", factor=2.0)
        >>> encoding.embed(torch.ones(1, 1, 2), encoding.prepare(torch.tensor([[0.0]])))  # twice 1, and 1 + sqrt 2
        tensor([[[2.0000, 4.8284]]])
    """

    formula = r"\mathrm{factor} \cdot x'"
    cite = ("vaswani2017attention",)
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "add", factor: float = 1.4142) -> None:
        super().__init__(spec, of)
        check_positive(self.name, factor=factor)
        self.factor = factor

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """Return the other encoding's input, times the factor."""
        # after the other encoding, so that content and position keep their ratio
        return self.inner.embed(x, state) * self.factor
