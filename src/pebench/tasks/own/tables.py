"""Labelled texts from tables: columns are chosen, and every row is checked. No torch here."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pebench.errors import UserError
from pebench.formatting import counted, format_encoding, quoted
from pebench.tasks.own.files import SPLIT_NAMES, files_by_split, require_train
from pebench.tasks.own.readers import READERS, Rows, columns_of
from pebench.tasks.own.targets import TARGETS, class_order, is_text

TEXT_NAMES = (
    "text", "texts", "sentence", "review", "content", "document", "comment", "message", "body", "tweet",
    "tokens", "words",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "category", "target", "sentiment", "topic", "intent", "stars", "rating", "y",
    "tags", "ner_tags", "pos_tags", "upos", "score",
)  # fmt: skip
PAIR_NAMES = (
    ("sentence1", "sentence2"), ("text1", "text2"), ("premise", "hypothesis"), ("question1", "question2"),
    ("question", "answer"),
)  # fmt: skip
SPLIT_COLUMN = "split"


@dataclass
class Texts:
    """Texts, or pairs of them, each with what a model is to predict.

    Args:
        texts: The texts; for tags the words of each.
        labels: The class of each, as text; its number; or the tag of each word.
        splits: The split of each, where splits are given: ``train``, ``val`` or ``test``.
        remarks: Sentences on what was guessed.
        seconds: The second text of each pair, where they are pairs.
        pair: Column of the second texts.
        target: One of `TARGETS`.
    """

    texts: list[Any] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    seconds: list[str] = field(default_factory=list)
    pair: str = ""
    target: str = "class"


def read_texts(path: Path, options: Mapping[str, str]) -> Texts:
    """Return the labelled texts of a file, or of a folder with a file for each split.

    Args:
        path: The file or folder.
        options: Names of the columns, ``text``, ``pair``, ``label`` and ``split``, and the ``target``, one of
            `TARGETS`; those that are empty are guessed.

    Raises:
        UserError: If it cannot be read, lacks a column, or holds rows that cannot be.
    """
    options = {"path": str(path), **options}  # for messages that write the task
    files = files_by_split(path, tuple(READERS), "labelled texts")
    require_train({*files}, str(path))
    found = Texts()
    for split, paths in sorted(files.items()):
        for file in paths:
            add_rows(found, *columns_of(file), options, str(file), split)
    if found.splits:
        require_train({*found.splits}, str(path))
    return found


def add_rows(
    found: Texts, names: Sequence[str], rows: Rows, options: Mapping[str, str], place: str, split: str = ""
) -> None:
    """Add the rows of one table, each of them checked.

    Args:
        found: Takes the rows.
        names: Names of the columns.
        rows: The rows.
        options: Names of the columns to take, as in `read_texts`.
        place: The table's name in messages.
        split: The split that all of its rows are of; empty where a column says it, or nothing.

    Raises:
        UserError: For a missing column, and for rows that cannot be, with the first of them and their number.
    """
    chosen = chosen_columns(names, options, place, found.remarks)
    at = {part: names.index(column) for part, column in chosen.items() if part != "split" or not split}
    rows, first = itertools.tee(rows)
    if not found.texts:  # of several files the first decides
        found.target = options.get("target") or _guessed_target(next(first, None), at["text"])
        found.pair = chosen.get("pair", "")
    del first  # or tee would keep all rows
    odd = _Odd(place)
    for line, row in rows:
        if len(row) != len(names):
            raise UserError(f"{place}, line {line}: expected {len(names)} columns, got {len(row)}.")
        values = {part: row[column] for part, column in at.items()}
        wanted = TARGETS[found.target].label_of(values["label"])
        for part, expected in _problems(values, wanted, found.target):
            odd.add(line, chosen[part], expected, values[part])
        found.texts.append(values["text"])
        found.labels.append(wanted)
        if found.pair:
            found.seconds.append(values["pair"])
        if split or "split" in values:
            found.splits.append(split or _split(values["split"]) or "")
    odd.refuse()
    if found.target == "tags" and found.pair:
        raise UserError(f"{place}: tags are of one text, and so go with no pair.")


def _problems(values: Mapping[str, Any], wanted: Any, target: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a row that cannot be, each with what was expected of it.

    Args:
        values: The row's values by part.
        wanted: The outcome of the target's `label_of`.
        target: One of `TARGETS`.
    """
    if not TARGETS[target].reads(values["text"]):
        yield "text", TARGETS[target].text
    if "pair" in values and not is_text(values["pair"]):
        yield "pair", TARGETS["class"].text
    if wanted is None:
        yield "label", TARGETS[target].label
    elif target == "tags" and isinstance(values["text"], list) and len(values["text"]) != len(wanted):
        yield "label", f"{counted(len(values['text']), 'tag')}, one for each word"
    if "split" in values and _split(values["split"]) is None:
        yield "split", "train, validation or test"


