"""Masked text: the shares of BERT, the same questions in every run and at every length, and others in every step."""

from types import SimpleNamespace

import pytest
import torch

from pebench.data import datamodule
from pebench.data.batches import IGNORE
from pebench.data.masked import MaskedWindows, mask_tokens
from pebench.tasks import find_task
from tests.data.own_data import book

MASK = 100


def noise(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_shares_are_those_of_bert():
    tokens = torch.randint(MASK, (1000, 200), generator=noise(5))
    inputs, targets = mask_tokens(tokens, MASK, noise())
    asked = targets != IGNORE
    assert torch.equal(targets[asked], tokens[asked])
    assert torch.equal(inputs[~asked], tokens[~asked])
    assert asked.double().mean().item() == pytest.approx(0.15, abs=0.003)  # four standard errors
    shown = inputs[asked]
    assert (shown == MASK).double().mean().item() == pytest.approx(0.8, abs=0.01)
    # One drawn token in a hundred is the token itself.
    assert (shown == tokens[asked]).double().mean().item() == pytest.approx(0.1 + 0.001, abs=0.008)
    drawn = shown[(shown != MASK) & (shown != tokens[asked])]
    assert drawn.bincount(minlength=MASK).min() > 0
    assert int(drawn.max()) < MASK


@pytest.mark.parametrize("length", [7, 64, 100, 1000])
def test_windows_of_any_length_ask_for_the_same_tokens_once(length):
    text = torch.randint(MASK, (643,), generator=noise(1))
    expected = mask_tokens(text, MASK, noise(3))
    windows = MaskedWindows(text, length, MASK, 3)
    inputs, targets = windows[torch.arange(len(windows))]
    assert inputs.shape == targets.shape == (len(windows), min(length, 643))
    asked = expected[1] != IGNORE
    assert torch.equal(targets[targets != IGNORE], expected[1][asked])
    assert int((inputs == MASK).sum()) >= int((expected[0] == MASK).sum())
    assert torch.equal(inputs[0], expected[0][: inputs.shape[1]])


@pytest.fixture
def task(tmp_path):
    (tmp_path / "book.txt").write_text(book())
    return find_task(f"corpus(path={str(tmp_path / 'book.txt')!r}, masked=True, name=mine)").name


def made(task: str, **options):
    data = datamodule(task, **options)
    data.prepare_data()
    data.setup()
    return data


def test_all_runs_are_asked_the_same_and_train_on_other_masks(task):
    one, other = made(task, seed=0), made(task, seed=1)
    for split in ("val", "test"):
        pairs = zip(*(data.split(split)[0][torch.arange(5)] for data in (one, other)), strict=True)
        assert all(torch.equal(mine, others) for mine, others in pairs)
    batch = next(iter(one.train_dataloader()))
    assert len(batch) == 1  # tokens alone, which are masked after the loader

    def masked(data, step):
        data.trainer = SimpleNamespace(global_step=step, global_rank=0, world_size=1)
        return data.on_after_batch_transfer(batch, 0)[1]

    assert torch.equal(masked(one, 3), masked(one, 3))  # a run that is resumed
    assert not torch.equal(masked(one, 3), masked(one, 4))
    assert not torch.equal(masked(one, 3), masked(other, 3))
    one.trainer = None
    tested = next(iter(one.test_dataloader()))
    assert one.on_after_batch_transfer(tested, 0) is tested


def test_processes_mask_their_part_of_one_batch():
    tokens = torch.arange(80).view(8, 10)
    whole = mask_tokens(tokens, MASK, noise())
    for rank in (0, 1):
        part = mask_tokens(tokens[rank::2], MASK, noise(), (rank, 2))
        assert torch.equal(part[0], whole[0][rank::2])
        assert torch.equal(part[1], whole[1][rank::2])


@pytest.mark.parametrize("tokens", ["bytes", "chars", "bpe"])
def test_the_mask_is_a_token_of_its_own(tmp_path, tokens):
    (tmp_path / "book.txt").write_text(book())
    path = str(tmp_path / "book.txt")
    plain, masked = (find_task(f"corpus(path={path!r}, tokens={tokens}, masked={on})") for on in (False, True))
    assert masked.budgets["quick"].data.vocab_size == plain.budgets["quick"].data.vocab_size + 1
    data = made(masked.name)
    mask = data.vocab_size - 1
    assert all(int(data.prepared.tensors[split].max()) < mask for split in ("train", "val", "test"))
    assert int(data.split("test")[0][torch.arange(3)][0].max()) == mask
    assert made(plain.name).file != data.file


def test_longer_windows_are_tested_where_the_text_has_one(task):
    data = made(task)
    text = len(data.prepared.tensors["test"])
    found = {label: next(iter(batches))[0].shape[1] for label, batches in data.beyond((2, 4, 10_000))}
    assert found == {"2x": 2 * data.max_len, "4x": 4 * data.max_len}
    assert 4 * data.max_len <= text


def test_chance_is_the_entropy_by_the_frequencies_of_training(task):
    data = made(task)
    train, targets = data.prepared.tensors["train"].tolist(), data.split("test")[0].targets
    total, bits = len(train) + 256, 0.0
    asked = [token for token in targets.tolist() if token != IGNORE]
    for token in asked:
        bits -= torch.log2(torch.tensor((train.count(token) + 1) / total, dtype=torch.float64)).item()
    assert data.chance() == {"bits_per_token": pytest.approx(bits / len(asked))}
