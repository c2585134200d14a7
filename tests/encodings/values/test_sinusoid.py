"""Golden values of the two choices that a sinusoid offers: centred, and the slowest channels of a wider one."""

import itertools
import math

import pytest
import torch

from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.encodings.base import grid_positions

from .helpers import Matrix, Position, noise, text_and_grid, wave

LINE, PLANE = (8,), (3, 5)


def encode(name: str, extent: tuple[int, ...], *, width: int = 32, **options) -> PositionalEncoding:
    return build_encoding(name, EncodingSpec(width, 2, 2, extent, causal=False), options)


def assert_same(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> None:
    torch.testing.assert_close(a, b, atol=tolerance, rtol=0)


def slow(position: Position, width: int, base: float, wide: int) -> list[float]:
    """The last channels of each axis of a wider sinusoid."""
    axes = len(position)
    row, n = wave(position, wide, base), wide // axes
    return [row[axis * n + c] for axis in range(axes) for c in range(n - width // axes, n)]


def centred(positions: list[Position], width: int, base: float, ratio: float, extent: tuple[int, ...], wide: int):
    """Rows minus the mean over the trained cells, over the root mean square of what is left in those."""
    cells = [tuple(map(float, cell)) for cell in itertools.product(*map(range, extent))]
    trained: Matrix = [slow(cell, width, base, wide) for cell in cells]
    mean = [sum(column) / len(cells) for column in zip(*trained, strict=True)]
    left = [x - m for row in trained for x, m in zip(row, mean, strict=True)]
    scale = ratio / math.sqrt(sum(x * x for x in left) / len(left))
    return [[(x - m) * scale for x, m in zip(slow(p, width, base, wide), mean, strict=True)] for p in positions]


@text_and_grid
@pytest.mark.parametrize("wide", [8, 16])
@pytest.mark.parametrize("ratio", [1.0, 0.25])
def test_a_centred_sinusoid_has_no_mean_and_enters_at_the_same_scale(positions, wide, ratio):
    """Added and concatenated; what is subtracted beyond the trained positions is the mean over the trained ones."""
    extent = (9,) * len(positions[0])
    options = {"d_p": 8, "base": 50.0, "ratio": ratio, "slowest_of": wide, "centered": True}
    add, concat = encode("add", extent, width=20, **options), encode("concat", extent, width=20, **options)
    content, expected = noise(2, 5, 20), torch.tensor(centred(positions, 8, 50.0, ratio, extent, wide))
    summed = add.embed(content, add.prepare(torch.tensor(positions)))
    assert_same(summed[..., 12:], content[..., 12:] + expected, 2e-6)
    beside = concat.embed(content[..., :12], concat.state(torch.tensor(positions)))
    assert_same(beside[..., 12:], expected.expand(2, -1, -1), 2e-6)
    trained = concat.state(grid_positions(extent))
    assert_same(trained.mean(dim=0), torch.zeros(8), 1e-6)
    assert trained.square().mean().sqrt().item() == pytest.approx(ratio, rel=1e-5)


@text_and_grid
def test_slowest_channels_are_those_of_a_wider_sinusoid(positions):
    """Of each axis the last ones, as wavelengths grow."""
    extent = (9,) * len(positions[0])
    expected = 0.5 * torch.tensor([slow(p, 8, 50.0, 24) for p in positions])
    for name in ("add", "concat"):
        encoding = encode(name, extent, width=20, d_p=8, base=50.0, ratio=0.5, slowest_of=24)
        encoded = encoding.embed(torch.zeros(1, 5, encoding.content_width), encoding.state(torch.tensor(positions)))
        assert_same(encoded[0, :, 12:], expected, 1e-6)


@pytest.mark.parametrize(
    ("text", "extent", "message"),
    [
        ("add(slowest_of=16)", LINE, "slowest_of of encoding 'add' must be at least its 32 channels, got 16"),
        ("concat(d_p=4, slowest_of=6)", PLANE, "slowest_of of encoding 'concat' must be a positive multiple of 4"),
        ("add(centered=True)", (1,), "encoding 'add' with centered=True needs two trained positions or more, got one"),
        ("concat(centered=True, table=learned)", LINE, "centered and slowest_of of encoding 'concat' need table=sinus"),
        ("concat-qk(centered=True, table=learned)", LINE, "centered and slowest_of of encoding 'concat-qk' need table"),
    ],
)
def test_choices_that_a_sinusoid_cannot_meet_are_refused(text, extent, message):
    with pytest.raises(ValueError, match=message):
        encode(text, extent)
