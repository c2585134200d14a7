"""LookHere: heads that look in one direction of the image each, and less the further away."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register

VIEWS = {"halves": ("halves",), "quarters": ("corners", "triangles"), "eighths": ("eighths", "other eighths")}
"""Kinds of fields of view, by the part of the plane; groups of four heads take them in turn."""

HIDDEN = -1e4
"""Logit of a key outside of the field of view, before slopes: no infinity, so that means over heads are numbers."""


@register("look-here")
class LookHereEncoding(PositionalEncoding):
    """Directed attention (LookHere): a penalty on distance, and nothing outside of a head's field of view.

    The field of view is a sector of the plane, with its edges and the patch itself. Heads come in groups of four, which
    look in four directions; the last four heads, but never the first four, look everywhere. The penalty is slope ·
    Euclidean distance, with the slope falling from layer to layer, and from group to group.

    Args:
        spec: Sizes of the model. Below four heads, or twelve of eighths, no directed head looks in some directions.
        view: Sectors of the plane: ``halves``, ``quarters`` or ``eighths``.
        slope: Factor of all slopes.

    Shape:
        bias: (H, L, L).

    Raises:
        ValueError: For another ``view``, a ``slope`` that is not positive, or positions with one axis.

    Source:
        Fuller et al. 2024, "LookHere", section 3, https://arxiv.org/abs/2405.13985; slopes, and which heads look where,
        from the authors' code (lookhere.py).

    Differs from the paper:
        1. The authors set heads for 6, 12 and 16 heads; here the same rule, as read off their settings for 12, gives
           them for any number.
        2. There is no class token, which in the paper sees, and is seen by, all patches.

    Example:
        >>> spec = EncodingSpec(d_model=8, num_heads=8, num_layers=2, extent=(2, 2), causal=False)
        >>> encoding = LookHereEncoding(spec, view="halves", slope=1.0)
        >>> x = torch.zeros(1, 8, 4, 1)
        >>> state = encoding.prepare(torch.tensor([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]]))
        >>> bias = encoding.bias(x, x, x, state, layer=0)  # of 1.5 times 1/2 and 1/4
        >>> bias[0, 1], bias[0, 3], bias[4, 0]  # up, with what is on a level; and everywhere
        (tensor([-1.5000e+00, -0.0000e+00, -1.5000e+04, -1.5000e+04]), tensor([-2.1213, -1.5000, -1.5000, -0.0000]),
        tensor([-0.0000, -0.7500, -0.7500, -1.0607]))
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} - \begin{cases} s\, s_l\, s_h \lVert p_i - p_j \rVert & p_j \in "
        r"\mathrm{view}_h(p_i) \\ \infty & \text{else} \end{cases}"
    )
    cite = ("fuller2024lookhere",)
    aliases = ("directedattention",)
    axes = (2,)
    relative = True
    paper = ("relative", "images")
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, view: str = "quarters", slope: float = 2.0) -> None:
        super().__init__(spec)
        if view not in VIEWS:
            raise ValueError(f"view of encoding 'look-here' must be one of {', '.join(VIEWS)}, got {view}")
        check_positive(self.name, slope=slope)
        self.view, self.slope = view, slope

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the penalty of every head, with slopes of 1 for the model and the layer: (H, L, L)."""
        offsets = positions.unsqueeze(0) - positions.unsqueeze(1)  # (L, L, 2), a key's position minus a query's
        distance = torch.linalg.vector_norm(offsets, dim=-1)
        heads, kinds = [], VIEWS[self.view]
        directed = min(self.spec.num_heads, max(4, self.spec.num_heads - 4))
        for head in range(directed):
            group, direction = divmod(head, 4)
            seen = in_view(offsets, kinds[group % len(kinds)], direction)
            # the slopes of each kind of view begin anew
            slope = 0.5 ** (1 + group // len(kinds))
            heads.append((-slope * distance).masked_fill(~seen, HIDDEN))
        heads += [-(0.25 ** (1 + n)) * distance for n in range(self.spec.num_heads - directed)]
        return torch.stack(heads)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """Return the penalty with the slopes of the model and the layer, from 1.5 in the first to 0.5 in the last."""
        share = layer / max(1, self.spec.num_layers - 1)
        return self.slope * (1.5 - share) * state


def in_view(offsets: Tensor, kind: str, direction: int) -> Tensor:
    """Return which keys lie in a field of view: offsets (..., 2) of rows and columns to (...).

    Example:
        >>> one_up_two_right = torch.tensor([-1.0, 2.0])
        >>> [[in_view(one_up_two_right, kind, n).item() for n in range(4)] for kind in ("halves", "triangles")]
        [[True, False, False, True], [False, False, False, True]]
    """
    down, right = offsets.unbind(dim=-1)
    halves = (down <= 0, down >= 0, right <= 0, right >= 0)  # up, down, left, right
    triangles = (-down >= right.abs(), down >= right.abs(), -right >= down.abs(), right >= down.abs())
    if kind == "halves":
        return halves[direction]
    if kind == "triangles":
        return triangles[direction]
    if kind == "corners":
        return halves[direction // 2] & halves[2 + direction % 2]
    side = (2, 2, 0, 0)[direction] + (kind == "other eighths")  # of the two halves of a triangle
    return triangles[direction] & halves[side]
