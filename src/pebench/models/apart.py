"""Texts that share a batch but not their positions: every hook is given each of them alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pebench.encodings.base import PositionalEncoding
from pebench.encodings.checks import Checked
from pebench.encodings.pairs import whole


@dataclass
class Alike:
    """Texts with the same positions, which hooks can be given as one batch.

    Args:
        tokens: (G, N), numbers of their tokens among all B·L of the batch.
        encoding: The encoding, or its stand-in that checks hooks.
        state: The encoding's state at their positions.
    """

    tokens: Tensor
    encoding: PositionalEncoding | Checked
    state: Any


class Apart:
    """Stands in for an encoding in a batch of texts with positions of their own.

    No hook knows of other texts or of padding: it is given the tokens of a text alone, whatever is beside them, and
    what it returns is put back in their place. Hence every encoding serves such batches, those that count tokens,
    look for neighbours or stretch with the length among them. Texts with the same positions go together, so the time
    grows with the number of different ones.

    Args:
        encoding: Function of a length that returns the encoding, or its stand-in that checks hooks.
        documents: (B, L), the text that each token of a row is of; negative at padding.
        positions: (L, P), or (B, L, P), of which those of padding are never read; None numbers the tokens of each text
            from 0.

    Raises:
        ValueError: If every token is padding.
    """

    def __init__(
        self, encoding: Callable[[int], PositionalEncoding | Checked], documents: Tensor, positions: Tensor | None
    ) -> None:
        self.shape, self.device = documents.shape, documents.device
        self.groups: list[Alike] = []
        self._last_biases: list[Tensor | None] = []
        self._last_bias: Tensor | None = None
        for tokens, placed in texts_alike(documents, positions):
            chosen = encoding(len(placed))
            # Nothing is kept for the next batch, whose texts are others.
            with torch.no_grad():
                source = chosen.encoding if isinstance(chosen, Checked) else chosen
                prepared = source.prepare(chosen.place(placed).float())
            self.groups.append(Alike(tokens, chosen, chosen(prepared)))
        if not self.groups:
            raise ValueError("expected a token that is not padding, got a batch of padding alone")
        self._tokens = torch.cat([group.tokens.flatten() for group in self.groups])  # (all tokens but padding,)

    def __call__(self, state: Any) -> Any:
        """`PositionalEncoding.forward`, which was called for every group when this was made."""
        return state

    def padded(self, state: Any, valid: Tensor) -> Any:
        """`PositionalEncoding.padded`; a text alone has no padding."""
        return state

    @property
    def lengths(self) -> set[int]:
        """Lengths of the texts."""
        return {group.tokens.shape[1] for group in self.groups}

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """`PositionalEncoding.embed`; padding is zero."""
        return self._joined([g.encoding.embed(take(x, g.tokens), g.state) for g in self.groups])

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.residual`; padding is zero."""
        return self._joined([g.encoding.residual(take(x, g.tokens), None, g.state, layer) for g in self.groups])

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """`PositionalEncoding.query_key`; padding is zero."""
        found = [g.encoding.query_key(*self._heads(q, k, x, g), g.state, layer) for g in self.groups]
        queries, keys = zip(*found, strict=True)
        return self._joined_heads(queries), self._joined_heads(keys)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | None:
        """`PositionalEncoding.bias`; zero between tokens of different texts: (B, H, L, L)."""
        found = [whole(g.encoding.bias(*self._heads(q, k, x, g), g.state, layer)) for g in self.groups]
        # The same tensors as in the layer before make the same bias, and are then masked only once.
        same = len(found) == len(self._last_biases) and all(map(lambda a, b: a is b, found, self._last_biases))
        if not same:
            self._last_biases, self._last_bias = found, self._spread(found, q.shape[1])
        return self._last_bias

    def value(self, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.value`; padding is zero."""
        if self._leaves("value"):
            return v
        return self._joined_heads(
            [g.encoding.value(_one(v, g), take(x, g.tokens), g.state, layer) for g in self.groups]
        )

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """`PositionalEncoding.output`; padding is zero."""
        if self._leaves("output"):
            return o
        return self._joined_heads(
            [g.encoding.output(_one(o, g), _one(v, g), take(x, g.tokens), g.state, layer) for g in self.groups]
        )

    def _leaves(self, hook: str) -> bool:
        """Return True if the encoding does not override a hook, which need not be given the texts one by one then."""
        source = self.groups[0].encoding
        source = source.encoding if isinstance(source, Checked) else source
        return getattr(type(source), hook) is getattr(PositionalEncoding, hook)

    def _heads(self, q: Tensor, k: Tensor, x: Tensor, group: Alike) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and residual stream of a group: (G, H, N, K) twice, and (G, N, D)."""
        return _one(q, group), _one(k, group), take(x, group.tokens)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        """Put what hooks returned, (G, N, ...) of each group, back into the batch: (B, L, ...)."""
        values = torch.cat([part.flatten(0, 1) for part in parts])
        whole = values.new_zeros(self.shape.numel(), *values.shape[1:])
        return whole.index_copy(0, self._tokens, values).unflatten(0, self.shape)

    def _joined_heads(self, parts: Sequence[Tensor]) -> Tensor:
        """Put heads, (G, H, N, K) of each group, back into the batch: (B, H, L, K)."""
        return self._joined([heads.transpose(1, 2) for heads in parts]).transpose(1, 2)

    def _spread(self, parts: list[Tensor | None], heads: int) -> Tensor | None:
        """Put biases, each broadcastable to (G, H, N, N), in their place among all pairs: (B, H, L, L)."""
        values, places, length = [], [], self.shape[1]
        for group, part in zip(self.groups, parts, strict=True):
            if part is not None:
                (size, n), tokens = group.tokens.shape, group.tokens
                # Token t of the batch is in row t // L, and t % L there: the pair (t, u) is number t · L + u % L.
                places.append((tokens[:, :, None] * length + tokens[:, None, :] % length).flatten())
                values.append(part.expand(size, heads, n, n).permute(0, 2, 3, 1).flatten(0, 2))  # (G·N·N, H)
        if not values:
            return None
        whole = values[0].new_zeros(self.shape.numel() * length, heads)
        whole = whole.index_copy(0, torch.cat(places), torch.cat(values))
        return whole.unflatten(0, (*self.shape, length)).permute(0, 3, 1, 2)  # (B, L, L, H) to (B, H, L, L)


def _one(heads: Tensor, group: Alike) -> Tensor:
    """Return the heads of a group: (B, H, L, K) to (G, H, N, K)."""
    return take(heads.transpose(1, 2), group.tokens).transpose(1, 2)


def take(x: Tensor, tokens: Tensor) -> Tensor:
    """Return the tokens (G, N), by number, of a batch (B, L, ...): (G, N, ...)."""
    return x.flatten(0, 1)[tokens]


def texts_alike(documents: Tensor, positions: Tensor | None) -> list[tuple[Tensor, Tensor]]:
    """Return the texts of a batch, those with the same positions together.

    Args:
        documents: (B, L), the text that each token of a row is of; negative at padding.
        positions: (L, P), or (B, L, P); None numbers the tokens of each text from 0.

    Returns:
        Of each group the numbers of its tokens among all B·L (G, N), and the positions that they share (N, P).

    Example:
        >>> found = texts_alike(torch.tensor([[-1, 0, 0], [1, 1, 2]]), None)
        >>> [(tokens.tolist(), places.flatten().tolist()) for tokens, places in found]
        [([[1, 2], [3, 4]], [0.0, 1.0]), ([[5]], [0.0])]
    """
    groups = dict[tuple[float, ...], list[list[int]]]()
    length, rows = documents.shape[1], documents.tolist()  # one wait for an accelerator, not one for each text
    given = None if positions is None else positions.expand(len(rows), -1, -1)
    places = None if given is None else given.flatten(0, 1).tolist()  # (B·L, P)
    for row, numbers in enumerate(rows):
        texts = dict[int, list[int]]()
        for column, number in enumerate(numbers):
            if number >= 0:
                texts.setdefault(number, []).append(row * length + column)
        for text in texts.values():
            key = (len(text),) if places is None else tuple(p for token in text for p in places[token])
            groups.setdefault(key, []).append(text)
    made = []
    for texts_of_group in groups.values():
        tokens = torch.tensor(texts_of_group, device=documents.device)
        counted = torch.arange(tokens.shape[1], device=documents.device, dtype=torch.float32)[:, None]
        made.append((tokens, counted if given is None else given.flatten(0, 1)[tokens[0]]))
    return made
