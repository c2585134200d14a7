"""Attention of long texts, whose biases are never whole: the same numbers as with all pairs, and less memory."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pebench.data import datamodule_of
from pebench.encodings import pairs
from pebench.encodings.base import EncodingError, EncodingSpec, PositionalEncoding, grid_positions
from pebench.encodings.build import build_encoding
from pebench.encodings.pairs import ByBlock, ByOffset, PairBias
from pebench.models import long_attention
from pebench.models.attention import attend, fastest_kernel
from pebench.models.transformer import Transformer
from pebench.tasks import configure
from pebench.training.probe import probe
from pebench.training.runner import build

BY_OFFSET = ("alibi", "dynamic-bias", "kerple-log", "log-cpb", "sandwich", "t5-bias")
BY_BLOCK = ("fire", "fox", "shaw", "transformer-xl", "stack(first='alibi', second='t5-bias')")
TEXT, GRID = EncodingSpec(32, 4, 2, (16,), True), EncodingSpec(32, 4, 2, (4, 4), False)
BOTH_WAYS = EncodingSpec(32, 4, 2, (16,), False)
WAYS = [
    pytest.param(name, spec, id=f"{name}-{kind}")
    for name in (*BY_OFFSET, *BY_BLOCK, "swin-bias")
    for kind, spec in (("text", TEXT), ("both ways", BOTH_WAYS), ("grid", GRID))
    if not (name in ("fox", "sandwich", "transformer-xl") and spec is not TEXT)
    and not (name == "swin-bias" and spec is not GRID)
]


@pytest.fixture
def short_blocks(monkeypatch):
    """Take texts of eight tokens for long, in blocks of five queries."""
    monkeypatch.setattr(pairs, "LONG", 8)
    monkeypatch.setattr(long_attention, "BLOCK", 5)


def made(name: str, spec: EncodingSpec) -> Transformer:
    """Return a trunk whose trained parts differ from their start, as zeros would hide a fault."""
    torch.manual_seed(0)
    model = Transformer(build_encoding(name, spec))
    for parameter in model.encoding.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def outcome(model, positions, valid, kernel=None):
    """Return a pass's output and the gradients of all parameters."""
    torch.manual_seed(1)
    content = torch.randn(2, 16, 32)
    model.zero_grad()
    with model.using_kernel(kernel or fastest_kernel):
        output = model(content, positions, valid)
    if valid is not None:
        output = output[valid]
    output.square().sum().backward()
    return [output.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def watched(model) -> set[str]:
    """Return the kernels that a model chooses for sixteen tokens."""
    seen = set()

    def watch(q, mask):
        seen.add(fastest_kernel(q, mask))
        return fastest_kernel(q, mask)

    with model.using_kernel(watch):
        model(torch.randn(2, 16, 32))
    return seen


@pytest.mark.parametrize("where", ["counted", "shuffled", "fractions"])
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
@pytest.mark.parametrize(("name", "spec"), WAYS)
def test_blocks_give_what_all_pairs_give(name, spec, padded, where, monkeypatch):
    positions = grid_positions(spec.extent)
    if where == "shuffled":
        positions = positions[torch.randperm(16, generator=torch.Generator().manual_seed(0))]
    if where == "fractions":
        if name == "swin-bias":
            pytest.skip("it refuses fractions")
        positions = positions * 0.75
    valid = torch.arange(16) < torch.tensor([[16], [11]]) if padded else None
    model = made(name, spec)
    expected = outcome(model, positions, valid)
    monkeypatch.setattr(pairs, "LONG", 8)
    monkeypatch.setattr(long_attention, "BLOCK", 5)
    found = outcome(made(name, spec), positions, valid)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "spec"), WAYS)
def test_long_texts_are_made_by_blocks(name, spec, short_blocks):
    assert watched(made(name, spec)) == {"blocks"}


