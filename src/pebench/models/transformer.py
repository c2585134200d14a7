"""The trunk that every task shares: a pre-norm transformer that calls an encoding's hooks."""

import contextlib
import copy
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pebench.encodings.base import PositionalEncoding
from pebench.encodings.checks import Checked
from pebench.layers import Linear
from pebench.models.apart import Apart
from pebench.models.attention import KernelChoice, Masks, fastest_kernel, split_heads
from pebench.models.cache import ForwardCache
from pebench.models.long_attention import attend_with


class SelfAttention(nn.Module):
    """Multi-head self-attention in which an encoding changes queries, keys, logits, values and what is made of them.

    Args:
        d_model: Width D.
        num_heads: Heads H; must divide D.
        gain: Scale of the output projection at initialisation.
        layer: Index of the block, passed on to the encoding.

    Attributes:
        choose_kernel: Function of queries and mask that names the kernel to take.
    """

    choose_kernel: KernelChoice

    def __init__(self, d_model: int, num_heads: int, gain: float, layer: int) -> None:
        super().__init__()
        self.num_heads, self.layer = num_heads, layer
        self.qkv = Linear(d_model, 3 * d_model)
        self.out = Linear(d_model, d_model, gain)
        self.choose_kernel = fastest_kernel

    def forward(self, x: Tensor, encoding: PositionalEncoding | Checked | Apart, state: Any, masks: Masks) -> Tensor:
        """Mix the tokens: (B, L, D) to the same shape."""
        q, k, v = split_heads(self.qkv(x), self.num_heads)  # (B, H, L, K)
        scale = q.shape[-1] ** -0.5  # of the plain width: an encoding may widen queries and keys
        q, k = encoding.query_key(q, k, x, state, self.layer)
        bias = encoding.bias(q, k, x, state, self.layer)
        v = encoding.value(v, x, state, self.layer)
        mixed = attend_with(q, k, v, bias, masks, scale, self.choose_kernel)
        mixed = encoding.output(mixed, v, x, state, self.layer)
        output: Tensor = self.out(mixed.transpose(1, 2).flatten(2))  # (B, H, L, K) to (B, L, H, K) to (B, L, D)
        return output


