"""The model of sequence tasks: it is judged where it is asked, and nowhere else."""

import math

import pytest
import torch
from torch import nn

from pebench.models.solver import SequenceSolver


def solver(**options: object) -> SequenceSolver:
    module = SequenceSolver("rope", vocab_size=9, max_len=6, d_model=16, num_layers=1, num_heads=2, **options)
    nn.init.normal_(module.trunk.norm.weight, 1.0, 0.2, generator=torch.Generator().manual_seed(0))
    if module.head is not None:
        nn.init.normal_(module.head.weight, std=0.5, generator=torch.Generator().manual_seed(1))
    return module.eval()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.tensor([[2, 3, 4, 5, 6, 7], [8, 7, 6, 5, 0, 0], [2, 2, 3, 3, 4, 4]])
    return tokens, torch.full_like(tokens, -100)


def test_figures_are_those_of_the_answers_that_are_asked() -> None:
    module, (tokens, answers) = solver(), batch()
    logits = module(tokens)
    said = logits.argmax(2)
    answers[0, 2], answers[0, 5] = said[0, 2], said[0, 5]  # right, right
    answers[1, 1], answers[1, 3] = said[1, 1], (said[1, 3] + 1) % 9  # right, wrong
    answers[2, 0] = (said[2, 0] + 1) % 9  # wrong
    module.update((tokens, answers), "val")
    places = [(0, 2), (0, 5), (1, 1), (1, 3), (2, 0)]
    losses = [-logits[place].log_softmax(0)[answers[place]].item() for place in places]
    assert module.metric("val/accuracy").compute().item() == pytest.approx(3 / 5)
    assert module.metric("val/exact_match").compute().item() == pytest.approx(1 / 3)
    assert module.metric("val/loss").compute().item() == pytest.approx(sum(losses) / 5, rel=1e-5)
    assert module.loss((tokens, answers)).item() == pytest.approx(sum(losses) / 5, rel=1e-5)


def test_batches_add_up_whatever_their_sizes() -> None:
    module, (tokens, answers) = solver(), batch()
    answers[0, :5], answers[1, 0], answers[2, 3] = 4, 3, 5
    for part in (slice(0, 3), slice(0, 1), slice(1, 3)):
        module.update((tokens[part], answers[part]), "val" if part == slice(0, 3) else "test")
    for name in ("loss", "accuracy", "exact_match"):
        whole, parts = (module.metric(f"{stage}/{name}").compute() for stage in ("val", "test"))
        torch.testing.assert_close(whole, parts)


def test_padding_behind_a_sequence_changes_nothing() -> None:
    module, (tokens, _) = solver(), batch()
    torch.testing.assert_close(module(tokens)[1, :4], module(tokens[1:2, :4])[0])


def test_it_begins_at_the_loss_of_a_guess() -> None:
    module, (tokens, answers) = SequenceSolver("add", vocab_size=9, max_len=6, d_model=16, num_heads=2), batch()
    answers[:, 1] = 3
    assert module.loss((tokens, answers)).item() == pytest.approx(math.log(9), rel=1e-5)


def test_a_checkpoint_brings_it_back(tmp_path) -> None:
    import lightning

    module = solver(tied=True)
    trainer = lightning.Trainer(max_steps=0, logger=False, accelerator="cpu", enable_progress_bar=False)
    trainer.strategy.connect(module)
    trainer.save_checkpoint(tmp_path / "it.ckpt")
    again = SequenceSolver.load_from_checkpoint(tmp_path / "it.ckpt").eval()
    assert torch.equal(again(batch()[0]), module(batch()[0]))
