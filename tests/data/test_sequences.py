"""Generated sequences: every answer is what a reader would say, at the trained length and beyond."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pebench.data.batches import IGNORE
from pebench.data.puzzles import A5, Copy, FlipFlop, LookUpIndex, LookUpOffset, Parity, Recall, Reverse, WhatWhere
from pebench.data.sequences import END, PADDING, SPECIAL, Sequences
from pebench.errors import UserError
from pebench.tasks import TASKS

Answers = dict[int, int]
"""The answer at each place that is asked."""


def copied(data: Sequences, tokens: list[int]) -> Answers:
    end = tokens.index(END)
    return {end + i: letter for i, letter in enumerate(tokens[:end])}


def reversed_(data: Sequences, tokens: list[int]) -> Answers:
    end = tokens.index(END)
    return {end + i: letter for i, letter in enumerate(tokens[end - 1 :: -1])}


def at_index(data: Sequences, tokens: list[int]) -> Answers:
    return {place: tokens[tokens[place] - SPECIAL] for place in range(len(tokens) - data.asked, len(tokens))}


def at_offset(data: Sequences, tokens: list[int]) -> Answers:
    return {
        place: tokens[place - 1 - (tokens[place] - SPECIAL)] for place in range(len(tokens) - data.asked, len(tokens))
    }


def beside_a_mark(data: Sequences, tokens: list[int]) -> Answers:
    steps, marks = [-3, -2, -1, 1, 2, 3], range(SPECIAL + 6, SPECIAL + 14)
    given = tokens[: next(i for i, token in enumerate(tokens) if token < marks[0])]
    there = [token for token in given if token in marks]
    assert 2 <= len(there) == len(set(there)) <= 4
    found = {}
    for place in range(len(given) + 1, len(tokens), 2):
        assert tokens[place] in there
        asked = given.index(tokens[place]) + steps[tokens[place - 1] - SPECIAL]
        assert 0 <= asked < len(given)
        found[place] = given[asked]
    return found


def recalled(data: Sequences, tokens: list[int]) -> Answers:
    known, found = {}, {}
    for place in range(0, len(tokens), 2):
        key, value = tokens[place], tokens[place + 1]
        if key in known:
            assert known[key] == value
            found[place] = value
        known[key] = value
    return found


def last_written(data: Sequences, tokens: list[int]) -> Answers:
    memory, found = None, {}
    for place in range(0, len(tokens), 2):
        instruction, bit = tokens[place], tokens[place + 1]
        if instruction == FlipFlop.WRITE:
            memory = bit
        if instruction == FlipFlop.READ:
            assert bit == memory
            found[place] = bit
    return found


def parities(data: Sequences, tokens: list[int]) -> Answers:
    assert tokens[0] == Parity.BEGIN
    bits = [token - Parity.FIRST for token in tokens[1:]]
    return {place: Parity.FIRST + sum(bits[:place]) % 2 for place in range(1, len(tokens))}


def products(data: Sequences, tokens: list[int]) -> Answers:
    elements = [
        p
        for p in itertools.permutations(range(5))
        if torch.linalg.det(torch.eye(5)[list(p)]) > 0  # even: the determinant of its matrix is 1
    ]
    assert tokens[0] == A5.BEGIN
    state, found = tuple(range(5)), {}
    for place, token in enumerate(tokens[1:], 1):
        element = elements[token - A5.FIRST]
        assert element in A5.CYCLES
        state = tuple(element[i] for i in state)
        found[place] = A5.FIRST + elements.index(state)
    return found


KINDS: dict[str, tuple[type[Sequences], Callable[[Any, list[int]], Answers]]] = {
    "copy": (Copy, copied), "reverse": (Reverse, reversed_), "lookup-index": (LookUpIndex, at_index),
    "lookup-offset": (LookUpOffset, at_offset), "what-where": (WhatWhere, beside_a_mark),
    "recall": (Recall, recalled), "flip-flop": (FlipFlop, last_written), "parity": (Parity, parities),
    "a5": (A5, products),
}  # fmt: skip


def made(name: str) -> Sequences:
    config = TASKS[f"seq-{name}"].budgets["minute"].data
    return KINDS[name][0](max_len=config.max_len, vocab_size=config.vocab_size)


def given(tokens: torch.Tensor, answers: torch.Tensor) -> Answers:
    return {place: answer for place, answer in enumerate(answers.tolist()) if answer != IGNORE}


@pytest.mark.parametrize("name", KINDS)
def test_answers_are_what_a_reader_would_say(name: str) -> None:
    data = made(name)
    noise = torch.Generator().manual_seed(3)
    for length in (16, 17, 23, 32, 64, 256):
        tokens, answers = data.draw(8, length, noise)
        assert tokens.shape == answers.shape
        assert length - 1 <= tokens.shape[1] <= length
        assert PADDING < int(tokens.min()) <= int(tokens.max()) < data.vocab_size
        for row, said in zip(tokens, answers, strict=True):
            assert given(row, said) == KINDS[name][1](data, row.tolist())


@pytest.mark.parametrize("name", KINDS)
def test_splits_have_their_lengths_and_share_nothing(name: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))
    data = made(name)
    data.prepare_data()
    data.setup()
    assert data.sizes() == {"train": 20_000, "val": 1_000, "test": 2_000}
    rows = {split: data.split(split)[0][torch.arange(size)][0] for split, size in data.sizes().items()}
    assert len(torch.cat(list(rows.values())).unique(dim=0)) == 23_000
    lengths = {split: (tokens != PADDING).sum(1) for split, tokens in rows.items()}
    assert lengths["test"].unique().tolist() == [32]
    assert lengths["train"].unique()[[0, -1]].tolist() == lengths["val"].unique()[[0, -1]].tolist() == [16, 32]
    sizes = {label: next(iter(loader))[0].shape[1] for label, loader in data.beyond((2, 8))}
    assert sizes == {"2x": 64, "8x": 256}


def test_longer_sequences_ask_for_places_and_words_that_training_had() -> None:
    noise = torch.Generator().manual_seed(0)
    for name in ("lookup-index", "lookup-offset", "what-where"):
        data = made(name)
        asked = {
            length: set(data.draw(4000, length, noise)[0][:, -data.asked :].flatten().tolist()) for length in (32, 256)
        }
        assert asked[256] == asked[32]


@pytest.mark.parametrize(("name", "farthest"), [("lookup-index", 11), ("lookup-offset", 11), ("what-where", 5)])
def test_every_place_of_the_shortest_sequences_is_asked_for(name: str, farthest: int) -> None:
    """Of sixteen tokens with four questions twelve are letters."""
    data = made(name)
    tokens, answers = data.draw(4000, 16, torch.Generator().manual_seed(0))
    asked = (answers != IGNORE).roll(-1, 1) if name == "what-where" else answers != IGNORE
    assert (tokens[asked] - SPECIAL).unique().tolist() == [*range(farthest + 1)]


def test_what_is_read_never_depends_on_the_seed_or_the_global_generator() -> None:
    one, other = Copy(seed=0, vocab_size=12), Copy(seed=5, vocab_size=12)
    torch.manual_seed(7)
    first = one.read().fingerprint
    torch.manual_seed(8)
    assert first == other.read().fingerprint


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (Copy, {"max_len": 30}, "a multiple of 8, from 32 on, got 30"),
        (Copy, {"max_len": 16}, "from 32 on, got 16"),
        (Recall, {"vocab_size": 30}, "data.vocab_size must be at least 36 with data.max_len of 32, got 30"),
        (A5, {"vocab_size": 62}, "at least 63"),
    ],
)
def test_sizes_that_make_no_task_are_refused(kind: type[Sequences], options: dict[str, int], words: str) -> None:
    with pytest.raises(UserError, match=words):
        kind(**options)


def test_a5_is_a_group_of_sixty() -> None:
    table = A5.products()
    assert table.shape == (60, 60)
    assert table[0].tolist() == list(range(60))  # the first is the identity
    assert all(row.unique().numel() == 60 for row in table)
    assert not torch.equal(table, table.T)
    a, b, c = torch.randint(60, (3, 500), generator=torch.Generator().manual_seed(0))
    assert torch.equal(table[table[a, b], c], table[a, table[b, c]])


def test_products_of_the_two_cycles_are_the_whole_group() -> None:
    table, reached = A5.products(), set(A5.generators().tolist())
    while True:
        more = reached | {int(table[state, cycle]) for state in reached for cycle in A5.generators().tolist()}
        if more == reached:
            break
        reached = more
    assert reached == set(range(60))


@pytest.mark.parametrize("name", ["parity", "a5"])
def test_equal_elements_can_be_counted_from_a_mark(name: str) -> None:
    tokens, _ = made(name).draw(50, 32, torch.Generator().manual_seed(0))
    assert (tokens[:, 0] == Parity.BEGIN).all()
    assert not (tokens[:, 1:] == Parity.BEGIN).any()
