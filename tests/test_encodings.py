"""The contract of every registered encoding, and golden values recomputed without tensors."""

import math

import pytest
import torch
from torch import Tensor, nn

from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.encodings.base import grid_positions
from pebench.layers import initialise
from pebench.models.transformer import Transformer
from pebench.modules import LanguageModel, TextClassifier, ViT
from pebench.registry import encoding_cards, load_encoding

NAMES = list(encoding_cards())
TOLD = [name for name in NAMES if name != "none"]
WRITERS = [name for name, card in encoding_cards().items() if "ratio" in card.options]
CLASSES = {name: load_encoding(name) for name in NAMES}
RELATIVE = [name for name in NAMES if CLASSES[name].relative]
ABSOLUTE = [name for name in NAMES if not CLASSES[name].relative]
TEXT, GRID, SQUARE = (8,), (3, 5), (4, 4)
SMALL = {"d_model": 32, "num_layers": 2, "num_heads": 4, "dropout": 0.0}

every = pytest.mark.parametrize("name", NAMES)
everywhere = pytest.mark.parametrize("extent", [TEXT, GRID], ids=["text", "grid"])
both_ways = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])


def encode(
    name: str, extent: tuple[int, ...] = TEXT, *, width: int = 32, heads: int = 4, **options
) -> PositionalEncoding:
    return build_encoding(name, EncodingSpec(width, heads, 2, extent, causal=False), options)


def trunk(name: str, extent: tuple[int, ...] = TEXT, *, causal: bool = False, **options) -> Transformer:
    return perturbed(Transformer(build_encoding(name, EncodingSpec(32, 4, 2, extent, causal), options)))


def perturbed(model):
    initialise(model, seed=0)
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=random)
    return model.eval()


