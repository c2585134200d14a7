"""Models and inputs whose training step is timed: their sizes, and batches of random data."""

from dataclasses import dataclass

import torch
from torch import Tensor

CHANNELS, PATCH = 3, 4
Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class Workload:
    """A model, its input, and the number of steps that are timed together."""

    name: str
    kind: str  # "image": a classifier of images; "text": one of padded texts; "lm": a causal language model
    depth: int
    width: int
    heads: int
    batch: int
    size: int  # length in tokens, or the image's side in pixels
    outputs: int  # the language model's vocabulary, or classes
    steps: int  # timed steps of a block on a CPU
    words: int = 0  # vocabulary of the padded texts

    @property
    def vocabulary(self) -> int:
        """Number of tokens in the vocabulary."""
        return self.words or self.outputs

    @property
    def positions(self) -> int:
        """Number of positions: tokens, or patches of an image."""
        return (self.size // PATCH) ** 2 if self.kind == "image" else self.size


WORKLOADS = (
    Workload("W1", "image", depth=6, width=192, heads=3, batch=128, size=32, outputs=10, steps=4),
    Workload("W1s", "image", depth=4, width=96, heads=3, batch=128, size=32, outputs=10, steps=16),
    Workload("W2", "lm", depth=6, width=384, heads=6, batch=8, size=256, outputs=65, steps=4),
    Workload("W2c", "lm", depth=4, width=128, heads=4, batch=12, size=64, outputs=65, steps=100),
    Workload("W3", "text", depth=4, width=128, heads=4, batch=64, size=128, outputs=2, steps=8, words=16_384),
)


def make_tensors(work: Workload, examples: int) -> Tensors:
    """Return random data: a running text; images and labels; or padded texts, at least half full, lengths, labels."""
    random = torch.Generator().manual_seed(0)
    if work.kind == "lm":
        return (torch.randint(work.outputs, (examples + work.size,), generator=random),)
    labels = torch.randint(work.outputs, (examples,), generator=random)
    if work.kind == "text":
        lengths = torch.randint(work.size // 2, work.size + 1, (examples,), generator=random)
        return torch.randint(work.words, (examples, work.size), generator=random), lengths, labels
    return torch.randn(examples, CHANNELS, work.size, work.size, generator=random), labels


def random_batch(work: Workload, tensors: Tensors, device: torch.device) -> Tensors:
    """Gather a random batch of what `make_tensors` returned, as a hand-written loop does."""
    if work.kind == "lm":
        start = torch.randint(len(tensors[0]) - work.size, (work.batch, 1), device=device)
        window = tensors[0][start + torch.arange(work.size + 1, device=device)]  # (B, L + 1)
        return window[:, :-1], window[:, 1:]
    index = torch.randint(len(tensors[0]), (work.batch,), device=device)
    return tuple(tensor[index] for tensor in tensors)


def valid_tokens(tokens: Tensor, lengths: Tensor) -> Tensor:
    """Return a mask (B, L) which is False at padding."""
    return torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]


def mean_over_tokens(x: Tensor, valid: Tensor | None) -> Tensor:
    """Return the mean (B, D) of x (B, L, D) over the tokens that are no padding."""
    if valid is None:
        return x.mean(dim=1)
    weights = valid.unsqueeze(-1).to(x.dtype)  # (B, L, 1)
    return (x * weights).sum(dim=1) / weights.sum(dim=1)
