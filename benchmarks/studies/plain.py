"""The timed model twice: written by hand, which owes nothing to pebench or Lightning, and built by pebench."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.benchmarks.studies.workloads import (
    CHANNELS,
    PATCH,
    Tensors,
    Workload,
    make_tensors,
    mean_over_tokens,
    random_batch,
    valid_tokens,
)
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.base import SequenceModule
from pebench.models.counting import count_parameters


class PlainBlock(nn.Module):
    """Pre-norm attention and feed-forward layer."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map (B, L, D) to (B, L, D)."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)  # three of (B, L, D)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)  # (B, H, L, D / H)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))  # (B, L, H, D / H) to (B, L, D)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class PlainTransformer(nn.Module):
    """The model written by hand: embedding, added sinusoid, blocks, norm, output layer."""

    def __init__(self, work: Workload) -> None:
        super().__init__()
        self.work = work
        causal, side, half = work.kind == "lm", work.size // PATCH, work.width // 2
        self.blocks = nn.ModuleList(PlainBlock(work.width, work.heads, causal) for _ in range(work.depth))
        self.norm = nn.LayerNorm(work.width)
        self.input = input_layer(work)
        self.head = nn.Linear(work.width, work.outputs)
        index = torch.arange(work.positions)
        grid = torch.cat((sinusoid(index // side, half), sinusoid(index % side, half)), dim=1)
        self.register_buffer("position", grid if work.kind == "image" else sinusoid(index, work.width))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Map tokens (B, L) to logits (B, L, V); images (B, C, S, S), or tokens with lengths (B,), to (B, V)."""
        valid = None if lengths is None else valid_tokens(x, lengths)
        x = self.input(patches(x) if self.work.kind == "image" else x) + self.position
        for block in self.blocks:
            x = block(x, None if valid is None else valid[:, None, None, :])  # over heads and queries alike
        x = self.norm(x)
        return self.head(x if self.work.kind == "lm" else mean_over_tokens(x, valid))

    def loss(self, batch: Tensors) -> Tensor:
        """Return the mean cross-entropy."""
        return F.cross_entropy(self(*batch[:-1]).flatten(0, -2), batch[-1].flatten())


def input_layer(work: Workload) -> nn.Module:
    """Return the layer that makes vectors of patches or tokens."""
    image = work.kind == "image"
    return nn.Linear(CHANNELS * PATCH**2, work.width) if image else nn.Embedding(work.vocabulary, work.width)


def patches(images: Tensor) -> Tensor:
    """Cut images (B, C, S, S) into patches (B, L, C * PATCH * PATCH)."""
    return F.unfold(images, PATCH, stride=PATCH).transpose(1, 2)


def sinusoid(at: Tensor, width: int) -> Tensor:
    """Return sines and cosines (L, width) of positions (L,), side by side, of root mean square 1."""
    angles = at[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)  # (L, width / 2)
    return (2**0.5 * torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)).float()


def make_module(work: Workload) -> SequenceModule:
    """Build the same model by pebench."""
    shape: dict[str, Any] = {"d_model": work.width, "num_layers": work.depth, "num_heads": work.heads}
    if work.kind == "lm":
        return LanguageModel("add", vocab_size=work.outputs, max_len=work.size, **shape)
    if work.kind == "text":
        sizes = {"vocab_size": work.words, "max_len": work.size, "num_classes": work.outputs}
        return TextClassifier("add", **sizes, **shape)
    return ViT("add", image_size=work.size, patch_size=PATCH, channels=CHANNELS, **shape)


def disagreement(work: Workload) -> float:
    """Return the largest difference between the logits of the two models with the same random weights.

    Raises:
        RuntimeError: If they have different numbers of parameters.
    """
    torch.manual_seed(0)
    plain, module = PlainTransformer(work), make_module(work)
    if count_parameters(plain) != count_parameters(module):
        raise RuntimeError(
            f"{work.name}: {count_parameters(plain)} parameters by hand, {count_parameters(module)} in pebench"
        )
    with torch.no_grad():
        for ours, theirs in zip(module.parameters(), plain.parameters(), strict=True):  # in the same order
            theirs.copy_(ours.add_(torch.randn_like(ours), alpha=0.05))  # what starts at 0 must count too
        if work.kind != "image":
            plain.input.weight *= work.width**0.5  # pebench scales its token table on use
        batch = random_batch(work, make_tensors(work, work.batch), torch.device("cpu"))
        inputs = [part[:2] for part in batch[:-1]]
        return float((plain(*inputs) - module(*inputs)).abs().max())
