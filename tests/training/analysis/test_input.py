"""Measures at the input, on sets of vectors whose answer is known."""

import math

import pytest
import torch

from pebench.training.analysis.collisions import KINDS, collisions, kinds_of_content, measure_collisions
from pebench.training.analysis.energies import energies, participation_ratio, principal_directions, stable_rank
from pebench.training.analysis.shift import fit_shift, r_squared, shift
from pebench.training.analysis.subspaces import alignment, subspaces
from tests.training.analysis.models import captured, made_of

GENERATOR = torch.Generator()


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR.manual_seed(seed))


def in_channels(rows: torch.Tensor, first: int, width: int) -> torch.Tensor:
    return torch.nn.functional.pad(rows, (first, width - first - rows.shape[-1]))


def test_disjoint_channels_do_not_overlap() -> None:
    seen = made_of(in_channels(normal(8, 32, 6), 0, 8), in_channels(normal(32, 2, seed=1), 6, 8))
    found, angle = energies(seen), subspaces(seen)
    assert found["overlap"] == pytest.approx(0.0, abs=1e-12)
    assert found["inside"] == pytest.approx(0.0, abs=1e-12)
    assert angle["alignment"] == pytest.approx(0.0, abs=1e-12)
    assert angle["angles"] == pytest.approx(0.0, abs=1e-12)


def test_energy_by_channel_puts_those_of_position_first() -> None:
    content = torch.tensor([[[0.0, 3.0, 1.0], [0.0, -3.0, -1.0]]]).repeat(4, 1, 1)
    position = torch.tensor([[2.0, 0.0, 1.0], [-2.0, 0.0, -1.0]])
    found = energies(made_of(content, position))
    assert found["position_channels"] == pytest.approx([0.8, 0.2, 0.0])
    assert found["content_channels"] == pytest.approx([0.0, 0.1, 0.9])
    # position's one direction is (2, 0, 1) / √5, which has (1 / √5)² of content's 10
    assert (found["position_rank"], found["inside"], found["chance"]) == pytest.approx((1, 0.02, 1 / 3))


def test_the_angle_of_two_directions_is_that_between_them() -> None:
    position = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    content = torch.tensor([[[0.5, 0.75**0.5, 0.0], [-0.5, -(0.75**0.5), 0.0]]])  # 60 degrees away
    found = subspaces(made_of(content, position))
    assert found["largest_cosine"] == pytest.approx(0.5)
    assert (found["angles"], found["angles_chance"]) == pytest.approx((0.25, 1 / 3))
    assert found["alignment"] == pytest.approx(3 * 0.25)


def test_equal_channels_overlap_wholly() -> None:
    position = normal(32, 8)
    found = energies(made_of(position.repeat(4, 1)[None], position.repeat(4, 1)))
    assert found["overlap"] == pytest.approx(1.0)


def test_rotated_subspaces_are_found_where_channels_are_shared() -> None:
    rotation = torch.linalg.qr(normal(8, 8, seed=2)).Q
    content = in_channels(normal(8, 32, 6), 0, 8) @ rotation
    position = in_channels(normal(32, 2, seed=1), 6, 8) @ rotation
    found = energies(made_of(content, position))
    assert found["overlap"] > 0.5  # every channel has both
    assert found["inside"] == pytest.approx(0.0, abs=1e-10)  # and yet they are apart


def test_random_directions_are_aligned_as_chance_has_it() -> None:
    assert alignment(normal(4000, 16), normal(4000, 16, seed=1)) == pytest.approx(1.0, abs=0.05)
    assert alignment(torch.eye(2)[:1], torch.eye(2)[:1]) == pytest.approx(2.0)


def test_ranks_of_known_spectra() -> None:
    assert stable_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0]))) == pytest.approx(1.5)
    assert participation_ratio(torch.eye(5)) == pytest.approx(5.0)
    assert participation_ratio(torch.diag(torch.tensor([1.0, 0.0]))) == pytest.approx(1.0)
    rows = torch.diag(torch.tensor([3.0, 1.0, 0.1]))
    assert principal_directions(rows, share=0.85).shape == (3, 1)
    assert principal_directions(rows, share=0.95).shape == (3, 2)


def test_the_constant_part_of_a_sinusoid() -> None:
    found = energies(captured("add"))
    position = captured("add").position.double()
    expected = position.mean(0).square().sum() / position.square().sum(1).mean()
    assert found["constant"] == pytest.approx(float(expected))
    assert 0.3 < found["constant"] < 0.9


