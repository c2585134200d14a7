"""Files that hypothesis generates: each becomes data that can be trained on, or one message that names the file."""

import csv
import io
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pebench.errors import UserError
from pebench.tasks.own.labelled_texts import load as load_texts
from pebench.tasks.own.places import Place
from pebench.tasks.own.running_text import load as load_corpus

EXAMPLES = settings(
    max_examples=int(os.environ.get("PEBENCH_EXAMPLES", 60)), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
LABEL = st.sampled_from(["a", "b", "c", "1", "", " ", None, True, 0, 2.0, 0.5])
TEXT = st.one_of(st.text(max_size=12), st.sampled_from(["a", "A ", "word", "other word", ""]), st.none())


def outcome(load, name: str, content: bytes):
    """Return what was read, or the message of its refusal; anything else is an error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return load(Place(str(path)))
        except UserError as error:
            text = str(error)
            assert str(path) in text
            assert len(text) < 800
            assert text.endswith(".")
            return text


def require_sound(found) -> None:
    data, classes, splits, sha256, _ = found
    assert len(classes) >= 2
    sides: dict[str, set[int]] = {}
    for text, split in zip(data.texts, splits, strict=True):
        assert text.strip()
        sides.setdefault(" ".join(text.lower().split()), set()).add(int(split))
    if not data.splits:
        assert all(len(split) == 1 for split in sides.values())
    assert {*splits.tolist()} == {0, 1, 2}
    assert {label for label, split in zip(data.labels, splits, strict=True) if split == 0} == {*classes}
    assert len(sha256) == 64


@EXAMPLES
@given(st.lists(st.tuples(TEXT, LABEL), max_size=60), st.integers(0, 40))
def test_any_json_lines_are_data_or_a_message(rows, plain):
    rows = [*rows, *((f"plain text {index}", "ab"[index % 2]) for index in range(plain))]
    lines = "\n".join(json.dumps({"text": text, "label": label}) for text, label in rows)
    found = outcome(load_texts, "a.jsonl", lines.encode())
    if not isinstance(found, str):
        require_sound(found)


@EXAMPLES
@given(st.lists(st.lists(st.text(max_size=8), min_size=1, max_size=3), max_size=30), st.integers(0, 40))
def test_any_table_is_data_or_a_message(rows, plain):
    text = io.StringIO()
    tail = [[f"plain text {index}", "ab"[index % 2]] for index in range(plain)]
    csv.writer(text).writerows([["text", "label"], *rows, *tail])
    found = outcome(load_texts, "a.csv", text.getvalue().encode("utf-8", "surrogatepass"))
    if not isinstance(found, str):
        require_sound(found)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
@EXAMPLES
@given(st.binary(max_size=200))
def test_any_bytes_are_data_or_a_message(ending, content):
    outcome(load_texts, f"a.{ending}", content)


@EXAMPLES
@given(st.binary(max_size=400))
def test_any_text_is_a_corpus_or_a_message(content):
    found = outcome(load_corpus, "a.txt", content)
    if not isinstance(found, str):
        whole = "".join(found[0][split] for split in ("train", "val", "test"))
        assert whole == content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


WORDS = st.one_of(st.lists(TEXT, max_size=4), TEXT)
TAGS = st.one_of(st.lists(LABEL, max_size=4), LABEL)


@EXAMPLES
@given(st.lists(st.tuples(WORDS, TAGS), max_size=20), st.integers(0, 40))
def test_any_tags_are_data_or_a_message(rows, plain):
    rows = [*((["word", f"plain{index}"], ["a", "b"]) for index in range(plain)), *rows]
    lines = "\n".join(json.dumps({"tokens": words, "tags": tags}) for words, tags in rows)
    found = outcome(load_texts, "a.jsonl", lines.encode())
    if not isinstance(found, str) and found[0].target == "tags":
        assert all(len(words) == len(tags) for words, tags in zip(found[0].texts, found[0].labels, strict=True))
        assert {*found[2].tolist()} == {0, 1, 2}


@EXAMPLES
@given(st.text(alphabet="ab O#-1\t\n\r", max_size=60), st.sampled_from([".conll", ".conllu"]), st.integers(0, 40))
def test_any_words_by_line_are_data_or_a_message(text, ending, plain):
    row = "{}\tword{}" + ("\t_\tX" + "\t_" * 6 if ending == ".conllu" else "\tX") + "\n"
    text = "".join(row.format(1, index) + row.format(2, "").replace("X", "Y") + "\n" for index in range(plain)) + text
    outcome(load_texts, f"a{ending}", text.encode())


@EXAMPLES
@given(st.lists(st.tuples(TEXT, LABEL | st.floats()), max_size=40), st.integers(0, 40))
def test_any_numbers_are_data_or_a_message(rows, plain):
    rows = [*rows, *((f"plain text {index}", index / 7) for index in range(plain))]
    lines = "\n".join(json.dumps({"text": text, "label": label}) for text, label in rows)
    found = outcome(lambda place: load_texts(Place(place.path, {"target": "number"})), "a.jsonl", lines.encode())
    assert isinstance(found, str) or len({*found[0].labels}) > 1
