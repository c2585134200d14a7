"""Generated images of coloured cells whose label depends on where the cells are, and on nothing else."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, TensorDataset

from pebench.data.base import SPLITS, Prepared
from pebench.data.images import Images
from pebench.errors import UserError

CELL = 2
"""Side of a cell in pixels: a patch of the models that are trained on them."""

RED, GREEN, BLUE = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


class Cells(Images):
    """Images of 8 by 8 cells, all different; larger ones, which `beyond` gives, have more cells of the same size."""

    SIZES: ClassVar[Mapping[str, int]] = {"train": 20_000, "val": 1_000, "test": 2_000}
    SIDE: ClassVar[int] = 8
    """Cells in a row."""

    @abstractmethod
    def draw(self, count: int, side: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Return images of `side` by `side` cells, and their labels; up to `count` of them.

        Args:
            count: Number of images to draw; some may be left out, as they have no answer.
            side: Cells in a row.
            noise: Source of all randomness.

        Returns:
            The cells as pixels (images, side, side, cell, cell, colours), bytes, and the labels (images,).
        """

    def read(self) -> Prepared:
        """Draw images, all different, and deal them out to the splits."""
        noise, wanted = Generator().manual_seed(0), sum(self.SIZES.values())
        images, labels = self._images(2 * wanted, self.SIDE, noise)
        first = _first_of_each(images.flatten(1))
        kept = first[torch.randperm(len(first), generator=noise)][:wanted]
        if len(kept) < wanted:
            raise UserError(f"{self.title}: expected {wanted:,} different images, got {len(kept):,}.")
        parts = kept.split([self.SIZES[name] for name in SPLITS])
        tensors = dict[str, Tensor]()
        for name, part in zip(SPLITS, parts, strict=True):
            tensors |= {f"{name}_images": images[part], f"{name}_labels": labels[part]}
        return Prepared(tensors, self.normalisation(tensors["train_images"]))

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield the images with their patches in random order, a control, and as many larger ones."""
        yield from super().beyond(())
        for factor in factors:
            if factor not in self.untestable(factors):
                noise = Generator().manual_seed(1)
                images, labels = self._images(2 * self.SIZES["test"], round(factor * self.SIDE), noise)
                kept = slice(self.SIZES["test"])
                yield f"{factor:g}x", self._all_of(TensorDataset(images[kept], labels[kept]), size=factor**2)

    def _images(self, count: int, side: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Return images (count, 3, pixels, pixels) and labels."""
        cells, labels = self.draw(count, side, noise)
        pixels = cells.permute(0, 5, 1, 3, 2, 4)  # images, colours, row of cells, row in it, column of cells, in it
        return pixels.reshape(len(cells), 3, side * CELL, side * CELL).contiguous(), labels


def _first_of_each(rows: Tensor) -> Tensor:
    """Return the place at which each of the different rows stands first."""
    different, group = rows.unique(dim=0, return_inverse=True)
    none = torch.full((len(different),), len(rows), dtype=torch.long)
    return none.scatter_reduce_(0, group, torch.arange(len(rows)), "amin")


class ThreeCells(Cells):
    """A red, a green and a blue cell on black: is the green (0) or the blue one (1) nearer to the red one?

    After the three-cell images of LOOPE (Chowdhury et al., arXiv 2504.14386). Nearness is Euclidean; images in which
    both are equally near are left out. A model without positions sees the same three patches in every image.
    """

    title, num_classes = "three_cells", 2

    def draw(self, count: int, side: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Three different cells of each image."""
        chance = torch.rand((count, side**2), generator=noise, dtype=torch.float32)
        places = chance.topk(3, dim=1).indices
        rows_and_columns = torch.stack((places // side, places % side), dim=2)  # (images, 3, 2)
        green, blue = (rows_and_columns[:, 1:] - rows_and_columns[:, :1]).square().sum(2).unbind(1)
        decided = green != blue
        places, green, blue = places[decided], green[decided], blue[decided]
        cells = torch.zeros((len(places), side**2, 3), dtype=torch.uint8)
        colours = torch.tensor([RED, GREEN, BLUE], dtype=torch.uint8).expand(len(places), -1, -1)
        cells.scatter_(1, places[:, :, None].expand(-1, -1, 3), colours)
        whole = cells.view(-1, side, side, 1, 1, 3).expand(-1, -1, -1, CELL, CELL, -1)
        return whole, (blue < green).long()


class RelativeCell(Cells):
    """Cells of eight colours and a marker that points up, down, left or right: which colour has the cell there?

    The marker has no colour of its own: the half of it that is white is the side to which it points, the other half is
    black. It is never at the border.

    A model without positions can name the colour that most cells have, and is right in about 18 % of images.
    """

    title, num_classes = "relative_cell", 8
    STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))

    def draw(self, count: int, side: int, noise: Generator) -> tuple[Tensor, Tensor]:
        """Colours, and the place and the direction of the marker."""
        colour = torch.randint(8, (count, side, side), generator=noise)
        place = torch.randint(1, side - 1, (count, 2), generator=noise)
        direction = torch.randint(4, (count,), generator=noise)
        image, (row, column) = torch.arange(count), place.unbind(1)
        there = (place + torch.tensor(self.STEPS)[direction]).unbind(1)
        palette = torch.tensor([[255 * (n >> bit & 1) for bit in range(3)] for n in range(8)], dtype=torch.uint8)
        cells = palette[colour][:, :, :, None, None].repeat(1, 1, 1, CELL, CELL, 1)
        cells[image, row, column] = self._markers()[direction]
        return cells, colour[image, there[0], there[1]]

    @staticmethod
    def _markers() -> Tensor:
        """Return the marker for each direction: (4, cell, cell, 3)."""
        half = torch.arange(CELL) < CELL // 2
        down, right = half[:, None].expand(-1, CELL), half[None, :].expand(CELL, -1)
        white = torch.stack((down, ~down, right, ~right))
        return (255 * white)[..., None].expand(-1, -1, -1, 3).to(torch.uint8)