class Block(nn.Module):
    """Attention and a feed-forward layer, each after a norm and beside a residual connection.

    Args:
        d_model: Width D.
        num_heads: Heads H.
        d_ff: Width of the feed-forward layer.
        dropout: Probability of dropping a channel of a branch's output.
        gain: Scale at initialisation of the two projections that write to the residual stream.
        layer: Index of the block.
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float, gain: float, layer: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = SelfAttention(d_model, num_heads, gain, layer)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(Linear(d_model, d_ff), nn.GELU(), Linear(d_ff, d_model, gain))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, encoding: PositionalEncoding | Checked | Apart, state: Any, masks: Masks) -> Tensor:
        """Mix tokens, then channels: (B, L, D) to the same shape."""
        x = x + self.dropout(self.attention(self.attention_norm(x), encoding, state, masks))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class Given(NamedTuple):
    """A batch without its content, as blocks are given it.

    Args:
        encoding: The encoding, or what stands in for it.
        prepared: Outcome of its `prepare` for the positions.
        masks: Masks of padding and of the future.
    """

    encoding: PositionalEncoding | Checked | Apart
    prepared: Any
    masks: Masks


class Transformer(nn.Module):
    """Pre-norm transformer around one positional encoding.

    Args:
        encoding: Built for this model; its spec gives width, heads, layers and causality.
        d_ff: Width of the feed-forward layer; ``None`` means ``4 * d_model``.
        dropout: Probability of dropping a channel.

    Shape:
        content (B, L, encoding.content_width), positions (L, P) or (B, L, P), valid (B, L), documents (B, L) to
        (B, L, D).

    Attributes:
        uncompiled: Passes that ran without a graph since `compile`.
    """

    _compiled: Callable[..., Tensor] | None = None
    uncompiled = 0

    def __init__(self, encoding: PositionalEncoding, d_ff: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        spec = encoding.spec
        gain = (2 * max(1, spec.num_layers)) ** -0.5  # keeps the residual stream's scale over depth, as GPT-2 does
        self.encoding, self.d_model = encoding, encoding.model_width
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(self.d_model, spec.num_heads, d_ff or 4 * spec.d_model, dropout, gain, layer)
            for layer in range(spec.num_layers)
        )
        self.norm = nn.LayerNorm(self.d_model)
        self.cache = ForwardCache(spec.max_len)

    def forward(
        self,
        content: Tensor,
        positions: Tensor | None = None,
        valid: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Mix the tokens.

        Args:
            content: (B, L, encoding.content_width), of root mean square 1 at initialisation.
            positions: (L, P); by default 0, 1, 2, ... for text and the trained grid in row-major order for
                patches. Tables are kept while the same tensor is passed and nobody writes in it. Or (B, L, P), each
                row's own, which are prepared anew in every pass.
            valid: (B, L), False at padding; None where there is none.
            documents: (B, L) integers, the text that each token of a row is of, negative at padding: every text is
                treated as if it were alone, with its own positions 0, 1, 2, ... by default.

        Raises:
            ValueError: For a tensor of another shape, or if every token is padding.
        """
        try:
            given = self._given(content, positions, valid, documents)
            if self._compiled is not None and not isinstance(given.encoding, Apart):
                output: Tensor = self._compiled(content, given.prepared, valid)
            else:
                output = self._mix(content, given.prepared, valid, given.encoding, given.masks)
        finally:  # a pass that a hook or the memory breaks off leaves nothing either
            self.cache.end_pass(content.shape[1])
        # Only now: a pass that a hook broke off is checked again.
        lengths = given.encoding.lengths if isinstance(given.encoding, Apart) else {content.shape[1]}
        self.cache.checked_lengths |= lengths
        if torch.compiler.is_exporting():
            self.cache = copy.copy(self.cache)  # an empty one: what a trace leaves has no numbers
        return output

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile what follows the preparation of positions, once for all lengths.

        Positions are prepared once for many passes, by code that looks at their numbers, and so outside of the graph.
        All of the rest is one graph, whose sizes are symbols; a hook that cannot be traced is an error, and so is a
        model that would need more graphs than PyTorch's limit: neither runs uncompiled in silence. Only batches of
        texts with positions of their own are mixed without it, and counted in `uncompiled`.

        Args:
            args: Positional arguments of ``torch.compile``.
            options: Options of ``torch.compile``, by default ``fullgraph=True, dynamic=True``.
        """
        # Each model has code of its own, as PyTorch counts the graphs of a piece of code: a process has many models.
        usual = type(self)._mix
        own = types.FunctionType(usual.__code__.replace(), usual.__globals__, usual.__name__, usual.__defaults__)
        mix = types.MethodType(own, self)
        self._compiled = torch.compile(mix, *args, **({"fullgraph": True, "dynamic": True} | options))

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle without compiled code, as every module of PyTorch."""
        return {**super().__getstate__(), "_compiled": None, "uncompiled": 0}

    def _mix(
        self,
        content: Tensor,
        prepared: Any,
        valid: Tensor | None,
        encoding: PositionalEncoding | Checked | Apart | None = None,
        masks: Masks | None = None,
    ) -> Tensor:
        """Mix the tokens, given what the encoding prepared of their positions."""
        if not torch.compiler.is_compiling() and self._compiled is not None:
            self.uncompiled += 1
        encoding = encoding or self.encoding
        # In a graph masks are of the pass: one that was kept would be another input, and another graph.
        masks = masks or Masks(self.encoding.spec.causal, content.shape[1], content.device, valid)
        # With gradients: here an encoding's weights come in.
        state = encoding(prepared)
        if valid is not None:
            state = encoding.padded(state, valid)
        x = self.dropout(encoding.embed(content, state))
        for layer, block in enumerate(self.blocks):
            x = encoding.residual(x, valid, state, layer)
            x = block(x, encoding, state, masks)
        mixed: Tensor = self.norm(x)
        return mixed

    @torch.compiler.disable(recursive=True)  # type: ignore[untyped-decorator]
    def _given(
        self, content: Tensor, positions: Tensor | None, valid: Tensor | None, documents: Tensor | None
    ) -> Given:
        """Return the encoding for a batch, what it prepared, and the masks.

        Raises:
            RuntimeError: In an export, where the model has not been called with tokens of this length before.
        """
        if content.ndim != 3 or not content.shape[1]:
            raise ValueError(f"expected content of shape (rows, tokens, channels), got {tuple(content.shape)}")
        _check_shape("valid", valid, content.shape[:2], "(rows, tokens)")
        length, device, causal = content.shape[1], content.device, self.encoding.spec.causal
        rows = positions is not None and positions.ndim == 3
        if documents is not None or rows:
            documents = self._documents(content, valid, documents)
            if positions is not None:
                self._check_positions(positions, content.shape[:2] if rows else (length,))
            elif self.encoding.spec.num_axes > 1:
                positions = self._default_positions(length, device)  # what is left of a grid keeps its cells
            apart = Apart(self._checked_encoding, documents, positions)
            return Given(apart, None, Masks(causal, length, device, None, documents))
        if torch.compiler.is_exporting() and length not in self.cache.checked_lengths:
            raise RuntimeError(
                f"call the model with an example of {length} tokens before torch.export: "
                "what its encoding prepares of positions is taken from there"
            )
        positions = self._default_positions(length, device) if positions is None else positions
        self._check_positions(positions, (length,))
        encoding = self._checked_encoding(length)
        # Where `place` draws new positions it returns another tensor, and they are prepared anew.
        with torch.inference_mode(False), torch.no_grad():  # what is kept must serve training too
            prepared = self.cache.prepared(self.encoding, encoding.place(positions))
        return Given(encoding, prepared, self.cache.masks(causal, length, device, valid))

    def _documents(self, content: Tensor, valid: Tensor | None, documents: Tensor | None) -> Tensor:
        """Return the text that each token is of, -1 at padding: (B, L)."""
        whole = torch.zeros(content.shape[:2], dtype=torch.long, device=content.device)
        documents = whole if documents is None else documents
        if documents.shape != whole.shape or documents.is_floating_point():
            raise ValueError(
                f"expected documents of shape {tuple(whole.shape)} (rows, tokens) and integers, "
                f"got {tuple(documents.shape)} and {documents.dtype}"
            )
        documents = documents.clamp(min=-1)  # padding is one text, whatever it is called
        return documents if valid is None else documents.masked_fill(~valid, -1)

    def _default_positions(self, length: int, device: torch.device) -> Tensor:
        spec = self.encoding.spec
        # A text may have any length; how many patches there are does not tell rows from columns.
        extent = (length,) if spec.num_axes == 1 else spec.extent
        positions = self.cache.grid(extent, device)
        if len(positions) != length:
            raise ValueError(f"expected {len(positions)} tokens for the grid {extent}, got {length}")
        return positions

    def _check_positions(self, positions: Tensor, sizes: tuple[int, ...]) -> None:
        axes = "(rows, tokens, axes)" if len(sizes) == 2 else "(tokens, axes)"
        _check_shape("positions", positions, (*sizes, self.encoding.spec.num_axes), axes)

    def _checked_encoding(self, length: int) -> PositionalEncoding | Checked:
        """Return the encoding; at the first pass with each length one that is checked, for later passes to be fast."""
        # A check looks at values, which a graph does not have while it is traced.
        known = length in self.cache.checked_lengths or torch.compiler.is_compiling()
        return self.encoding if known else Checked(self.encoding)

    @contextlib.contextmanager
    def using_kernel(self, kernel: str | KernelChoice) -> Iterator[None]:
        """Take another attention kernel than the fastest one inside a ``with`` block.

        Args:
            kernel: ``"sdpa"`` or ``"matmul"``; or ``"blocks"`` or ``"flex"``, which biases of long texts alone have; or
                a function that returns one of them, called in every layer with queries (B, H, L, K), and mask or bias.
        """
        choose = (lambda q, mask: kernel) if isinstance(kernel, str) else kernel
        layers = [module for module in self.modules() if isinstance(module, SelfAttention)]
        usual = [layer.choose_kernel for layer in layers]
        try:
            for layer in layers:
                layer.choose_kernel = choose
            yield
        finally:
            for layer, chooser in zip(layers, usual, strict=True):
                layer.choose_kernel = chooser


def _check_shape(name: str, found: Tensor | None, expected: tuple[int, ...], axes: str) -> None:
    if found is not None and found.shape != expected:
        raise ValueError(f"expected {name} of shape {tuple(expected)} {axes}, got {tuple(found.shape)}")
