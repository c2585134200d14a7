"""Regression, tags and masked language modelling: losses and metrics by hand, padding, and every encoding."""

import math

import pytest
import torch
from torch import Tensor, nn

from pebench.conformance.bench import perturbed
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.models import MaskedLanguageModel, TextRegressor, TokenTagger
from pebench.models.base import SequenceModule

SIZES = {"vocab_size": 11, "max_len": 8, "d_model": 32, "num_layers": 2, "num_heads": 4}
TOKENS = torch.arange(16).view(2, 8) % 11
LENGTHS = torch.tensor([8, 3])
TAGS = torch.tensor([[0, 1, 2, 0, 1, 2, 0, 1], [2, 2, 1, -100, -100, -100, -100, -100]])
MASKED = torch.tensor([[-100, 3, -100, -100, -100, 0, -100, -100], [-100] * 7 + [9]])
BATCHES = {
    TextRegressor: (TOKENS, LENGTHS, torch.tensor([1.5, -0.5])), TokenTagger: (TOKENS, LENGTHS, TAGS),
    MaskedLanguageModel: (TOKENS, MASKED),
}  # fmt: skip
every_module = pytest.mark.parametrize("cls", BATCHES, ids=lambda cls: cls.__name__)


def build(cls: type[SequenceModule], name: str = "add") -> SequenceModule:
    return cls(name, **SIZES, **({"num_classes": 3} if cls is TokenTagger else {})).eval()


def measured(model: SequenceModule, *batches: tuple[Tensor, ...]) -> dict[str, float]:
    for batch in batches:
        model.update(batch, "test")
    return {name[5:]: float(metric.compute()) for name, metric in model.metrics.items() if name.startswith("test/")}


def answer(model: SequenceModule, logits: Tensor) -> None:
    model.forward = lambda *_, **__: logits  # type: ignore[method-assign]


@every_module
def test_training_begins_at_the_loss_of_a_guess_that_knows_nothing(cls):
    usual = {TextRegressor: (1.5**2 + 0.5**2) / 2, TokenTagger: math.log(3), MaskedLanguageModel: math.log(11)}
    assert build(cls).loss(BATCHES[cls]).item() == pytest.approx(usual[cls], abs=1e-6)


def test_the_squared_error_is_a_mean_over_texts_of_all_batches():
    model = build(TextRegressor)
    answer(model, torch.tensor([[1.0], [0.0], [2.0]]))
    batch = (TOKENS[[0, 1, 0]], LENGTHS[[0, 1, 0]], torch.tensor([1.0, -2.0, 1.0]))
    assert model.loss(batch).item() == pytest.approx((0 + 4 + 1) / 3)
    model.update(batch, "test")
    answer(model, torch.tensor([[1.0]]))
    found = measured(model, (TOKENS[:1], LENGTHS[:1], torch.tensor([4.0])))
    assert found == {"loss": pytest.approx(14 / 4), "squared_error": pytest.approx(14 / 4)}


def test_tags_of_padding_count_for_nothing():
    model = build(TokenTagger)
    logits = torch.zeros(2, 8, 3)
    logits[0, :, 0] = math.log(2)  # of the first text: 2/4, 1/4, 1/4
    logits[1, :3, 2] = 30.0  # of the second: the tag 2, which is right for two of three
    logits[1, 3:] = torch.tensor([9.0, -9.0, 5.0])  # of padding: anything
    answer(model, logits)
    # Of eight tokens three are 0; of the next three two cost nothing, and one 30.
    nats = 3 * math.log(2) + 5 * math.log(4) + 30.0
    assert model.loss(BATCHES[TokenTagger]).item() == pytest.approx(nats / 11, rel=1e-6)
    found = measured(model, BATCHES[TokenTagger])
    assert found == {"loss": pytest.approx(nats / 11, rel=1e-6), "accuracy": pytest.approx(5 / 11)}


def test_metrics_are_of_tokens_not_of_batches():
    model = build(TokenTagger)
    for row, right in ((0, 0), (1, 1)):  # all tokens 0: three of eight are right; all 1: one of three
        answer(model, nn.functional.one_hot(torch.full((1, 8), right), 3).float())
        model.update((TOKENS[[row]], LENGTHS[[row]], TAGS[[row]]), "test")
    wrong = math.log(math.e + 2)
    assert measured(model) == {
        "loss": pytest.approx((4 * (wrong - 1) + 7 * wrong) / 11),
        "accuracy": pytest.approx(4 / 11),
    }


def test_bits_are_of_masked_tokens_alone():
    model = build(MaskedLanguageModel)
    logits = torch.zeros(2, 8, 11)
    logits[0, 1, 3] = math.log(10)  # a half for the right token
    logits[1, 7, 0] = math.log(10)  # a half for another one: a twentieth for the right one
    logits[0, 0] = 50.0 * torch.arange(11)  # of a token that nobody asks for
    answer(model, logits)
    nats = math.log(2) + math.log(11) + math.log(20)
    assert model.loss(BATCHES[MaskedLanguageModel]).item() == pytest.approx(nats / 3, rel=1e-6)
    nothing = (TOKENS, torch.full_like(MASKED, -100))
    assert model.loss(nothing).item() == 0
    found = measured(model, BATCHES[MaskedLanguageModel], nothing)
    assert found["bits_per_token"] == pytest.approx(nats / 3 / math.log(2), rel=1e-6)


def test_a_masked_model_sees_both_sides():
    model = perturbed(build(MaskedLanguageModel))
    other = TOKENS.clone()
    other[0, 7] = 5
    with torch.no_grad():
        assert not torch.allclose(model(TOKENS)[0, 0], model(other)[0, 0])
        assert model.trunk.encoding.spec.causal is False


@pytest.mark.parametrize("cls", [TextRegressor, TokenTagger], ids=lambda cls: cls.__name__)
def test_a_text_does_not_depend_on_its_padding(cls):
    model = perturbed(build(cls))
    other = TOKENS.clone()
    other[1, 3:] = 7
    with torch.no_grad():
        torch.testing.assert_close(model(TOKENS, LENGTHS)[1][:3], model(other, LENGTHS)[1][:3])
        torch.testing.assert_close(model(TOKENS, LENGTHS)[1][:3], model(TOKENS[1:, :3], LENGTHS[1:])[0])


@every_module
def test_every_bidirectional_encoding_serves_and_learns(cls):
    served = [name for name in encoding_cards() if 1 in (made := load_encoding(name)).axes and not made.causal_only]
    assert len(served) > 30
    for name in served:
        model = perturbed(build(cls, name))
        loss = model.loss(BATCHES[cls])
        loss.backward()
        assert loss.isfinite(), name
        assert all(weight.grad is not None for weight in model.head.parameters()), name
        assert model.predict_step(BATCHES[cls], 0).isfinite().all(), name
