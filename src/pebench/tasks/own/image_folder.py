"""The task `images`: classification of a user's images, a folder for each class. No torch here."""

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.errors import UserError
from pebench.formatting import first_line
from pebench.tasks.base import Budget, Task, with_smoke
from pebench.tasks.kinds import IMAGE_CLASSIFICATION
from pebench.tasks.own.cuts import content_key, split_examples
from pebench.tasks.own.files import SPLIT_NAMES, require_train
from pebench.tasks.own.places import Place, Survey, place_of
from pebench.tasks.own.sizes import batch_and_steps
from pebench.tasks.own.targets import class_order
from pebench.tasks.own.task import OwnTask, check_key, full_name, key_of

if TYPE_CHECKING:
    from PIL.Image import Image

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")

LARGEST = 64
"""Largest side that images get unless another is asked for, in pixels."""

GREY = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L")
"""Modes of images without colour."""

USUAL = {"channels": 3, "image_size": 32, "patch": 4, "steps": 1000, "batch_size": 64}
"""Options that a name leaves out where they have these values."""

RULE = (
    "those of the data, where it has them; a split that it lacks is a tenth of the different training images, in the "
    "order of the SHA-256 of their files: test the first tenth, validation the next"
)


def images(  # noqa: PLR0913 - options, which users know by name
    *,
    path: str = "",
    name: str = "",
    data: str = "",
    classes: int = 0,
    channels: int = 0,
    image_size: int = 0,
    patch: int = 0,
    steps: int = 0,
    batch_size: int = 0,
) -> Task:
    """Return the task on a folder of images.

    Args:
        path: Folder with a folder for each class, or with such folders for train, val and test.
        name: Name of the data in tables; the folder's by default.
        data: Name and checksum of data that are known, in place of a path.
        classes: Number of classes; found in the data.
        channels: 1 for grey, 3 for colour.
        image_size: Side of the images in pixels; others are scaled and cropped to it.
        patch: Side of a patch in pixels; divides the image's.
        steps: Optimizer steps.
        batch_size: Images in a step.

    Raises:
        UserError: If the data cannot be read, or no model can be trained on them.
    """
    sizes = {"channels": channels, "image_size": image_size, "patch": patch, "steps": steps, "batch_size": batch_size}
    given: dict[str, Any] = {option: value for option, value in sizes.items() if value}
    if path:
        # What is said of the images depends on what was asked for, too.
        kind = f"images {image_size} {channels}"
        data, survey = key_of(kind, place_of(path), name, lambda place: _survey(place, image_size, channels), given)
        classes = survey.options["classes"]
        given = {**survey.options, **given}
    check_key("images", data)
    values = {**USUAL, **given, "classes": classes, "data": data}
    return _task(data, classes, values)


def _task(data: str, classes: int, values: Mapping[str, Any]) -> Task:
    """Return the task of data and all its options.

    Raises:
        UserError: For sizes that cannot be.
    """
    channels, side, patch = (values[option] for option in ("channels", "image_size", "patch"))
    if classes < 2 or channels not in (1, 3) or side < 1 or patch < 1 or side % patch:
        raise UserError(
            "task 'images' expects two classes at least, one or three channels, and a patch that divides image_size, "
            f"got classes={classes}, channels={channels}, image_size={side}, patch={patch}."
        )
    train = TrainConfig(
        max_steps=values["steps"], batch_size=values["batch_size"], learning_rate=2e-3, monitor="metric"
    )
    return OwnTask(
        name=full_name("images", values, USUAL),
        summary=f"Your images {data}, {classes} classes, {side}x{side} pixels, {(side // patch) ** 2} patches",
        kind=IMAGE_CLASSIFICATION,
        data="pebench.data.own:OwnImages",
        data_args={"own": data, "num_classes": classes, "channels": channels, "image_size": side},
        prepared_by=("own", "channels", "image_size"),
        num_classes=classes,
        image=(channels, side),
        beyond=(1.5, 2),
        splits=RULE,
        budgets=with_smoke(
            quick=Budget(ModelConfig(d_model=64, num_layers=4, num_heads=2), DataConfig(patch_size=patch), train)
        ),
    )


def listed(path: Path) -> tuple[list[tuple[Path, str, str]], list[str]]:
    """Return the image files in a folder, each with its class and its given split, and the names of the classes.

    Raises:
        UserError: If it is no folder of images by class.
    """
    if not path.is_dir():
        raise UserError(f"images: there is no folder {str(path)!r}.")
    folders = [folder for folder in _folders(path) if next(_images(folder), None)]
    splits = {folder: SPLIT_NAMES.get(folder.name.lower(), "") for folder in folders}
    if folders and all(splits.values()):
        require_train({*splits.values()}, str(path))
        classes = [(folder, split) for top, split in splits.items() for folder in _folders(top)]
    else:
        classes = [(folder, "") for folder in folders]
    found = [(file, folder.name, split) for folder, split in classes for file in sorted(_images(folder))]
    names = sorted({name for _, name, _ in found}, key=class_order)
    if len(names) < 2:
        raise UserError(
            f"{path}: expected a folder for each class, two at least, with images ({', '.join(ENDINGS[:3])}, ...), or "
            f"such folders in train, val and test; got {', '.join(names) or 'none with images'}."
        )
    return found, names


