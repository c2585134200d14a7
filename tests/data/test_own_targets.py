"""Numbers, tags and pairs of a user: read in every form, made into tensors, and refused by name where they are bad."""

import math
import re

import pytest
import torch

from pebench.data import datamodule
from pebench.data.pairs import joined_pairs
from pebench.errors import UserError
from pebench.tasks import find_task
from pebench.tasks.own import take_remarks
from pebench.tasks.own.guess import task_of_path
from tests.data.own_data import numbers, paired, tagged, texts, write_csv, write_jsonl, write_parquet


def named(path, **options: str) -> str:
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    return find_task(f"texts(path={str(path)!r}, name=mine{words})").name


def made(name: str, **options):
    data = datamodule(name, **options)
    data.prepare_data()
    data.setup()
    return data


def refusal(path, **options: str) -> str:
    with pytest.raises(UserError) as caught:
        named(path, **options)
    return str(caught.value).removeprefix(str(path))


def test_names_of_classes_are_as_they_were_before_there_were_other_targets(tmp_path):
    usual = "batch_size=16, classes=2, data='mine-{}', max_len=16, steps=200, vocab_size=64"
    path = write_csv(tmp_path / "a.csv", texts())
    assert named(path) == f"texts({usual.format('897cd8fc6179')})"
    assert named(path, target="class") == named(path)
    rows = [(text, text[::-1], label) for text, label in texts()]
    path = write_csv(tmp_path / "a.csv", rows, ("sentence1", "sentence2", "label"))
    assert named(path, text="sentence1") == f"texts({usual.format('897cd8fc6179')})"


# Numbers


def test_numbers_are_standardized_by_those_of_training(tmp_path):
    rows = numbers()
    names = {named(write_csv(tmp_path / "a.csv", rows), target="number")}
    names |= {named(write_jsonl(tmp_path / "a.jsonl", rows), target="number")}
    names |= {named(write_parquet(tmp_path / "a.parquet", rows), target="number")}
    (name,) = names
    assert re.fullmatch(
        r"texts\(batch_size=16, data='mine-[0-9a-f]{12}', max_len=16, steps=200, target='number', vocab_size=64\)", name
    )
    data = made(name)
    tensors, meta = data.prepared.tensors, data.prepared.meta
    train, test = tensors["train_labels"], tensors["test_labels"]
    assert train.dtype == torch.float32
    assert train.mean().item() == pytest.approx(0, abs=1e-6)
    assert train.std(correction=0).item() == pytest.approx(1, abs=1e-6)
    whole = torch.cat([tensors[f"{split}_labels"] for split in ("train", "val", "test")]).double()
    back = (whole * meta["deviation"] + meta["mean"]).sort().values
    torch.testing.assert_close(back, torch.tensor([number for _, number in rows]).double().sort().values)
    assert data.chance() == {"squared_error": pytest.approx(test.square().mean().item())}
    assert "num_classes" not in data.describe()
    assert next(iter(data.train_dataloader()))[2].dtype == torch.float32


def test_the_same_table_is_other_data_with_another_target(tmp_path):
    rows = [(text, index % 3) for index, (text, _) in enumerate(texts())]
    path = write_csv(tmp_path / "a.csv", rows)
    classes, number = named(path), named(path, target="number")
    assert find_task(classes).data_args["own"] != find_task(number).data_args["own"]
    assert made(number).prepared.tensors["train_labels"].is_floating_point()
    assert made(classes).prepared.tensors["train_labels"].max() == 2


@pytest.mark.parametrize("value", ["good", "", "nan", "inf", "1e300"])
def test_values_that_are_no_numbers_are_named(tmp_path, value):
    found = refusal(write_csv(tmp_path / "a.csv", [*numbers(), ("a", value)]), target="number")
    assert found == f", line 202, column 'label': expected a number, got {value!r}."


def test_numbers_that_are_all_the_same_and_unknown_targets_are_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", [(text, 2.5) for text, _ in texts()])
    assert "has one value alone, 2.5: expected two at least." in refusal(path, target="number")
    rows = [(text, 2.5, "train") for text, _ in texts()] + [("a", 1, "test"), ("b", 2, "val")]
    path = write_csv(path, rows, ("text", "label", "split"))
    assert "has one value alone to train on, 2.5" in refusal(path, target="number")
    with pytest.raises(UserError, match=r"unknown target of task 'texts': 'numbers'\. Did you mean 'number'"):
        named(path, target="numbers")
    path = write_csv(path, numbers())
    assert "numbers are predicted with target=number." in refusal(path)


# Tags


