"""Add: the sinusoid of the original transformer, summed onto the input."""

from typing import ClassVar

from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding, check_positive
from pebench.encodings.sinusoid import check_width, sinusoid
from pebench.registry import register


@register("add")
class AddEncoding(PositionalEncoding):
    """Fixed sinusoid, added to the input; on grids one half of the channels per axis.

    Args:
        spec: The model; ``d_model`` must be a multiple of 2P.
        base: Base of the wavelengths, dimensionless. 10000 in the paper.
        ratio: Root mean square of the sinusoid relative to the content's at initialisation.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_model`` is not a multiple of 2P, or ``base`` is not positive.

    Source:
        Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762.

    Differs from the paper:
        1. The sinusoid's root mean square is ``ratio``, where the paper's is 0.71 of the content's.

    Example:
        >>> import torch
        >>> encoding = AddEncoding(EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True))
        >>> state = encoding.prepare(torch.tensor([[0.0], [1.0]]))
        >>> encoding.embed(torch.zeros(1, 2, 2), state)  # sqrt(2) times sin 0, cos 0; sin 1, cos 1
        tensor([[[0.0000, 1.4142],
                 [1.1900, 0.7641]]])
    """

    cite: ClassVar[tuple[str, ...]] = ("vaswani2017attention", "he2022masked")

    def __init__(self, spec: EncodingSpec, *, base: float = 10000.0, ratio: float = 1.0) -> None:
        super().__init__(spec)
        check_width(spec.d_model, spec.num_axes, "d_model of encoding 'add'")
        check_positive(self.name, base=base)
        self.base, self.ratio = base, ratio

    def prepare(self, positions: Tensor) -> Tensor:
        """The sinusoid at `positions`: (L, D)."""
        return sinusoid(positions, self.spec.d_model, self.base, self.ratio)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Content plus position."""
        return x + state.to(x.dtype)
