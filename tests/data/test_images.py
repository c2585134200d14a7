"""Images: normalised, augmented by seed and step, split by the published rule."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from pebench.data.base import TensorDataModule
from pebench.data.images import crop_and_flip
from tests.data.copies import load, seeded, watch

# Images


def noisy(count: int = 64, side: int = 8) -> Tensor:
    return torch.randint(0, 256, (count, 3, side, side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


def one_by_one(images: Tensor, padding: int, noise: torch.Generator) -> Tensor:
    """`crop_and_flip`, an image at a time; draws in the same order."""
    count, _, side, _ = images.shape
    downs, rights = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=noise).squeeze(2).tolist()
    mirrors = torch.randint(0, 2, (count, 1), generator=noise, dtype=torch.bool).flatten().tolist()
    made = []
    for image, down, right, mirror in zip(images, downs, rights, mirrors, strict=True):
        canvas = torch.zeros(3, side + 2 * padding, side + 2 * padding, dtype=image.dtype)
        canvas[:, padding : padding + side, padding : padding + side] = image
        crop = canvas[:, down : down + side, right : right + side]
        made.append(crop.flip(2) if mirror else crop)
    return torch.stack(made)


@pytest.mark.parametrize("padding", [1, 2, 4])
def test_crops_and_flips_are_those_of_each_image_alone(padding):
    made = crop_and_flip(noisy(), padding, seeded(1))
    assert made.dtype == torch.uint8
    assert made.is_contiguous()
    assert torch.equal(made, one_by_one(noisy(), padding, seeded(1)))


def test_crops_and_flips_are_a_function_of_the_noise():
    one, same, other = (crop_and_flip(noisy(), 2, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_every_shift_and_both_mirrors_occur():
    made, canvas = crop_and_flip(noisy(1).expand(600, -1, -1, -1), 1, seeded(0)), torch.zeros(3, 10, 10)
    canvas[:, 1:9, 1:9] = noisy(1)[0]
    crops = [canvas[:, down : down + 8, right : right + 8] for down in range(3) for right in range(3)]
    possible = torch.stack([version for crop in crops for version in (crop, crop.flip(2))])
    counts = (made[:, None] == possible).all(dim=(2, 3, 4)).sum(0)
    assert counts.sum() == 600
    assert counts.min() > 10


def test_a_crop_leaves_its_argument_alone():
    images = noisy()
    crop_and_flip(images, 2, seeded(0))
    assert torch.equal(images, noisy())


def transferred(data: TensorDataModule, training: bool = True, step: int = 0) -> Tensor:
    data.trainer = SimpleNamespace(training=training, global_step=step, global_rank=0, world_size=1)
    rows, _ = data.split("train")
    return data.on_after_batch_transfer(rows[torch.arange(8)], 0)[0]


def test_augmentation_is_a_function_of_seed_and_step(tmp_path):
    one, other = load("vit-cifar10", tmp_path), load("vit-cifar10", tmp_path, seed=1)
    images = transferred(one, step=3)
    transferred(one, step=5)
    assert torch.equal(images, transferred(one, step=3))
    assert not torch.equal(images, transferred(one, step=4))
    assert not torch.equal(images, transferred(other, step=3))


def test_images_outside_training_are_only_normalised(tmp_path):
    data = load("vit-cifar10", tmp_path)
    mean, std = (torch.tensor(data.prepared.meta[key])[:, None, None] for key in ("mean", "std"))
    expected = (data.prepared.tensors["train_images"][:8] / 255 - mean) / std
    torch.testing.assert_close(transferred(data, training=False), expected)
    assert not torch.allclose(transferred(data, training=True), expected)


def test_a_trainer_augments_training_images_and_no_others(tmp_path):
    data = load("vit-cifar10", tmp_path, batch_size=30)
    seen = watch(data, max_epochs=2)
    plain = {name: data.prepared.tensors[f"{name}_images"] for name in ("train", "val")}
    data.trainer = None
    plain = {name: data.on_after_batch_transfer((images, None), 0)[0] for name, images in plain.items()}
    assert len(seen["train"]) == 6
    assert [batch[0].shape[0] for batch in seen["val"]] == [10, 10]
    assert all(torch.equal(batch[0], plain["val"]) for batch in seen["val"])
    unchanged = [(image == plain["train"]).all(dim=(1, 2, 3)).any() for batch in seen["train"] for image in batch[0]]
    assert sum(unchanged) < 0.1 * len(unchanged)


@pytest.mark.parametrize("task", ["vit-cifar10", "vit-digits"])
def test_training_images_have_zero_mean_and_unit_variance(task, tmp_path):
    data = load(task, tmp_path)
    images, _ = data.on_after_batch_transfer((data.prepared.tensors["train_images"], torch.zeros(1)), 0)
    channels = images.double().transpose(0, 1).flatten(1)
    assert images.dtype == torch.float32
    torch.testing.assert_close(channels.mean(1), torch.zeros(len(channels)).double(), atol=1e-5, rtol=0)
    torch.testing.assert_close(channels.std(1, correction=0), torch.ones(len(channels)).double(), atol=1e-5, rtol=0)


def test_images_of_cifar_move_by_up_to_four_pixels(tmp_path):
    data = load("vit-cifar10", tmp_path)
    data.trainer = SimpleNamespace(training=True, global_step=0, global_rank=0, world_size=1)
    white = torch.full((300, 3, 32, 32), 255, dtype=torch.uint8)
    moved = data.on_after_batch_transfer((white, torch.zeros(300)), 0)[0][:, 0] < 0  # what is black
    assert {int(rows.sum()) for rows in moved.all(dim=2)} == {int(columns.sum()) for columns in moved.all(dim=1)}
    assert max(int(rows.sum()) for rows in moved.all(dim=2)) == 4
