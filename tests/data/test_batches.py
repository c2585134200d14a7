"""Batches: every example counted once, in an order that seed and epoch decide, and what a batch holds."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from pebench.data import datamodule
from pebench.data.batches import IGNORE, Batches, Texts, Windows, on_device
from pebench.errors import UserError
from tests.data.copies import epoch, load, watch

# Batches

LENGTHS = torch.randint(1, 100, (1003,), generator=torch.Generator().manual_seed(0))
with_and_without_lengths = pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["plain", "by length"])


@with_and_without_lengths
@pytest.mark.parametrize("size", [1, 8, 64, 1003])
def test_an_epoch_takes_every_example_at_most_once_in_full_batches(lengths, size):
    batches = Batches(1003, size, 0, lengths)
    taken = epoch(batches, 0)
    flat = list(itertools.chain(*taken))
    assert len(taken) == len(batches) == 1003 // size
    assert {len(batch) for batch in taken} == {size}
    assert len(set(flat)) == len(flat)
    assert set(flat) <= set(range(1003))


@with_and_without_lengths
@pytest.mark.parametrize("size", [1, 8, 64, 1003, 5000])
def test_evaluation_takes_every_example_once(lengths, size):
    batches = Batches(1003, size, None, lengths)
    taken = epoch(batches, 0)
    assert len(taken) == len(batches) == -(-1003 // size)
    assert sorted(itertools.chain(*taken)) == list(range(1003))


@with_and_without_lengths
def test_evaluation_is_the_same_in_every_epoch(lengths):
    batches = Batches(1003, 64, None, lengths)
    assert epoch(batches, 0) == epoch(batches, 1)


@with_and_without_lengths
def test_the_order_is_a_function_of_seed_and_epoch_alone(lengths):
    torch.manual_seed(0)
    one, used = Batches(1003, 8, 5, lengths), Batches(1003, 8, 5, lengths)
    for number in (4, 0, 1):
        epoch(used, number)
    next(iter(used))  # an epoch that was broken off
    torch.manual_seed(1)
    assert epoch(one, 3) == epoch(used, 3) == epoch(one, 3)


@with_and_without_lengths
def test_the_order_differs_between_epochs_and_seeds(lengths):
    orders = [epoch(Batches(1003, 8, seed, lengths), number) for seed in (0, 1) for number in (0, 1)]
    assert all(a != b for a, b in itertools.combinations(orders, 2))


@with_and_without_lengths
def test_who_shares_a_batch_differs_between_epochs(lengths):
    batches = Batches(1003, 8, 0, lengths)
    first, second = ({frozenset(batch) for batch in epoch(batches, number)} for number in (0, 1))
    assert len(first & second) < 0.1 * len(first)


@with_and_without_lengths
def test_the_order_leaves_the_global_generator_alone(lengths):
    before = torch.get_rng_state()
    epoch(Batches(1003, 8, 0, lengths), 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_by_length_come_in_no_order_of_length():
    means = [LENGTHS[batch].float().mean().item() for batch in epoch(Batches(1003, 8, 0, LENGTHS), 0)]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.2


@pytest.mark.parametrize("seed", [0, None])
def test_batches_by_length_have_little_padding(seed):
    data = Texts(torch.ones(int(LENGTHS.sum())), LENGTHS, torch.zeros(1003))
    assert data.padding(Batches(1003, 8, seed, LENGTHS)) < 0.02
    assert data.padding(Batches(1003, 8, seed)) > 0.3


def test_padding_is_the_share_of_padded_tokens():
    data = Texts(torch.ones(10), torch.tensor([1, 2, 3, 4]), torch.zeros(4))
    assert data.padding(Batches(4, 2)) == pytest.approx(1 - 10 / (2 * 2 + 2 * 4))


def test_in_the_long_run_every_text_is_trained_on():
    lengths = torch.arange(1, 101)
    batches = Batches(100, 8, 0, lengths)
    taken = {index for number in range(50) for batch in epoch(batches, number) for index in batch}
    assert taken == set(range(100))


@with_and_without_lengths
@pytest.mark.parametrize("start", [0, 1, 124, 125, 126, 300])
def test_a_stream_without_end_is_the_epochs_one_after_the_other(lengths, start):
    batches = Batches(1003, 8, 0, lengths)
    expected = [batch for number in range(4) for batch in epoch(batches, number)]
    endless = Batches(1003, 8, 0, lengths, start)
    for _ in range(2):  # whatever was iterated before
        taken = [batch.tolist() for batch in itertools.islice(endless, 200)]
        assert taken == expected[start : start + 200]
    with pytest.raises(TypeError, match="no length"):
        len(endless)


@pytest.mark.parametrize(("count", "size"), [(0, 1), (7, 8)])
def test_fewer_examples_than_a_batch_are_refused(count, size):
    with pytest.raises(ValueError, match=f"at least batch_size = {size} training examples, got {count}"):
        Batches(count, size, seed=0)


@pytest.mark.parametrize("size", [0, -4])
def test_a_batch_of_nothing_is_refused(size):
    with pytest.raises(ValueError, match=f"batch_size must be 1 or more, got {size}"):
        datamodule("vit-digits", batch_size=size)


def test_a_trainer_gets_each_epochs_own_order(tmp_path):
    data = load("text-order", tmp_path, batch_size=1000)
    seen = watch(data, max_epochs=2, limit_val_batches=0)["train"]
    rows, lengths = data.split("train")
    batches = Batches(8000, 1000, 0, lengths)
    expected = [rows[torch.tensor(index)] for number in (0, 1) for index in epoch(batches, number)]
    assert len(seen) == len(expected) == 16
    assert all(torch.equal(a[0], b[0]) and torch.equal(a[2], b[2]) for a, b in zip(seen, expected, strict=True))


# What a batch holds


@pytest.mark.parametrize("chosen", [[0], [3, 1], [4, 0, 2, 3, 1], [2, 2]])
def test_texts_are_padded_to_the_longest_of_their_batch(chosen):
    lists = [[5, 6, 7], [8], [1, 2, 3, 4, 9], [7, 7], [6, 5, 4, 3]]
    tokens = torch.tensor(list(itertools.chain(*lists)), dtype=torch.int32)
    data = Texts(tokens, torch.tensor([len(x) for x in lists], dtype=torch.int32), torch.tensor([0, 1, 2, 1, 0]))
    padded, lengths, labels = data[torch.tensor(chosen)]
    longest = max(len(lists[i]) for i in chosen)
    assert padded.tolist() == [lists[i] + [0] * (longest - len(lists[i])) for i in chosen]
    assert lengths.tolist() == [len(lists[i]) for i in chosen]
    assert labels.tolist() == [[0, 1, 2, 1, 0][i] for i in chosen]
    assert padded.dtype == lengths.dtype == labels.dtype == torch.long


@pytest.mark.parametrize(("total", "length"), [(20, 4), (21, 4), (22, 4), (10, 1), (5, 4)])
def test_training_windows_start_everywhere(total, length):
    data = Windows(torch.arange(total, dtype=torch.int32), length, stride=1)
    tokens, targets = data[torch.arange(len(data))]
    starts = range(total - length)
    assert tokens.tolist() == [list(range(s, s + length)) for s in starts]
    assert targets.tolist() == [list(range(s + 1, s + length + 1)) for s in starts]
    assert tokens.dtype == targets.dtype == torch.long


@pytest.mark.parametrize("total", [2, 4, 5, 6, 20, 21, 22, 23])
def test_evaluation_windows_ask_for_each_token_once(total):
    data = Windows(torch.arange(total), 4, stride=4)
    tokens, targets = data[torch.arange(len(data))]
    counted = targets != IGNORE
    assert targets[counted].tolist() == list(range(1, total))
    assert torch.equal(tokens[counted] + 1, targets[counted])  # each from the token before it
    assert counted.any(dim=1).all()
    assert tokens.shape == targets.shape == (-(-(total - 1) // 4), 4)


def test_what_the_last_window_lacks_is_ignored():
    assert Windows(torch.arange(7), 4, stride=4)[torch.tensor([1])][1].tolist() == [[5, 6, IGNORE, IGNORE]]


def test_a_text_shorter_than_a_window_is_refused():
    with pytest.raises((UserError, ValueError), match=r"window|max_len"):
        len(Windows(torch.arange(3), 8, stride=1))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_batches_for_a_gpu_are_pinned_and_no_others(tmp_path, kind, monkeypatch):
    data = load("lm-grammar", tmp_path)
    data.trainer = SimpleNamespace(
        strategy=SimpleNamespace(root_device=torch.device(kind)), global_rank=0, world_size=1
    )
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 1000))  # no room for training data
    loaders = [data.train_dataloader(), data.val_dataloader(), data.test_dataloader(), *dict(data.beyond([2])).values()]
    assert [loader.pin_memory for loader in loaders] == [kind == "cuda"] * 5
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10**12, 10**12))
    monkeypatch.setattr("pebench.data.base.on_device", lambda data, device: on_device(data, torch.device("meta")))
    near = data.train_dataloader()
    assert near.pin_memory is False
    assert next(iter(near))[0].device.type == ("meta" if kind == "cuda" else "cpu")
    data.trainer = None
    assert not data.train_dataloader().pin_memory


@pytest.mark.parametrize("stride", [1, 4, 6])
def test_windows_are_gathered_where_their_text_is(stride):
    windows, index = Windows(torch.arange(40), 6, stride), torch.tensor([2, 0])
    moved = on_device(windows, torch.device("meta"))[index]  # a device without numbers: any other one refuses it
    here = on_device(windows, torch.device("cpu"))[index]
    assert [part.device.type for part in moved] == ["meta", "meta"]
    assert [part.shape for part in moved] == [part.shape for part in here]
    assert all(map(torch.equal, here, windows[index]))
    assert windows.tokens.device.type == "cpu"  # the ones that were given stay


def test_examples_of_one_size_are_gathered_where_they_are():
    data = TensorDataset(torch.zeros(5, 3), torch.arange(5))
    assert [part.device.type for part in on_device(data, torch.device("meta"))[torch.tensor([2, 0])]] == ["meta"] * 2
    texts = Texts(torch.arange(5), torch.tensor([2, 3]), torch.tensor([0, 1]))
    assert on_device(texts, torch.device("meta")) is texts