def test_tags_are_guessed_and_have_one_name_in_every_form(tmp_path):
    rows = tagged()
    (tmp_path / "a.conll").write_text(
        "-DOCSTART- -X- O\n\n" + "\n".join("".join(f"{w} NN {t}\n" for w, t in zip(*row, strict=True)) for row in rows)
    )
    parts = "".join(
        "# text\n1-2\tx" + "\t_" * 8 + "\n"
        + "".join(f"{i}\t{w}\t_\t{t}" + "\t_" * 6 + "\n" for i, (w, t) in enumerate(zip(*row, strict=True), 1)) + "\n"
        for row in rows
    )  # fmt: skip
    (tmp_path / "a.conllu").write_text(parts)
    write_jsonl(tmp_path / "a.jsonl", rows, ("tokens", "ner_tags"))
    write_parquet(tmp_path / "a.parquet", rows, ("words", "tags"))
    found = set()
    for path in sorted(tmp_path.iterdir()):
        assert task_of_path(str(path)) == f"texts(path={str(path)!r})"
        found.add(named(path))
    (name,) = found
    assert re.fullmatch(
        r"texts\(batch_size=16, classes=2, data='mine-[0-9a-f]{12}', max_len=16, steps=200, target='tags', "
        r"vocab_size=64\)", name,
    )  # fmt: skip


def test_each_word_keeps_its_tag(tmp_path):
    rows = tagged()
    name = named(write_jsonl(tmp_path / "a.jsonl", rows, ("tokens", "tags")))
    data = made(name, max_len=6)
    tensors = data.prepared.tensors
    assert int(tensors["train_lengths"].max()) == 6
    examples, _ = data.split("train")
    tokens, lengths, tags = examples[torch.arange(len(examples))]
    assert tokens.shape == tags.shape == (160, 6)
    outside = torch.arange(6) >= lengths[:, None]
    assert bool((tags[outside] == -100).all())
    assert not bool((tags[~outside] == -100).any())
    assert bool((tags[:, 0] == 0).all())  # as the first word has none before it
    (label, batches), *_ = data.beyond(())
    mixed = next(iter(batches))
    assert label == "shuffled"
    usual = next(iter(data.test_dataloader()))
    pairs = [sorted(zip(*(part.flatten().tolist() for part in (batch[0], batch[2])), strict=True))
             for batch in (usual, mixed)]  # fmt: skip
    assert pairs[0] == pairs[1]
    assert not torch.equal(usual[0], mixed[0])
    test = tensors["test_labels"]
    assert data.chance() == {"accuracy": pytest.approx((test == 0).double().mean().item())}


def test_words_keep_their_case_and_rare_ones_are_unknown(tmp_path):
    rows = [(["Paris", "paris", f"once{index}"], ["LOC", "O", "O"]) for index in range(100)]
    data = made(named(write_jsonl(tmp_path / "a.jsonl", rows, ("tokens", "tags"))), vocab_size=4)
    tokens = data.prepared.tensors["train_tokens"].view(-1, 3)
    assert tokens.unique(dim=0).tolist() == [[2, 3, 1]]


BAD_TAGS = {
    "fewer": ((["a", "b"], ["O"]), "column 'tags': expected 2 tags, one for each word, got ['O']."),
    "no list": ((["a"], "O"), "column 'tags': expected a list of tags (words, or whole numbers), got 'O'."),
    "fraction": ((["a"], [0.5]), "column 'tags': expected a list of tags (words, or whole numbers), got [0.5]."),
    "no words": (([], []), "column 'tokens': expected a list of words, got []."),
    "a text": (("a b", ["O", "O"]), "column 'tokens': expected a list of words, got 'a b'."),
    "empty": ((["a", " "], ["O", "O"]), "column 'tokens': expected a list of words, got ['a', ' ']."),
}


@pytest.mark.parametrize(("row", "words"), BAD_TAGS.values(), ids=list(BAD_TAGS))
def test_bad_tags_are_named(tmp_path, row, words):
    found = refusal(write_jsonl(tmp_path / "a.jsonl", [*tagged(), row], ("tokens", "tags")))
    assert found.startswith(f", line 201, {words}")


