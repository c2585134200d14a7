"""Raster: the cells of a grid counted through in one row, as if it were text."""

from dataclasses import replace

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.wrapper import RandomWrapper, Wrapper


@register("raster")
class RasterEncoding(Wrapper):
    """Another encoding that is told a patch's number in row-major order, one axis instead of two.

    Rows are as far apart as in training, or, in a wider image, as it is wide. On text nothing changes.

    Args:
        spec: The model.
        of: The other encoding: a name, alone or with options.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If the other encoding moves tokens at random: it must be the outer one.

    Source:
        Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", appendix D.4,
        https://arxiv.org/abs/2010.11929: one-dimensional against two-dimensional positions.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(3, 5), causal=False)
        >>> RasterEncoding(spec).numbers(torch.tensor([[0.0, 4.0], [2.0, 1.0]])).flatten().tolist()
        [4.0, 11.0]
    """

    cite = ("dosovitskiy2021image",)

    def __init__(self, spec: EncodingSpec, *, of: str = "add") -> None:
        super().__init__(spec, of, replace(spec, extent=(spec.max_len,)))
        if any(isinstance(part, RandomWrapper) for part in self.inner.modules()):
            raise ValueError(f"encoding 'raster' cannot have {of!r} inside, but can be inside it")
        self.isotropic = self.inner.isotropic and (spec.num_axes == 1 or self.blind)

    def numbers(self, positions: Tensor) -> Tensor:
        """The cells' numbers, of which no two cells share one: (L, 1)."""
        number = torch.zeros_like(positions[:, :1])
        spans = positions.amax(dim=0) - positions.amin(dim=0) + 1
        for axis, size in enumerate(self.spec.extent):
            number = number * spans[axis].clamp(min=size) + positions[:, axis : axis + 1]
        return number

    def prepare(self, positions: Tensor) -> object:
        """What the other encoding needs of the numbers."""
        return self.inner.prepare(self.numbers(positions))
