"""Biases of pairs of tokens: whole for short texts, worked out for some queries at a time for long ones."""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

LONG = 1024
"""Tokens from which on a bias of all pairs is not kept: it would grow with the square of their number."""

SPREAD = 32
"""Offsets for each token up to which all that integer positions can have are listed, if there are as many pairs."""

Block = Callable[[slice, int], Tensor]
"""A function of queries and a number of keys that returns what broadcasts to (B, H, queries, keys)."""

Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""A function of a logit and its batch, head, query and key that returns the logit with the bias."""


class PairBias(ABC):
    """A bias of the attention logits of which no more is made at a time than some queries need.

    Args:
        length: Number of tokens L.
        requires_grad: True if it has trained parts.
    """

    def __init__(self, length: int, requires_grad: bool) -> None:
        self.length, self.requires_grad = length, requires_grad

    @abstractmethod
    def block(self, queries: slice, keys: int) -> Tensor:
        """Return what some queries and the first keys have, broadcastable to (B, H, queries, keys)."""

    def whole(self) -> Tensor:
        """Return the bias of all pairs: (..., L, L)."""
        return self.block(slice(0, self.length), self.length)

    def __add__(self, other: Any) -> Tensor:
        """Return the sum of all pairs, so that attention of any kind may add it to its logits."""
        total: Tensor = self.whole() + other
        return total

    __radd__ = __add__

    def score(self) -> Score | None:
        """Return it as a function of single logits, for kernels made of such; None where it has no such form."""
        return None


class ByBlock(PairBias):
    """A bias that a function works out.

    Args:
        length: Number of tokens L.
        make: Returns the bias of some queries and the first keys.
        requires_grad: True if it has trained parts.
    """

    def __init__(self, length: int, make: Block, requires_grad: bool = True) -> None:
        super().__init__(length, requires_grad)
        self.make = make

    def block(self, queries: slice, keys: int) -> Tensor:
        """Return what the function returns."""
        return self.make(queries, keys)


class Pairs(NamedTuple):
    """Which offset every pair of tokens has, among the different ones.

    Args:
        rows: (L, L), the index of every pair's offset, query by key; None for a long text with `codes`.
        codes: (L,) integers; a key's less a query's, and `base`, is the index of their offset. None with `rows`.
        base: Index of the offset 0 where there are `codes`.
        counted: True if the positions follow one another, so that codes are 0, 1, 2, ...
    """

    rows: Tensor | None
    codes: Tensor | None = None
    base: int = 0
    counted: bool = False

    @property
    def length(self) -> int:
        """Number of tokens L."""
        return len(self.rows if self.codes is None else self.codes)  # type: ignore[arg-type]

    def block(self, queries: slice, keys: int) -> Tensor:
        """Return the indices of some queries' offsets to the first keys: (queries, keys)."""
        if self.codes is None:
            return self.rows[queries, :keys]  # type: ignore[index]
        return self.codes[:keys] - self.codes[queries, None] + self.base

    def whole(self) -> Tensor:
        """Return the indices of all pairs: (L, L)."""
        return self.block(slice(0, self.length), self.length)


class ByOffset(PairBias):
    """A bias by offset alone: a number for each head and offset.

    Args:
        table: (H, U), the bias at every offset.
        pairs: Which offset every pair has, with `codes`.
    """

    def __init__(self, table: Tensor, pairs: Pairs) -> None:
        super().__init__(pairs.length, table.requires_grad)
        self.table, self.pairs = table, pairs
        self._whole: Tensor | None = None

    def whole(self) -> Tensor:
        """Return the bias of all pairs, made once for the layers, and the passes, that have this object."""
        if self._whole is None:
            # An inference tensor could not serve training later; one with a gradient serves this pass alone.
            with contextlib.nullcontext() if self.requires_grad else torch.inference_mode(False):
                self._whole = super().whole()
        return self._whole

    def block(self, queries: slice, keys: int) -> Tensor:
        """Return the bias of some queries and the first keys: (1, H, queries, keys)."""
        if self.pairs.counted:
            return self.backwards(queries, keys).flip(-2)
        return _looked_up(self.table, self.pairs.block(queries, keys))

    def backwards(self, queries: slice, keys: int) -> Tensor:
        """Return the bias with the last query first, as a view of the table: (1, H, queries, keys).

        Only where positions are counted: from one query to the one before it, and from a key to the next, the offset
        grows by one alike, so that both steps go to the next number of the table.
        """
        start, stop = self.pairs.base - queries.stop + 1, self.pairs.base - queries.start + keys
        return self.table[:, start:stop].unfold(1, keys, 1)[None]  # (H, queries + keys - 1) to (H, queries, keys)

    def score(self) -> Score:
        """Return a lookup in the table."""
        table, codes, base = self.table, self.pairs.codes, self.pairs.base
        assert codes is not None
        return lambda logit, batch, head, query, key: logit + table[head, codes[key] - codes[query] + base]


