"""The files that ``pebench new`` writes; ``<NAME>``, ``<CLASS>`` and ``<TITLE>`` stand for the user's name."""

ENCODING = '''\
"""<CLASS>: what your encoding does differently, and why that may be better."""

import torch
from torch import Tensor

from pebench import PositionalEncoding


class <CLASS>(PositionalEncoding):
    """One line on what it does; here, triangle waves that are added to the input."""

    # Declare what is true of it; `pebench verify` checks each line, and says which one is missing:
    # relative = True       a shift of all positions changes nothing
    # isotropic = True      exchanging rows and columns of a grid changes nothing
    # beyond = "refuses"    positions outside the trained extent: "goes on" (default), "clamps" or "refuses"
    # kv_cache = "needs more"   of a text that goes on, than a cache of keys and values; or "goes stale"
    # axes = (1,)           it serves text alone; (2,) images alone

    def prepare(self, positions: Tensor) -> Tensor:
        """Compute once what the hooks below need: here waves at positions (L, P), of shape (L, D)."""
        pairs = self.spec.d_model // (2 * self.spec.num_axes)
        steps = torch.arange(pairs, device=positions.device, dtype=torch.float32)
        wavelengths = 2 * torch.pi * 10000 ** (steps / pairs)
        turns = positions.unsqueeze(-1) / wavelengths  # (L, P, pairs)
        both = torch.stack((turns, turns - 0.25), dim=-1).flatten(1)
        return 3**0.5 * (1 - 4 * (both - both.round()).abs())  # of root mean square 1, as the content is

    # Keep one hook or more, and delete the others. Each returns what it was given, changed, in the same type.

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Change the input (B, L, D)."""
        return x + state.to(x.dtype)

    # def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    #     """Change queries and keys (B, H, L, K) of a layer."""
    #     return q, k

    # def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor | None:
    #     """Return a term of the attention logits that broadcasts to (B, H, L, L)."""
    #     return None
'''

ENCODING_TEST = '''\
"""Tests of <NAME>.py: every property that an encoding must have, in every kind of model that it serves."""

import pytest
from pebench.conformance import Bench, Subject, check, checks

from <NAME> import <CLASS>

SUBJECT = Subject(<CLASS>)


@pytest.mark.parametrize(
    ("item", "setting"), [pytest.param(*both, id=f"{both[0].name}, {both[1].name}") for both in checks(SUBJECT)]
)
def test_property(item, setting):
    check(item, Bench(SUBJECT, setting))
'''

TASK = '''\
"""<NAME>: the question that your task asks of an encoding."""

import torch

from pebench import Task
from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.data.base import Prepared
from pebench.data.text import LabelledTexts
from pebench.tasks import TEXT_CLASSIFICATION, Budget, with_smoke

SIZES = {"train": 4000, "val": 500, "test": 1000}


class <CLASS>Data(LabelledTexts):
    """Texts with labels; here, numbers from 2 to 9, labelled by the half with the larger sum."""

    title = "<TITLE>"

    def read(self) -> Prepared:
        """Return the tensors of every split: read your files here, or draw examples as this does."""
        noise, count = torch.Generator().manual_seed(0), sum(SIZES.values())
        # 0 is padding and 1 an unknown token. Equal texts must not stand in two splits.
        texts = torch.randint(2, self.vocab_size, (2 * count, self.max_len), generator=noise).unique(dim=0)
        texts = texts[torch.randperm(len(texts), generator=noise)]  # (texts, max_len)
        first, last = texts.unflatten(1, (2, -1)).sum(2).unbind(1)
        texts, labels = texts[first != last][:count], (first > last)[first != last][:count].long()
        tensors, start = {}, 0
        for name, size in SIZES.items():
            part = slice(start, start + size)
            tensors[f"{name}_tokens"] = texts[part].flatten().int()  # texts end to end
            tensors[f"{name}_lengths"] = torch.full((size,), self.max_len)
            tensors[f"{name}_labels"] = labels[part]
            start += size
        return Prepared(tensors, {})


def <NAME>(*, length: int = 16) -> Task:
    """Return the task. Options with a default can be set: --task '<NAME>:<NAME>(length=24)'."""
    budget = Budget(
        ModelConfig(d_model=32, num_layers=1, num_heads=2),
        DataConfig(max_len=length, vocab_size=10),
        TrainConfig(max_steps=400, batch_size=64, learning_rate=3e-3),
    )
    return Task(
        name="<TITLE>", summary="Which half of a text has the larger sum", kind=TEXT_CLASSIFICATION,
        data=<CLASS>Data, prepared_by=("max_len", "vocab_size"), num_classes=2, chance=0.5,
        splits="different texts of one generator: 4000 train, 500 validation, 1000 test",
        budgets=with_smoke(quick=budget),
    )  # fmt: skip
'''

TASK_TEST = '''\
"""Tests of <NAME>.py: every property that a task must have, of its data, its metric and its declarations."""

import pytest
from pebench.conformance.tasks import TASK_PROPERTIES, TaskBench, check_task

import <NAME>  # so that it is found from any folder

BENCH = TaskBench("<NAME>:<NAME>")


@pytest.mark.parametrize("item", TASK_PROPERTIES.values(), ids=lambda item: item.name)
def test_property(item):
    check_task(item, BENCH)
'''
