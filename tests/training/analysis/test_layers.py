"""Measures of the layers, on models and vectors whose answer is known."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from pebench.results.inside import PRODUCTS
from pebench.training.analysis.ablation import ablation
from pebench.training.analysis.attention import attention
from pebench.training.analysis.capture import Capture, Layer, capture_batch
from pebench.training.analysis.constant_channels import constant_channels
from pebench.training.analysis.logits import Logits, layer_logits
from pebench.training.analysis.position_mean import position_mean
from pebench.training.analysis.probes import classify, frequent, probes, regress
from pebench.training.analysis.terms import centred, terms
from tests.training.analysis.models import LENGTH, VOCABULARY, WIDTH, batch, captured, captured_padded, made_of, model


def tokens(examples: int = 60) -> torch.Tensor:
    return torch.randint(VOCABULARY, (examples, LENGTH), generator=torch.Generator().manual_seed(3))


def test_vectors_that_copy_the_token_hold_the_token_and_no_position() -> None:
    words = tokens()
    content = functional.one_hot(words, WIDTH).float()
    found = probes(made_of(content, None, words))
    assert found["token"] == [1.0]
    assert found["position"][0] < 0.25  # chance is a tenth
    assert found["position_r2"][0] < 0.1
    assert found["content_r2"][0] > 0.99
    assert found["position_chance"] == pytest.approx(1 / LENGTH)


def test_vectors_that_copy_the_position_hold_the_position_and_no_token() -> None:
    words = tokens()
    position = functional.one_hot(torch.arange(LENGTH), WIDTH).float()
    found = probes(made_of(torch.zeros(60, LENGTH, WIDTH), position, words))
    assert found["position"] == [1.0]
    assert found["position_r2"][0] > 0.99
    assert found["token"][0] < 0.25


def test_probes_leave_padding_out() -> None:
    words = tokens()
    valid = torch.ones(60, LENGTH, dtype=torch.bool)
    valid[1::2, LENGTH // 2 :] = False
    places = functional.one_hot(torch.arange(LENGTH), WIDTH).float()
    content = torch.where(valid[..., None], places, 0.0)
    found = probes(made_of(content, None, words.masked_fill(~valid, 0), valid))
    assert found["position"] == [1.0]
    # of three quarters of all tokens the first half has one in each text
    assert found["position_chance"] == pytest.approx(1 / LENGTH / 0.75)
    held_out = words[30:][valid[30:]]
    assert found["token_chance"] == pytest.approx(int(held_out.bincount().max()) / len(held_out))


def test_without_a_sign_the_class_that_was_fitted_most_often_is_chosen() -> None:
    labels = torch.tensor([[1, 0, 1, 1], [2, 1, 0, 1]])
    seen = made_of(torch.zeros(2, 4, 3), None)
    assert classify(seen.output.double(), labels, seen.valid, seen) == 0.5  # class 1, of the second example


def test_of_two_classes_the_one_with_the_nearer_mean_is_chosen() -> None:
    x = torch.tensor([[-1.0, 1.0, 3.0, 5.0], [0.0, 1.5, 2.5, 9.0]]).double()[..., None]  # means of 0 and of 4
    labels = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1]])
    seen = made_of(x.float(), None)
    assert classify(x, labels, seen.valid, seen) == 1.0


def test_content_that_position_covers_is_found_in_part() -> None:
    content, position = (
        torch.randn(*shape, 1, generator=torch.Generator().manual_seed(0)) for shape in ((400, 8), (8,))
    )
    found = probes(made_of(content, position))
    share = float(content.var() / (content + position).var())
    assert found["content_r2"][0] == pytest.approx(share, abs=0.05)
    assert share < 0.8


def test_the_ridge_hardly_shrinks_what_is_there() -> None:
    seen = made_of(torch.randn(40, LENGTH, 4, generator=torch.Generator().manual_seed(0)), None)
    assert regress(seen.output.double(), seen.output.double(), seen) > 0.99999


def test_both_are_read_from_a_sum() -> None:
    words = tokens()
    content = functional.one_hot(words, 32).float()
    position = torch.randn(LENGTH, 32, generator=torch.Generator().manual_seed(0))
    found = probes(made_of(content, position, words))
    assert (found["token"], found["position"]) == ([1.0], [1.0])


def test_shuffled_labels_are_at_chance() -> None:
    words = tokens(200)
    seen = made_of(functional.one_hot(words, WIDTH).float(), None, words)
    shuffled = words.flatten()[torch.randperm(words.numel(), generator=torch.Generator().manual_seed(0))]
    found = classify(seen.output.double(), shuffled.view_as(words), seen.valid, seen)
    assert found == pytest.approx(1 / VOCABULARY, abs=0.06)


def test_regression_is_measured_on_examples_that_it_did_not_see() -> None:
    seen = made_of(torch.randn(8, LENGTH, 64, generator=torch.Generator().manual_seed(0)), None)
    noise = torch.randn(8, LENGTH, 1, generator=torch.Generator().manual_seed(1)).double()
    assert regress(seen.output.double(), noise, seen) < 0.0


def test_rare_tokens_and_padding_have_no_rank() -> None:
    words = torch.tensor([[5, 5, 5, 2], [2, 5, 7, 7]])
    valid = torch.tensor([[True] * 4, [True, True, True, False]])
    assert frequent(words, valid, slice(0, 2)).tolist() == [[0, 0, 0, 1], [1, 0, 2, -1]]


def test_a_token_that_no_probe_was_fitted_on_has_no_rank() -> None:
    words = torch.tensor([[5, 5, 2], [7, 5, 7]])
    assert frequent(words, torch.ones(2, 3, dtype=torch.bool), slice(0, 1)).tolist() == [[0, 0, 1], [-1, 0, -1]]


@pytest.mark.parametrize(
    "encoding", ["add", "concat", "rope", "concat-qk", "add-qk", "alibi", "t5-bias", "none", "multiply"]
)
def test_the_terms_add_up_to_the_logits_of_the_model(encoding: str) -> None:
    seen = captured(encoding)
    for layer in seen.layers:
        logits = next(layer_logits(seen, layer))
        torch.testing.assert_close(sum(logits.terms.values()), logits.total, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(*mixed_by(logits, layer, seen), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("encoding", ["ssmax", "rope", "alibi"])
def test_the_logits_of_padded_texts_are_those_of_the_model(encoding: str) -> None:
    seen = captured_padded(encoding)
    for layer in seen.layers:
        logits = next(layer_logits(seen, layer))
        torch.testing.assert_close(*mixed_by(logits, layer, seen), atol=1e-5, rtol=1e-4)


def mixed_by(logits: Logits, layer: Layer, seen: Capture) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (N, D), what attention with these logits makes of each real token, and what the model makes of it."""
    count = len(logits.total)
    attention, normed = layer.block.attention, layer.block.attention_norm(layer.x)
    v = attention.qkv(normed).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)[2][seen.held_out][:count]
    weights = logits.total.masked_fill(~logits.allowed, -1e30).softmax(-1)
    mixed = attention.out((weights @ v).transpose(1, 2).flatten(2))
    real = seen.valid[seen.held_out][:count]
    return mixed[real], attention(normed, seen.encoding, layer.state, layer.masks)[seen.held_out][:count][real]


