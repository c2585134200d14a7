"""Labelled texts of a user: read in every form, cut by the rule, and refused by name where they are bad."""

import json
import re

import numpy as np
import pytest

from pebench.data import datamodule
from pebench.engine.executors.server import data_environment
from pebench.errors import UserError
from pebench.tasks import find_task
from pebench.tasks.own import take_remarks
from pebench.tasks.own.cuts import cut, split_examples, text_keys
from pebench.tasks.own.guess import task_of_path
from tests.data.own_data import texts, write_csv, write_jsonl, write_parquet

ROWS = texts()
WRITERS = {
    "a.csv": write_csv, "a.tsv": lambda path, *rest: write_csv(path, *rest, delimiter="\t"),
    "a;.csv": lambda path, *rest: write_csv(path, *rest, delimiter=";"), "a.jsonl": write_jsonl,
    "a.parquet": write_parquet,
}  # fmt: skip


def named(path, **options: str) -> str:
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    return find_task(f"texts(path={str(path)!r}, name=mine{words})").name


def refusal(path, **options: str) -> str:
    with pytest.raises(UserError) as caught:
        named(path, **options)
    assert len(str(caught.value)) < 600
    return str(caught.value).removeprefix(str(path))


def test_equal_data_have_one_name_however_a_file_packs_them_and_wherever_it_is(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    names = {named(write(tmp_path / name, ROWS)) for name, write in WRITERS.items()}
    names |= {named(write_csv(tmp_path / "elsewhere" / "b.csv", ROWS, ("review", "stars")))}
    names |= {named(write_csv(tmp_path / "c.csv", ROWS, ("foo", "bar")), text="foo", label="bar")}
    (name,) = names
    assert re.fullmatch(
        r"texts\(batch_size=16, classes=2, data='mine-[0-9a-f]{12}', max_len=16, steps=200, vocab_size=64\)", name
    )
    assert named(write_csv(tmp_path / "a.csv", ROWS[:-1])) != name  # the file has changed, at the same place


def test_the_name_alone_is_the_task(tmp_path):
    name = named(write_csv(tmp_path / "a.csv", ROWS))
    (tmp_path / "a.csv").unlink()
    task = find_task(name)
    assert (task.name, task.num_classes) == (name, 2)
    assert task.budgets["quick"].train.batch_size == 16
    assert str(tmp_path) not in repr(task)


def test_options_change_sizes_and_a_path_is_needed(tmp_path):
    path = write_csv(tmp_path / "a.csv", ROWS)
    task = find_task(f"texts(path={str(path)!r}, max_len=128, steps=70)")
    assert "max_len" not in task.name  # as usual
    assert "steps=70" in task.name
    for wrong in ("texts", "texts(classes=2)", "texts(data='a')", "texts(classes=2, data='../a-0123456789ab')"):
        with pytest.raises(UserError, match="expects a file or folder"):
            find_task(wrong)
    with pytest.raises(UserError, match="unknown option of task 'texts'"):
        find_task("texts(paht=a)")


def test_splits_keep_equal_texts_on_one_side_and_have_a_tenth(tmp_path):
    rows = [(text, label) for text, label in ROWS for _ in range(3)]
    rows = [(text.upper() if index % 2 else f" {text}", label) for index, (text, label) in enumerate(rows)]
    data = datamodule(named(write_csv(tmp_path / "a.csv", rows)))
    data.prepare_data()
    data.setup()
    assert data.sizes() == {"train": 480, "val": 60, "test": 60}
    seen = []
    for split in ("train", "val", "test"):
        examples, _ = data.split(split)
        seen.append({tuple(examples[np.array([i])][0][0].tolist()) for i in range(len(examples))})
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert data.fingerprint


def test_the_cut_does_not_depend_on_the_order_of_rows():
    keys = text_keys([text for text, _ in ROWS])
    turned, _ = cut(keys[::-1].copy(), None)
    np.testing.assert_array_equal(cut(keys, None)[0], turned[::-1])


def test_a_split_that_is_not_given_is_cut_of_the_training_examples():
    keys = np.arange(60, dtype=np.uint64)
    found, rule = cut(keys, ["test"] * 30 + ["train"] * 30)
    assert found.tolist() == [2] * 30 + [1] * 3 + [0] * 27
    assert rule == "of the different training examples by their SHA-256, validation the first tenth"


def test_examples_that_are_held_out_count_once_for_each_that_is_in_another_split():
    keys, labels = np.array([1, 1, 1, 2, 1, 3], dtype=np.uint64), np.zeros(6, dtype=np.int64)
    _, remarks = split_examples(keys, ["train", "train", "train", "val", "test", "test"], labels, ["a"], "it")
    assert "warning: 1 of 2 test examples are in train, too" in remarks


@pytest.mark.parametrize("form", ["column", "files", "folders"])
def test_given_splits_are_taken_and_duplicates_between_them_counted(tmp_path, form):
    parts = {"train": ROWS[:120], "dev": ROWS[120:150], "test": [*ROWS[150:], *ROWS[:7]]}
    path = tmp_path / "data"
    path.mkdir()
    for split, rows in parts.items():
        if form == "files":
            write_csv(path / f"{split}.csv", rows)
        elif form == "folders":
            (path / split).mkdir()
            write_csv(path / split / "part-0.csv", rows)
    if form == "column":
        rows = [(*row, split) for split, part in parts.items() for row in part]
        path = write_csv(tmp_path / "a.csv", rows, ("text", "label", "split"))
    name = named(path)
    data = datamodule(name)
    data.prepare_data()
    data.setup()
    assert data.sizes() == {"train": 120, "val": 30, "test": 57}
    remarks = take_remarks(find_task(name).data_args["own"])
    assert "warning: 7 of 57 test examples are in train, too" in remarks


def test_what_is_guessed_is_said(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", [(i, text, label) for i, (text, label) in enumerate(ROWS)], ("n", "Review", "Y")
    )
    remarks = take_remarks(find_task(find_task(f"texts(path={str(path)!r})").name).data_args["own"])
    assert "columns by their names: text=Review, label=Y" in remarks
    assert any(remark.startswith("from the data: data.max_len=16, data.vocab_size=64") for remark in remarks)


def test_of_sizes_that_are_given_none_is_said_to_be_guessed(tmp_path):
    path = write_csv(tmp_path / "a.csv", ROWS)
    remarks = take_remarks(find_task(f"texts(path={str(path)!r}, name=given, max_len=12)").data_args["own"])
    assert any(remark.startswith("from the data: data.vocab_size=64") for remark in remarks)
    every = "max_len=8, vocab_size=99, steps=7, batch_size=4"
    remarks = take_remarks(find_task(f"texts(path={str(path)!r}, name=all-given, {every})").data_args["own"])
    assert remarks
    assert not any("from the data" in remark for remark in remarks)


BAD_ROWS = {
    "empty text": ([(" ", "good")], ", line 202, column 'text': expected a text with a word in it, got ' '."),
    "no label": ([("a", "")], ", line 202, column 'label': expected a label (a word, or a whole number), got ''."),
    "two": (
        [("", "good"), ("", "bad")],
        "line 202, column 'text': expected a text with a word in it, got ''. So are 1 more",
    ),
    "columns": ([("a", "b", "c")], ", line 202: expected 2 columns, got 3."),
}


@pytest.mark.parametrize(("rows", "words"), BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_bad_rows_are_named(tmp_path, rows, words):
    assert words in refusal(write_csv(tmp_path / "a.csv", [*ROWS, *rows]))


@pytest.mark.parametrize("value", [None, 0.5, [1], {}, float("nan")], ids=str)
@pytest.mark.parametrize("column", ["text", "label"])
def test_values_that_are_neither_text_nor_label_are_named(tmp_path, column, value):
    row = (value, "good") if column == "text" else ("a", value)
    found = refusal(write_jsonl(tmp_path / "a.jsonl", [*ROWS, row]))
    assert found.startswith(f", line 201, column '{column}': expected a {column}")


def test_data_that_no_model_can_be_trained_on_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    assert "has one class alone, 'good'" in refusal(write_csv(path, [(text, "good") for text, _ in ROWS]))
    found = refusal(write_csv(path, [(text, index) for index, (text, _) in enumerate(ROWS)]))
    assert "200 different values in 200 rows, as '0' and '1': these are no classes" in found
    assert "too few different texts, 4" in refusal(write_csv(path, ROWS[:4])).replace("examples", "texts")
    assert "has no rows" in refusal(write_csv(path, []))
    rows = [(*row, "train") for row in ROWS] + [("a", "rare", "test"), ("b", "good", "val")]
    found = refusal(write_csv(path, rows, ("text", "label", "split")))
    assert "the class 'rare' (1 of 202 examples) has no training example: leave it out" in found
    rows = [(*row, "test") for row in ROWS]
    assert "has the splits test alone: expected train, too" in refusal(
        write_csv(path, rows, ("text", "label", "split"))
    )
    rows = [(*row, "fold1") for row in ROWS]
    assert "column 'split': expected train, validation or test, got 'fold1'" in refusal(
        write_csv(path, rows, ("text", "label", "split"))
    )


def test_columns_that_are_missing_or_not_plain_are_asked_for(tmp_path):
    path = write_csv(tmp_path / "a.csv", ROWS, ("foo", "bar"))
    line = f"--task \"texts(path='{path}', text='foo', label='bar')\""
    found = refusal(path)
    assert found == f": which column is the text? Name it in a task, as in {line}. It has: foo, bar."
    assert " has no column 'text' (option label). It has: foo, bar." in refusal(path, label="text")
    write_csv(path, [(*row, "x") for row in ROWS], ("foo", "label", "baz"))
    assert f"path='{path}', text='foo', label='label')" in refusal(path)
    assert "two columns of one name" in refusal(write_csv(path, ROWS, ("text", "text")))


def test_a_task_without_a_path_or_with_a_wrong_name_of_data_is_told():
    with pytest.raises(UserError, match=r"as in texts\(path='FILE'\), got no path\."):
        find_task("texts()")
    with pytest.raises(UserError, match="got data='3x', which is no name that pebench gave"):
        find_task("texts(data=3x)")


def test_files_that_are_no_tables_are_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\nschön,1\nplain,0\nmüde,1\n".encode("latin-1"))
    assert "can't decode byte 0xf6 in position 14: invalid start byte (line 2)" in refusal(path)
    path.write_bytes("text,label\na,1\n".encode("utf-16"))
    assert "in UTF-16" in refusal(path)
    path.write_text('text,label\n"a,1\nb,0\n')
    assert "Look for a quotation mark that is missing or doubled." in refusal(path)
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"text": "a", "label": 1}\n{"text": \n')
    assert ", line 2 is not JSON" in refusal(lines)
    lines.write_text('{"text": "a", "label": 1}\n\n{"text": "b", "label": []}\n')
    assert "line 3, column" in refusal(lines)  # it goes on after an empty line
    for nothing in ("", "\n\n"):
        lines.write_text(nothing)
        assert refusal(lines) == " is empty: expected a column of texts and one of labels."
    lines.write_text('{"text": "a", "label": 1}\n[1]\n')
    assert ", line 2: expected an object" in refusal(lines)
    table = tmp_path / "a.parquet"
    table.write_bytes(b"PAR1 but no more")
    assert "cannot be read as a table" in refusal(table)
    with pytest.raises(UserError, match=r"there is no '.*nowhere.csv'"):
        task_of_path(str(tmp_path / "nowhere.csv"))
    (tmp_path / "odd.xyz").touch()
    with pytest.raises(UserError, match=r"got \.xyz"):
        task_of_path(str(tmp_path / "odd.xyz"))


def test_data_that_change_after_they_were_named_are_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", ROWS)
    data = datamodule(named(path))
    write_csv(path, ROWS[:-1])
    with pytest.raises(UserError, match=r"are not mine-[0-9a-f]{12} any more: they have changed"):
        data.prepare_data()


def test_unknown_data_are_told(monkeypatch, tmp_path):
    name = named(write_csv(tmp_path / "a.csv", ROWS))
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "other cache"))
    datamodule(name).prepare_data()  # the place is in the environment, which reaches every executor
    monkeypatch.delenv("PEBENCH_OWN_DATA")
    task = find_task(name)
    task.check_available(task.budgets["quick"].data, None)  # prepared: the place is not asked for
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "third cache"))
    with pytest.raises(UserError, match=r"the data mine-[0-9a-f]{12} are not known on this machine"):
        datamodule(name).prepare_data()
    with pytest.raises(UserError, match="are not known on this machine"):
        task.check_available(task.budgets["quick"].data, None)


def test_the_place_reaches_processes_of_runs_on_any_executor(tmp_path):
    key = find_task(named(write_csv(tmp_path / "a.csv", ROWS))).data_args["own"]
    assert json.loads(data_environment()["PEBENCH_OWN_DATA"])[key]["path"] == str(tmp_path / "a.csv")
