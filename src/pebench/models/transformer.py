"""The trunk that every task shares: a pre-norm transformer that calls an encoding's hooks."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import PositionalEncoding, grid_positions
from pebench.encodings.checks import Checked
from pebench.layers import Linear

HIDDEN = -1e30
"""Logit of a key that is padding: its weight is 0, but a row of nothing else is still no division of 0 by 0."""


def attention_kernel(q: Tensor, mask: Tensor | None) -> str:
    """Which way of computing attention is fastest: ``"sdpa"`` or ``"matmul"``.

    On a CPU, PyTorch's fused kernel is slow in 16 bit and has no fast path for a mask that needs a
    gradient; plain matrix products beat it there. On CUDA the fused kernel always wins.
    """
    if q.device.type == "cpu" and (q.dtype == torch.bfloat16 or (mask is not None and mask.requires_grad)):
        return "matmul"
    return "sdpa"


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """Softmax attention.

    Args:
        q: (B, H, L, K).
        k: (B, H, L, K).
        v: (B, H, L, V).
        mask: Added to the scaled logits, broadcastable to (B, H, L, L). It holds the causal mask already.
        causal: Mask the future; only where `mask` is None.
        scale: What q·k is multiplied by.

    Returns:
        (B, H, L, V).
    """
    if attention_kernel(q, mask) == "sdpa":
        missing = q.shape[-1] - v.shape[-1]
        if missing > 0 and q.device.type == "cpu":  # its fused kernel takes heads of one width alone
            return attend(q, k, F.pad(v, (0, missing)), mask, causal, scale)[..., :-missing]
        mask = None if mask is None else mask.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)
    logits = q @ k.transpose(-2, -1)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) * scale  # 16 bits are too few for a softmax
    if causal:
        mask = causal_mask(q.shape[-2], q.device)
    if mask is not None:
        logits = logits + mask
    return logits.softmax(dim=-1).to(v.dtype) @ v


def causal_mask(length: int, device: torch.device) -> Tensor:
    """(L, L): zero where a row may look, minus infinity in its future."""
    return torch.full((length, length), float("-inf"), device=device).triu(1)


class Masks:
    """What hides keys, padding and the future; folded into a bias once, however many layers and steps share it.

    Args:
        causal: Hide the future.
        length: Tokens L.
        device: Of the masks.
        valid: (B, L), False at padding; None where there is none.
    """

    def __init__(self, causal: bool, length: int, device: torch.device, valid: Tensor | None) -> None:
        self.causal, self.length, self.device = causal, length, device
        self.padding: Tensor | None = None
        if valid is not None:
            padding = torch.zeros(valid.shape, device=device).masked_fill(~valid, HIDDEN)
            self.padding = padding[:, None, None, :]
        self._future: Tensor | None = None
        self._last: tuple[Tensor | None, Tensor | None] = (None, None)

    def fold(self, bias: Tensor | None) -> Tensor | None:
        """What is added to the logits; None where nothing is but what ``is_causal`` hides."""
        if bias is None and self.padding is None:
            return None
        if self._last[1] is None or bias is not self._last[0]:
            with torch.inference_mode(False):  # what is kept must serve training too
                # (H, L, L) would do, but PyTorch's fused kernel takes two dimensions or four
                whole = bias[None] if bias is not None and bias.ndim == 3 else bias
                terms = [term for term in (whole, self.padding, self.future) if term is not None]
                self._last = bias, sum(terms[1:], start=terms[0])
        return self._last[1]

    @property
    def future(self) -> Tensor | None:
        """The causal mask, made when first asked for."""
        if self.causal and self._future is None:
            self._future = causal_mask(self.length, self.device)
        return self._future

    def forget(self) -> None:
        """Let go of what has been folded with a gradient: the next step has another."""
        if self._last[1] is not None and self._last[1].requires_grad:
            self._last = (None, None)


class SelfAttention(nn.Module):
    """Multi-head self-attention with a place for an encoding in it.

    Args:
        d_model: Width D.
        num_heads: Heads H; must divide D.
        causal: Whether tokens see only themselves and the past.
        gain: Of the output projection at initialisation.
        layer: Index of the block, handed to the encoding.
    """

    def __init__(self, d_model: int, num_heads: int, causal: bool, gain: float, layer: int) -> None:
        super().__init__()
        self.num_heads, self.causal, self.layer = num_heads, causal, layer
        self.qkv = Linear(d_model, 3 * d_model)
        self.out = Linear(d_model, d_model, gain)

    def forward(self, x: Tensor, encoding: PositionalEncoding | Checked, state: Any, masks: Masks) -> Tensor:
        """(B, L, D) to (B, L, D)."""
        length, width = x.shape[1:]
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind(0)  # (B, H, L, K) each
        scale = q.shape[-1] ** -0.5
        q, k = encoding.query_key(q, k, x, state, self.layer)
        bias = encoding.bias(q, k, x, state, self.layer)
        mask = masks.fold(bias)
        mixed = attend(q, k, v, mask, self.causal and mask is None, scale)
        output: Tensor = self.out(mixed.transpose(1, 2).reshape(x.shape[0], length, width))
        return output


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm and beside a residual.

    Args:
        d_model: Width D.
        num_heads: Heads H.
        d_ff: Width of the feed-forward layer.
        dropout: Probability of dropping a channel of a branch's output.
        causal: Whether attention is.
        gain: Of the two projections that write to the residual stream.
        layer: Index of the block.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float, causal: bool, gain: float, layer: int
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = SelfAttention(d_model, num_heads, causal, gain, layer)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(Linear(d_model, d_ff), nn.GELU(), Linear(d_ff, d_model, gain))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, encoding: PositionalEncoding | Checked, state: Any, masks: Masks) -> Tensor:
        """(B, L, D) to (B, L, D)."""
        x = x + self.dropout(self.attention(self.attention_norm(x), encoding, state, masks))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Transformer(nn.Module):
    """Pre-norm transformer around one positional encoding.

    Args:
        encoding: Built for this model; its spec gives width, heads, layers and causality.
        d_ff: Width of the feed-forward layer; ``None`` means ``4 * d_model``.
        dropout: Probability of dropping a channel.

    Shape:
        content (B, L, encoding.content_width), positions (L, P), valid (B, L) to (B, L, D).
    """

    def __init__(self, encoding: PositionalEncoding, d_ff: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        spec = encoding.spec
        gain = (2 * max(1, spec.num_layers)) ** -0.5  # keeps the residual stream's scale over depth, as GPT-2 does
        self.encoding, self.d_model = encoding, encoding.model_width
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(self.d_model, spec.num_heads, d_ff or 4 * spec.d_model, dropout, spec.causal, gain, layer)
            for layer in range(spec.num_layers)
        )
        self.norm = nn.LayerNorm(self.d_model)
        self._cells: dict[tuple[tuple[int, ...], torch.device], Tensor] = {}
        self._prepared: tuple[Tensor | None, Any] = (None, None)
        self._masks: Masks | None = None
        self._checked = set[int]()  # lengths with which the encoding's hooks returned what they must

    def forward(self, content: Tensor, positions: Tensor | None = None, valid: Tensor | None = None) -> Tensor:
        """Mix the tokens.

        Args:
            content: (B, L, encoding.content_width), of root mean square 1 at initialisation.
            positions: (L, P); by default 0, 1, 2, ... for text and the trained grid in row-major order for
                patches. Tables are kept while the same tensor is passed, so make a new one to change it.
            valid: (B, L), False at padding; None where there is none.
        """
        if positions is None:
            positions = self._positions(content.shape[1], content.device)
        encoding = self._encoding(content.shape[1])
        state = self._prepare(encoding, positions, content.shape[1])
        masks = self._masks_for(content, valid)
        x = self.dropout(encoding.embed(content, state))
        for layer, block in enumerate(self.blocks):
            x = block(encoding.residual(x, valid, state, layer), encoding, state, masks)
        masks.forget()
        self._checked.add(content.shape[1])
        output: Tensor = self.norm(x)
        return output

    def _positions(self, length: int, device: torch.device) -> Tensor:
        extent = (length,) if self.encoding.spec.num_axes == 1 else self.encoding.spec.extent
        positions = self.cells_of(extent, device)
        if len(positions) != length:
            raise ValueError(f"expected {len(positions)} tokens for the grid {extent}, got {length}")
        return positions

    def cells_of(self, extent: tuple[int, ...], device: torch.device) -> Tensor:
        """The positions (L, P) of a text or grid of some size, the same tensor each time."""
        key = (extent, device)
        if key not in self._cells:
            with torch.inference_mode(False):  # an inference tensor could not serve training later
                self._cells[key] = grid_positions(extent, device)
        return self._cells[key]

    def _masks_for(self, content: Tensor, valid: Tensor | None) -> Masks:
        """The masks of the last forward pass, if they are the same."""
        causal, length, device = self.encoding.spec.causal, content.shape[1], content.device
        if valid is not None:
            return Masks(causal, length, device, valid)
        if self._masks is None or (self._masks.length, self._masks.device) != (length, device):
            self._masks = Masks(causal, length, device, None)
        return self._masks

    def _encoding(self, length: int) -> PositionalEncoding | Checked:
        """The encoding; at the first pass with each length one that is checked, so that no other pass pays for it."""
        known = length in self._checked or torch.compiler.is_compiling()
        return self.encoding if known else Checked(self.encoding)

    def _prepare(self, encoding: PositionalEncoding | Checked, positions: Tensor, length: int) -> Any:
        with torch.inference_mode(False), torch.no_grad():
            if positions.shape != (length, self.encoding.spec.num_axes):
                raise ValueError(
                    f"expected positions of shape {(length, self.encoding.spec.num_axes)} (tokens, axes), "
                    f"got {tuple(positions.shape)}"
                )
            positions = encoding.place(positions)
            if positions is not self._prepared[0]:
                self._prepared = (positions, self.encoding.prepare(positions.float()))
        return encoding(self._prepared[1])
