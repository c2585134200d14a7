"""Rows with positions of their own, padding anywhere and packed texts: each text as if it were alone in its batch."""

import math

import pytest
import torch
from torch import Tensor

from pebench.conformance.bench import perturbed
from pebench.encodings import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.transformer import Transformer
from tests.sampling import sampled

NAMES = [name for name in encoding_cards() if 1 in load_encoding(name).axes]
ON_IMAGES = [name for name in encoding_cards() if 2 in load_encoding(name).axes and not load_encoding(name).causal_only]
LENGTHS = (8, 3, 5, 3, 1)
SIZES = {"d_model": 32, "num_layers": 2, "num_heads": 4}


def language_model(name: str, **options) -> LanguageModel:
    return perturbed(LanguageModel(name, vocab_size=11, max_len=8, **SIZES, **options)).eval()


def texts() -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(11, (n,), generator=draw) for n in LENGTHS]


def padded_left() -> tuple[Tensor, Tensor]:
    """Return tokens (B, L) and what is not padding (B, L)."""
    tokens, valid = torch.full((len(LENGTHS), 8), 7), torch.zeros(len(LENGTHS), 8, dtype=torch.bool)
    for row, text in enumerate(texts()):
        tokens[row, 8 - len(text) :], valid[row, 8 - len(text) :] = text, True
    return tokens, valid


def packed() -> tuple[Tensor, Tensor]:
    """Return two rows of four texts, the last of which begins with padding, and the text of each token."""
    eight, three, five, other, one = texts()
    tokens = torch.stack([eight, torch.cat([three, five])])
    last = torch.cat([torch.tensor([9, 9, 9]), other, one, torch.tensor([9])])
    documents = torch.tensor([[4] * 8, [0] * 3 + [1] * 5, [-1, -2, -1, 3, 3, 3, 0, -1]])
    return torch.cat([tokens, last[None]]), documents


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in NAMES], 0.25))
def test_padding_on_the_left_changes_no_row(name):
    model, (tokens, valid) = language_model(name), padded_left()
    logits = model(tokens, valid=valid)
    for row, text in enumerate(texts()):
        close(logits[row, valid[row]], model(text[None])[0])


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in NAMES], 0.25))
def test_packed_texts_are_as_if_alone(name):
    model, (tokens, documents) = language_model(name), packed()
    logits = model(tokens, documents=documents)
    found = [logits[0], logits[1, :3], logits[1, 3:], logits[2, 3:6], logits[2, 6:7]]
    for text, part in zip(texts(), found, strict=True):
        close(part, model(text[None])[0])


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in NAMES], 0.25))
def test_each_row_has_the_positions_that_it_is_given(name):
    model, tokens = language_model(name), torch.stack([texts()[0]] * 3)
    positions = torch.arange(8.0).expand(3, -1).clone()
    positions[1] = positions[1].flip(0)  # within the trained extent, outside of which tables have no row
    positions[2] = torch.tensor([0.0, 2.0, 1.0, 3.0, 4.0, 6.0, 5.0, 7.0])
    logits = model(tokens, positions[..., None])
    for row in range(3):
        close(logits[row], model(tokens[:1], positions[row][:, None])[0])


@pytest.mark.parametrize("name", ["alibi", "cope", "cpe", "deberta", "fire", "learned", "rope", "transformer-xl"])
def test_gradients_are_those_of_the_texts_alone(name):
    together, alone, (tokens, valid) = language_model(name), language_model(name), padded_left()
    together(tokens, valid=valid)[valid].pow(2).sum().backward()
    for text in texts():
        alone(text[None]).pow(2).sum().backward()
    for (label, one), other in zip(together.named_parameters(), alone.parameters(), strict=True):
        if label.removeprefix("trunk.encoding.") in together.trunk.encoding.idle:
            continue  # a gradient of rounding alone
        scale = float(other.grad.abs().max()) + 1e-6
        torch.testing.assert_close(one.grad / scale, other.grad / scale, atol=1e-4, rtol=0, msg=label)


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in ON_IMAGES], 0.25))
def test_images_may_have_positions_of_their_own(name):
    model = perturbed(ViT(name, image_size=8, patch_size=2, **SIZES)).eval()
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    usual = model.trunk.cache.grid((4, 4), images.device)
    positions = torch.stack([usual, usual.flip(0)])
    logits = model(images, positions)
    for row in range(2):
        close(logits[row], model(images[row : row + 1], positions[row].clone())[0])