def test_logits_are_centred_over_the_keys_that_a_query_sees() -> None:
    logits = torch.tensor([[[[5.0, 9.0], [1.0, 3.0]]]], dtype=torch.float32)
    assert centred(logits, torch.ones(2, 2).tril().bool()).tolist() == [[[[0.0, 0.0], [-1.0, 1.0]]]]


def test_shares_of_the_first_layer_are_those_of_the_encoding() -> None:
    rope, crossed, biased = (terms(captured(name)) for name in ("rope", "concat-qk", "alibi"))
    for head in range(2):
        assert rope["content-content"][0][head] > 0.05
        of_position = ("content-position", "position-content", "position-position", "constant-position", "bias")
        assert [rope[name][0][head] for name in of_position] == pytest.approx([0.0] * 5, abs=1e-5)
        assert crossed["content-position"][0][head] == pytest.approx(0.0, abs=1e-6)
        assert crossed["position-content"][0][head] == pytest.approx(0.0, abs=1e-6)
        assert crossed["position-position"][0][head] > 0.05
        assert biased["bias"][0][head] != 0.0
    for found in (rope, crossed, biased, terms(captured("add"))):
        for layer in range(2):
            for head in range(2):
                assert sum(values[layer][head] for values in found.values()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("encoding", "share"), [("none", "constant-content"), ("add", "constant-position")])
