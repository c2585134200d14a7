"""Randomized: positions drawn in order from a longer range, so that training includes large ones."""

from dataclasses import replace

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.wrapper import RandomWrapper
from pebench.memo import Memo


@register("randomized")
class RandomizedEncoding(RandomWrapper):
    """Another encoding with n tokens at n random places, in order, of a range several times as long.

    In training every batch has its own positions; in evaluation all have the same, drawn once.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        times: Length of the range, in trained lengths; longer texts are an error.
        fractional: Draw any numbers of the range, not whole ones alone.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``times`` is below 1, or the other encoding counts tokens instead of using positions, or mixes
            neighbours, of which there are few at random positions; with ``fractional``, if it has no vectors between
            whole positions; for positions that are negative, fractional or outside the range.

    Source:
        Ruoss et al. 2023, "Randomized Positional Encodings", section 3, https://arxiv.org/abs/2305.16843; fractional
        positions, Shimizu et al. 2026, "Position Encoding with Random Float Sampling", https://arxiv.org/abs/2602.14050.

    Differs from the paper:
        1. In evaluation the paper draws again; here the result must not depend on a draw.
        2. Its range is 2048 long, for texts of up to 40 in training and 500 in the test.
        3. As many positions are drawn as the trained length has, and a shorter text takes the first of them, so that a
           prefix has the positions that it has in the whole; the paper draws as many as there are tokens.
        4. Distances follow from the positions; for encodings of distance the authors' code draws the distances instead.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(4,), causal=True)
        >>> encoding = RandomizedEncoding(spec).eval()
        >>> encoding.place(torch.arange(4.0)[:, None]).flatten().tolist()
        [0.0, 4.0, 7.0, 10.0]
    """

    formula = (
        r"p' \in \{0, \dots, \mathrm{times} \cdot L - 1\}, \quad p'_1 < p'_2 < \dots < p'_L \text{ drawn at "
        r"random}"
    )
    cite = ("ruoss2023randomized",)
    mark = 31
    paper = ("refuses",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "add", times: int = 4, fractional: bool = False) -> None:
        if times < 1:
            raise ValueError(f"times of encoding 'randomized' must be 1 or more, got {times}")
        super().__init__(spec, of, replace(spec, extent=tuple(times * n for n in spec.extent)))
        if self.contextual:
            raise ValueError(f"encoding 'randomized' needs one that asks for positions, got {of!r}")
        self.refuse_neighbours()
        if fractional and self.inner.beyond == "refuses":
            raise ValueError(
                f"encoding 'randomized' needs one without a table of positions to be fractional, got {of!r}"
            )
        self.fractional = fractional
        # places have uneven gaps, which a shift, an exchange or a mirror image changes; a blind encoding sees none
        self.relative = self.isotropic = self.mirror_blind = self.blind
        self.beyond = "refuses"
        if not self.blind:  # a text beyond the trained length has other places with every length
            self.kv_cache = "goes stale"
        self._seen: Memo[tuple[int, ...]] = Memo()
        self._fixed: Memo[Tensor] = Memo()

    def place(self, positions: Tensor) -> Tensor:
        """Return random positions in the longer range for the integer positions of every axis: (L, P)."""
        if self.training:
            return self.inner.place(self._draw(positions, self.generator()))
        # the same tensor must be returned for the same tensor: the model keeps what was prepared for it, by identity
        return self.inner.place(self._fixed.made_of(positions, lambda: self._draw(positions, None)))

    def _draw(self, positions: Tensor, generator: torch.Generator | None) -> Tensor:
        """Return the positions that a generator draws, or with None the fixed ones."""
        columns = []
        for axis, size in enumerate(self._seen.made_of(positions, lambda: self._sizes(positions))):
            # evaluation has a generator for each axis and size, so that equal texts have equal positions
            chance = generator or torch.Generator().manual_seed(1000 * axis + size)
            most = self.inner.spec.extent[axis]
            if self.fractional:
                drawn = most * torch.rand(size, generator=chance, dtype=torch.float32)
            else:
                drawn = torch.randperm(most, generator=chance)[:size]
            columns.append(drawn.sort().values.to(positions)[positions[:, axis].long()])
        return torch.stack(columns, dim=1)  # P columns (L,) to (L, P)

    def _sizes(self, positions: Tensor) -> tuple[int, ...]:
        """Return the number of positions to draw for each axis: its trained extent, or more if the text is longer."""
        limits = torch.tensor(self.inner.spec.extent, device=positions.device, dtype=torch.long)
        if (positions < 0).any() or (positions >= limits).any() or (positions != positions.floor()).any():
            raise ValueError(
                f"encoding 'randomized' has places for integer positions below {self.inner.spec.extent}, "
                f"got positions from {positions.amin(0).tolist()} to {positions.amax(0).tolist()}"
            )
        most = (positions.amax(dim=0).long() + 1).tolist()
        return tuple(max(pair) for pair in zip(most, self.spec.extent, strict=True))
