"""The task `texts`: classes, numbers or tags of a user's texts, or of pairs of them. No torch here."""

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.errors import UserError, unknown_name
from pebench.tasks.base import Budget, Task, with_smoke
from pebench.tasks.kinds import REGRESSION, TEXT_CLASSIFICATION, TOKEN_TAGGING, TaskKind
from pebench.tasks.own.cuts import split_examples, text_keys
from pebench.tasks.own.hub import pinned, read_hub
from pebench.tasks.own.places import Place, Survey, place_of
from pebench.tasks.own.sizes import batch_and_steps, power_of_two
from pebench.tasks.own.tables import Texts, check_classes, read_texts
from pebench.tasks.own.targets import TARGETS, spread
from pebench.tasks.own.task import OwnTask, check_key, full_name, key_of

USUAL = {
    "target": "class", "pair": "", "classes": 1, "max_len": 128, "vocab_size": 16_384, "steps": 1000, "batch_size": 64,
}  # fmt: skip
"""Options that a name leaves out where they have these values."""

KINDS: Mapping[str, tuple[TaskKind, str, str]] = {
    "class": (TEXT_CLASSIFICATION, "OwnTexts", "labelled {}, {} classes"),
    "number": (REGRESSION, "OwnNumbers", "{} with a number each"),
    "tags": (TOKEN_TAGGING, "OwnTags", "{} with {} tags of words"),
}
"""Kind of task, class of the data and words for both, by what is predicted."""

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
    pair: str = "",
    label: str = "",
    target: str = "",
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
        path: File of the texts (CSV, TSV, JSONL, Parquet, CoNLL), or folder with one for each split.
        text: Column of the texts.
        pair: Column of the second texts, where they are pairs.
        label: Column of the labels.
        target: Thing to predict: ``class``, ``number``, or ``tags`` of words.
        split: Column of the splits.
        name: Name of the data in tables; the file's by default.
        hub: Name of a data set of the Hugging Face hub, in place of a path.
        config: Its configuration there, if it has several.
        revision: Its commit, branch or tag; the newest by default. Records hold the commit.
        data: Name and checksum of data that are known, in place of a path.
        classes: Number of classes or tags; found in the data.
        max_len: Longest text in tokens.
        vocab_size: Vocabulary.
        steps: Optimizer steps.
        batch_size: Texts in a step.

    Raises:
        UserError: If the data cannot be read, or no model can be trained on them.
    """
    sizes = {"classes": classes, "max_len": max_len, "vocab_size": vocab_size, "steps": steps, "batch_size": batch_size}
    columns = {"text": text, "pair": pair, "label": label, "target": target, "split": split}
    source = {"hub": pinned(hub, revision), "config": config} if hub else {}
    return _found(path, name, data, {**columns, **source}, {option: value for option, value in sizes.items() if value})


def _found(path: str, name: str, data: str, read: Mapping[str, str], sizes: Mapping[str, int]) -> Task:
    """Return the task on data at a place, or of a name.

    Args:
        path: File or folder, if one was named.
        name: Name of the data in tables, if one was given.
        data: Name and checksum of data that are known.
        read: Options of reading: columns, the target, and the data set of the hub.
        sizes: Sizes that were asked for.

    Raises:
        UserError: If the data cannot be read, or no model can be trained on them.
    """
    if read["target"] and read["target"] not in TARGETS:
        raise unknown_name("target of task 'texts':", read["target"], TARGETS)
    hub = read.get("hub", "")
    values: dict[str, Any] = {**USUAL, "target": read["target"] or "class", "pair": read["pair"], **sizes}
    if path or (hub and not data):
        name = name or hub.partition("@")[0].rpartition("/")[2]
        data, survey = key_of("texts", place_of(path, read), name, _survey, sizes)
        found = {"classes": USUAL["classes"], **survey.options}["classes"]  # whatever was asked for
        values = {**values, **survey.options, **sizes, "classes": found}
    check_key("texts", data)
    # With the commit and the columns all machines read the same, so for the hub's data these are in the name.
    origin = {**read, "target": values["target"], "pair": values["pair"]} if hub else {}
    origin = {option: value for option, value in origin.items() if value and value != USUAL.get(option)}
    if values["target"] != "number" and values["classes"] < 2:
        raise UserError(f"task 'texts' expects two classes at least, got classes={sizes.get('classes', 0)}.")
    return _task(data, origin, {**values, **origin, "data": data})


def _task(data: str, origin: Mapping[str, str], values: Mapping[str, Any]) -> Task:
    """Return the task of data and all its options."""
    train = TrainConfig(
        max_steps=values["steps"], batch_size=values["batch_size"], learning_rate=2e-3, monitor="metric"
    )
    settings = DataConfig(max_len=values["max_len"], vocab_size=values["vocab_size"])
    kind, data_class, words = KINDS[values["target"]]
    paired = bool(values["pair"])
    what = words.format(f"{'pairs of ' * paired}texts {data}", values["classes"])
    # Segments enter as BERT's do.
    model = ModelConfig(d_model=64, num_layers=2, num_heads=2, dropout=0.1, segments="sum" if paired else None)
    return OwnTask(
        name=full_name("texts", values, USUAL),
        summary=f"Your {what}",
        kind=kind,
        data=f"pebench.data.own:{data_class}",
        data_args={"own": data, "num_classes": values["classes"], "origin": origin, "paired": paired},
        prepared_by=("own", "max_len", "vocab_size"),
        num_classes=values["classes"],
        separator=2 if paired else None,  # after those for padding and unknown words
        splits=SPLITS,
        budgets=with_smoke(quick=Budget(model, settings, train)),
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
    """Return the classes or tags of texts, the split of each, their checksum, and remarks.

    Raises:
        UserError: If no model can be trained on them.
    """
    classes = check_classes(found, where)
    seconds = [[second] for second in found.seconds] or [[]] * len(found.texts)
    whole = found.texts if found.target != "tags" else [" ".join(words) for words in found.texts]
    # A text has no NUL, which keeps the two of a pair apart.
    keys = text_keys(" \0 ".join((text, *second)) for text, second in zip(whole, seconds, strict=True))
    labels, asked = np.zeros(len(found.texts), dtype=np.int64), list[str]()
    if found.target == "class":
        number, asked = {name: index for index, name in enumerate(classes)}, classes
        labels[:] = [number[label] for label in found.labels]
    splits, split_remarks = split_examples(keys, found.splits or None, labels, asked, where)
    trained = [label for label, split in zip(found.labels, splits, strict=True) if split == 0]
    if found.target == "number" and not spread(trained)[1]:
        raise UserError(f"{where} has one value alone to train on, {trained[0]:g}: expected two at least.")
    first = f"{len(found.texts):,} {'pairs of ' * bool(found.pair)}texts {_described(found, classes)}"
    remarks = [first, *dict.fromkeys(found.remarks), *split_remarks]
    if found.target == "tags" and (rare := sorted({*classes} - {*chain.from_iterable(trained)})):
        remarks.append(f"warning: no training text has the tag {', '.join(rare[:5])} ({len(rare)} in all)")
    return classes, splits, _checksum(found), remarks


def _checksum(found: Texts) -> str:
    """Return the SHA-256 of texts with their labels and given splits, in 64 hex digits."""
    digest = hashlib.sha256()
    if found.target != "class":  # the same table with another target is other data
        digest.update(found.target.encode())
    columns = [found.texts, *([found.seconds] if found.pair else []), found.labels]
    for row in zip(*columns, found.splits or [""] * len(found.texts), strict=True):
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()


def _described(found: Texts, classes: list[str]) -> str:
    if found.target == "class":
        return f"in {len(classes)} classes ({_few(classes)})"
    if found.target == "tags":
        return f"with {len(classes)} tags of words ({_few(classes)})"
    mean, deviation = spread(found.labels)
    return f"with a number each: mean {mean:.4g}, standard deviation {deviation:.4g}"


def _few(names: list[str]) -> str:
    return ", ".join(name[:20] for name in names[:5]) + (", ..." if len(names) > 5 else "")


def _survey(place: Place) -> Survey:
    found, classes, splits, sha256, remarks = load(place)
    sizes = _sizes(found, splits)
    options: dict[str, Any] = {"classes": len(classes)} if classes else {}
    if found.target != "class":
        options["target"] = found.target
    if found.pair:  # a column's name is of a file, and so not in the name of data
        options["pair"] = found.pair if place.read.get("hub") else "yes"
    return Survey(sha256, {**options, **sizes}, remarks)


def _sizes(found: Texts, splits: NDArray[np.int8]) -> Mapping[str, int]:
    """Return the sizes that fit texts, of whose training split a sample is counted."""
    train = np.flatnonzero(splits == 0)
    lengths, words = list[int](), set[str]()
    for index in train[:: max(1, len(train) // SAMPLE)]:
        tokens: list[str] = found.texts[index]
        if found.target != "tags":
            parts = [found.texts[index], *found.seconds[index : index + 1]]
            tokens = [word for part in parts for word in WORD.findall(part.lower())]
        lengths.append(len(tokens) + bool(found.pair))  # and what separates the two
        words.update(tokens)
    longest = power_of_two(float(np.quantile(lengths, 0.95)), 8, 512)  # 95 of 100 texts are whole
    vocabulary = power_of_two(len(words) + 2 + bool(found.pair), 64, 16_384)
    batch_size, steps = batch_and_steps(len(train))
    return {"max_len": longest, "vocab_size": vocabulary, "batch_size": batch_size, "steps": steps}
