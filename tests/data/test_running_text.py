"""Running text: sentences that agree, tokens that count their bytes."""

import itertools
import random

import pytest
import torch

from pebench.data.base import Prepared
from pebench.data.language import Grammar
from pebench.errors import UserError
from tests.data.copies import SPLITS, WIKITEXT, load, reviews, write_imdb, write_table, write_wikitext2

# Sentences of the grammar

NUMBER = {
    word: plural
    for pair in (*Grammar.NOUNS, *Grammar.TRANSITIVE, *Grammar.INTRANSITIVE)
    for plural, word in enumerate(pair)
}
NOUNS, TRANSITIVE, INTRANSITIVE = (
    {word for pair in pairs for word in pair} for pairs in (Grammar.NOUNS, Grammar.TRANSITIVE, Grammar.INTRANSITIVE)
)


class Parser:
    """Reads a sentence from left to right and insists that every verb agrees with its subject."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.at = words, 0

    def peek(self) -> str:
        return self.words[self.at]

    def take(self, allowed) -> str:
        word = self.peek()
        assert word in allowed, f"{word} at {self.at} of {' '.join(self.words)}"
        self.at += 1
        return word

    def sentence(self) -> None:
        number = self.noun_phrase()
        self.verb_phrase(number)
        if self.peek() == "and":
            self.take(["and"])
            self.verb_phrase(number)
        self.take(["."])
        assert self.at == len(self.words)

    def noun_phrase(self) -> int:
        self.take(["the"])
        if self.peek() in Grammar.ADJECTIVES:
            self.take(Grammar.ADJECTIVES)
        number = NUMBER[self.take(NOUNS)]
        if self.peek() == "near":
            self.take(["near"])
            self.noun_phrase()
        elif self.peek() == "that":
            self.take(["that"])
            if self.peek() == "the":
                self.verb(self.noun_phrase(), TRANSITIVE)
            else:
                self.verb_phrase(number)
        return number

    def verb(self, number: int, allowed: set[str]) -> str:
        word = self.take(allowed)
        assert NUMBER[word] == number, f"{word} at {self.at} of {' '.join(self.words)}"
        return word

    def verb_phrase(self, number: int) -> None:
        if self.verb(number, TRANSITIVE | INTRANSITIVE) in TRANSITIVE:
            self.noun_phrase()


@pytest.mark.parametrize("seed", range(3))
def test_every_verb_agrees_with_its_subject(seed):
    noise = random.Random(seed)
    for _ in range(2000):
        Parser(Grammar().sentence(noise)).sentence()


@pytest.mark.parametrize("sentence", ["the cats sleeps .", "the cats that the dog see sleep .", "the cat that see ."])
def test_the_parser_here_sees_disagreement(sentence):
    with pytest.raises((AssertionError, KeyError)):
        Parser(sentence.split()).sentence()


def test_some_verbs_follow_a_noun_of_the_other_number():
    noise, misled = random.Random(0), 0
    for _ in range(1000):
        words = Grammar().sentence(noise)
        pairs = itertools.pairwise(words)
        misled += any(a in NOUNS and b in NUMBER and b not in NOUNS and NUMBER[a] != NUMBER[b] for a, b in pairs)
    assert misled > 100


def test_the_words_of_the_grammar_fit_their_bytes(tmp_path):
    data = load("lm-grammar", tmp_path)
    assert len(data.describe()["token_bytes"]) == 35
    assert set(data.prepared.tensors["train"].unique().tolist()) == set(range(35))
    tokens = data.prepared.tensors["test"]
    forms = [form for pair in (*Grammar.NOUNS, *Grammar.TRANSITIVE, *Grammar.INTRANSITIVE) for form in pair]
    words = [*Grammar.FUNCTION_WORDS, *Grammar.ADJECTIVES, *forms]
    text = " ".join(words[token] for token in tokens.tolist()) + " "
    assert torch.tensor(data.describe()["token_bytes"])[tokens.long()].sum() == len(text.encode())


@pytest.mark.parametrize("task", ["lm-grammar", "lm-shakespeare"])
def test_too_small_a_vocabulary_is_said(task, tmp_path):
    with pytest.raises(UserError, match=r"data\.vocab_size must be at least \d+ here, got 3"):
        load(task, tmp_path, vocab_size=3)


def test_a_vocabulary_has_room_for_what_is_no_word(tmp_path):
    write_imdb(tmp_path / "data")
    with pytest.raises(UserError, match=r"data\.vocab_size must be at least 2 here, got 1"):
        load("text-imdb", tmp_path, vocab_size=1)


# Running text


def test_the_bytes_of_byte_pair_tokens_are_those_of_the_text(tmp_path):
    data = load("lm-wikitext2", tmp_path, vocab_size=280)
    sizes = torch.tensor(data.describe()["token_bytes"])
    assert data.describe()["vocab_size"] == len(sizes) == 280
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        text = "".join(WIKITEXT[split])
        assert sizes[data.prepared.tensors[name].long()].sum() == len(text.encode())
    assert len(data.prepared.tensors["train"]) < len("".join(WIKITEXT["train"])) / 2  # it has learned to merge


def test_the_byte_pairs_are_those_of_the_training_text(tmp_path):
    data = load("lm-wikitext2", tmp_path, vocab_size=280)
    sizes, tokens = torch.tensor(data.describe()["token_bytes"]), data.prepared.tensors
    assert sizes[tokens["train"].long()].float().mean() > 2
    assert (sizes[tokens["test"].long()][:4] == 1).all()  # " 猫": no merge in training makes it


def test_every_tenth_review_of_a_split_is_held_out_and_all_others_train(tmp_path):
    data = load("lm-imdb", tmp_path, vocab_size=280)
    sizes = torch.tensor(data.describe()["token_bytes"])
    texts = {
        split: [text.replace("<br />", " ") for text in reviews(split, n)] for split, n in (("train", 60), ("test", 20))
    }
    lengths = {split: [len(text) + 1 for text in rows] for split, rows in texts.items()}  # 1: the line break after it
    held = {split: sum(rows[9::10]) for split, rows in lengths.items()}
    train = sum(map(sum, lengths.values())) - sum(held.values())
    for name, count in (("train", train), ("val", held["train"]), ("test", held["test"])):
        assert sizes[data.prepared.tensors[name].long()].sum() == count


def test_reviews_that_are_held_out_do_not_train(tmp_path):
    rows = reviews("same", 20)
    for split in ("train", "test"):  # so the tenth and the twentieth of both, and both ones of all others
        write_table(
            tmp_path / "data" / "imdb", split, text=[*rows, rows[9], "other<br />" + rows[3]], label=[0, 1] * 11
        )
    data = load("lm-imdb", tmp_path, vocab_size=280)
    sizes = torch.tensor(data.describe()["token_bytes"])
    lengths = [len(text.replace("<br />", " ")) + 1 for text in rows]
    train = 2 * (sum(lengths) - lengths[9] - lengths[19] + lengths[3] + len("other "))
    for name, count in (("train", train), ("val", lengths[9] + lengths[19]), ("test", lengths[9] + lengths[19])):
        assert sizes[data.prepared.tensors[name].long()].sum() == count


def test_copies_of_what_is_tested_alone_do_not_train(tmp_path):
    one, other = reviews("one", 20), reviews("other", 20)
    one[3] = other[9]  # the tenth of the other split
    for split, rows in (("train", one), ("test", other)):
        write_table(tmp_path / "data" / "imdb", split, text=rows, label=[0, 1] * 10)
    data = load("lm-imdb", tmp_path, vocab_size=280)
    sizes = torch.tensor(data.describe()["token_bytes"])
    kept = [text for rows in (one, other) for i, text in enumerate(rows) if i % 10 != 9 and text != other[9]]
    assert len(kept) == 35
    assert sizes[data.prepared.tensors["train"].long()].sum() == sum(
        len(text.replace("<br />", " ")) + 1 for text in kept
    )


def test_chance_is_the_entropy_of_what_is_predicted_by_the_frequencies_of_training():
    data = Grammar(max_len=4, vocab_size=4)
    text = torch.tensor([3, 0, 1, 0], dtype=torch.int32)  # the first token is not predicted
    data._prepared = Prepared({"train": torch.tensor([0, 0, 0, 1]), "test": text}, {"token_bytes": [1, 2, 1, 1]})
    assert data.shares().tolist() == [0.5, 0.25, 0.125, 0.125]  # each once more
    assert data.chance() == {"bits_per_byte": pytest.approx((1 + 2 + 1) / (1 + 2 + 1))}


def test_a_window_must_be_shorter_than_the_text_whose_last_token_is_only_predicted():
    data = Grammar(max_len=4)
    data._prepared = Prepared({"test": torch.arange(8)}, {"token_bytes": [1] * 8})
    assert [*data.untestable((1.5, 1.75, 2, 3))] == [2, 3]


def test_characters_that_training_lacks_share_token_zero(tmp_path):
    data = load("lm-shakespeare", tmp_path)
    tensors = data.prepared.tensors
    assert tensors["train"].tolist() == [1, 2, 3] * 30
    assert tensors["val"].tolist() == [1, 1, 0, 2, 2]
    assert tensors["test"].tolist() == [0, 1, 1, 3, 0]
    assert data.describe()["token_bytes"] == [1, 1, 1, 2] + [0] * 62  # of 66, as declared
    assert data.describe()["vocab_size"] == 66


def test_a_text_is_cut_in_90_5_and_5_percent(tmp_path):
    path = tmp_path / "data" / "tiny_shakespeare" / "input.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(chr(48 + i % 64) for i in range(1000)), encoding="utf-8")
    data = load("lm-shakespeare", tmp_path)
    parts = [data.prepared.tensors[name].tolist() for name in SPLITS]
    assert [len(part) for part in parts] == [900, 50, 50]
    assert [token for part in parts for token in part] == [i % 64 + 1 for i in range(1000)]


def test_no_byte_pair_is_made_of_other_splits(tmp_path):
    write_wikitext2(tmp_path / "data")
    for split in ("validation", "test"):
        write_table(tmp_path / "data" / "wikitext-2-v1", split, text=["zqzqzq"] * 200)
    data = load("lm-wikitext2", tmp_path, vocab_size=280)
    assert data.prepared.tensors["val"].shape == data.prepared.tensors["test"].shape == (1200,)  # byte by byte
