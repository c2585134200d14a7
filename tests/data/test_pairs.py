"""Pairs of lines: which follow each other, and what says nothing of that."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from pebench.data import datamodule
from pebench.data.pairs import lines_of_articles, paired
from pebench.errors import UserError
from pebench.tasks import TASKS
from tests.data.copies import SPLITS, article, load, sequences, write_pairs, write_table

SEPARATOR = 2


def test_lines_of_an_article_are_those_of_ten_words_or_more_without_headings() -> None:
    table = [" = National record \n", " = Ties , L = \n", " Played , W \n"]
    lines, articles = lines_of_articles([*article("cat", 3), *table, *article("dog", 2)])
    assert lines == [f" {name}{i} is a unk of ten words or more . \n" for name, i in
                     (("cat-", 0), ("cat-", 1), ("cat-", 2), ("dog-", 0), ("dog-", 1))]  # fmt: skip
    assert articles.tolist() == [1, 1, 1, 2, 2]
    ten, nine = (" ".join(["word"] * number) for number in (10, 9))
    assert lines_of_articles(["", " = cat = \n", "", ten, nine])[0] == [ten]


@pytest.mark.parametrize("counts", [[2, 2], [5, 3, 4], [1, 2, 2, 1], [30, 40, 50, 11]])
def test_every_line_is_paired_with_its_successor_and_with_one_of_another_article(counts: list[int]) -> None:
    articles = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    first, second, labels = paired(articles, seed=0)
    follows = labels == 1
    successors = [i for i in range(len(articles) - 1) if articles[i] == articles[i + 1]]
    assert first[follows].tolist() == first[~follows].tolist() == successors
    assert second[follows].tolist() == [i + 1 for i in successors]
    assert all(articles[a] != articles[b] for a, b in zip(first[~follows], second[~follows], strict=True))
    # Neither line alone says anything of the label: each is as often first, and as often second, with both.
    assert Counter(second[follows].tolist()) == Counter(second[~follows].tolist())


@pytest.mark.parametrize("counts", [[5], [1, 1], [6, 2, 2]])
def test_too_few_lines_of_other_articles_are_refused(counts: list[int]) -> None:
    with pytest.raises(UserError, match="several articles, none of which has more lines"):
        paired(torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)), seed=0)


def test_a_pair_is_the_end_of_one_line_and_the_beginning_of_another(tmp_path: Path) -> None:
    data = load("text-pairs", tmp_path, max_len=13)
    whole = load("text-pairs", tmp_path, max_len=64)
    assert data.describe()["separator"] == TASKS["text-pairs"].separator == SEPARATOR
    found = Counter[int]()
    for name in SPLITS:
        labels = data.prepared.tensors[f"{name}_labels"].tolist()
        assert sum(labels) * 2 == len(labels)
        assert whole.prepared.tensors[f"{name}_labels"].tolist() == labels
        for cut, full in zip(sequences(data, name), sequences(whole, name), strict=True):
            where, first = full.index(SEPARATOR), cut.index(SEPARATOR)
            assert cut == (*full[:where][-first:], SEPARATOR, *full[where + 1 :][: 12 - first])
            assert full.count(SEPARATOR) == 1
            found[first] += 1
    assert set(found) == {3, 4, 5, 6, 7, 8, 9}  # of 12 tokens, a quarter to three quarters


def test_words_are_those_of_training_and_numbers_tell_the_lines(tmp_path: Path) -> None:
    write_pairs(tmp_path / "data")
    write_table(tmp_path / "data" / "wikitext-2-v1", "test", text=[*article("train0", 3), *article("dog", 3)])
    data = load("text-pairs", tmp_path, max_len=64)
    texts = dict(zip(sequences(data, "test"), data.prepared.tensors["test_labels"].tolist(), strict=True))
    # " train0-0 is a unk ..." is train0 - 0 is ...; dog is a word that training lacks, token 1
    halves = {tuple(text[: text.index(SEPARATOR)]): text for text, label in texts.items() if label}
    assert len(halves) == 4
    for half, text in halves.items():
        other = text[text.index(SEPARATOR) + 1 :]
        assert (half[0] == other[0], half[1] == other[1], half[3:] == other[3:]) == (True, True, True)
        assert half[2] != other[2]  # the number of the line
    assert {half[0] == 1 for half in halves} == {True, False}


@pytest.mark.parametrize("options", [{"max_len": 2}, {"vocab_size": 2}])
def test_too_little_room_for_a_pair_is_said(options: dict[str, int], tmp_path: Path) -> None:
    write_pairs(tmp_path / "data")
    with pytest.raises(UserError, match=next(iter(options))):
        datamodule("text-pairs", tmp_path / "data", **options).prepare_data()
