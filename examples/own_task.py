"""From a new task to its row in a table, by these commands in this folder.

pebench verify own_task:first_or_last
pebench run --task own_task:first_or_last --pe add --pe none --seeds 3
pebench run --task 'own_task:first_or_last(length=24)' --pe add --pe none --seeds 3
"""

import torch

from pebench import Task
from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.data.base import Prepared
from pebench.data.text import LabelledTexts
from pebench.tasks import TEXT_CLASSIFICATION, Budget, with_smoke

SIZES = {"train": 4000, "val": 500, "test": 1000}


class FirstOrLast(LabelledTexts):
    """Texts of the numbers 2 to 9, labelled by the half with the larger sum: a bag of tokens cannot have it."""

    title = "first-or-last"

    def read(self) -> Prepared:
        """Draw different texts and deal them out to the splits."""
        noise, count = torch.Generator().manual_seed(0), sum(SIZES.values())
        texts = torch.randint(2, self.vocab_size, (2 * count, self.max_len), generator=noise).unique(dim=0)
        texts = texts[torch.randperm(len(texts), generator=noise)]  # (texts, max_len)
        first, last = texts.unflatten(1, (2, -1)).sum(2).unbind(1)  # (texts,) each
        texts, labels = texts[first != last][:count], (first > last)[first != last][:count].long()
        tensors, start = {}, 0
        for name, size in SIZES.items():
            part = slice(start, start + size)
            tensors[f"{name}_tokens"] = texts[part].flatten().int()  # texts end to end
            tensors[f"{name}_lengths"] = torch.full((size,), self.max_len)
            tensors[f"{name}_labels"] = labels[part]
            start += size
        return Prepared(tensors, {})


def first_or_last(*, length: int = 16) -> Task:
    """Return the task for texts of a length; tables name it ``own_task:first_or_last(length=24)``."""
    budget = Budget(
        ModelConfig(d_model=32, num_layers=1, num_heads=2),
        DataConfig(max_len=length, vocab_size=10),
        TrainConfig(max_steps=400, batch_size=64, learning_rate=3e-3),
    )
    return Task(
        name="first-or-last", summary="Which half of a text has the larger sum", kind=TEXT_CLASSIFICATION,
        data=FirstOrLast, prepared_by=("max_len", "vocab_size"), num_classes=2, chance=0.5,
        splits=f"different texts of one generator: {SIZES['train']} train, {SIZES['val']} validation, rest test",
        budgets=with_smoke(quick=budget),
    )  # fmt: skip
