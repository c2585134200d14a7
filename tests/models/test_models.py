"""The trunk's attention, its initialisation, and what the three modules make of it."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from pebench.encodings import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.layers import Linear, PatchEmbedding, TokenEmbedding, initialise
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.attention import Masks, attend, causal_mask, fastest_kernel
from pebench.models.base import SequenceModule, masked_mean, schedule
from pebench.models.transformer import SelfAttention, Transformer
from pebench.seeding import stream

NAMES = list(encoding_cards())
KINDS = ["image", "text", "language"]
SMALL = {"d_model": 32, "num_layers": 2, "num_heads": 4}


def serves(name: str, kind: str) -> bool:
    cls = load_encoding(name)
    return (2 if kind == "image" else 1) in cls.axes and (kind == "language" or not cls.causal_only)


every_kind = pytest.mark.parametrize("kind", KINDS)
served = pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in NAMES for kind in KINDS if serves(name, kind)]
)


def build(kind: str, name: str = "add", **options) -> SequenceModule:
    if kind == "image":
        return ViT(name, image_size=8, patch_size=2, num_classes=5, **SMALL, **options)
    if kind == "text":
        return TextClassifier(name, vocab_size=11, max_len=8, num_classes=5, **SMALL, **options)
    return LanguageModel(name, vocab_size=11, max_len=8, **SMALL, **options)


def batch_for(kind: str, size: int = 4) -> tuple[Tensor, ...]:
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(5, (size,), generator=random)
    tokens = torch.randint(11, (size, 9), generator=random)
    if kind == "image":
        return torch.randn(size, 3, 8, 8, generator=random), labels
    if kind == "text":
        return tokens[:, :8], torch.randint(1, 9, (size,), generator=random), labels
    return tokens[:, :-1], tokens[:, 1:]


def noise(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def heads(length: int = 5, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(noise(2, 3, length, 4, seed=seed).to(dtype) for seed in (1, 2, 3))


def rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item()


def one_by_one(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    output = torch.empty_like(v)
    for b, h, i in itertools.product(*map(range, q.shape[:3])):
        seen = range(i + 1 if causal else k.shape[2])
        terms = [0.0 if mask is None else mask.expand(2, 3, 5, 5)[b, h, i, j].item() for j in seen]
        logits = [scale * (q[b, h, i] @ k[b, h, j]).item() + term for j, term in zip(seen, terms, strict=True)]
        weights = [math.exp(logit) for logit in logits]
        for c in range(v.shape[3]):
            total = sum(w * v[b, h, j, c].item() for w, j in zip(weights, seen, strict=True))
            output[b, h, i, c] = total / sum(weights)
    return output


MASKS = {
    "free": (None, False),
    "causal": (None, True),
    "bias": (noise(3, 5, 5), False),
    "bias and causal": (noise(3, 5, 5) + causal_mask(5, torch.device("cpu")), False),
    "padding": (torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, -math.inf, -math.inf]])[:, None, None], False),
}


@pytest.mark.parametrize("kernel", ["sdpa", "matmul"])
@pytest.mark.parametrize(("mask", "causal"), MASKS.values(), ids=list(MASKS))
def test_attention_is_the_weighted_mean_of_values(kernel, mask, causal):
    q, k, v = heads()
    expected = one_by_one(q, k, v, mask, causal, 0.7)
    torch.testing.assert_close(attend(q, k, v, mask, causal, 0.7, kernel), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kernel", ["sdpa", "matmul"])
@pytest.mark.parametrize(("mask", "causal"), MASKS.values(), ids=list(MASKS))
@pytest.mark.parametrize("narrow", ["values", "queries"])
def test_values_may_be_narrower_than_queries_or_wider(kernel, mask, causal, narrow):
    q, k, v = heads()
    q, k, v = (q, k, v[..., :3]) if narrow == "values" else (q[..., :3], k[..., :3], v)
    output = attend(q, k, v, mask, causal, 0.7, kernel)
    torch.testing.assert_close(output, one_by_one(q, k, v, mask, causal, 0.7), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("mask", "causal"), MASKS.values(), ids=list(MASKS))
def test_16_bit_attention_is_near_the_exact_one(mask, causal):
    expected = one_by_one(*heads(), mask, causal, 0.5)
    output = attend(*heads(dtype=torch.bfloat16), mask, causal, 0.5)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), expected, atol=3e-2, rtol=0)


def test_64_bit_attention_with_a_bias_that_trains_is_as_exact_as_without():
    q, k, v, mask = (part.double() for part in (*heads(), noise(3, 5, 5)))
    output = attend(q, k, v, mask.clone().requires_grad_(), False, 0.5)
    torch.testing.assert_close(output, attend(q, k, v, mask, False, 0.5), atol=1e-14, rtol=0)


def test_the_kernel_on_a_cpu_is_the_faster_one():
    q, mask = noise(1, 1, 2, 4), noise(2, 2)
    assert fastest_kernel(q, None) == fastest_kernel(q, mask) == "sdpa"
    assert fastest_kernel(q, mask.requires_grad_()) == "matmul"
    assert fastest_kernel(q.bfloat16(), None) == "matmul"


def test_a_bias_that_trains_gets_the_gradient_of_its_logits():
    q, k, v = heads()
    given, exact = noise(3, 5, 5).requires_grad_(), noise(3, 5, 5).requires_grad_()
    attend(q, k, v, given, False, 0.5).pow(2).sum().backward()
    ((q @ k.mT * 0.5 + exact).softmax(-1) @ v).pow(2).sum().backward()
    torch.testing.assert_close(given.grad, exact.grad, atol=1e-5, rtol=0)


def test_heads_are_slices_of_the_width_and_scaled_by_its_root():
    layer, x = SelfAttention(12, 3, gain=1.0, layer=0), noise(2, 5, 12)
    q, k, v = layer.qkv(x).split(12, dim=-1)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    mixed = []
    for part in (slice(0, 4), slice(4, 8), slice(8, 12)):
        logits = q[..., part] @ k[..., part].mT / 4**0.5
        mixed.append(logits.masked_fill(future, -math.inf).softmax(-1) @ v[..., part])
    masks = Masks(True, 5, x.device, None)
    output = layer(x, PositionalEncoding(EncodingSpec(12, 3, 1, (5,), causal=True)), None, masks)
    torch.testing.assert_close(output, layer.out(torch.cat(mixed, dim=-1)), atol=1e-5, rtol=0)


class Wider(PositionalEncoding):
    """Widens queries and keys by channels that say nothing, and notes what it is asked."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.asked = []

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: None, layer: int) -> tuple[Tensor, Tensor]:
        self.asked.append(("query_key", layer))
        return F.pad(q, (0, 3)), F.pad(k, (0, 3))

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: None, layer: int) -> None:
        self.asked.append(("bias", layer))