def test_odd_files_of_tags_are_named_and_rare_tags_told(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("word O\nalone\n")
    assert refusal(path) == ", line 2: expected a word and its tag, got 'alone'."
    path.write_text("")
    assert "has no rows" in refusal(path)
    rows = [(*row, "train") for row in tagged()] + [(["x"], ["RARE"], "test"), (["y"], ["O"], "val")]
    name = named(write_jsonl(tmp_path / "a.jsonl", rows, ("tokens", "tags", "split")))
    remarks = take_remarks(find_task(name).data_args["own"])
    assert "warning: no training text has the tag RARE (1 in all)" in remarks


# Pairs


def test_pairs_are_guessed_or_named_and_have_one_name(tmp_path):
    rows = paired()
    path = write_csv(tmp_path / "a.csv", rows, ("premise", "hypothesis", "label"))
    name = named(path)
    assert "max_len=32, pair='yes', " in name
    assert named(write_jsonl(tmp_path / "a.jsonl", rows, ("a", "b", "y")), text="a", pair="b") == name
    assert named(path, pair="hypothesis") == name
    assert named(path, text="hypothesis", pair="premise") != name
    task = find_task(name)
    assert (task.separator, task.budgets["quick"].model.segments) == (2, "sum")
    data = made(name)
    assert data.describe()["separator"] == 2
    tokens, lengths, _ = data.split("train")[0][torch.arange(100)]
    assert bool(((tokens == 2).sum(1) == 1).all())
    assert bool((tokens[:, 0] != 2).all())
    assert bool((tokens.gather(1, lengths[:, None] - 1) != 2).all())


def test_pairs_may_have_numbers_but_no_tags(tmp_path):
    rows = [(one, two, index / 7) for index, (one, two, _) in enumerate(paired())]
    task = find_task(named(write_csv(tmp_path / "a.csv", rows, ("sentence1", "sentence2", "score")), target="number"))
    assert (task.kind.name, task.separator) == ("regression", 2)
    assert made(task.name).describe()["separator"] == 2
    rows = [(words, "b", labels) for words, labels in tagged()]
    assert "tags are of one text" in refusal(
        write_jsonl(tmp_path / "a.jsonl", rows, ("a", "b", "c")), text="a", pair="b"
    )


def test_of_a_pair_the_longer_text_is_cut():
    one, two = torch.arange(10, 20).numpy(), torch.arange(30, 33).numpy()
    cut = {length: [*joined_pairs([one], [two], length)[0]] for length in (20, 10, 5, 4, 3)}
    assert cut[20] == [*range(10, 20), 2, 30, 31, 32]
    assert cut[10] == [*range(10, 16), 2, 30, 31, 32]
    assert cut[5] == [10, 11, 2, 30, 31]
    assert cut[4] == [10, 11, 2, 30]  # of an odd number the first has the larger half
    assert cut[3] == [10, 2, 30]
    assert [*joined_pairs([two], [one], 10)[0]] == [30, 31, 32, 2, *range(10, 16)]


@pytest.mark.parametrize("target", ["class", "number"])
def test_pairs_have_no_other_lengths(target, tmp_path):
    rows = [(one, two, f"{index / 7}" if target == "number" else label)
            for index, (one, two, label) in enumerate(paired())]  # fmt: skip
    path = write_csv(tmp_path / "a.csv", rows, ("premise", "hypothesis", "label"))
    data = made(named(path, **({"target": "number"} if target == "number" else {})))
    with pytest.raises(
        UserError, match=r"^mine-\w{12}: no other lengths can be tested, as longer texts would be other ex"
    ):
        [*data.beyond((2,))]


def test_equal_pairs_are_on_one_side(tmp_path):
    rows = [(one.upper() if turn else one, two, label) for one, two, label in paired() for turn in range(2)]
    data = made(named(write_csv(tmp_path / "a.csv", rows, ("premise", "hypothesis", "label"))))
    assert data.sizes() == {"train": 320, "val": 40, "test": 40}
    train, val, test = (
        {tuple(data.split(name)[0][torch.tensor([index])][0][0].tolist()) for index in range(size)}
        for name, size in data.sizes().items()
    )
    assert not train & val
    assert not train & test


def test_chance_of_classes_and_of_a_text_is_known(tmp_path):
    rows = [(text, "ab"[index % 3 == 0]) for index, (text, _) in enumerate(texts())]
    data = made(named(write_csv(tmp_path / "a.csv", rows)))
    train, test = (data.prepared.tensors[f"{split}_labels"] for split in ("train", "test"))
    common = int(train.double().mean() > 0.5)
    assert data.chance() == {"accuracy": pytest.approx((test == common).double().mean().item())}
    (tmp_path / "b.txt").write_text("ab" * 1000)
    text = made(find_task(f"corpus(path={str(tmp_path / 'b.txt')!r})").name)
    # Of 1,800 bytes, each one of two about as often; as if each of 256 had occurred once more.
    assert text.chance() == {"bits_per_byte": pytest.approx(math.log2(2056 / 901), abs=1e-3)}
