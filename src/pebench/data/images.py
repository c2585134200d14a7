"""Images: CIFAR-10 by torchvision, and scikit-learn's digits."""

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pixel_shuffle, pixel_unshuffle
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pebench.config import Augmentation
from pebench.data.augment import Draws, change_bytes, change_floats
from pebench.data.base import SPLITS, Prepared, TensorDataModule, commonest_share, every_tenth
from pebench.data.checks import check_numbers, check_parts
from pebench.errors import UserError
from pebench.formatting import first_line
from pebench.tasks import sources


class Images(TensorDataModule):
    """Images kept as bytes, normalised and augmented on the device, a whole batch at a time.

    Args:
        batch_size: Images in a training batch.
        seed: Decides order and augmentation.
        patch_size: Side of a patch in pixels; passed on to the model.
        data_dir: Local folder with a copy of the source.
        augmentation: Changes of training images besides crops and flips; by default none.
    """

    num_classes = 10
    crop_padding = 0
    """Pixels of black around a training image before a random crop; 0 for neither crops nor flips."""

    def __init__(
        self,
        batch_size: int = 128,
        seed: int = 0,
        patch_size: int = 4,
        data_dir: Path | None = None,
        augmentation: Augmentation | None = None,
    ) -> None:
        super().__init__(batch_size, seed, data_dir)
        self.patch_size, self.augmentation = patch_size, augmentation or Augmentation()

    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return images (count, channels, side, side) as bytes, and labels."""
        tensors = self.prepared.tensors
        return TensorDataset(tensors[f"{name}_images"], tensors[f"{name}_labels"]), None

    def check(self) -> None:
        """Refuse splits without images, images that are not bytes, and labels that a model does not have."""
        parts = ("images", "labels")
        check_parts(self.title, self.prepared.tensors, (f"{name}_{part}" for name in SPLITS for part in parts))
        check_parts(self.title, self.prepared.meta, ("mean", "std"), "meta values")
        super().check()
        for name in SPLITS:
            images, labels = (self.prepared.tensors[f"{name}_{part}"] for part in parts)
            if images.dtype != torch.uint8 or images.ndim != 4:
                raise UserError(
                    f"{self.title}: images of the split {name}: expected torch.uint8 of (count, channels, side, side), "
                    f"got {images.dtype} of {tuple(images.shape)}."
                )
            check_numbers(labels, self.describe().get("num_classes"), f"{self.title}: labels of the split {name}")

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield the images with their patches in random order, a control, and enlarged, where that gives whole patches.

        They are enlarged by bilinear interpolation, and fewer in a batch.
        """
        images, labels = self.prepared.tensors["test_images"], self.prepared.tensors["test_labels"]
        noise = torch.Generator().manual_seed(0)  # the same order every time
        yield "shuffled", self._all_of(TensorDataset(shuffle_patches(images, self.patch_size, noise), labels))
        refused = self.untestable(factors)
        for factor in factors:
            if factor in refused:
                continue
            side = round(factor * images.shape[-1])
            larger = torch.nn.functional.interpolate(images, (side, side), mode="bilinear", antialias=True)
            yield f"{factor:g}x", self._all_of(TensorDataset(larger, labels), size=factor**2)

    def untestable(self, factors: Sequence[float]) -> dict[float, str]:
        """Return the sizes that end in a part of a patch, which has no position."""
        side = self.prepared.tensors["test_images"].shape[-1]
        return {
            factor: f"{factor * side:g} pixels are no whole number of patches of {self.patch_size}"
            for factor in factors
            if not (factor * side / self.patch_size).is_integer()
        }

    def chance(self) -> dict[str, float]:
        """Return the accuracy on the test split of the class that is the most frequent one in training."""
        return commonest_share(self.prepared.tensors)

    def describe(self) -> dict[str, Any]:
        """Return the shape of the images, and the number of classes."""
        channels, side = self.prepared.tensors["train_images"].shape[1:3]
        return {
            "image_size": side, "channels": channels, "patch_size": self.patch_size, "num_classes": self.num_classes,
        }  # fmt: skip

    def on_after_batch_transfer(self, batch: tuple[Tensor, Tensor], dataloader_idx: int) -> tuple[Tensor, Tensor]:
        """Augment a training batch, and make floats of zero mean and unit variance."""
        images, labels = batch
        draws = None
        if self.trainer is not None and self.trainer.training:
            # From the step, so that a run that is resumed augments as it would have.
            draws = Draws(self.seed, self.trainer.global_step, len(images), self.share)
            if self.crop_padding:
                images = crop_and_flip(images, self.crop_padding, draws.noise("augment"), self.share)
            images = change_bytes(images, self.augmentation, draws)
        mean, std = (
            torch.tensor(self.prepared.meta[key], device=images.device, dtype=torch.float32)[:, None, None]
            for key in ("mean", "std")
        )
        floats = (images.float() / 255 - mean) / std
        return change_floats(floats, labels, self.num_classes, self.augmentation, draws) if draws else (floats, labels)

    def normalisation(self, train_images: Tensor) -> dict[str, list[float]]:
        """Return mean and standard deviation of each channel over the training images, as shares of 255."""
        values = torch.arange(256, dtype=torch.float64) / 255
        counts = torch.stack([channel.flatten().bincount(minlength=256) for channel in train_images.unbind(1)])
        shares = counts.double() / counts.sum(1, keepdim=True)  # a histogram: the images as floats would take gigabytes
        mean = shares @ values
        std = (shares @ values**2 - mean**2).sqrt()
        digits = 6  # more would differ between processors, and with them the fingerprint
        return {"mean": mean.round(decimals=digits).tolist(), "std": std.round(decimals=digits).tolist()}


