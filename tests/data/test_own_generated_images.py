"""Folders of images that hypothesis generates: each ends in tensors that can be trained on, or in one clear message."""

import contextlib
import io
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pebench.cli import main
from pebench.data import datamodule
from pebench.errors import UserError
from pebench.tasks import find_task
from tests.data.test_own_generated import EXAMPLES

MODES = ("L", "RGB", "RGBA", "LA", "P", "1", "I;16", "F", "CMYK")
FORMATS = {"png": "PNG", "jpg": "JPEG", "tif": "TIFF", "gif": "GIF", "bmp": "BMP"}
DAMAGES = (*5 * ("whole",), "truncated", "no image", "empty file", "another suffix", "no suffix", "folder")
LAYOUTS = (*5 * ("classes",), "splits", "one class", "no class", "splits", "no train", "flat")

IMAGE = st.tuples(
    st.sampled_from(MODES), st.sampled_from([(1, 1), (8, 8), (9, 12), (12, 9), (40, 3)]),
    st.sampled_from([*FORMATS]), st.sampled_from(DAMAGES),
)  # fmt: skip
"""Mode, size, format, and what is wrong with the file."""


def content(mode: str, size: tuple[int, int], ending: str, number: int) -> bytes:
    """An image file; one of PNG or TIFF where the format has no such mode."""
    noise = np.random.default_rng(number)
    pixels = noise.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    if mode == "I;16":
        image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
    elif mode == "F":
        image = Image.fromarray(pixels[..., 0].astype(np.float32))
    else:
        image = Image.fromarray(pixels).convert(mode)
    for name in (FORMATS[ending], "PNG", "TIFF"):
        file = io.BytesIO()
        with contextlib.suppress(OSError, ValueError, KeyError):
            image.save(file, name)
            return file.getvalue()
    raise AssertionError(mode)


def place(path: Path, kind: tuple, number: int) -> None:
    """Write an image at a path without its suffix."""
    mode, size, ending, damage = kind
    whole = content(mode, size, ending, number)
    suffix = {"another suffix": "txt", "no suffix": ""}.get(damage, ending)
    path = path.with_name(f"{path.name}.{suffix}" if suffix else path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if damage == "folder":
        path.mkdir()
        return
    path.write_bytes({"truncated": whole[: len(whole) // 2], "no image": b"no image", "empty file": b""}
                     .get(damage, whole))  # fmt: skip


def build(root: Path, layout: str, odd: list[tuple], plain: int) -> None:
    """Write a folder of odd and of good images in one of the layouts."""
    root.mkdir()
    good = ("RGB", (8, 8), "png", "whole")
    kinds = [*odd, *[good] * plain]
    for number, kind in enumerate(kinds):
        label = {"one class": "a", "no class": ""}.get(layout, "ab"[number % 2])
        split = {"splits": ("train", "train", "val", "test")[number // 2 % 4], "no train": "test"}.get(layout, "")
        place(root / split / label / f"{number:03}" if layout != "flat" else root / f"{number:03}", kind, number)
    (root / "empty").mkdir()


@EXAMPLES
@given(st.sampled_from(LAYOUTS), st.lists(IMAGE, max_size=3), st.sampled_from([0, 30, 40]))
def test_any_folder_of_images_is_data_or_a_message(layout, odd, plain):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "images"
        build(root, layout, odd, plain)
        try:
            data = datamodule(find_task(f"images(path={str(root)!r}, name=mine)").name)
            tensors = data.read().tensors
        except UserError as error:
            text = str(error)
            assert str(root) in text
            assert len(text) < 800
            assert text.endswith(".")
            assert "Traceback" not in text
            return
    for split in ("train", "val", "test"):
        images, labels = tensors[f"{split}_images"], tensors[f"{split}_labels"]
        assert len(images) == len(labels) > 0
        assert images.shape[1] in (1, 3)
        assert images.shape[2] == images.shape[3]
    assert {*tensors["train_labels"].tolist()} == {0, 1}


def test_every_form_of_image_is_read(tmp_path):
    """Else the property above would hold of a reader that refuses everything."""
    odd = [(mode, size, "png", "whole") for mode in MODES if mode != "F" for size in ((8, 8), (12, 9))]
    root = tmp_path / "images"
    build(root, "classes", odd, 40)
    tensors = datamodule(find_task(f"images(path={str(root)!r}, name=mine)").name).read().tensors
    assert sum(len(tensors[f"{split}_labels"]) for split in ("train", "val", "test")) == len(odd) + 40


def bad_folders(root: Path) -> dict[str, Path]:
    """One folder for each thing that can be wrong, by its name."""
    good = [("RGB", (8, 8), "png", "whole")]
    made = {}
    for name, layout, odd, plain in (
        ("one class", "one class", [], 30), ("no class", "no class", [], 30), ("flat", "flat", [], 30),
        ("no train", "no train", [], 30), ("nothing", "classes", [], 0), ("two images", "classes", good, 1),
        *((damage, "classes", [("RGB", (8, 8), "png", damage)], 30)
          for damage in ("truncated", "no image", "empty file")),
        ("fractions", "classes", [("F", (8, 8), "tif", "whole")], 30),
    ):  # fmt: skip
        made[name] = root / name.replace(" ", "-")
        build(made[name], layout, odd, plain)
    return made


def test_each_bad_folder_ends_the_command_with_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    for name, folder in bad_folders(tmp_path).items():
        out = tmp_path / "out"
        words = ["run", "--data", str(folder), "--pe", "add", "--seeds", "1", "--tier", "smoke", "--out", str(out)]
        assert main([*words, "--executor", "sequential", "--device", "cpu"]) == 2, name
        error = capsys.readouterr().err
        assert error.startswith("pebench: error: "), name
        assert error.count("\n") == 1, (name, error)
        assert str(folder) in error, name
        assert not list(out.rglob("record.json")), name