def test_a_position_without_tokens_has_no_share_in_any_figure() -> None:
    content, position = normal(8, 6, 8), normal(6, 8, seed=1)
    valid = torch.ones(8, 6, dtype=torch.bool)
    valid[:, 4:] = False
    seen, shorter = made_of(content, position, valid=valid), made_of(content[:, :4], position[:4])
    for measure in (energies, subspaces):
        found, expected = measure(seen), measure(shorter)
        assert {name: pytest.approx(value) for name, value in expected.items()} == found
    louder = position.clone()
    louder[4:] *= 100
    assert energies(made_of(content, louder, valid=valid))["constant"] == pytest.approx(energies(seen)["constant"])


def test_a_linear_motion_is_shifted_by_a_linear_map() -> None:
    angle = 0.3
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]).double()
    rows = [torch.tensor([1.0, 0.5]).double()]
    for _ in range(63):
        rows.append(turn @ rows[-1])
    held_out, in_sample = fit_shift(torch.stack(rows), 4)
    assert (held_out, in_sample) == (pytest.approx(1.0), pytest.approx(1.0))


def test_random_vectors_are_fitted_in_sample_alone() -> None:
    held_out, in_sample = fit_shift(normal(64, 64).double(), 1)
    assert in_sample == pytest.approx(1.0)
    assert held_out < 0.0


def test_the_mean_of_what_is_to_be_predicted_explains_nothing_of_it() -> None:
    target = torch.tensor([[9.0, 1.0], [11.0, 3.0]])
    assert r_squared(target.mean(0).expand(2, -1), target) == 0.0
    assert r_squared(torch.tensor([[9.0, 1.0], [11.0, 1.0]]), target) == 0.0  # 4 of 4 are off, over both channels


def test_shifts_of_a_model() -> None:
    found = shift(captured("add"))
    assert found["held_out"][0] > 0.99
    # ten positions have eight pairs two apart, and no eight that are further apart
    assert [value is None for value in found["held_out"]] == [False, False, True, True, True, True]
    assert shift(captured("rope")) is None


def test_a_sum_built_to_collide_has_no_margin() -> None:
    position = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    first = torch.tensor([[0.0, 2.0, 0.0]])
    content = torch.cat((first, first + position[1], torch.tensor([[0.0, 0.0, 9.0]])))
    found = measure_collisions(content, position, queries=200)
    assert found["smallest"] == pytest.approx(0.0, abs=1e-6)


def test_small_positions_leave_words_apart() -> None:
    content = 10 * torch.eye(4)
    found = measure_collisions(content, 0.1 * normal(6, 4), queries=100)
    assert found["same_content"] == 1.0
    assert found["margin"] == pytest.approx(math.sqrt(2), abs=0.05)
    assert found["margin_alone"] == pytest.approx(math.sqrt(2))


def test_large_positions_bring_other_words_nearest() -> None:
    found = measure_collisions(0.1 * torch.eye(4), 10 * normal(6, 4), queries=100)
    assert found["same_content"] == 0.0


def test_patches_are_drawn_alike_whatever_channel_comes_first() -> None:
    rows = normal(1, 8192, 4) * torch.tensor([1.0, 2.0, 3.0, 4.0])
    content = rows.reshape(64, 128, 4)
    found = kinds_of_content(made_of(content, None))
    turned = kinds_of_content(made_of(content.flip(-1), None)).flip(-1)
    assert len(found) == KINDS
    assert {tuple(row.tolist()) for row in found} == {tuple(row.tolist()) for row in turned}
    assert float(found.norm(dim=1).mean()) == pytest.approx(float(rows.norm(dim=-1).mean()), rel=0.03)


def test_equal_patches_do_not_count_as_other_content() -> None:
    content = normal(4, 8, 3).repeat(1, 2, 1)
    assert len(kinds_of_content(made_of(content, None))) == 32


def test_collisions_of_a_model_are_of_different_tokens() -> None:
    found = collisions(captured("concat"))
    assert found["margin"] == pytest.approx(found["margin_alone"])  # position's channels are equal at one position
    assert collisions(captured("rope")) is None


def test_of_too_many_tokens_the_most_frequent_ones_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebench.training.analysis.collisions.KINDS", 2)
    words = torch.tensor([[2, 0, 1, 1], [2, 1, 2, 2]])
    found = kinds_of_content(made_of(torch.eye(3)[words], None, words))
    assert found.tolist() == torch.eye(3)[[2, 1]].tolist()


def test_late_positions_are_not_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pebench.training.analysis.collisions.NEAR_POSITIONS", 4)
    content, position = normal(4, 8, 4), normal(8, 4, seed=1)
    late, near = position.clone(), position.clone()
    late[4:], near[:4] = 0.0, 0.0
    found = collisions(made_of(content, position))
    assert found == collisions(made_of(content, late))
    assert found != collisions(made_of(content, near))