def shuffle_patches(images: Tensor, patch_size: int, noise: torch.Generator) -> Tensor:
    """Shuffle the patches of each image.

    Args:
        images: (B, channels, side, side).
        patch_size: Side of a patch in pixels; divides the image's.
        noise: Generator of an order for each image.

    Returns:
        The same shape.
    """
    grid = pixel_unshuffle(images, patch_size)  # (B, channels·patch², rows, columns)
    patches = grid.flatten(2)  # (B, numbers of a patch, patches)
    chance = torch.rand((len(patches), patches.shape[2]), generator=noise, dtype=torch.float32)
    shuffled = patches.gather(2, chance.argsort(dim=1)[:, None].expand_as(patches))
    return pixel_shuffle(shuffled.view_as(grid), patch_size)


def crop_and_flip(images: Tensor, padding: int, noise: torch.Generator, share: tuple[int, int] = (0, 1)) -> Tensor:
    """Shift each image by up to `padding` pixels, black moving in, and mirror half of them.

    Args:
        images: (B, channels, side, side).
        padding: Largest shift in pixels.
        noise: Generator on the CPU, so that a seed means the same on every device.
        share: Index of this process and number of processes: all draw for the whole batch, of which each has its part.

    Returns:
        The same shape.
    """
    count, _, side, _ = images.shape
    rank, processes = share
    shift = torch.randint(0, 2 * padding + 1, (2, count * processes, 1), generator=noise)[:, rank::processes]
    mirror = torch.randint(0, 2, (count * processes, 1), generator=noise, dtype=torch.bool)[rank::processes]
    line = torch.arange(side)
    # A crop and a mirror are one gather: of each output pixel, the row and the column that it comes from.
    rows = shift[0] + line
    columns = shift[1] + torch.where(mirror, line.flip(0), line)
    padded = torch.nn.functional.pad(images, [padding] * 4)
    example = torch.arange(count, device=images.device)[:, None, None]
    rows, columns = rows.to(images.device)[:, :, None], columns.to(images.device)[:, None, :]
    # Three index tensors around a slice: PyTorch puts the dimension of the slice last.
    crops = padded[example, :, rows, columns]  # (B, side, side, channels)
    return crops.permute(0, 3, 1, 2).contiguous()  # (B, channels, side, side)


class CIFAR10(Images):
    """CIFAR-10: 45,000 training, 5,000 validation and 10,000 test images of 32x32 pixels."""

    title, source = "cifar10", sources.CIFAR10
    crop_padding = 4

    def read(self) -> Prepared:
        """Read with torchvision, which checks every file's MD5; download if there is no local copy."""
        from torchvision.datasets import CIFAR10 as Torchvision  # noqa: N811
        from torchvision.datasets.cifar import check_integrity

        sources.check_available(self.source, self.data_dir)
        root, downloads = sources.files_folder(self.data_dir), self.data_dir is None
        try:
            caching = sources.writing(root) if downloads else contextlib.nullcontext()
            with caching, contextlib.redirect_stdout(io.StringIO()):  # torchvision prints that the files are there
                train = Torchvision(root, train=True, download=downloads)
            test = Torchvision(root, train=False)
        except (RuntimeError, OSError) as error:
            expected = [*Torchvision.train_list, *Torchvision.test_list]
            expected.append([Torchvision.meta["filename"], Torchvision.meta["md5"]])
            folder = root / Torchvision.base_folder
            damaged = [str(folder / name) for name, md5 in expected if not check_integrity(folder / name, md5)]
            raise UserError(
                f"CIFAR-10 in {root} is damaged or incomplete: {', '.join(damaged) or first_line(error)}. "
                f"Replace it, by that of {self.source}."
            ) from error
        # (count, 32, 32, 3) to (count, 3, 32, 32)
        images = torch.from_numpy(np.ascontiguousarray(train.data.transpose(0, 3, 1, 2)))
        labels = torch.tensor(train.targets)
        kept, held_out = every_tenth(len(labels))
        tensors = {
            "train_images": images[kept], "train_labels": labels[kept],
            "val_images": images[held_out], "val_labels": labels[held_out],
            "test_images": torch.from_numpy(np.ascontiguousarray(test.data.transpose(0, 3, 1, 2))),
            "test_labels": torch.tensor(test.targets),
        }  # fmt: skip
        return Prepared(tensors, self.normalisation(tensors["train_images"]))


class Digits(Images):
    """Scikit-learn's digits: 1,797 grey images of 8x8 pixels."""

    title = "digits"

    def read(self) -> Prepared:
        """Read from scikit-learn, which ships them."""
        from sklearn.datasets import load_digits

        digits = load_digits()
        # The source has 17 levels of grey, from 0 to 16.
        images = torch.from_numpy(digits.images * 255 / 16).round().to(torch.uint8)[:, None]
        labels = torch.from_numpy(digits.target).long()
        turn = torch.arange(len(labels)) % 5
        tensors: dict[str, Tensor] = {}
        for name, chosen in zip(SPLITS, (turn < 3, turn == 3, turn == 4), strict=True):
            tensors |= {f"{name}_images": images[chosen], f"{name}_labels": labels[chosen]}
        return Prepared(tensors, self.normalisation(tensors["train_images"]))