@pytest.mark.parametrize("causal", [True, False])
def test_every_layer_asks_the_encoding_and_keeps_its_scale(causal):
    spec = EncodingSpec(32, 4, 2, (8,), causal)
    plain, wider = (Transformer(make(spec)) for make in (PositionalEncoding, Wider))
    wider.load_state_dict(plain.state_dict())
    torch.testing.assert_close(wider(noise(2, 8, 32)), plain(noise(2, 8, 32)), atol=1e-5, rtol=0)
    assert wider.encoding.asked == [(hook, layer) for layer in (0, 1) for hook in ("query_key", "bias")]


class Biased(PositionalEncoding):
    """Adds the same bias in every layer; trained or not."""

    def __init__(self, spec: EncodingSpec, trained: bool) -> None:
        super().__init__(spec)
        self.table = nn.Parameter(torch.zeros(5, 5), requires_grad=trained)

    def forward(self, state: None) -> Tensor:
        return self.table[None, None] * 1.0 if self.table.requires_grad else self.table

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        return state


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("trained", [True, False])
def test_masks_are_folded_into_a_shared_bias_once(trained, padded):
    model, made = Transformer(Biased(EncodingSpec(32, 4, 3, (5,), causal=True), trained)), []
    seen = []
    valid = torch.arange(5).expand(2, -1) < torch.tensor([[5], [3]]) if padded else None
    with model.using_kernel(lambda q, mask: seen.append(mask) or fastest_kernel(q, mask)):
        for _ in range(2):
            made.append(model(noise(2, 5, 32), valid=valid))
    assert len({id(mask) for mask in seen[:3]}) == len({id(mask) for mask in seen[3:]}) == 1
    assert (seen[0] is seen[3]) == (not trained and not padded)
    masks = model.cache._masks
    assert masks is None or masks._sum.source is None or not masks._sum.source.requires_grad
    assert torch.equal(*made)
    with torch.inference_mode():
        model(noise(2, 5, 32))
    model(noise(2, 5, 32)).sum().backward()