def noise(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def content_for(model: Transformer, batch: int = 3, length: int | None = None) -> Tensor:
    return noise(batch, length or model.encoding.spec.max_len, model.encoding.content_width)


def shuffled(n: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(3))


def classifier(name: str, **options) -> TextClassifier:
    return perturbed(TextClassifier(name, options, vocab_size=11, max_len=16, num_classes=3, **SMALL))


def vit(name: str) -> ViT:
    return perturbed(ViT(name, image_size=8, patch_size=2, **SMALL))


def language_model(name: str) -> LanguageModel:
    return perturbed(LanguageModel(name, vocab_size=11, max_len=8, **SMALL))


def assert_same(a: Tensor, b: Tensor, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(a.float(), b.float(), atol=tolerance, rtol=0)


def assert_differ(a: Tensor, b: Tensor) -> None:
    assert (a - b).abs().max() > 5e-3


@every
@everywhere
@both_ways
def test_keeps_shape_and_is_finite(name, extent, causal):
    model = trunk(name, extent, causal=causal)
    output = model(content_for(model))
    assert output.shape == (3, math.prod(extent), 32)
    assert output.isfinite().all()


@everywhere
@pytest.mark.parametrize("name", TOLD)
def test_is_not_a_no_op(name, extent):
    model = trunk(name, extent)
    content, order = content_for(model), shuffled(math.prod(extent))
    assert_differ(model(content[:, order]), model(content)[:, order])


@everywhere
def test_none_sees_a_bag_of_tokens(extent):
    model = trunk("none", extent)
    content, order = content_for(model), shuffled(math.prod(extent))
    assert_same(model(content[:, order]), model(content)[:, order])


def test_none_classifies_a_text_by_its_bag_of_tokens():
    model, lengths = classifier("none"), torch.tensor([9, 5])
    tokens = torch.randint(11, (2, 12), generator=torch.Generator().manual_seed(5))
    moved = tokens.clone()
    for row, length in enumerate(lengths.tolist()):
        moved[row, :length] = tokens[row, shuffled(length)]
    assert not torch.equal(tokens, moved)
    assert_same(model(tokens, lengths), model(moved, lengths))


@every
@pytest.mark.parametrize("axis", [2, 3])
def test_only_none_classifies_an_image_by_its_bag_of_patches(name, axis):
    model, images = vit(name), noise(2, 3, 8, 8)
    check = assert_same if name == "none" else assert_differ
    check(model(images), model(images.roll(2, dims=axis)))


@every
def test_mirror_blind_tells_the_truth(name):
    model = classifier(name)
    tokens, lengths = torch.randint(11, (4, 12), generator=torch.Generator().manual_seed(5)), torch.full((4,), 12)
    check = assert_same if load_encoding(name).mirror_blind else assert_differ
    check(model(tokens, lengths), model(tokens.flip(1), lengths))


@every
@everywhere
def test_knows_positions_from_the_positions_alone(name, extent):
    model, positions = trunk(name, extent), grid_positions(extent)
    content, order = content_for(model), shuffled(len(positions))
    assert_same(model(content[:, order], positions[order]), model(content, positions)[:, order])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", TOLD)
def test_every_axis_matters(name, axis):
    model = trunk(name, GRID)
    content, order = content_for(model), torch.arange(15).view(GRID).roll(1, axis).flatten()
    assert_differ(model(content[:, order]), model(content)[:, order])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", TOLD)
def test_position_on_each_axis_matters(name, axis):
    model, positions = trunk(name, GRID), grid_positions(GRID)
    squashed = positions.clone()
    squashed[:, axis] = 0
    assert_differ(model(content_for(model), squashed), model(content_for(model), positions))


@every
def test_only_distances_cannot_tell_rows_from_columns(name):
    model, positions = trunk(name, SQUARE), grid_positions(SQUARE)
    check = assert_same if CLASSES[name].isotropic else assert_differ
    check(model(content_for(model), positions.flip(-1)), model(content_for(model), positions))


@pytest.mark.parametrize("name", TOLD)
def test_grids_are_read_in_row_major_order(name):
    model = trunk(name, GRID)
    row_major = torch.tensor([[float(r), float(c)] for r in range(3) for c in range(5)])
    column_major = torch.tensor([[float(r), float(c)] for c in range(5) for r in range(3)])
    assert_same(model(content_for(model), row_major), model(content_for(model)))
    assert_differ(model(content_for(model), column_major), model(content_for(model)))


@every
@everywhere
@both_ways
def test_given_positions_equal_the_default(name, extent, causal):
    model = trunk(name, extent, causal=causal)
    content = content_for(model)
    assert torch.equal(model(content), model(content, grid_positions(extent)))


@every
@everywhere
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_never_sees_the_future(name, extent, dtype):
    model = trunk(name, extent, causal=True).to(dtype)
    content = content_for(model).to(dtype)
    for now in range(1, content.shape[1]):
        changed = content.clone()
        changed[:, now:] = 10 * noise(*changed[:, now:].shape)
        assert torch.equal(model(changed)[:, :now].isfinite(), torch.ones(3, now, 32, dtype=torch.bool))
        assert_same(model(changed)[:, :now], model(content)[:, :now])


@every
@everywhere
def test_sees_the_whole_past(name, extent):
    model = trunk(name, extent, causal=True)
    content = content_for(model).requires_grad_()
    model(content)[0, -1].square().sum().backward()
    assert (content.grad[0].abs().amax(dim=-1) > 1e-6).all()


@every
@everywhere
def test_a_prefix_gives_the_prefix_of_the_output(name, extent):
    model, positions = trunk(name, extent, causal=True), grid_positions(extent)
    content = content_for(model)
    for n in range(1, len(positions)):
        assert_same(model(content[:, :n], positions[:n]), model(content)[:, :n])


@every
def test_a_language_model_continues_its_own_prefix(name):
    model = language_model(name)
    tokens = torch.randint(11, (2, 8), generator=torch.Generator().manual_seed(5))
    for n in range(1, 8):
        assert_same(model(tokens[:, :n]), model(tokens)[:, :n])


@every
@everywhere
@both_ways
def test_samples_do_not_know_of_each_other(name, extent, causal):
    model = trunk(name, extent, causal=causal)
    content = content_for(model, batch=math.prod(extent))
    order = shuffled(len(content))
    assert_same(model(content[order]), model(content)[order])
    assert_same(model(content[:1]), model(content)[:1])


@every
@pytest.mark.parametrize("autocast", [False, True])
def test_padding_has_no_influence(name, autocast):
    model, lengths = classifier(name), torch.tensor([6, 3, 1])
    tokens = torch.randint(11, (3, 6), generator=torch.Generator().manual_seed(5))
    longer = torch.randint(11, (3, 14), generator=torch.Generator().manual_seed(6))
    for row, length in enumerate(lengths.tolist()):
        longer[row, :length] = tokens[row, :length]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        assert_same(model(longer, lengths), model(tokens, lengths), 3e-2 if autocast else 2e-5)
        assert_same(model(tokens[2:, :1], lengths[2:]), model(tokens, lengths)[2:], 3e-2 if autocast else 2e-5)


@every
def test_padding_has_no_influence_on_a_causal_trunk(name):
    model, valid = trunk(name, causal=True), torch.arange(8) >= torch.tensor([[0], [3]])
    content, changed = noise(2, 8, model.encoding.content_width), noise(2, 8, model.encoding.content_width, seed=7)
    changed[valid] = content[valid]
    assert_same(model(changed, valid=valid)[valid], model(content, valid=valid)[valid])


@everywhere
@pytest.mark.parametrize("name", RELATIVE)
def test_relative_encodings_ignore_a_shift(name, extent):
    model, positions = trunk(name, extent), grid_positions(extent)
    shift = torch.tensor([7.0, 13.0])[: len(extent)]
    assert_same(model(content_for(model), positions + shift), model(content_for(model), positions), 1e-4)


@everywhere
@pytest.mark.parametrize("name", ABSOLUTE)
def test_absolute_encodings_notice_a_shift(name, extent):
    model, positions = trunk(name, tuple(2 * n for n in extent)), grid_positions(extent)
    content = content_for(model, length=len(positions))
    for axis in range(len(extent)):
        assert_differ(model(content, positions + torch.eye(len(extent))[axis]), model(content, positions))


@both_ways
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("name", TOLD)
def test_sparse_positions_are_not_dense_ones(name, padded, causal):
    model, dense = trunk(name, (24,), causal=causal), grid_positions((8,))
    content, valid = content_for(model, length=8), torch.arange(8).expand(3, -1) < 6
    valid = valid if padded else None
    assert_differ(model(content, 3 * dense, valid)[:, :6], model(content, dense, valid)[:, :6])


@pytest.mark.parametrize("name", TOLD)
def test_new_positions_replace_the_old_state(name):
    model, near, far = trunk(name, (16,)), grid_positions((8,)), 2 * grid_positions((8,))
    content = content_for(model, length=8)
    first, second, third, fourth = model(content, near), model(content, far), model(content), model(content, far)
    assert_differ(first, second)
    assert torch.equal(first, third)
    assert torch.equal(second, fourth)


@every
@everywhere
def test_trains_after_inference_mode(name, extent):
    model = trunk(name, extent)
    content = content_for(model)
    with torch.inference_mode():
        before = model(content) + 0
    model.train()
    after = model(content)
    after.square().mean().backward()
    assert_same(before.clone(), after.detach())


class Slope(PositionalEncoding):
    """Keeps the positions as they are and trains one rate."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.rate = nn.Parameter(torch.ones(()))

    def prepare(self, positions: Tensor) -> Tensor:
        return positions

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        return x + self.rate * state


def test_an_encoding_may_keep_the_positions_themselves():
    model = Transformer(Slope(EncodingSpec(32, 4, 2, TEXT, causal=False)))
    with torch.inference_mode():
        model(noise(1, 8, 32))
    model(noise(1, 8, 32)).pow(3).sum().backward()
    assert model.encoding.rate.grad.abs() > 0


def loss_of(kind: str, name: str) -> tuple[nn.Module, Tensor]:
    random = torch.Generator().manual_seed(5)
    labels = torch.tensor([0, 1, 2, 0])
    if kind == "image":
        return (model := vit(name)), model.loss((noise(4, 3, 8, 8), labels))
    if kind == "text":
        tokens = torch.randint(11, (4, 16), generator=random)
        return (model := classifier(name)), model.loss((tokens, torch.tensor([16, 2, 9, 5]), labels))
    tokens = torch.randint(11, (4, 9), generator=random)
    return (model := language_model(name)), model.loss((tokens[:, :-1], tokens[:, 1:]))


@every
@pytest.mark.parametrize("kind", ["image", "text", "language"])
def test_gradients_reach_every_parameter(name, kind):
    model, loss = loss_of(kind, name)
    loss.backward()
    starved = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 1e-6]
    assert starved == []
    assert all(p.grad.isfinite().all() for p in model.parameters())


@every
@pytest.mark.parametrize("extent", [TEXT, GRID])
def test_has_the_declared_number_of_parameters(name, extent):
    encoding = encode(name, extent)
    assert sum(p.numel() for p in encoding.parameters()) == encoding.parameter_count()


def test_the_cards_are_those_of_the_papers():
    """Read off the papers, so that a declaration that is wrong together with the code is noticed."""
    assert set(RELATIVE) >= {"none", "rope", "alibi", "t5-bias", "kerple-log"}
    inputs = {"add", "add-proj", "axial-learned", "concat", "concat-proj", "gated-add", "learned", "multiply", "random"}
    assert set(ABSOLUTE) >= inputs
    assert {name for name in NAMES if CLASSES[name].beyond == "refuses"} == {"axial-learned", "learned", "random"}
    assert {name for name in NAMES if CLASSES[name].isotropic} == {"none", "alibi", "kerple-log"}
    assert {name for name in NAMES if CLASSES[name].size == "0"} == {
        "add", "alibi", "concat", "multiply", "none", "random", "rope",
    }  # fmt: skip


@pytest.mark.parametrize("axes", [(1,), (2,)])
def test_an_encoding_refuses_axes_that_it_does_not_serve(axes):
    class Partial(PositionalEncoding):
        pass

    Partial.axes = axes
    for extent in (TEXT, GRID):
        spec = EncodingSpec(8, 2, 1, extent, causal=False)
        if len(extent) in axes:
            Partial(spec)
        else:
            with pytest.raises(ValueError, match=rf"'Partial' serves {axes[0]} position axes, got {len(extent)}"):
                Partial(spec)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", [name for name in NAMES if CLASSES[name].beyond == "goes on"])
def test_a_16_bit_trunk_stays_near_the_32_bit_one_far_out(name, autocast):
    model, positions = trunk(name), 15990 + grid_positions(TEXT)
    content = content_for(model)
    expected = model(content, positions)
    dtype = torch.float32 if autocast else torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        output = model.to(dtype)(content.to(dtype), positions.clone())
    assert (output.float() - expected).square().mean().sqrt() < 0.05


@pytest.mark.parametrize(("name", "option"), [("add", "base"), ("concat", "base"), ("rope", "theta")])
def test_instances_share_no_table(name, option):
    one, other = trunk(name, **{option: 20.0}), trunk(name, **{option: 20000.0})
    content = content_for(one)
    before, between, after = one(content), other(content), one(content)
    assert torch.equal(before, after)
    assert_differ(before, between)
    assert torch.equal(between, trunk(name, **{option: 20000.0})(content))


@pytest.mark.parametrize("name", [name for name in NAMES if CLASSES[name].beyond == "goes on"])
def test_the_others_go_beyond_the_trained_length(name):
    model = trunk(name, causal=True)
    content = content_for(model, length=24)
    assert_same(model(content)[:, :8], model(content[:, :8]))


def test_a_grid_of_another_size_is_refused():
    model = trunk("add", GRID)
    with pytest.raises(ValueError, match=r"expected 15 tokens for the grid \(3, 5\), got 16"):
        model(content_for(model, length=16))
