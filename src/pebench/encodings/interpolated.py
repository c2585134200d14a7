"""Interpolated: positions of a longer text scaled down to the trained range."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.ntk_rope import NtkRotaryEncoding
from pebench.encodings.raster import RasterEncoding
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("interpolated")
class InterpolatedEncoding(Wrapper):
    """Another encoding whose positions are divided by s in a text s times the trained length (position interpolation).

    Up to the trained length nothing changes. In longer texts, encodings that look up whole offsets, such as ``shaw``,
    ``deberta`` and ``t5-bias``, round them, so that neighbours share an offset.

    Args:
        spec: Sizes of the model.
        of: The other encoding, which must take fractional positions: a name, alone or with options.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If the other encoding has a table, with nothing between its rows; or mixes neighbours, as ``cpe``
            does, of which there are none at a fraction of a position; or counts tokens instead of using positions; or
            numbers cells; or stretches to each text already.

    Source:
        Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation",
        equation 4, https://arxiv.org/abs/2306.15595.

    Differs from the paper:
        1. s is each text's own, padding counted, and on grids each axis's own; the paper fine-tunes with a fixed one.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(4,), causal=True)
        >>> InterpolatedEncoding(spec).squeezed(torch.arange(8.0)[:, None]).flatten().tolist()
        [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]
    """

    formula = r"p' = \frac{p}{s}, \quad s = \max\left(1, \frac{\text{length of the text}}{L}\right)"
    cite = ("chen2023extending",)
    aliases = ("linearscaling", "positioninterpolation")
    mark = 19
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "rope") -> None:
        super().__init__(spec, of)
        if self.inner.beyond == "refuses":
            raise ValueError(f"encoding 'interpolated' needs one without a table of positions, got {of!r}")
        if self.contextual:
            raise ValueError(f"encoding 'interpolated' needs one that asks for positions, got {of!r}")
        self.refuse_neighbours()
        if not self.blind:  # positions are scaled anew with every token beyond the trained length
            self.kv_cache = "goes stale"
        parts = [*self.inner.modules()]
        if any(isinstance(part, RasterEncoding) for part in parts):  # scaled cells of two rows share a number
            raise ValueError(f"encoding 'interpolated' cannot have {of!r} inside, but can be inside 'raster'")
        if any(isinstance(part, NtkRotaryEncoding) and part.factor is None for part in parts):
            raise ValueError(f"encoding 'interpolated' needs one that is not stretched already, got {of!r}")

    def squeezed(self, positions: Tensor) -> Tensor:
        """Return the positions scaled down to the trained range: (L, P)."""
        spans = positions.amax(dim=0) - positions.amin(dim=0) + 1
        extent = torch.tensor(self.spec.extent, device=positions.device, dtype=positions.dtype)
        # at most 1: a shorter text is not stretched, as it lies within the trained range already
        return positions * (extent / spans).clamp(max=1)

    def prepare(self, positions: Tensor) -> object:
        """Return what the other encoding prepares of the scaled positions."""
        return self.inner.prepare(self.squeezed(positions))