def test_keys_that_every_query_prefers_alike(encoding: str, share: str) -> None:
    made = model(encoding, num_layers=1)
    with torch.no_grad():
        made.trunk.blocks[0].attention.qkv.weight[:WIDTH].zero_()  # queries are their bias alone
        made.trunk.blocks[0].attention.qkv.bias[:WIDTH] = torch.randn(WIDTH, generator=torch.Generator().manual_seed(5))
        if encoding == "add":
            made.input.table.zero_()
    found = terms(capture_batch(made, batch()))
    # not exactly 1: keys' constants differ by the divisor of their norm
    assert found[share][0] == pytest.approx([1.0, 1.0], abs=0.1)


def test_a_head_that_looks_everywhere_alike() -> None:
    made = model("none")
    for block in made.trunk.blocks:
        torch.nn.init.zeros_(block.attention.qkv.weight)
    found = attention(capture_batch(made, batch()))
    for layer in range(2):
        assert found["distance"][layer] == pytest.approx(found["uniform"][layer])
        # the first query of an example has one key alone, and no entropy
        assert found["entropy"][layer] == pytest.approx([1 - 1 / LENGTH] * 2)
    assert found["uniform"][0][0] == pytest.approx((LENGTH - 1) / 4)
    assert terms(capture_batch(made, batch()))["content-content"] == [[None, None], [None, None]]


def test_padding_is_no_part_of_the_attention_of_a_text() -> None:
    seen = captured_padded("none")
    lengths = seen.valid[seen.held_out].sum(1).tolist()
    found = attention(seen)
    # in a text of n tokens two are (n² - 1) / 3n apart on average
    uniform = sum((n**2 - 1) / 3 for n in lengths) / sum(lengths)
    for layer in range(2):
        assert found["uniform"][layer] == pytest.approx([uniform] * 2)
        assert all(0 < entropy <= 1 for entropy in found["entropy"][layer])


def test_distances_on_a_grid_are_straight_lines() -> None:
    rows = torch.stack((torch.arange(LENGTH), torch.arange(LENGTH)), dim=1)  # cells of a diagonal
    seen = captured("none", num_layers=1)
    assert attention(replace(seen, positions=rows))["distance"][0] == pytest.approx(
        [2**0.5 * distance for distance in attention(seen)["distance"][0]]
    )


def test_a_steep_bias_looks_near() -> None:
    found = attention(captured("alibi"))
    assert found["distance"][0][0] < found["uniform"][0][0]


def test_subtracting_position_is_the_model_without_it() -> None:
    made = model("add", centered=True, num_layers=1)
    seen = capture_batch(made, batch())
    found = position_mean(seen)
    plain = model("none", num_layers=1)
    plain.load_state_dict(made.state_dict())
    half = tuple(part[seen.held_out] for part in seen.batch)
    with torch.no_grad():
        rise = float(plain.loss(half)) - float(made.loss(half))
    assert found["position"][0] == pytest.approx(rise, abs=1e-5)
    assert found["permuted"][0] != pytest.approx(rise, abs=1e-3)
    assert position_mean(captured("none", num_layers=1))["position"][0] == pytest.approx(0.0, abs=1e-6)


