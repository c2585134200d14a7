"""Images of a user: of any form, at one size, cut by the rule, and refused by name where they are bad."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from pebench.data import datamodule, datamodule_of
from pebench.errors import UserError
from pebench.tasks import configure, find_task
from pebench.tasks.own import take_remarks
from pebench.tasks.own.guess import task_of_path
from pebench.tasks.own.image_folder import decoded
from tests.data.own_data import write_images


def named(path, **options) -> str:
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    return find_task(f"images(path={str(path)!r}, name=mine{words})").name


def prepared(name: str):
    data = datamodule(name)
    data.prepare_data()
    data.setup()
    return data


def refusal(path) -> str:
    with pytest.raises(UserError) as caught:
        prepared(named(path))
    return str(caught.value)


def saved(path, pixels, mode=None, **options):
    Image.fromarray(np.array(pixels), mode).save(path, **options)
    return path


def test_a_folder_is_a_task_wherever_it_is(tmp_path):
    folder = write_images(tmp_path / "a")
    assert task_of_path(str(folder)) == f"images(path={str(folder)!r})"
    name = named(folder)
    assert name.endswith("image_size=12, patch=2, steps=200)")
    data = prepared(name)
    assert data.sizes() == {"train": 32, "val": 4, "test": 4}
    assert data.describe() == {"image_size": 12, "channels": 3, "patch_size": 2, "num_classes": 2}
    shutil.move(folder, tmp_path / "b")
    assert named(tmp_path / "b") == name
    assert "image_size=8" in named(tmp_path / "b", image_size=8)
    with pytest.raises(UserError, match="a patch that divides image_size"):
        named(tmp_path / "b", patch=5)


def test_the_size_and_the_channels_that_are_said_are_those_that_are_given(tmp_path):
    folder = write_images(tmp_path / "a")
    for options, said, guessed in (
        ({}, "colour, image_size=12; ", "data.patch_size=2"),
        ({"image_size": 8, "patch": 4}, "colour, image_size=8; ", "train.max_steps"),
        ({"channels": 1}, "grey, image_size=12; ", "data.patch_size=2"),
    ):
        remarks = take_remarks(named(folder, **options).partition("data='")[2].partition("'")[0])
        shutil.move(folder, folder := tmp_path / f"{said[:4]}{said[-3]}")  # else it has been told
        assert any(remark.startswith(said) for remark in remarks)
        assert guessed in remarks[-1]
        assert ("patch_size" in remarks[-1]) == ("patch" not in options)


@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1)])
def test_training_images_are_augmented_where_a_run_asks_for_it(tmp_path, mode, channels):
    name = named(write_images(tmp_path, mode=mode))
    settings = {"train.rand_augment": "2@9", "train.cutmix": 1, "train.erasing": 0.5}
    plain, augmented = (datamodule_of(configure(name, "rope", settings=asked)) for asked in ({}, settings))
    images = []
    for data in (plain, augmented):
        data.model_arguments()
        data.trainer = SimpleNamespace(training=True, global_step=0, global_rank=0, world_size=1)
        images.append(data.on_after_batch_transfer(data.split("train")[0][torch.arange(8)], 0))
    assert images[1][0].shape == (8, channels, 12, 12)
    assert not torch.equal(images[0][0], images[1][0])
    assert images[1][1].shape == (8, 2)


def test_equal_images_are_on_one_side(tmp_path):
    folder = write_images(tmp_path)
    for file in sorted(folder.glob("good/*.png")):
        shutil.copy(file, file.with_name(f"copy of {file.name}"))
    data = prepared(named(folder))
    seen = [
        {image.numpy().tobytes() for image in data.prepared.tensors[f"{split}_images"]}
        for split in ("train", "val", "test")
    ]
    assert sum(data.sizes().values()) == 60
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]


def test_given_splits_are_taken_and_duplicates_counted(tmp_path):
    folder = tmp_path / "data"
    write_images(folder / "train")
    write_images(folder / "val", count=2)
    write_images(folder / "test", side=13, count=10)
    (folder / "notes").mkdir()
    name = named(folder)
    assert prepared(name).sizes() == {"train": 40, "val": 2, "test": 10}
    remarks = take_remarks(find_task(name).data_args["own"])
    assert "warning: 2 of 2 validation examples are in train, too" in remarks
    assert any(text.startswith("10 images are not 12x12 pixels (12x12 to 13x13): the short side") for text in remarks)


def test_the_same_pixels_of_every_form(tmp_path):
    grey = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    colour = np.stack([grey, grey, grey], axis=-1)
    alpha = np.concatenate([colour, np.full((8, 8, 1), 255, np.uint8)], axis=-1)
    files = [
        saved(tmp_path / "grey.png", grey),
        saved(tmp_path / "colour.png", colour),
        saved(tmp_path / "alpha.png", alpha),
        saved(tmp_path / "16.png", grey.astype(np.uint16) * 257),
        saved(tmp_path / "16.tif", grey.astype(np.uint16) * 257),
    ]
    palette = tmp_path / "palette.png"
    Image.fromarray(grey).convert("P").save(palette)
    for file in (*files, palette):
        np.testing.assert_array_equal(decoded(file, 1, 8)[0], grey, err_msg=file.name)
        np.testing.assert_array_equal(decoded(file, 3, 8), np.stack([grey] * 3), err_msg=file.name)


def test_transparent_pixels_are_black_and_exif_turns(tmp_path):
    pixels = np.full((8, 8, 4), 200, np.uint8)
    pixels[:4, :, 3] = 0
    found = decoded(saved(tmp_path / "a.png", pixels), 3, 8)
    assert not found[:, :4].any()
    image = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    image.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(decoded(tmp_path / "turned.png", 1, 8)[0], np.rot90(np.asarray(image), -1))


def test_other_sizes_are_scaled_and_cropped(tmp_path):
    pixels = np.zeros((16, 48), np.uint8)
    pixels[:, 16:32] = 255  # the middle
    assert (decoded(saved(tmp_path / "wide.png", pixels), 1, 8) == 255).mean() > 0.7


def test_bad_images_are_named(tmp_path):
    folder = write_images(tmp_path)
    whole = (folder / "bad" / "000.png").read_bytes()
    odd = folder / "good" / "odd.png"
    odd.write_bytes(whole[: len(whole) // 2])
    assert refusal(folder).startswith(f"{odd} cannot be read as an image: ")
    odd.write_bytes(b"no image")
    assert refusal(folder).startswith(f"{odd} cannot be read as an image: ")
    odd.unlink()
    saved(odd.with_suffix(".tiff"), np.zeros((8, 8), np.float32))
    assert "its pixels are fractions" in refusal(folder)


def test_folders_that_are_no_data_are_told(tmp_path):
    assert "expected a folder for each class" in refusal(tmp_path)
    write_images(tmp_path / "test")
    assert "has the splits test alone: expected train, too" in refusal(tmp_path)
    write_images(tmp_path / "train", count=30)
    shutil.copytree(tmp_path / "test" / "good", tmp_path / "test" / "rare")
    assert "the class 'rare' (20 of " in refusal(tmp_path)
