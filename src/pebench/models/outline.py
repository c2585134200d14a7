"""A model without its training: what is counted before anything runs. It needs no data and no Lightning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding, query_width
from pebench.layers import Linear, PatchEmbedding, SegmentedEmbedding, TokenEmbedding, tied_logits
from pebench.models.attention import Masks
from pebench.models.counting import count_flops
from pebench.models.transformer import Transformer


@dataclass(frozen=True)
class Ends:
    """Sizes of a model's input and output layer.

    Args:
        vocab_size: Tokens; 0 for images.
        channels: Colours of an image; 0 for text.
        patch_size: Side of a patch in pixels.
        outputs: Classes, or tokens to predict.
        pooled: True if the output layer sees the mean of all tokens, False if it sees each token.
        tied: True if the output layer is the token table.
        segments: How segments enter, as in `pebench.config.ModelConfig`; their look-up counts nothing, whichever token
            separates them.
    """

    vocab_size: int
    channels: int
    patch_size: int
    outputs: int
    pooled: bool
    tied: bool = False
    segments: str | None = None


class Outline(nn.Module):
    """Input layer, trunk and output layer of a run's model, by the names that its LightningModule gives them.

    Args:
        ends: Sizes of the input and the output layer.
        encoding: The run's encoding.
        d_ff: Width of the feed-forward layers; ``None`` means ``4 * d_model``.
    """

    def __init__(self, ends: Ends, encoding: PositionalEncoding, d_ff: int | None) -> None:
        super().__init__()
        self.trunk, width = Transformer(encoding, d_ff), encoding.content_width
        self.input: nn.Module
        if ends.channels:
            self.input = PatchEmbedding(ends.patch_size, ends.channels, width)
        elif ends.segments:
            self.input = SegmentedEmbedding(ends.vocab_size, width, ends.segments, separator=0)
        else:
            self.input = TokenEmbedding(ends.vocab_size, width)
        self.head = None if ends.tied else Linear(self.trunk.d_model, ends.outputs)

    def output(self, x: Tensor) -> Tensor:
        """Return the logits: (B, D) or (B, L, D), with outputs in place of channels."""
        if self.head is None:
            return tied_logits(x, cast(TokenEmbedding, self.input).table)
        logits: Tensor = self.head(x)
        return logits


class Blank(PositionalEncoding):
    """An encoding that does nothing but set widths: with it a model has the operations of its own layers alone.

    Args:
        spec: The model.
        widths: Width of the content, of the model, and of queries and keys in every layer.
    """

    blind = True

    def __init__(self, spec: EncodingSpec, widths: tuple[int, ...]) -> None:
        super().__init__(spec)
        self._content, self._model, *self.queries = widths

    @property
    def content_width(self) -> int:
        """Width in which the model embeds its tokens or patches."""
        return self._content

    @property
    def model_width(self) -> int:
        """Width of the model after the input."""
        return self._model

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Pad or cut queries and keys: (B, H, L, K) to (B, H, L, width)."""
        missing = self.queries[layer] - q.shape[-1]
        return F.pad(q, (0, missing)), F.pad(k, (0, missing))


def encoding_widths(encoding: PositionalEncoding) -> tuple[int, ...]:
    """Return an encoding's widths of the content, of the model, and of queries and keys in every layer.

    A hook that fails here is taken to leave queries as they are: it fails in its runs, whose records say so, and must
    not keep the others from theirs.
    """
    layers, usual = range(encoding.spec.num_layers), encoding.model_width // encoding.spec.num_heads
    try:
        queries: Sequence[int] = [query_width(encoding, layer) for layer in layers]
    except Exception:  # of any kind: the hook may be a user's
        queries = [usual for _ in layers]
    return (encoding.content_width, encoding.model_width, *queries)


def layer_flops(ends: Ends, spec: EncodingSpec, d_ff: int | None, widths: tuple[int, ...]) -> int:
    """Return the floating-point operations of a model's own layers, forward and backward, on one whole example.

    Each layer is counted on one or two tokens, and extrapolated, so that long examples take no memory. That is exact:
    the products of projections grow linearly with the number of tokens, those of attention quadratically.

    Args:
        ends: Sizes of the input and the output layer.
        spec: The model.
        d_ff: Width of the feed-forward layers; ``None`` means ``4 * d_model``.
        widths: Widths as `encoding_widths` returns them.
    """
    encoding = Blank(spec, widths)
    model = Outline(ends, encoding, d_ff)
    length, pooled = spec.max_len, _zeros(1, encoding.model_width)
    # sum() has a gradient of ones, so that backward runs, and no matrix product of its own.
    total = (1 if ends.pooled else length) * count_flops(lambda: model.output(pooled).sum())
    # A look-up of tokens is no matrix product, and counts nothing.
    if ends.channels:
        patch = _zeros(1, ends.channels, ends.patch_size, ends.patch_size).detach()  # pixels, without a gradient
        total += length * count_flops(lambda: model.input(patch).sum())
    by_width = dict[int, int]()  # layers with queries of the same width are the same
    with model.trunk.using_kernel("matmul"):  # the counter cannot look into the fused kernel
        for layer, width in enumerate(encoding.queries):
            if width not in by_width:
                by_width[width] = _block_flops(model.trunk.blocks[layer], encoding, length)
            total += by_width[width]
    return total


def _block_flops(block: nn.Module, encoding: Blank, length: int) -> int:
    """Return the operations of one block: f(L) = aL + bL², from f(1) and f(2)."""
    one, two = (_block_flops_at(block, encoding, tokens) for tokens in (1, 2))
    # f(2) - 2 f(1) = (2a + 4b) - (2a + 2b) = 2b, which is even: nothing is rounded.
    quadratic = (two - 2 * one) // 2
    linear = one - quadratic
    return linear * length + quadratic * length**2


def _block_flops_at(block: nn.Module, encoding: Blank, length: int) -> int:
    masks = Masks(encoding.spec.causal, length, torch.device("cpu"), None)
    x = _zeros(1, length, encoding.model_width)
    return count_flops(lambda: block(x, encoding, None, masks).sum())


def _zeros(*shape: int) -> Tensor:
    """Return zeros with a gradient, as every layer after the input has."""
    return torch.zeros(shape, dtype=torch.get_default_dtype(), requires_grad=True)  # as the outline's parameters have
