"""Generated images of cells: every label is what a reader would say, at the trained size and beyond."""

import pytest
import torch
from torch import Generator, Tensor

from pebench.data.cells import BLUE, CELL, GREEN, RED, Cells, RelativeCell, ThreeCells
from pebench.data.images import shuffle_patches
from pebench.errors import UserError


def cells_of(image: Tensor) -> list[list[Tensor]]:
    """The cells of an image (3, pixels, pixels), each (cell, cell, 3), by row and column."""
    side = image.shape[-1] // CELL
    pixels = image.permute(1, 2, 0)
    return [
        [pixels[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL] for column in range(side)]
        for row in range(side)
    ]


def nearer(image: Tensor) -> int:
    places = {}
    for row, line in enumerate(cells_of(image)):
        for column, cell in enumerate(line):
            assert len(cell.reshape(-1, 3).unique(dim=0)) == 1
            if tuple(cell[0, 0].tolist()) != (0, 0, 0):
                places[tuple(cell[0, 0].tolist())] = (row, column)
    assert {*places} == {RED, GREEN, BLUE}
    green, blue = (
        (places[colour][0] - places[RED][0]) ** 2 + (places[colour][1] - places[RED][1]) ** 2
        for colour in (GREEN, BLUE)
    )
    assert green != blue
    return int(blue < green)


def pointed_at(image: Tensor) -> int:
    found, cells = [], cells_of(image)
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            if len(cell.reshape(-1, 3).unique(dim=0)) > 1:
                found.append((row, column, cell[..., 0] > 0))
    ((row, column, white),) = found
    step = {
        (True, True, False, False): (-1, 0), (False, False, True, True): (1, 0),
        (True, False, True, False): (0, -1), (False, True, False, True): (0, 1),
    }[tuple(white.flatten().tolist())]  # fmt: skip
    red, green, blue = (cells[row + step[0]][column + step[1]][0, 0] > 0).int().tolist()
    return red + 2 * green + 4 * blue


@pytest.mark.parametrize(("data", "answer"), [(ThreeCells, nearer), (RelativeCell, pointed_at)])
@pytest.mark.parametrize("side", [8, 12, 16])
def test_a_label_is_what_a_reader_would_say(data: type[Cells], answer, side: int) -> None:
    images, labels = data(patch_size=CELL)._images(200, side, Generator().manual_seed(3))
    assert images.dtype == torch.uint8
    assert images.shape[1:] == (3, CELL * side, CELL * side)
    assert labels.tolist() == [answer(image) for image in images]
    assert {*labels.tolist()} == {*range(data.num_classes)}


@pytest.mark.parametrize("data", [ThreeCells, RelativeCell])
def test_splits_share_no_image(data: type[Cells], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "SIZES", {"train": 300, "val": 30, "test": 50})
    prepared = data(patch_size=CELL).read()
    tensors = prepared.tensors
    assert prepared.meta == data().normalisation(tensors["train_images"])
    images = torch.cat([tensors[f"{name}_images"] for name in ("train", "val", "test")])
    assert images.shape == (380, 3, 16, 16)
    assert len(images.flatten(1).unique(dim=0)) == 380


def test_larger_ones_have_more_cells_and_patches_without_order_are_a_control() -> None:
    data = ThreeCells(patch_size=CELL)
    data.SIZES = {"train": 300, "val": 30, "test": 50}  # type: ignore[misc]
    data._prepared = data.read()
    loaders = dict(data.beyond((1.5, 2)))
    assert [*loaders] == ["shuffled", "1.5x", "2x"]
    for name, side in (("1.5x", 24), ("2x", 32)):
        images = torch.cat([batch[0] for batch in loaders[name]])
        labels = torch.cat([batch[1] for batch in loaders[name]])
        assert images.shape == (50, 3, side, side)
        assert labels.tolist() == [nearer(image) for image in images]
    shuffled = torch.cat([batch[0] for batch in loaders["shuffled"]])
    again = shuffle_patches(data.prepared.tensors["test_images"], CELL, Generator().manual_seed(0))
    assert torch.equal(shuffled, again)


def test_too_few_different_images_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreeCells, "SIDE", 3)  # with 504 places of three cells
    with pytest.raises(UserError, match="different images"):
        ThreeCells(patch_size=CELL).read()
