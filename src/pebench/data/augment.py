"""Augmentation of a batch of images on its device, with random numbers that depend on seed and step alone."""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pebench.config import Augmentation
from pebench.data.randaugment import OPERATIONS, rand_augment
from pebench.seeding import stream


@dataclass(frozen=True)
class Draws:
    """Streams of random numbers for the images of one training step, one for each purpose.

    They are drawn on the CPU, so that a seed means the same on every device, and for the whole batch, so that it means
    the same for any number of processes: each takes those of its images.

    Args:
        seed: The run's seed.
        step: Optimizer step.
        count: Images of this process.
        share: Index of this process and number of processes.
    """

    seed: int
    step: int
    count: int
    share: tuple[int, int] = (0, 1)

    def noise(self, purpose: str) -> Generator:
        """Return the generator of a purpose, at its beginning."""
        return Generator().manual_seed(stream(self.seed, purpose, self.step))

    def uniform(self, noise: Generator, rows: int) -> Tensor:
        """Return numbers from 0 to below 1: (rows, images of this process)."""
        rank, processes = self.share
        drawn = torch.rand((rows, self.count * processes), generator=noise, dtype=torch.float64)
        return drawn[:, rank::processes]


def change_bytes(images: Tensor, asked: Augmentation, draws: Draws) -> Tensor:
    """Apply what is asked of images as bytes, which is RandAugment: (B, channels, side, side), to the same shape."""
    count, magnitude = asked.operations
    if not count:
        return images
    drawn = draws.uniform(draws.noise("randaugment"), 2 * count)
    operations = (drawn[:count] * len(OPERATIONS)).long()
    return rand_augment(images, operations, 2 * (drawn[count:] < 0.5) - 1, magnitude)


def change_floats(
    images: Tensor, labels: Tensor, classes: int, asked: Augmentation, draws: Draws
) -> tuple[Tensor, Tensor]:
    """Apply what is asked of normalised images and their labels.

    Args:
        images: (B, channels, side, side).
        labels: (B,).
        classes: Number of classes.
        asked: The augmentation.
        draws: Its random numbers.

    Returns:
        Images of the same shape, and the labels as they are, or (B, classes), shares that add up to 1, if images are
        mixed or labels smoothed.
    """
    if asked.erasing:
        images = erased(images, asked.erasing, draws)
    if asked.label_smoothing or asked.mixes:
        # Not by `one_hot`, which has an accelerator look for labels out of range.
        labels = (labels[:, None] == torch.arange(classes, device=labels.device)).float()
        labels = labels * (1 - asked.label_smoothing) + asked.label_smoothing / classes  # Szegedy et al. 2016
    if asked.mixes:
        images, labels = mixed(images, labels, asked, draws)
    return images, labels


def erased(images: Tensor, probability: float, draws: Draws) -> Tensor:
    """Erase a rectangle in some images: random erasing by Zhong et al. 2020, with the defaults of torchvision.

    A rectangle has 0.02 to 0.33 of the area of an image, and is 0.3 to 3.3 times as high as it is wide. One that does
    not fit is drawn again, ten times at most. Zero, the mean of normalised images, takes its place.

    Args:
        images: (B, channels, side, side), normalised.
        probability: Share of the images that lose a rectangle.
        draws: Random numbers.
    """
    side, tries, noise = images.shape[-1], 10, draws.noise("erasing")
    area = side**2 * (0.02 + 0.31 * draws.uniform(noise, tries))
    ratio = (math.log(0.3) + math.log(3.3 / 0.3) * draws.uniform(noise, tries)).exp()
    heights, widths = (area * ratio).sqrt().round(), (area / ratio).sqrt().round()  # (tries, B)
    fits = (heights < side) & (widths < side)
    first = fits.int().argmax(0, keepdim=True)  # of equal numbers the first
    height, width = heights.gather(0, first)[0], widths.gather(0, first)[0]
    chance, down, right = draws.uniform(noise, 3)
    top, left = (down * (side - height + 1)).floor(), (right * (side - width + 1)).floor()
    box = rectangles(top, top + height, left, left + width, side, images.device)
    loses = ((chance < probability) & fits.any(0)).to(images.device)
    return images.masked_fill((box & loses[:, None, None])[:, None], 0)


def mixed(images: Tensor, labels: Tensor, asked: Augmentation, draws: Draws) -> tuple[Tensor, Tensor]:
    """Mix each image with that half a batch away, and their labels: mixup by Zhang et al. 2018, CutMix by Yun et al.

    Mixup weights both images, CutMix (2019) puts a rectangle of the other into an image, at its place. With mixup and
    CutMix both, each image draws one of them. Each image draws its weight from Beta(alpha, alpha), where the papers
    draw one for a batch. Half a batch, as then any number of processes whose parts are even has the same pairs.

    Args:
        images: (B, channels, side, side).
        labels: (B, classes), shares.
        asked: The augmentation, which mixes.
        draws: Random numbers.
    """
    from scipy.special import betaincinv  # imported late: it takes a moment

    side = images.shape[-1]
    which, level, down, right = draws.uniform(draws.noise("mixing"), 4)
    cuts = which < (0.5 if asked.mixup and asked.cutmix else float(asked.cutmix > 0))
    alpha = asked.cutmix * cuts.double() + asked.mixup * (~cuts).double()
    kept = torch.as_tensor(betaincinv(alpha, alpha, level))
    half = (side * (1 - kept).sqrt() / 2).floor()  # as torchvision's CutMix: a middle that is drawn, and what fits
    row, column = (down * side).floor(), (right * side).floor()
    box = rectangles(row - half, row + half, column - half, column + half, side, images.device)
    cuts, kept = cuts.to(images.device), kept.float().to(images.device)
    weight = torch.where(cuts[:, None, None], (~box).float(), kept[:, None, None])  # (B, side, side), of the image
    images = images.lerp(images.roll(len(images) // 2, 0), 1 - weight[:, None])
    return images, labels.lerp(labels.roll(len(labels) // 2, 0), 1 - weight.mean((1, 2))[:, None])


def rectangles(top: Tensor, bottom: Tensor, left: Tensor, right: Tensor, side: int, device: torch.device) -> Tensor:
    """Return masks (B, side, side), on a device, of the pixels from top and left to before bottom and right (B,)."""
    line = torch.arange(side)
    rows = (line >= top[:, None]) & (line < bottom[:, None])
    columns = (line >= left[:, None]) & (line < right[:, None])
    return rows.to(device)[:, :, None] & columns.to(device)[:, None, :]
