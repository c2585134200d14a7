"""The task `texts`: classification of a user's labelled texts. No torch here."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.errors import UserError
from pebench.tasks.base import Budget, Task, with_smoke
from pebench.tasks.kinds import TEXT_CLASSIFICATION
from pebench.tasks.own.cuts import split_examples, text_keys
from pebench.tasks.own.hub import pinned, read_hub
from pebench.tasks.own.places import Place, Survey, place_of
from pebench.tasks.own.sizes import batch_and_steps, power_of_two, sizes_text
from pebench.tasks.own.tables import Texts, check_classes, read_texts
from pebench.tasks.own.task import OwnTask, check_key, full_name, key_of

USUAL = {"max_len": 128, "vocab_size": 16_384, "steps": 1000, "batch_size": 64}
"""Options that a name leaves out where they have these values."""

SAMPLE = 20_000
"""Number of texts that lengths and words are counted in."""

WORD = re.compile(r"\w+|[^\w\s]")

SPLITS = (
    "those of the data, where it has them; a split that it lacks is a tenth of the different training texts, in the "
    "order of their SHA-256 (equal but for case and spaces are one): test the first tenth, validation the next"
)


def texts(  # noqa: PLR0913 - options, which users know by name
    *,
    path: str = "",
    text: str = "",
    label: str = "",
    split: str = "",
    name: str = "",
    hub: str = "",
    config: str = "",
    revision: str = "",
    data: str = "",
    classes: int = 0,
    max_len: int = 0,
    vocab_size: int = 0,
    steps: int = 0,
    batch_size: int = 0,
) -> Task:
    """Return the task on labelled texts.

    Args:
        path: File of the texts (CSV, TSV, JSONL, Parquet), or folder with one for each split.
        text: Column of the texts.
        label: Column of the labels.
        split: Column of the splits.
        name: Name of the data in tables; the file's by default.
        hub: Name of a data set of the Hugging Face hub, in place of a path.
        config: Its configuration there, if it has several.
        revision: Its commit, branch or tag; the newest by default. Records hold the commit.
        data: Name and checksum of data that are known, in place of a path.
        classes: Number of classes; found in the data.
        max_len: Longest text in tokens.
        vocab_size: Vocabulary.
        steps: Optimizer steps.
        batch_size: Texts in a step.

    Raises:
        UserError: If the data cannot be read, or no model can be trained on them.
    """
    sizes = {"max_len": max_len, "vocab_size": vocab_size, "steps": steps, "batch_size": batch_size}
    given = {option: value for option, value in sizes.items() if value}
    read = {"text": text, "label": label, "split": split}
    origin = {}
    if hub:  # with the commit and the columns all machines read the same, so these are in the name
        origin = {"hub": pinned(hub, revision), "config": config, **read}
        origin = {option: value for option, value in origin.items() if value}
    if path or (hub and not data):
        place = place_of(path, {**read, **origin})
        data, survey = key_of("texts", place, name or (hub.partition("@")[0].rpartition("/")[2]), _survey)
        given, classes = {**survey.options, **given}, survey.options["classes"]
    check_key("texts", data)
    values = {**USUAL, **given, **origin, "classes": classes, "data": data}
    if classes < 2:
        raise UserError(f"task 'texts' expects two classes at least, got classes={classes}.")
    return _task(data, classes, origin, values)


def _task(data: str, classes: int, origin: Mapping[str, str], values: Mapping[str, Any]) -> Task:
    """Return the task of data and all its options."""
    train = TrainConfig(
        max_steps=values["steps"], batch_size=values["batch_size"], learning_rate=2e-3, monitor="metric"
    )
    settings = DataConfig(max_len=values["max_len"], vocab_size=values["vocab_size"])
    return OwnTask(
        name=full_name("texts", values, USUAL),
        summary=f"Your labelled texts {data}, {classes} classes",
        kind=TEXT_CLASSIFICATION,
        data="pebench.data.own:OwnTexts",
        data_args={"own": data, "num_classes": classes, "origin": origin},
        prepared_by=("own", "max_len", "vocab_size"),
        num_classes=classes,
        splits=SPLITS,
        budgets=with_smoke(
            quick=Budget(ModelConfig(d_model=64, num_layers=2, num_heads=2, dropout=0.1), settings, train)
        ),
    )


def load(place: Place) -> tuple[Texts, list[str], NDArray[np.int8], str, list[str]]:
    """Return the texts at a place, their classes, the split of each, their checksum, and remarks.

    Splits are indices of train, val and test.

    Raises:
        UserError: If they cannot be read, or no model can be trained on them.
    """
    if hub := place.read.get("hub"):
        found, where = read_hub(hub, place.read), hub
    else:
        found, where = read_texts(Path(place.path), place.read), place.path
    return found, *examined(found, where)


def examined(found: Texts, where: str) -> tuple[list[str], NDArray[np.int8], str, list[str]]:
    """Return the classes of texts, the split of each, their checksum, and remarks.

    Raises:
        UserError: If no model can be trained on them.
    """
    classes = check_classes(found, where)
    keys = text_keys(found.texts)
    number = {name: index for index, name in enumerate(classes)}
    labels = np.array([number[label] for label in found.labels])
    splits, split_remarks = split_examples(keys, found.splits or None, labels, classes, where)
    digest = hashlib.sha256()
    for row in zip(found.texts, found.labels, found.splits or [""] * len(found.texts), strict=True):
        digest.update(json.dumps(row).encode())
    first = f"{len(found.texts):,} texts in {len(classes)} classes ({_few(classes)})"
    remarks = [first, *dict.fromkeys(found.remarks), *split_remarks]
    return classes, splits, digest.hexdigest(), remarks


def _few(names: list[str]) -> str:
    return ", ".join(name[:20] for name in names[:5]) + (", ..." if len(names) > 5 else "")


def _survey(place: Place) -> Survey:
    found, classes, splits, sha256, remarks = load(place)
    options: dict[str, Any] = {"classes": len(classes), **_sizes(found, splits)}
    return Survey(sha256, options, [*remarks, sizes_text(options)])


def _sizes(found: Texts, splits: NDArray[np.int8]) -> Mapping[str, int]:
    """Return the sizes that fit texts, of whose training split a sample is counted."""
    train = np.flatnonzero(splits == 0)
    lengths, words = list[int](), set[str]()
    for index in train[:: max(1, len(train) // SAMPLE)]:
        tokens = WORD.findall(found.texts[index].lower())
        lengths.append(len(tokens))
        words.update(tokens)
    longest = power_of_two(float(np.quantile(lengths, 0.95)), 8, 512)  # 95 of 100 texts are whole
    vocabulary = power_of_two(len(words) + 2, 64, 16_384)
    batch_size, steps = batch_and_steps(len(train))
    return {"max_len": longest, "vocab_size": vocabulary, "batch_size": batch_size, "steps": steps}
