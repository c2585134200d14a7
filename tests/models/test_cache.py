"""What a trunk keeps between passes: bounded, never stale, and nothing after an exception."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pebench.conformance.bench import noise
from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.memo import Memo
from pebench.models.transformer import Transformer


def trunk(name: str, extent: tuple[int, ...] = (8,), causal: bool = True) -> Transformer:
    return Transformer(build_encoding(name, EncodingSpec(8, 1, 2, extent, causal))).eval()


def kept_bytes(item: Any, seen: dict[int, int] | None = None) -> int:
    """Return the bytes of the tensors that an object of ours holds."""
    seen = {} if seen is None else seen
    if isinstance(item, Tensor):
        seen[item.data_ptr()] = item.untyped_storage().nbytes()
    elif isinstance(item, nn.Module):
        kept_bytes([vars(part) for part in item.modules()], seen)
    elif isinstance(item, dict | list | tuple | set):
        for part in item.values() if isinstance(item, dict) else item:
            kept_bytes(part, seen)
    elif type(item).__module__.startswith("pebench."):
        kept_bytes(vars(item), seen)
    return sum(seen.values())


@torch.no_grad()
def test_many_lengths_keep_what_the_last_one_keeps():
    many, one = trunk("rope", (64,)), trunk("rope", (64,))
    for length in range(1, 65):
        many(noise(1, length, 8))
    one(noise(1, 64, 8))
    assert kept_bytes(many) == kept_bytes(one)


@torch.no_grad()
@pytest.mark.parametrize("name", ["alibi", "sandwich", "t5-bias", "shaw", "kerple-log", "transformer-xl"])
def test_pairs_of_a_text_longer_than_those_trained_are_not_kept(name: str):
    model = trunk(name)
    before = kept_bytes(model)
    output = model(noise(1, 100, 8))
    assert kept_bytes(model) == before
    assert torch.equal(model(noise(1, 100, 8)), output)
    model(noise(1, 8, 8))
    assert before < kept_bytes(model) <= before + 4096  # a few (8, 8)


@torch.no_grad()
@pytest.mark.parametrize("name", ["rope", "alibi", "randomized(of='rope',times=20)", "t5-bias"])
def test_neither_copies_nor_pickles_hold_what_is_kept(name: str):
    model = trunk(name, (64,))
    fresh, state = len(pickle.dumps(model)), set(model.state_dict())
    for length in (64, 9):
        model(noise(1, length, 8))
        assert len(pickle.dumps(model)) <= fresh + 8  # numbers of other digits
        assert kept_bytes(copy.deepcopy(model)) == kept_bytes(trunk(name, (64,)))
        assert set(model.state_dict()) == state


@torch.no_grad()
@pytest.mark.parametrize("name", ["add", "rope", "alibi", "t5-bias", "randomized"])
def test_positions_that_are_written_in_place_are_noticed(name: str):
    model, x = trunk(name, causal=False), noise(1, 4, 8)
    positions = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    before = model(x, positions)
    positions[1:] += 3.0
    after = model(x, positions)
    assert torch.equal(after, model(x, positions.clone()))
    assert not torch.equal(after, before)


def test_positions_made_in_inference_mode_and_written_in_place_are_noticed():
    model, x = trunk("rope"), noise(1, 4, 8)
    with torch.inference_mode():
        positions = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        model(x, positions)
        positions[1:] += 3.0
        assert torch.equal(model(x, positions), model(x, positions.clone()))


class Table(PositionalEncoding):
    """Adds a trained table to the logits, the very parameter."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.table = nn.Parameter(torch.zeros(8, 8))

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        return self.table


def test_a_bias_that_was_trained_in_between_is_noticed():
    model, x = Transformer(Table(EncodingSpec(8, 1, 2, (8,), causal=True))), noise(1, 8, 8)
    with torch.no_grad():
        before = model(x)
        model.encoding.table.add_(noise(8, 8))
        after = model(x)
    assert not torch.equal(after, before)
    assert torch.equal(after, copy.deepcopy(model)(x))


@pytest.mark.parametrize("name", ["alibi", "t5-bias"])
@pytest.mark.parametrize("block", [0, 1])
def test_a_pass_that_broke_off_leaves_nothing_wrong(name: str, block: int):
    model, x = trunk(name), noise(1, 8, 8)
    expected = model(x)

    def fail(*_: Any) -> None:
        raise MemoryError

    handle = model.blocks[block].feed_forward.register_forward_hook(fail)
    with pytest.raises(MemoryError):
        model(x)
    with pytest.raises(MemoryError):
        model(noise(1, 5, 8))
    handle.remove()
    held = model.cache._masks
    assert held is None or held._sum.source is None or not held._sum.source.requires_grad  # no graph of a broken pass
    for _ in range(2):
        output = model(x)
        assert torch.equal(output, expected)
        output.sum().backward()


def test_a_length_whose_first_pass_broke_off_is_checked_again():
    model = trunk("alibi")
    model.blocks[1].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(noise(1, 8, 8))
    assert model.cache.checked_lengths == set()


def test_a_memo_makes_anew_what_was_written():
    memo, source, made = Memo[int](), torch.zeros(3), []

    def ask(tensor: Tensor) -> int:
        return memo.made_of(tensor, lambda: made.append(0) or len(made))

    assert (ask(source), ask(source)) == (1, 1)
    source[1:].add_(1)  # through a view
    assert (ask(source), ask(source)) == (2, 2)
    assert ask(source.clone()) == 3
    with pytest.raises(ZeroDivisionError):
        memo.made_of(source, lambda: 1 // 0)
    assert copy.deepcopy(memo).source is None
    assert memo.source is not None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_compiled_trunk_is_one_graph():
    model = trunk("alibi")
    expected = model(noise(1, 8, 8))
    torch._dynamo.reset()
    compiled = copy.deepcopy(model)
    compiled.compile(backend="eager")  # an error where it is not one graph
    found = compiled(noise(1, 8, 8))
    assert compiled.uncompiled == 0
    torch._dynamo.reset()
    torch.testing.assert_close(found, expected)