def test_the_control_of_padded_texts_takes_the_vectors_of_their_own_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, taken = captured_padded("learned", num_layers=1), list[torch.Tensor]()

    def loss_without(capture: Capture, index: int, vectors: torch.Tensor) -> float:
        taken.append(vectors)
        return 0.0

    monkeypatch.setattr("pebench.training.analysis.position_mean.loss_without", loss_without)
    position_mean(seen)
    own, permuted = taken
    for row, real in zip(permuted, seen.valid[seen.held_out], strict=True):
        length = int(real.sum())
        torch.testing.assert_close(row[:length].sum(0), own[:length].sum(0))
        assert length < 4 or not torch.equal(row[:length], own[:length])


def test_ablating_every_logit_makes_attention_uniform() -> None:
    made = model("none", num_layers=1)
    fitted = capture_batch(made, batch())
    mean = fitted.content[fitted.fit].mean((0, 1))
    made.input.table.data -= mean / made.input.pace  # content alone, without a constant
    seen = capture_batch(made, batch())
    found = ablation(seen)
    half = tuple(part[seen.held_out] for part in seen.batch)
    with torch.no_grad():
        before = float(made.loss(half))
        made.trunk.blocks[0].attention.qkv.weight[: 2 * WIDTH].zero_()
        rise = float(made.loss(half)) - before
    assert found["loss"] == pytest.approx(before, abs=1e-6)
    assert found["content-content"] == pytest.approx(rise, abs=1e-5)
    assert found["content-content, permuted"] != pytest.approx(rise, abs=1e-3)
    for name in PRODUCTS[1:]:
        assert found[name] == pytest.approx(0.0, abs=1e-6)


def test_ablating_a_term_of_position_changes_the_loss() -> None:
    found = ablation(captured("concat-qk", num_layers=1))
    assert abs(found["position-position"]) > 1e-3
    assert found["content-position"] == pytest.approx(0.0, abs=1e-6)


def test_constant_channels_are_those_that_do_not_vary() -> None:
    made = model("learned", num_layers=1)
    with torch.no_grad():
        made.trunk.encoding.table[:, :4] = 1.0  # a quarter of the channels is the same at every position
    seen = capture_batch(made, batch())
    found = constant_channels(seen)
    assert found["share"] == pytest.approx(4 / WIDTH)
    half = tuple(part[seen.held_out] for part in seen.batch)
    with torch.no_grad():
        before = float(made.loss(half))
        made.trunk.encoding.table[:, :4] = 0.0
        rise = float(made.loss(half)) - before
    assert found["constant"] == pytest.approx(rise, abs=1e-5)
    assert found["others"] != pytest.approx(rise, abs=1e-3)
    assert constant_channels(captured("rope")) is None


def test_channels_without_position_do_not_count_beside_constant_ones() -> None:
    seen = captured("concat", num_layers=1)
    used = seen.position.any(0)
    waves = torch.tensor([1.0, -1.0], dtype=torch.float32).repeat(LENGTH // 2)
    position = waves[:, None] * used
    position[:, -1] = 1.0 + 0.05 * waves  # below 0.07 of the root mean square of those used, which is 1
    assert constant_channels(replace(seen, position=position))["share"] == pytest.approx(1 / int(used.sum()))


def test_a_channel_that_few_tokens_have_otherwise_is_constant() -> None:
    seen = captured_padded("learned", num_layers=1)
    position = torch.ones(LENGTH, WIDTH, dtype=torch.float32)
    position[1::2, 1:] = -1.0
    position[-1, 0] = 0.65  # a standard deviation over positions of 0.1, but one token in fifty is there
    assert constant_channels(replace(seen, position=position))["share"] == 1 / WIDTH
