"""Multiply: content times a sinusoid, channel by channel."""

from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.table import TableEncoding


@register("multiply")
class MultiplyEncoding(TableEncoding):
    """Fixed sinusoid, multiplied with the input channel by channel.

    The sinusoid has root mean square 1, so that the product has the content's.

    Args:
        spec: Sizes of the model; ``d_model`` must be a multiple of 2P.
        base: Base of the wavelengths, dimensionless.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_model`` is not a multiple of 2P, or ``base`` is not positive.

    Source:
        None known: the question "why add and not multiply?", with the sinusoid of Vaswani et al. 2017,
        section 3.5, https://arxiv.org/abs/1706.03762.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = MultiplyEncoding(spec)
        >>> encoding.embed(torch.ones(1, 1, 2), encoding.prepare(torch.tensor([[1.0]])))  # sqrt(2) sin 1, cos 1
        tensor([[[1.1900, 0.7641]]])
    """

    formula = r"x \odot s(p)"
    cite = ("pebench",)
    mark = 24
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, base: float = 10000.0) -> None:
        super().__init__(spec)
        self.make_table("sinusoid", spec.d_model, base, width_name="d_model")

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content times position."""
        return x * state.to(x.dtype)