@pytest.mark.parametrize("encoding", ["alibi", "sandwich"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_a_fixed_bias_takes_the_fused_kernel(padded, causal, encoding):
    """The other one keeps every logit: three times the time at length 2048."""
    model = Transformer(load_encoding(encoding)(EncodingSpec(32, 4, 2, (8,), causal)))
    valid = torch.arange(8).expand(2, -1) < torch.tensor([[8], [3]]) if padded else None
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):  # refuses what it cannot do
        model(noise(2, 8, 32), valid=valid).sum().backward()


def test_the_causal_mask_hides_what_comes_later():
    mask = causal_mask(4, torch.device("cpu"))
    for i, j in itertools.product(range(4), range(4)):
        assert mask[i, j].item() == (0.0 if j <= i else -math.inf)


@served
def test_encodings_share_every_parameter_they_have_in_common(name, kind):
    plain, told = build(kind, "none"), build(kind, name)
    reference, other = dict(plain.named_parameters()), dict(told.named_parameters())
    shared = [n for n in reference if n in other and reference[n].shape == other[n].shape]
    assert all(torch.equal(reference[n], other[n]) for n in shared)
    if told.trunk.d_model == plain.trunk.d_model:  # a wider model has no parameter in common
        assert {n for n in reference if n.startswith(("trunk.blocks", "trunk.norm", "head"))} <= set(shared)
    assert set(reference) <= set(other)


@every_kind
def test_the_seed_decides_the_parameters(kind):
    one, same, other = (build(kind, "learned", seed=seed) for seed in (3, 3, 4))
    drawn = [n for n, p in one.named_parameters() if p.ndim > 1 and not n.startswith("head")]
    for name in drawn:
        assert torch.equal(one.get_parameter(name), same.get_parameter(name))
        assert not torch.equal(one.get_parameter(name), other.get_parameter(name))


def test_no_two_parameters_are_drawn_alike():
    weights = [p.flatten()[:64] for p in build("language", "learned").parameters() if p.ndim > 1 and p.any()]
    assert len(weights) == 2 * 4 + 2
    assert all(not torch.equal(a, b) for a, b in itertools.combinations(weights, 2))


def test_initialising_leaves_the_global_generator_alone():
    model = build("text", "learned")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    initialise(model, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_initialising_does_not_depend_on_the_global_generator():
    torch.manual_seed(5)
    one = build("image", "learned").state_dict()
    torch.manual_seed(6)
    other = build("image", "learned").state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_module_that_cannot_draw_its_parameters_is_refused():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.ones(1))

    with pytest.raises(
        TypeError, match="Sequential has a Scale, 0, which owns parameters and needs a method reset_param"
    ):
        initialise(nn.Sequential(Scale()), seed=0)


def test_streams_depend_on_seed_and_names():
    seeds = [stream(0), stream(1), stream(0, "a"), stream(0, "a", 1), stream(0, "a", 2), stream(0, "b")]
    seeds += [stream(0, "a", 1, 2), stream(0, "a", 12)]
    assert len(set(seeds)) == 8
    assert stream(0, "a", 1) == stream(0, "a", 1)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert stream(0, "order", 1) == 4489457307835839548  # of which published runs are made


@pytest.mark.parametrize("gain", [1.0, 0.5, 0.0])
def test_a_linear_layer_multiplies_the_scale_by_its_gain(gain):
    layer = Linear(256, 512, gain)
    initialise(layer, seed=0)
    assert rms(layer(noise(64, 256))) == pytest.approx(gain, rel=0.03)
    assert not layer.bias.any()


def test_the_residual_branches_start_with_the_declared_gain():
    model = TextClassifier("none", vocab_size=11, max_len=8, d_model=128, num_layers=3, num_heads=4)
    for block in model.trunk.blocks:
        for layer in (block.attention.out, block.feed_forward[2]):
            assert layer.weight.std().item() * layer.in_features**0.5 == pytest.approx(6**-0.5, rel=0.03)
        assert block.attention.qkv.weight.std().item() * 128**0.5 == pytest.approx(1, rel=0.03)


def test_tokens_enter_with_scale_one():
    embedding = TokenEmbedding(1000, 48)
    initialise(embedding, seed=0)
    assert rms(embedding(torch.arange(1000)[None])) == pytest.approx(1, rel=0.03)
    assert torch.allclose(embedding(torch.tensor([[7]]))[0, 0], embedding.table[7] * 48**0.5)


def test_patches_enter_with_scale_one():
    embedding = PatchEmbedding(4, 3, 96)
    initialise(embedding, seed=0)
    assert rms(embedding(noise(16, 3, 32, 32))) == pytest.approx(1, rel=0.05)


def test_a_patch_embedding_is_a_strided_convolution():
    embedding, images = PatchEmbedding(2, 3, 8), noise(2, 3, 6, 10)
    weight = embedding.linear.weight.view(8, 3, 2, 2)
    expected = F.conv2d(images, weight, embedding.linear.bias, stride=2)
    torch.testing.assert_close(embedding(images), expected.flatten(2).mT, atol=1e-5, rtol=0)


def test_patches_come_in_row_major_order():
    embedding, image = PatchEmbedding(2, 1, 4), noise(1, 1, 6, 10)
    for row, column in itertools.product(range(3), range(5)):
        patch = image[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        torch.testing.assert_close(embedding(patch)[0, 0], embedding(image)[0, row * 5 + column], atol=1e-6, rtol=0)


@served
def test_the_first_loss_is_that_of_a_uniform_guess(name, kind):
    expected = math.log(11 if kind == "language" else 5)
    assert build(kind, name).loss(batch_for(kind)).item() == pytest.approx(expected, abs=1e-5)


def test_a_mean_counts_what_is_valid():
    x, valid = noise(2, 3, 4), torch.tensor([[True, True, False], [False, True, False]])
    torch.testing.assert_close(masked_mean(x, valid), torch.stack([(x[0, 0] + x[0, 1]) / 2, x[1, 1]]))
    torch.testing.assert_close(masked_mean(x, None), (x[:, 0] + x[:, 1] + x[:, 2]) / 3)


def optimizers(model: SequenceModule, steps: int = 100) -> dict:
    trainer = SimpleNamespace(estimated_stepping_batches=steps, precision_plugin=None)
    model.trainer = trainer
    return model.configure_optimizers()


@served
def test_only_weight_matrices_decay(name, kind):
    model = build(kind, name, weight_decay=0.3)
    names = {id(p): n for n, p in model.named_parameters()}
    groups = optimizers(model)["optimizer"].param_groups
    decay = {g["weight_decay"]: {names[id(p)] for p in g["params"]} for g in groups}
    tables = {"image": "input.linear.weight", "text": "input.table", "language": "input.table"}
    layers = ("attention.qkv", "attention.out", "feed_forward.0", "feed_forward.2")
    matrices = {f"trunk.blocks.{block}.{layer}.weight" for block in range(2) for layer in layers}
    assert decay[0.3] == matrices | {tables[kind], "head.weight"}
    assert decay[0.0] == set(names.values()) - decay[0.3]
    assert {group["betas"] for group in groups} == {(0.9, 0.98)}


@every_kind
def test_branches_drop_channels_and_not_the_input_alone(kind):
    trunk = build(kind, dropout=0.5).trunk.train()
    trunk.dropout = torch.nn.Identity()
    x = noise(2, trunk.encoding.spec.max_len, trunk.encoding.content_width)
    assert not torch.equal(trunk(x), trunk(x))
    assert torch.equal(trunk.eval()(x), trunk(x))


@every_kind
def test_the_schedule_moves_every_step(kind):
    made = optimizers(build(kind, learning_rate=0.5, warmup=0.2), steps=10)
    assert made["lr_scheduler"]["interval"] == "step"
    rates = []
    for _ in range(11):
        rates.append(made["optimizer"].param_groups[0]["lr"])
        made["optimizer"].step()
        made["lr_scheduler"]["scheduler"].step()
    cosine = [0.5 * (0.1 + 0.9 * (1 + math.cos(math.pi * step / 8)) / 2) for step in range(9)]
    assert rates == pytest.approx([0.25, 0.5, *cosine])


def test_the_schedule_survives_the_shortest_runs():
    assert all(0 < schedule(step, total, 0.1) <= 1 for total in (1, 2, 3) for step in range(total + 2))


@every_kind
def test_metrics_do_not_depend_on_the_batches(kind):
    model, whole = build(kind), batch_for(kind, 7)
    nn.init.normal_(model.head.weight, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.eval().update(whole, "val")
        for part in ([0, 1, 2, 3], [4, 5], [6]):
            model.update(tuple(x[part] for x in whole), "test")
    for name in ("loss",) if kind == "language" else ("loss", "accuracy"):
        torch.testing.assert_close(model.metrics[f"val/{name}"].compute(), model.metrics[f"test/{name}"].compute())


@pytest.mark.parametrize("kind", ["image", "text"])
def test_accuracy_is_the_share_of_examples_whose_class_is_likeliest(kind, monkeypatch):
    model, whole, logits = build(kind), batch_for(kind, 40), noise(40, 5)
    likeliest, second = logits.argsort(-1, descending=True)[:, :2].T
    labels = torch.where(torch.arange(40) % 5 == 0, second, likeliest)
    monkeypatch.setattr(model, "forward", lambda *_: logits)
    model.update((*whole[:-1], labels), "test")
    assert model.metrics["test/accuracy"].compute().item() == pytest.approx(0.8)
    by_class = [(likeliest == labels)[labels == label].double().mean().item() for label in range(5)]
    assert max(by_class) - min(by_class) > 0.1  # so that each counted alike is another share
    assert by_class[0] != pytest.approx(0.8)  # and one without the first


def test_bits_per_byte_count_bytes_and_skip_what_is_ignored():
    model, (tokens, targets) = build("language", token_bytes=list(range(1, 12))), batch_for("language", 3)
    nn.init.normal_(model.head.weight, generator=torch.Generator().manual_seed(0))
    targets = targets.clone().index_fill_(1, torch.tensor([0, 5]), -100)
    with torch.no_grad():
        chances = model.eval()(tokens).log_softmax(-1)
        for row in range(3):
            model.update((tokens[row : row + 1], targets[row : row + 1]), "test")
    kept = [(b, i, t) for b, row in enumerate(targets.tolist()) for i, t in enumerate(row) if t != -100]
    nats, size = -sum(chances[b, i, t].item() for b, i, t in kept), sum(t + 1 for _, _, t in kept)
    assert model.metrics["test/bits_per_byte"].compute().item() == pytest.approx(nats / size / math.log(2), rel=1e-4)


@served
def test_a_few_steps_fit_one_batch(name, kind):
    model, batch = build(kind, name, dropout=0.0), batch_for(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(12):
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()
    assert model.loss(batch).item() < 0.6 * math.log(11 if kind == "language" else 5)


@pytest.mark.parametrize("side", [3, 0, -4])
def test_an_image_that_patches_do_not_tile_is_refused(side):
    with pytest.raises(ValueError, match=f"patch_size must be positive and divide the image's side 8, got {side}"):
        ViT(image_size=8, patch_size=side)


@every_kind
def test_a_module_survives_its_state_dict(kind):
    one, other = build(kind, "learned", seed=1).eval(), build(kind, "learned", seed=2).eval()
    nn.init.normal_(one.head.weight, generator=torch.Generator().manual_seed(0))
    other.load_state_dict(one.state_dict())
    batch = batch_for(kind)
    assert torch.equal(one.loss(batch), other.loss(batch))
