"""Raster: the cells of a grid numbered row by row, as if they were text."""

from dataclasses import replace

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.wrapper import RandomWrapper, Wrapper


@register("raster")
class RasterEncoding(Wrapper):
    """Another encoding that is told a patch's number in row-major order, one axis instead of two.

    Rows are as far apart as the trained width, or, in a wider image, as its width. On text nothing changes.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If the other encoding moves tokens at random, which must be the outer one.

    Source:
        Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", appendix D.4,
        https://arxiv.org/abs/2010.11929: one-dimensional against two-dimensional positions.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(3, 5), causal=False)
        >>> RasterEncoding(spec).numbers(torch.tensor([[0.0, 4.0], [2.0, 1.0]])).flatten().tolist()
        [4.0, 11.0]
    """

    formula = r"p' = \text{row} \cdot w + \text{column}"
    cite = ("dosovitskiy2021image",)
    mark = 32
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "add") -> None:
        super().__init__(spec, of, replace(spec, extent=(spec.max_len,)))
        # `place` runs before the cells are numbered, on two axes, where the inner encoding was built for one
        if any(isinstance(part, RandomWrapper) for part in self.inner.modules()):
            raise ValueError(f"encoding 'raster' cannot have {of!r} inside, but can be inside it")
        # numbers of neighbours in a row are 1 apart, in a column a row's length
        self.isotropic = self.inner.isotropic and (spec.num_axes == 1 or self.blind)

    def numbers(self, positions: Tensor) -> Tensor:
        """Return the numbers of the cells, different for all cells: (L, 1)."""
        number = torch.zeros_like(positions[:, :1])
        # at least the trained width, so that cells keep their numbers in smaller images
        spans = positions.amax(dim=0) - positions.amin(dim=0) + 1
        for axis, size in enumerate(self.spec.extent):
            number = number * spans[axis].clamp(min=size) + positions[:, axis : axis + 1]
        return number

    def prepare(self, positions: Tensor) -> object:
        """Return what the other encoding prepares of the numbers."""
        return self.inner.prepare(self.numbers(positions))