SCORED = [way for way in WAYS if way.values[0] in (*BY_OFFSET, "swin-bias")]


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
@pytest.mark.parametrize(("name", "spec"), SCORED)
def test_a_kernel_that_asks_for_each_pair_gives_what_all_pairs_give(name, spec, padded, monkeypatch):
    valid = torch.arange(16) < torch.tensor([[16], [11]]) if padded else None
    content, seen = torch.randn(2, 16, 32), slice(None) if valid is None else valid
    model = made(name, spec)
    with torch.no_grad():  # on a processor PyTorch has no gradients of it, and computes it as it stands
        expected = model(content, None, valid)[seen]
        model = made(name, spec)
        monkeypatch.setattr(pairs, "LONG", 8)
        with model.using_kernel("flex"):
            torch.testing.assert_close(model(content, None, valid)[seen], expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "spec"), SCORED)
def test_a_bias_asked_for_each_pair_has_the_gradients_of_the_whole(name, spec, short_blocks):
    encoding = made(name, spec).encoding
    q = torch.zeros(1, 4, 16, 8)
    bias = encoding.bias(q, q, q, encoding.state(grid_positions(spec.extent)), 0)
    numbers = (torch.arange(size) for size in (1, 4, 16, 16))
    batch, head, query, key = torch.meshgrid(*numbers, indexing="ij")
    weight, parameters = torch.randn(1, 4, 16, 16), [*encoding.parameters()]
    asked = bias.score()(torch.zeros(1, 4, 16, 16), batch, head, query, key)
    torch.testing.assert_close(asked, bias.whole())
    for whole in (asked, bias.whole()) if parameters else ():
        encoding.zero_grad()
        (whole * weight).sum().backward(retain_graph=True)
        found = [p.grad.clone() for p in parameters if p.grad is not None]
        expected = found if whole is asked else expected  # noqa: F821
        torch.testing.assert_close(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("padded", [False, True], ids=["", "padded"])
@pytest.mark.parametrize("kernel", ["blocks", "flex"])
@pytest.mark.parametrize("name", BY_OFFSET)
def test_long_texts_on_a_gpu(name, kernel, padded, monkeypatch):
    """Forward and backward at a length that is no multiple of a kernel's blocks."""
    length = 300
    spec, device = EncodingSpec(128, 4, 2, (length,), True), torch.device("cuda")
    valid = torch.arange(length, device=device) < torch.tensor([[length], [211]], device=device) if padded else None
    content = torch.randn(2, length, 128, device=device)
    found = []
    for long in (1000, 8):
        monkeypatch.setattr(pairs, "LONG", long)
        model = made(name, spec).to(device)
        with model.using_kernel(kernel if long == 8 else fastest_kernel):
            output = model(content, None, valid)
        (output if valid is None else output[valid]).square().sum().backward()
        found.append([output[-1, 0], *(p.grad for p in model.parameters() if p.grad is not None)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-3)


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        sizes = [t.untyped_storage().nbytes() // t.element_size() for t in tree_leaves(found) if torch.is_tensor(t)]
        self.elements = max(self.elements, *sizes, 0)
        return found


def test_two_encodings_are_tried_together_without_all_pairs_of_a_long_text():
    length = 2048
    with Largest() as mode:
        build_encoding("stack", EncodingSpec(32, 4, 1, (length,), True))
    assert mode.elements < length * length


@pytest.mark.parametrize("name", ["alibi", "kerple-log", "log-cpb(hidden=16)", "sandwich", "t5-bias", "fox", "shaw"])
def test_no_tensor_of_all_pairs_is_made(name, monkeypatch):
    length, heads = 512, 4
    spec = EncodingSpec(32, heads, 1, (length,), True)
    monkeypatch.setattr(long_attention, "BLOCK", 16)

    def largest() -> int:
        model = Transformer(build_encoding(name, spec))
        with Largest() as mode:
            model(torch.randn(1, length, 32)).sum().backward()
        return mode.elements

    assert largest() >= length * length
    monkeypatch.setattr(pairs, "LONG", 64)
    assert largest() < length * length / 2


@pytest.mark.parametrize("name", ["alibi", "t5-bias", "fox"])
def test_a_long_text_keeps_no_logits_for_its_backward_pass(name, short_blocks, monkeypatch):
    length, kept = 512, {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes() // tensor.element_size()
        return tensor

    monkeypatch.setattr(long_attention, "BLOCK", 64)
    model = Transformer(build_encoding(name, EncodingSpec(16, 4, 1, (length,), True)))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(torch.randn(1, length, 16))
    assert sum(kept.values()) < length * length  # a quarter of the logits of four heads


def test_a_bias_of_pairs_of_another_shape_is_refused(short_blocks):
    class Narrow(PositionalEncoding):
        def bias(self, q, k, x, state, layer):
            return ByBlock(q.shape[2], lambda queries, keys: torch.zeros(3, 1, keys), False)

    with pytest.raises(EncodingError, match=r"bias.*\(2, 4, 1, 16\)"):
        Transformer(Narrow(TEXT))(torch.randn(2, 16, 32))


def test_a_bias_without_a_function_of_pairs_is_refused_by_the_kernel_that_asks_for_each(short_blocks):
    model = made("fire", TEXT)
    with model.using_kernel("flex"), pytest.raises(ValueError, match="'flex' needs a bias by offset; take 'blocks'"):
        model(torch.randn(2, 16, 32))


def test_a_bias_by_offset_is_a_view_of_its_table(short_blocks):
    bias = build_encoding("alibi", TEXT).prepare(grid_positions((16,)))
    assert isinstance(bias, ByOffset)
    view = bias.backwards(slice(3, 7), 9)
    assert view.untyped_storage().data_ptr() == bias.table.untyped_storage().data_ptr()
    torch.testing.assert_close(view.flip(-2), bias.whole()[:, :, 3:7, :9], rtol=0, atol=0)


def test_a_part_of_the_heads_has_a_whole_bias(short_blocks):
    model = made("some-heads(of='alibi', heads=2)", TEXT)
    long = outcome(model, None, None)
    pairs.LONG = 1000
    torch.testing.assert_close(long, outcome(made("some-heads(of='alibi', heads=2)", TEXT), None, None))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alibi", "t5-bias"])
def test_long_texts_compile(name, short_blocks):
    model, content = made(name, TEXT), torch.randn(2, 16, 32)
    expected = model(content)
    model.compile()
    torch.testing.assert_close(model(content), expected, rtol=1e-4, atol=2e-5)


def test_all_pairs_are_made_once_for_all_layers_and_passes(short_blocks, monkeypatch):
    model, content = made("alibi", TEXT), torch.randn(2, 16, 32)
    masks = []

    def catch(q, k, v, mask, *rest):
        masks.append(mask)
        return attend(q, k, v, mask, *rest)

    monkeypatch.setattr(long_attention, "attend", catch)
    with model.using_kernel("sdpa"):
        with torch.inference_mode():
            model(content)
        model(content).sum().backward()  # which an inference tensor could not serve
    assert len(masks) == 4
    assert all(mask is masks[0] for mask in masks)


@pytest.mark.parametrize("name", ["alibi", "t5-bias", "fox"])
def test_a_record_of_long_texts_names_their_kernel(name, short_blocks):
    """A layer asks for its kernel once: the counter, which takes all pairs, must not see another bias."""
    config = configure("lm-grammar", name, tier="smoke")
    data = datamodule_of(config)
    bias = probe(build(config, data), data).bias
    assert fastest_kernel(torch.zeros(1, 1, 8, 4), bias) == "blocks"


def test_whole_returns_a_tensor_as_it_is():
    bias = torch.zeros(2, 2)
    assert pairs.whole(bias) is bias
    assert pairs.whole(None) is None
    assert isinstance(ByBlock(2, lambda queries, keys: bias, False), PairBias)