def _split(value: Any) -> str | None:
    return SPLIT_NAMES.get(str(value).strip().lower())


def _guessed_target(first: tuple[int, Sequence[Any]] | None, text_at: int) -> str:
    """Return the target that the first row suggests: tags where its text is a list of words."""
    return "tags" if first and text_at < len(first[1]) and isinstance(first[1][text_at], list) else "class"


class _Odd:
    """Rows that cannot be: the first one of each column, and how many they are."""

    def __init__(self, place: str) -> None:
        self.place, self.first, self.count = place, dict[str, str](), dict[str, int]()

    def add(self, line: int, column: str, expected: str, value: object) -> None:
        got = f"{self.place}, line {line}, column {column!r}: expected {expected}, got {quoted(value)}."
        self.first.setdefault(column, got)
        self.count[column] = self.count.get(column, 0) + 1

    def refuse(self) -> None:
        for column, text in self.first.items():
            more = self.count[column] - 1
            raise UserError(text + (f" So are {more:,} more rows." if more else ""))


def chosen_columns(names: Sequence[str], options: Mapping[str, str], place: str, remarks: list[str]) -> dict[str, str]:
    """Return the columns of text, pair, label and split: those that are named, or those that their names suggest.

    Args:
        names: The columns that there are.
        options: The columns that were asked for, where empty ones are guessed; and the other options of the task.
        place: The table's name in messages.
        remarks: Takes a sentence on what was guessed.

    Raises:
        UserError: If one is missing, or cannot be guessed.
    """
    if not names:
        raise UserError(f"{place} is empty: expected a column of texts and one of labels.")
    listed = ", ".join(names)
    if len({*names}) < len(names):
        raise UserError(f"{place} has two columns of one name: {listed}.")
    chosen = {part: column for part in ("text", "pair", "label", "split") if (column := options.get(part))}
    for part, column in chosen.items():
        if column not in names:
            raise UserError(f"{place} has no column {column!r} (option {part}). It has: {listed}.")
    guessed = _guessed(names, chosen)
    for part in ("text", "label"):
        if part not in chosen | guessed:
            raise UserError(
                f"{place}: which column is the {part}? Name it in a task, as in "
                f"{_example(names, chosen | guessed, options)}. It has: {listed}."
            )
    if guessed:
        remarks.append(f"columns by their names: {', '.join(f'{part}={name}' for part, name in guessed.items())}")
    return chosen | guessed


def _example(names: Sequence[str], known: Mapping[str, str], options: Mapping[str, str]) -> str:
    """Return ``--task`` with all options that name the columns; of text and label, those not known are any others."""
    free = iter([name for name in names if name not in known.values()])
    columns = {part: known[part] if part in known else next(free, "NAME") for part in ("text", "label")}
    given = {option: value for option, value in options.items() if value}
    return f'--task "{format_encoding("texts", given | columns, literal=True)}"'


def _guessed(names: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that names suggest, of those that are not chosen."""
    lower = {name.lower(): name for name in reversed(names) if name not in chosen.values()}
    found, chosen = dict[str, str](), dict(chosen)
    for part, known in (("text", TEXT_NAMES), ("label", LABEL_NAMES), ("split", (SPLIT_COLUMN,))):
        if part not in chosen and (free := [lower[name] for name in known if name in lower]):
            found[part] = free[0]
    for first, second in PAIR_NAMES:
        left = {**lower, second: chosen["pair"]} if chosen.get("pair", "").lower() == second else lower
        if "text" not in chosen | found and first in lower and second in left:
            found |= {"text": lower[first], "pair": left[second]}
    rest = [name for name in names if name not in (chosen | found).values()]
    lacking = [part for part in ("text", "label") if part not in chosen | found]
    # Of two columns where one is known, the other is plain.
    return found | {lacking[0]: rest[0]} if len(rest) == len(lacking) == 1 else found


def check_classes(found: Texts, place: str) -> list[str]:
    """Return the names of the classes, or tags, in their order; numbers in that of numbers. Of a regression, none.

    Raises:
        UserError: If there is one class or value alone, or labels that are no classes.
    """
    if not found.texts:
        raise UserError(f"{place} has no rows.")
    labels = itertools.chain.from_iterable(found.labels) if found.target == "tags" else found.labels
    if found.target == "number":
        if len({*labels}) < 2:
            raise UserError(f"{place} has one value alone, {found.labels[0]:g}: expected two at least.")
        return []
    classes = sorted({*labels}, key=class_order)
    if len(classes) < 2:
        raise UserError(f"{place} has one class alone, {classes[0]!r}: expected two at least.")
    if found.target == "class" and len(classes) > max(2, len(found.labels) // 2):
        raise UserError(
            f"{place}: the column of labels has {len(classes):,} different values in "
            f"{counted(len(found.labels), 'row')}, as {classes[0]!r} and {classes[1]!r}: these are no classes. "
            "Name another column, as label=NAME; numbers are predicted with target=number."
        )
    return classes
