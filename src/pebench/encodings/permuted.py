"""Permuted: the trained positions in a fixed random order, so that neighbours are no longer near."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, grid_positions
from pebench.encodings.positions import cell_indices
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("permuted")
class PermutedEncoding(Wrapper):
    """Another encoding whose trained positions have exchanged places, once and for good.

    A control: all vectors, and all distances between them, stay as they are; that near positions have near vectors, and
    that one map takes each position to the next, does not.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        draw: Number of the random order, the same in every run and seed.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``draw`` is negative, or the other encoding counts tokens instead of using positions, or mixes
            neighbours; for positions that are fractional or were not trained, which have no other place.

    Source:
        Ours: the control for the claim that sinusoids serve by their linear shifts, of Vaswani et al. 2017, section
        3.5, https://arxiv.org/abs/1706.03762.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(5,), causal=True)
        >>> PermutedEncoding(spec).exchanged(torch.arange(5.0)[:, None]).flatten().tolist()
        [4.0, 0.0, 1.0, 3.0, 2.0]
    """

    formula = r"p' = \pi(p), \quad \pi \text{ a random permutation of the trained positions}"
    cite = ("pebench",)
    paper = ("refuses",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "add", draw: int = 0) -> None:
        if draw < 0:
            raise ValueError(f"draw of encoding 'permuted' must be 0 or more, got {draw}")
        super().__init__(spec, of)
        if self.contextual:
            raise ValueError(f"encoding 'permuted' needs one that asks for positions, got {of!r}")
        self.refuse_neighbours()
        # pairs of equal distance have unequal ones afterwards, which a blind encoding does not see
        self.relative = self.isotropic = self.mirror_blind = self.blind
        self.beyond = "refuses"
        order = torch.randperm(spec.max_len, generator=torch.Generator().manual_seed(draw))
        self._places = grid_positions(spec.extent, "cpu")[order]  # (cells, P)

    def exchanged(self, positions: Tensor) -> Tensor:
        """Return the other places of trained positions: (L, P)."""
        return self._places.to(positions)[cell_indices(positions, self.spec.extent, self.name)]

    def prepare(self, positions: Tensor) -> object:
        """Return what the other encoding prepares of the other places."""
        return self.inner.prepare(self.exchanged(positions))
