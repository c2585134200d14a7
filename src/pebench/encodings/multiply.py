"""Multiply: content times a sinusoid, channel by channel."""

from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding, check_positive
from pebench.encodings.sinusoid import check_width, sinusoid
from pebench.registry import register


@register("multiply")
class MultiplyEncoding(PositionalEncoding):
    """Fixed sinusoid, multiplied with the input channel by channel.

    The sinusoid has root mean square 1, so the product is as large as the content.

    Args:
        spec: The model; ``d_model`` must be a multiple of 2P.
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

    cite = ("pebench",)

    def __init__(self, spec: EncodingSpec, *, base: float = 10000.0) -> None:
        super().__init__(spec)
        check_width(spec.d_model, spec.num_axes, "d_model of encoding 'multiply'")
        check_positive(self.name, base=base)
        self.base = base

    def prepare(self, positions: Tensor) -> Tensor:
        """The sinusoid at `positions`: (L, D)."""
        return sinusoid(positions, self.spec.d_model, self.base, 1.0)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Content times position."""
        return x * state.to(x.dtype)
