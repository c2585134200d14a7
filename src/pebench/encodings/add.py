"""Add: the sinusoid of the original transformer, summed onto the input."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive, check_ratio
from pebench.encodings.registry import register
from pebench.encodings.sinusoid import check_choice, check_width, sinusoid


@register("add")
class AddEncoding(PositionalEncoding):
    """Fixed sinusoid, added to the input; on grids one half of the channels per axis.

    Args:
        spec: Sizes of the model; ``d_model`` must be a multiple of 2P.
        base: Base of the wavelengths, dimensionless. 10000 in the paper.
        ratio: Root mean square of the sinusoid, in its channels, relative to the content's at initialisation.
        d_p: Channels that the sinusoid is added to, the last ones; a multiple of 2P. ``None`` takes all. It is then the
            sinusoid of ``concat``, with content in its channels too.
        centered: Subtract the sinusoid's mean over the trained positions, from every position, before it is scaled to
            ``ratio``.
        slowest_of: Width of a sinusoid of which the ``d_p`` slowest channels are taken; ``None`` takes one of d_p.
        preserve_variance: Divide the sum by sqrt(1 + ratio² d_p/D), so that the blocks are given something as large as
            content alone, and what they add to it weighs as much as it does with encodings that leave the input alone.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_model`` or ``d_p`` is not a multiple of 2P, ``d_p`` is above ``d_model`` or ``slowest_of``,
            ``base`` is not positive, ``ratio`` is negative, or one position is to be centred.

    Source:
        Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762.

    Differs from the paper:
        1. The sinusoid's root mean square is ``ratio``, where the paper's is 0.71 of the content's.
        2. The paper has no ``d_p``, ``centered``, ``slowest_of`` and ``preserve_variance``.

    Example:
        >>> import torch
        >>> encoding = AddEncoding(EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True))
        >>> state = encoding.prepare(torch.tensor([[0.0], [1.0]]))
        >>> encoding.embed(torch.zeros(1, 2, 2), state)  # sqrt(2) times sin 0, cos 0; sin 1, cos 1
        tensor([[[0.0000, 1.4142],
                 [1.1900, 0.7641]]])
    """

    formula = (
        r"x + \mathrm{ratio} \cdot s(p), \quad s(p)_{2c} = \sqrt{2} \sin\left(p\,\mathrm{base}^{-2c/D}\right), "
        r"\quad s(p)_{2c+1} = \sqrt{2} \cos\left(p\,\mathrm{base}^{-2c/D}\right)"
    )
    cite: ClassVar[tuple[str, ...]] = ("vaswani2017attention", "he2022masked")
    aliases = ("sinusoidal", "sinusoid", "sincos", "sincos2d", "absolute", "vanilla")
    mark = 0
    paper = ()
    paper_size = 0

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        base: float = 10000.0,
        ratio: float = 1.0,
        d_p: int | None = None,
        centered: bool = False,
        slowest_of: int | None = None,
        preserve_variance: bool = False,
    ) -> None:
        super().__init__(spec)
        check_ratio(self.name, ratio)
        self.d_p = spec.d_model if d_p is None else d_p
        check_width(self.d_p, spec.num_axes, f"{'d_model' if d_p is None else 'd_p'} of encoding 'add'")
        if self.d_p > spec.d_model:
            raise ValueError(f"d_p of encoding 'add' must be at most d_model = {spec.d_model}, got {d_p}")
        check_positive(self.name, base=base)
        check_choice(self.name, self.d_p, spec.extent, slowest_of, centered)
        self.base, self.ratio, self.slowest_of = base, ratio, slowest_of
        self.center = spec.extent if centered else None
        self.gain = (1 + ratio**2 * self.d_p / spec.d_model) ** -0.5 if preserve_variance else 1.0

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the sinusoid at `positions`, times the gain, after channels of zeros: (L, D)."""
        waves = sinusoid(positions, self.d_p, self.base, self.ratio * self.gain, self.slowest_of, self.center)
        return functional.pad(waves, (self.spec.d_model - self.d_p, 0))  # (L, d_p) to (L, D)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus position, times the gain."""
        # the state has the gain already, so that one operation does both
        return torch.add(state.to(x.dtype), x, alpha=self.gain)
