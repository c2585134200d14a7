"""A language model that predicts with its token table."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pebench.config import Options, section_values
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.errors import UserError
from pebench.models import LanguageModel
from pebench.models.counting import count_flops, count_parameters
from pebench.runs.costs import cost, matched
from pebench.tasks import configure
from pebench.training.runner import train

TEXT = [name for name in encoding_cards() if 1 in load_encoding(name).axes]
SIZES = {"vocab_size": 2048, "max_len": 32, "d_model": 96, "num_layers": 2, "num_heads": 3}


def tokens(batch: int = 4, seed: int = 0) -> torch.Tensor:
    return torch.randint(2048, (batch, 32), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("encoding", "width"), [("add", 96), ("concat", 72), ("concat-wide", 96), ("none", 96)])
def test_logits_are_products_with_the_rows_of_the_table_in_the_channels_of_content(encoding: str, width: int) -> None:
    model = LanguageModel(encoding, tied=True, **SIZES).eval()
    assert model.input.table.shape == (2048, width)
    with torch.no_grad():
        logits, x = model(tokens()), model.trunk(model.input(tokens()))
    row, channels = x[1, 5].tolist(), model.input.table.tolist()
    for token in (0, 7, 2047):
        expected = sum(a * b for a, b in zip(row[:width], channels[token], strict=True))
        assert logits[1, 5, token].item() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("encoding", TEXT)
def test_training_begins_near_the_loss_of_a_uniform_guess(encoding: str) -> None:
    model, text = LanguageModel(encoding, tied=True, **SIZES), tokens(8)
    with torch.no_grad():
        for targets in (tokens(8, seed=1), text):  # the tokens themselves too, of which the table's rows are part
            assert model.loss((text, targets)).item() == pytest.approx(
                math.log(2048), abs=0.2 if targets is not text else 1
            )


def test_a_tied_model_has_the_weights_of_another_but_for_the_output() -> None:
    tied, usual = (LanguageModel("concat", tied=tied, seed=5, **SIZES).state_dict() for tied in (True, False))
    assert usual.keys() - tied.keys() == {"head.weight", "head.bias"}
    differing = {name for name in tied if not torch.equal(tied[name], usual[name])}
    assert differing == {"trunk.norm.weight"}
    assert torch.equal(tied["trunk.norm.weight"], torch.full((96,), 72**0.5 / 72))


@pytest.mark.parametrize("encoding", ["add", "concat", "concat-wide", "learned", "rope"])
def test_a_plan_counts_what_a_tied_model_has(encoding: str) -> None:
    config = configure("lm-grammar", encoding, tier="smoke", settings={"model.tied": True})
    usual, data = replace(config, model=replace(config.model, tied=False)), config.data
    model = LanguageModel(encoding, vocab_size=data.vocab_size, max_len=data.max_len, **section_values(config, "model"))
    text = torch.zeros(1, data.max_len, dtype=torch.long)
    with model.trunk.using_kernel("matmul"):
        flops = count_flops(lambda: model.loss((text, text)))
    assert (cost(config).parameters, cost(config).flops) == (count_parameters(model), flops)
    width = model.trunk.d_model
    assert cost(usual).parameters - cost(config).parameters == (width + 1) * data.vocab_size
    unread = width - model.input.table.shape[1]  # channels of position
    assert cost(usual).flops - cost(config).flops == 6 * data.max_len * unread * data.vocab_size


def test_rows_are_matched_by_the_parameters_of_tied_models() -> None:
    settings = {"model.tied": True, "model.d_model": 96, "model.num_layers": 4, "model.num_heads": 3}
    add, concat = (
        replace(configure("lm-wikitext2", name, tier="core", settings=settings), regime="parameters")
        for name in ("add", "concat")
    )
    assert cost(add).parameters - cost(concat).parameters == 24 * 2048  # the table alone: no output layer as well
    assert cost(matched(concat, add)).parameters == pytest.approx(cost(add).parameters, rel=0.01)


@pytest.mark.parametrize("task", ["vit-digits", "text-order"])
def test_what_predicts_no_tokens_cannot_be_tied(task: str) -> None:
    with pytest.raises(UserError, match=f"model.tied serves tasks that predict tokens.* got {task}"):
        cost(configure(task, "add", settings={"model.tied": True}))


@pytest.mark.parametrize("encoding", ["add", "concat"])
def test_a_tied_run_learns_and_its_record_says_that_it_is_tied(encoding: str, tmp_path: Path) -> None:
    settings = {"model.tied": True, "train.max_steps": 60, "train.learning_rate": 1e-2}
    config = configure("lm-grammar", encoding, tier="smoke", settings=settings)
    record = train(config, Options(tmp_path, device="cpu", threads=1))
    assert record.parameters["total"] == cost(config).parameters
    assert record.to_dict()["config"]["model"]["tied"] is True
    assert record.metrics["test/loss"] < 0.8 * math.log(config.data.vocab_size)


@pytest.mark.parametrize("scale", [None, 0.02])
@pytest.mark.parametrize(("pace", "moves"), [(None, 96**0.5), (1.0, 1.0), (2.5, 2.5)])
def test_tokens_start_alike_at_any_pace_and_move_at_that_pace(
    pace: float | None, moves: float, scale: float | None
) -> None:
    model = LanguageModel("none", token_pace=pace, token_scale=scale, **SIZES)
    before = model.input(tokens())
    assert before.detach().square().mean().sqrt().item() == pytest.approx(scale or 1.0, rel=0.02)
    adam = torch.optim.Adam(model.input.parameters(), lr=1e-3)
    before.sum().backward()
    adam.step()
    torch.testing.assert_close(
        before - model.input(tokens()), torch.full((4, 32, 96), 1e-3 * moves), atol=1e-6, rtol=1e-3
    )


@pytest.mark.parametrize("pace", [1.0, 4.0])
def test_a_tied_model_begins_alike_at_any_pace(pace: float) -> None:
    usual, other = (LanguageModel("concat", tied=True, token_pace=p, **SIZES).eval() for p in (None, pace))
    with torch.no_grad():
        torch.testing.assert_close(other(tokens()), usual(tokens()), atol=1e-5, rtol=1e-4)


def test_a_tied_model_of_small_tokens_begins_with_logits_as_large() -> None:
    usual, small = (LanguageModel("none", tied=True, token_scale=s, **SIZES).eval() for s in (None, 0.02))
    with torch.no_grad():
        sizes = [model(tokens()).square().mean().sqrt().item() for model in (usual, small)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


def test_a_scale_of_tokens_is_one_of_language_models_and_positive() -> None:
    with pytest.raises(UserError, match=r"model.token_scale serves tasks that predict tokens.* got text-order"):
        cost(configure("text-order", "add", settings={"model.token_scale": 0.02}))
    with pytest.raises(UserError, match=r"model.token_scale must be positive, got 0"):
        configure("lm-grammar", "add", settings={"model.token_scale": 0.0})


def test_a_pace_is_one_of_text_and_positive() -> None:
    assert cost(configure("text-order", "add", settings={"model.token_pace": 1})).parameters > 0
    with pytest.raises(UserError, match=r"model.token_pace serves tasks on text.* got vit-digits"):
        cost(configure("vit-digits", "add", settings={"model.token_pace": 1.0}))
    with pytest.raises(UserError, match=r"model.token_pace must be positive, got 0"):
        configure("text-order", "add", settings={"model.token_pace": 0.0})