@overload
def whole(bias: Tensor | PairBias) -> Tensor: ...
@overload
def whole(bias: Tensor | PairBias | None) -> Tensor | None: ...
def whole(bias: Tensor | PairBias | None) -> Tensor | None:
    """Return a bias as the tensor of all pairs, as short texts have it; None where there is none."""
    return bias.whole() if isinstance(bias, PairBias) else bias


def by_blocks(length: int, make: Block) -> Tensor | PairBias:
    """Return a bias that a function works out: whole for a short text, by blocks for a long one.

    Args:
        length: Number of tokens L.
        make: Returns the bias of some queries, a slice, and the first keys, a number: (..., queries, keys).

    Example:
        >>> far = torch.arange(3.0)
        >>> by_blocks(3, lambda queries, keys: far[queries, None] - far[:keys])
        tensor([[ 0., -1., -2.],
                [ 1.,  0., -1.],
                [ 2.,  1.,  0.]])
    """
    return ByBlock(length, make) if length >= LONG else make(slice(0, length), length)


def unique_offsets(positions: Tensor) -> tuple[Tensor, Pairs]:
    """Return the different offsets between tokens, so that an encoding computes something for each only once.

    Args:
        positions: (L, P).

    Returns:
        The offsets (U, P), each a key's position minus a query's, in rising order; and which of them every pair has.
        Integer positions may list offsets that no pair has.

    Example:
        >>> different, pairs = unique_offsets(torch.tensor([[0.0], [1.0], [2.0]]))
        >>> different.flatten().tolist(), pairs.whole()[0].tolist()
        ([-2.0, -1.0, 0.0, 1.0, 2.0], [2, 3, 4])
    """
    length, axes = positions.shape
    if listed := _listed(positions):
        different, pairs = listed
        return different, pairs if length >= LONG else Pairs(pairs.whole())
    every = (positions.unsqueeze(0) - positions.unsqueeze(1)).flatten(0, 1)  # (L * L, P)
    rows = None if axes == 1 else 0  # numbers are sorted ten times as fast as rows of one number
    different, which = torch.unique(every, dim=rows, return_inverse=True)  # (U,) or (U, P); (L * L,) or (L * L, 1)
    return different.view(-1, axes), Pairs(which.view(length, length))  # (U, P), (L, L)


def _listed(positions: Tensor) -> tuple[Tensor, Pairs] | None:
    """Return all offsets that integers of their range can have, and each pair's; None where there are too many."""
    if len(positions) == 0 or not bool((positions.isfinite() & (positions == positions.floor())).all()):
        return None
    least = positions.amin(dim=0)
    reach = [int(most) for most in (positions.amax(dim=0) - least).tolist()]
    if math.prod(2 * most + 1 for most in reach) > min(SPREAD, len(positions)) * len(positions):
        return None
    codes, base = torch.zeros(len(positions), device=positions.device, dtype=torch.long), 0
    for axis, most in enumerate(reach):  # numbers in row-major order, the last axis fastest
        side = 2 * most + 1
        codes, base = codes * side + (positions[:, axis] - least[axis]).long(), base * side + most
    steps = [torch.arange(-most, most + 1, device=positions.device, dtype=positions.dtype) for most in reach]
    counted = len(reach) == 1 and bool((positions.diff(dim=0) == 1).all())
    return torch.cartesian_prod(*steps).view(-1, len(reach)), Pairs(None, codes, base, counted)


def pair_bias(table: Tensor, pairs: Pairs) -> Tensor | PairBias:
    """Return the number of its offset for every pair of tokens, as a bias.

    Args:
        table: (U, H).
        pairs: Which offset every pair has.

    Returns:
        (1, H, L, L); by blocks for long texts.

    Example:
        >>> pair_bias(torch.tensor([[1.0], [2.0]]), Pairs(torch.tensor([[0, 1], [1, 0]])))
        tensor([[[[1., 2.],
                  [2., 1.]]]])
    """
    return _looked_up(table.T, pairs.whole()) if pairs.codes is None else ByOffset(table.T.contiguous(), pairs)


def _looked_up(table: Tensor, rows: Tensor) -> Tensor:
    """Return numbers of a table (H, U) by index (queries, keys): (1, H, queries, keys)."""
    # index_select has the fastest backward pass of the ways to look rows up
    return table.index_select(1, rows.flatten()).view(1, len(table), *rows.shape)