def _folders(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))


def _images(folder: Path) -> Iterator[Path]:
    files = (file for file in folder.rglob("*") if file.suffix.lower() in ENDINGS)
    return (file for file in files if not file.name.startswith("."))


def decoded(path: Path, channels: int, side: int) -> NDArray[np.uint8]:
    """Return an image as bytes (channels, side, side), turned as its EXIF data say.

    The short side is scaled to `side`, and the middle is cut out. Transparent pixels are black; 16 bits become 8.

    Raises:
        UserError: If the file is no image, is cut short, or has numbers that are no bytes.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings(), Image.open(path) as file:
            warnings.simplefilter("ignore")  # Pillow's, on odd metadata
            ImageOps.exif_transpose(file, in_place=True)
            image = _in_bytes(file, "L" if channels == 1 else "RGB")
            if image.size != (side, side):
                image = ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)
            pixels = np.asarray(image, dtype=np.uint8)
    except Exception as error:  # of many kinds
        raise UserError(
            f"{path} cannot be read as an image: {first_line(error)}. Replace it, or leave it out."
        ) from error
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def _in_bytes(image: "Image", mode: str) -> "Image":
    """Return an image of 8 bits in a mode of Pillow, on black where it is transparent."""
    from PIL import Image as Pillow

    if image.mode.startswith("I"):
        # Of 16 bits a PNG or TIFF; Pillow would clip them instead.
        whole = np.asarray(image).astype(np.int64)
        image = Pillow.fromarray((whole.clip(0, 65_535) // 257).astype(np.uint8))
    elif image.mode == "F":
        raise ValueError("its pixels are fractions, expected 8 or 16 bits")
    if "A" in image.mode or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Pillow.alpha_composite(Pillow.new("RGBA", image.size, (0, 0, 0, 255)), image)
    return image if image.mode == mode else image.convert(mode)


def patch_of(side: int) -> int:
    """Return the side of a patch that gives about eight patches a side.

    Example:
        >>> [patch_of(side) for side in (8, 28, 32, 64, 13)]
        [1, 4, 4, 8, 1]
    """
    factors = [patch for patch in range(1, side + 1) if side % patch == 0 and 4 <= side // patch <= 16]
    return min(factors or [1], key=lambda patch: (abs(side / patch - 8), patch))


def load(place: Place) -> tuple[list[Path], NDArray[np.int64], NDArray[np.int8], str, list[str]]:
    """Return image files, the class and the split of each, their checksum, and remarks; no image is decoded.

    Splits are indices of train, val and test.

    Raises:
        UserError: If there are none, or no model can be trained on them.
    """
    root = Path(place.path)
    found, classes = listed(root)
    files, digest = [file for file, _, _ in found], hashlib.sha256()
    keys = np.zeros(len(files), dtype=np.uint64)
    for index, (file, label, split) in enumerate(found):
        try:
            content = file.read_bytes()
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}.") from error
        keys[index] = content_key(content)
        digest.update(f"{split}/{label} {keys[index]}\n".encode())  # not the file's name, which says nothing
    number = {label: index for index, label in enumerate(classes)}
    labels = np.array([number[label] for _, label, _ in found])
    given = [split for _, _, split in found] if found[0][2] else None
    splits, remarks = split_examples(keys, given, labels, classes, str(root))
    return files, labels, splits, digest.hexdigest(), [f"{len(files):,} images in {len(classes)} classes", *remarks]


def _headers(files: list[Path]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the mode and the size of images.

    Raises:
        UserError: For a file that is no image.
    """
    from PIL import Image

    for file in files:
        try:
            with Image.open(file) as image:
                yield image.mode, image.size
        except Exception as error:  # of many kinds
            raise UserError(
                f"{file} cannot be read as an image: {first_line(error)}. Replace it, or leave it out."
            ) from error


def _survey(place: Place, asked_side: int, asked_channels: int) -> Survey:
    files, labels, splits, sha256, remarks = load(place)
    modes, shapes = Counter[str](), Counter[tuple[int, int]]()
    for mode, shape in _headers(files):
        modes[mode] += 1
        shapes[shape] += 1
    sides = np.array([min(shape) for shape in shapes.elements()])
    side = int(np.median(sides))
    side = asked_side or min(LARGEST, side if side < 12 or side == 28 else max(12, side // 4 * 4))
    options = {
        "classes": len({*labels.tolist()}), "channels": asked_channels or (1 if {*modes} <= {*GREY} else 3),
        "image_size": side, "patch": patch_of(side),
    }  # fmt: skip
    options["batch_size"], options["steps"] = batch_and_steps(int((splits == 0).sum()))
    odd = sum(count for shape, count in shapes.items() if shape != (side, side))
    if odd:
        smallest, largest = min(shapes), max(shapes)
        remarks.append(
            f"{odd:,} images are not {side}x{side} pixels ({smallest[0]}x{smallest[1]} to {largest[0]}x{largest[1]}): "
            f"the short side is scaled to {side}, and the middle is cut out (image_size= takes another side)"
        )
    colour = "grey" if options["channels"] == 1 else "colour"
    remarks.append(f"{colour}, image_size={side}; transparent pixels are black, 16 bits become 8")
    return Survey(sha256, options, remarks)