def test_patches_that_are_left_of_an_image_keep_their_cells():
    encoding = load_encoding("rope")(EncodingSpec(32, 4, 2, (2, 3), causal=False))
    trunk, content = Transformer(encoding), torch.randn(1, 6, 32)
    kept, positions = torch.tensor([0, 2, 4]), torch.tensor([[0.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    documents = torch.full((1, 6), -1)
    documents[0, kept] = 0
    close(trunk(content, documents=documents)[:, kept], trunk(content[:, kept], positions))


def test_a_classified_text_may_have_positions_of_its_own():
    model = perturbed(TextClassifier("add", vocab_size=11, max_len=8, **SIZES)).eval()
    tokens, lengths, positions = torch.stack([texts()[0]] * 2), torch.tensor([8, 5]), torch.arange(8.0)[None, :, None]
    rows = torch.cat([positions, positions + 3])
    logits = model(tokens, lengths, rows)
    close(logits[0], model(tokens[:1], lengths[:1])[0])
    close(logits[1], model(tokens[1:, :5], lengths[1:], rows[1, :5])[0])


class Counting(PositionalEncoding):
    """Notes how many texts a hook is given at once."""

    seen: list[tuple[int, ...]]

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        self.seen.append(tuple(x.shape[:2]))
        return x


def test_texts_with_the_same_positions_go_together():
    model, (tokens, valid) = language_model(Counting), padded_left()
    model.trunk.encoding.seen = []
    model(tokens, valid=valid)
    assert model.trunk.encoding.seen == [(1, 8), (2, 3), (1, 5), (1, 1)]
    assert model.trunk.cache.checked_lengths == {8, 5, 3, 1}


def test_a_bias_that_layers_share_is_masked_once():
    model, (tokens, valid), seen = language_model("alibi"), padded_left(), []
    with model.trunk.using_kernel(lambda q, mask: seen.append(mask) or "sdpa"):
        model(tokens, valid=valid)
    first, second = seen
    assert first is second


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_padding_gives_no_nan_in_16_bit(dtype):
    model, (tokens, valid) = language_model("alibi").to(dtype), padded_left()
    assert model(tokens, valid=valid).isfinite().all()


def test_what_stands_in_padding_never_counts():
    model, (tokens, valid) = language_model("fox"), padded_left()
    before = model(tokens, valid=valid)[valid]
    assert torch.equal(model(torch.where(valid, tokens, 2), valid=valid.long())[valid], before)


def test_the_loss_of_packed_texts_is_the_mean_of_those_alone():
    model, (tokens, documents) = language_model("rope"), packed()
    targets = torch.where(documents >= 0, tokens.roll(1, 1), -100)
    found = model.loss((tokens, targets, documents))
    nats = [
        torch.nn.functional.cross_entropy(model(tokens[row, here][None])[0], targets[row, here], reduction="sum")
        for row in range(3)
        for number in documents[row].unique()
        if number >= 0 and (here := documents[row] == number).any()
    ]
    assert found.item() == pytest.approx(sum(nats).item() / int((documents >= 0).sum()), abs=1e-5)
    model.update((tokens, targets, documents), "val")
    assert model.metric("val/loss").compute().item() == pytest.approx(found.item(), abs=1e-6)
    assert math.isfinite(found.item())


def test_shapes_that_fit_nothing_are_refused():
    model, tokens = language_model("add"), torch.zeros(2, 8, dtype=torch.long)
    with pytest.raises(ValueError, match=r"expected positions of shape \(2, 8, 1\) \(rows, tokens, axes\), got \(1, 8"):
        model(tokens, torch.zeros(1, 8, 1))
    with pytest.raises(ValueError, match=r"expected documents of shape \(2, 8\) .* and integers, got \(2, 7\)"):
        model(tokens, documents=torch.zeros(2, 7, dtype=torch.long))
    with pytest.raises(ValueError, match="expected a token that is not padding"):
        model(tokens, valid=torch.zeros(2, 8))
    with pytest.raises(ValueError, match=r"expected valid of shape \(2, 8\) \(rows, tokens\), got \(2, 7\)"):
        model(tokens, valid=torch.ones(2, 7))
    for empty in (tokens[0], tokens[:, :0]):
        with pytest.raises(ValueError, match=r"expected content of shape \(rows, tokens, channels\), got"):
            model(empty)
    with pytest.raises(ValueError, match="encoding 'learned' knows the integer positions below"):
        language_model("learned")(tokens, torch.arange(8.0).expand(2, -1)[..., None] + 1)
