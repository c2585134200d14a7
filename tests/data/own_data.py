"""Small data of a user, written for tests."""

import csv
import itertools
import json
import random
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from PIL import Image

LABELS = ("bad", "good")


def texts(count: int = 200) -> list[tuple[str, str]]:
    noise = random.Random(0)
    words = [f"word{index}" for index in range(50)]
    return [(" ".join(noise.choices(words, k=noise.randint(3, 12))), LABELS[noise.randrange(2)]) for _ in range(count)]


def write_csv(path: Path, rows, names=("text", "label"), delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    return path


def write_jsonl(path: Path, rows, names=("text", "label")) -> Path:
    lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_parquet(path: Path, rows, names=("text", "label")) -> Path:
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def write_images(folder: Path, count: int = 40, side: int = 12, mode: str = "RGB") -> Path:
    noise = np.random.default_rng(0)
    for index in range(count):
        place = folder / LABELS[index % 2] / f"{index:03}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        shape = (side, side) if mode == "L" else (side, side, len(mode))
        Image.fromarray(noise.integers(0, 256, shape, dtype=np.uint8), mode).save(place)
    return folder


def book(lines: int = 400) -> str:
    return "".join(f"{text}: {label}.\n" for text, label in texts(lines))


def numbers(count: int = 200) -> list[tuple[str, float]]:
    """Texts, each with the mean of the numbers of its words."""
    return [(text, sum(int(word[4:]) for word in text.split()) / len(text.split())) for text, _ in texts(count)]


def tagged(count: int = 200) -> list[tuple[list[str], list[str]]]:
    """Words, each with a tag that says whether its number is above that of the word before."""
    rows = [text.split() for text, _ in texts(count)]
    return [(words, ["O", *("UP" if one < two else "O" for one, two in itertools.pairwise(words))]) for words in rows]


def paired(count: int = 200) -> list[tuple[str, str, str]]:
    """Pairs of texts, each with a class."""
    rows = texts(2 * count)
    return [(one, two, label) for (one, label), (two, _) in zip(rows[::2], rows[1::2], strict=True)]


def write_kind(kind: str, folder: Path) -> Path:
    """Write small data of a kind of task: number, tags, pairs or masked."""
    if kind == "number":
        return write_csv(folder / "mine.csv", numbers())
    if kind == "tags":
        return write_jsonl(folder / "mine.jsonl", tagged(), ("tokens", "tags"))
    if kind == "pairs":
        return write_csv(folder / "mine.csv", paired(), ("premise", "hypothesis", "label"))
    (folder / "mine.txt").write_text(book())
    return folder / "mine.txt"


def task_of_kind(kind: str, folder: Path) -> str:
    """Write small data of a kind of task, and return the task."""
    path = str(write_kind(kind, folder))
    if kind == "masked":
        return f"corpus(path={path!r}, masked=True)"
    return f"texts(path={path!r}, target=number)" if kind == "number" else f"texts(path={path!r})"
