"""Products found half by half: those of every pair, as computed one by one or in one system."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.path import BLOCK, SHORT, lost_by_reflection
from pebench.encodings.wall import faded_products

from .helpers import noise


@pytest.mark.parametrize("length", [2, 11, 16])
def test_channels_that_fade_within_a_token_stay_finite(length):
    q, k, sizes = (noise(2, 2, length, 3, seed=seed) for seed in range(3))
    gates = (torch.tensor([-0.001, -0.3, -200.0]) * sizes.abs()).requires_grad_()
    total = gates.cumsum(-2)
    fade = (total.unsqueeze(-2) - total.unsqueeze(-3)).clamp(max=0).exp()
    expected = (q.unsqueeze(-2) * k.unsqueeze(-3) * fade).sum(-1).tril(-1)
    found = faded_products(q, k, gates)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(slope(found, gates), slope(expected, gates), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("length", [SHORT + 1, 5 * BLOCK])
def test_reflections_of_a_long_text_are_those_of_one_system(monkeypatch, length):
    q, k, w, beta = (noise(1, 2, length, 6, seed=seed).double() for seed in range(4))
    w = F.normalize(w, dim=-1).requires_grad_()
    in_blocks = lost_by_reflection(q, k, w, 2 * beta.sigmoid() * w)
    monkeypatch.setattr("pebench.encodings.path.SHORT", length)
    at_once = lost_by_reflection(q, k, w, 2 * beta.sigmoid() * w)
    torch.testing.assert_close(in_blocks, at_once)
    torch.testing.assert_close(slope(in_blocks, w), slope(at_once, w))


def slope(found: Tensor, at: Tensor) -> Tensor:
    return torch.autograd.grad(found.square().sum(), at)[0]
