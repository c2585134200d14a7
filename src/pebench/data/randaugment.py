"""RandAugment on a whole batch, of which each image has operations of its own."""

import math

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from pebench.config.augmentation import STRONGEST

OPERATIONS = (
    "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
    "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize",
)  # fmt: skip
"""Names of the operations, as in torchvision and in its order."""


def rand_augment(images: Tensor, operations: Tensor, signs: Tensor, magnitude: int) -> Tensor:
    """Apply to each image the operations that it drew: RandAugment by Cubuk et al. 2020.

    Operations and magnitudes are those of `torchvision.transforms.v2.RandAugment` with its defaults: the nearest pixel,
    and black moves in. That one draws an operation for all of a batch; here each image has its own, and the images that
    drew related ones are computed together, with their amounts as a tensor. A batch takes 290 operations of PyTorch;
    torchvision's functions, called for each operation and direction, take 2,100, and depend on the default type. Where
    rounding decides, a pixel may differ from torchvision's by one level of 256, or be the neighbour of its pixel.

    Args:
        images: (B, 1 or 3, side, side), bytes.
        operations: (rounds, B), places in `OPERATIONS`; on the CPU, as is the next.
        signs: (rounds, B), -1 or 1: the direction of operations that have two.
        magnitude: From 0 to 30.

    Returns:
        The same shape.
    """
    strength = magnitude / STRONGEST
    images = images.clone()
    for kinds, directions in zip(operations, signs, strict=True):
        for first, end, family in ((1, 6, moved), (6, 10, blended), (10, 14, remapped)):
            rows = ((kinds >= first) & (kinds < end)).nonzero()[:, 0]
            if len(rows):  # known on the CPU, so that an accelerator is not waited for
                here = rows.to(images.device)
                images[here] = family(images[here], kinds[rows] - first, directions[rows], strength)
    return images


def moved(images: Tensor, kinds: Tensor, signs: Tensor, strength: float) -> Tensor:
    """Shear by up to 0.3, shift by up to 150/331 of the side, or rotate by up to 30 degrees.

    Args:
        images: (B, channels, side, side).
        kinds: (B,), on the CPU: shear along rows or columns, shift along rows or columns, rotation.
        signs: (B,), on the CPU.
        strength: From 0 to 1.
    """
    side = images.shape[-1]
    maps = torch.tensor([_maps(side, strength, sign) for sign in (-1, 1)], dtype=torch.float32)
    maps = maps[(signs > 0).long(), kinds].to(images.device)  # (B, 2, 3)
    line = torch.arange(side, dtype=torch.float32, device=images.device) + 0.5  # middles of pixels
    places = maps[..., :1, None] * line + maps[..., 1:2, None] * line[:, None] + maps[..., 2:, None]
    columns, rows = places.floor().long().unbind(1)  # (B, side, side) each
    inside = (columns >= 0) & (columns < side) & (rows >= 0) & (rows < side)
    source = (rows * side + columns).clamp(0, side * side - 1).flatten(1)[:, None]
    found = images.flatten(2).gather(2, source.expand(-1, images.shape[1], -1)).view_as(images)
    return found * inside[:, None]


def _maps(side: int, strength: float, sign: int) -> list[list[list[float]]]:
    """Return, for each operation of `moved`, the rows of [A b]: an output pixel at (x, y) comes from A (x, y) + b."""
    shear, shift, turn = 0.3 * strength * sign, int(150 / 331 * side * strength) * sign, 30 * strength * sign
    cos, sin, middle = math.cos(math.radians(turn)), math.sin(math.radians(turn)), side / 2
    return [
        [[1, shear, 0], [0, 1, 0]],
        [[1, 0, 0], [shear, 1, 0]],
        [[1, 0, -shift], [0, 1, 0]],
        [[1, 0, 0], [0, 1, -shift]],
        [[cos, -sin, middle * (1 - cos + sin)], [sin, cos, middle * (1 - cos - sin)]],
    ]


def blended(images: Tensor, kinds: Tensor, signs: Tensor, strength: float) -> Tensor:
    """Move an image towards another one, or away from it, by up to 0.9 of the way.

    Args:
        images: (B, channels, side, side).
        kinds: (B,), on the CPU: the other is black, the image in grey, its mean grey, or the blurred image.
        signs: (B,), on the CPU: -1 is towards the other.
        strength: From 0 to 1.
    """
    floats = images.float()
    grey = floats
    if images.shape[1] == 3:
        grey = (floats * floats.new_tensor([0.2989, 0.587, 0.114])[:, None, None]).sum(1, keepdim=True).floor()
    blurred = floats.clone()
    if images.shape[-1] > 2:  # else all pixels are of the edge, which stays
        channels = images.shape[1]
        kernel = torch.ones((3, 3), dtype=torch.float32, device=images.device)
        kernel[1, 1] = 5
        around = conv2d(floats, (kernel / 13).expand(channels, 1, 3, 3), groups=channels)
        blurred[..., 1:-1, 1:-1] = around.round()
    mean = grey.mean(dim=(1, 2, 3), keepdim=True)
    others = [torch.zeros_like(floats), grey.expand_as(floats), mean.expand_as(floats), blurred]
    other = chosen(others, kinds)
    factor = (1 + 0.9 * strength * signs.float()).to(images.device)[:, None, None, None]
    return torch.lerp(other, floats, factor).clamp(0, 255).to(torch.uint8)


def remapped(images: Tensor, kinds: Tensor, signs: Tensor, strength: float) -> Tensor:
    """Give each level of an image another one.

    Args:
        images: (B, channels, side, side).
        kinds: (B,), on the CPU: fewer levels (by up to four bits), the negative of bright pixels (from 255 down to 0),
            levels stretched to all that there are, or made equally frequent.
        signs: Not used.
        strength: From 0 to 1.
    """
    coarse = images & (256 - 2 ** round(4 * strength))
    solarized = torch.where(images >= math.ceil(255 * (1 - strength)), 255 - images, images)
    return chosen([coarse, solarized, stretched(images), equalized(images)], kinds)


def stretched(images: Tensor) -> Tensor:
    """Return images whose darkest level is 0 and whose brightest is 255, in each channel that has two levels."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    scale = (high - low).float() * (1 / 255)
    return torch.where(high > low, ((images - low) / scale).clamp(0, 255), images).to(torch.uint8)


def equalized(images: Tensor) -> Tensor:
    """Return images with equally frequent levels in each channel, as Pillow and torchvision do it."""
    levels = images.flatten(2).long()  # (B, channels, pixels)
    counts = levels.new_zeros((*levels.shape[:2], 256))
    counts.scatter_add_(2, levels, torch.ones_like(levels))
    below = counts.cumsum(2)
    # The brightest level that occurs, which counts for nothing: all pixels are below it or of it.
    last = counts.gather(2, levels.amax(2, keepdim=True))
    step = (levels.shape[2] - last) // 255
    # Pixels below a level, of which a step makes the next; black stays black.
    table = (torch.cat([torch.zeros_like(last), below[..., :-1] + step // 2], dim=2) // step.clamp(min=1)).clamp(0, 255)
    return torch.where(step > 0, table.gather(2, levels), levels).view_as(images).to(torch.uint8)


def chosen(versions: list[Tensor], kinds: Tensor) -> Tensor:
    """Return of each image the version that its kind names."""
    kinds = kinds.to(versions[0].device)
    return torch.stack(versions)[kinds, torch.arange(len(kinds), device=kinds.device)]
