"""Gated add: a sinusoid added to the input, at a scale that is trained."""

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec
from pebench.encodings.positions import check_positive
from pebench.encodings.registry import register
from pebench.encodings.table import TableEncoding


@register("gated-add")
class GatedAddEncoding(TableEncoding):
    """Fixed sinusoid, added to the input through one trained gate: x + 2 sigmoid(pace g) p.

    Args:
        spec: Sizes of the model; ``d_model`` must be a multiple of 2P.
        base: Base of the wavelengths, dimensionless.
        ratio: Root mean square of the position's vectors relative to the content's at initialisation.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none beyond the extent.
        pace: How many times as fast as a parameter the gate's logit moves under Adam; ``None`` takes sqrt(D), as
            tables move.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_model`` is not a multiple of 2P, ``base`` or ``pace`` is not positive, ``ratio`` is negative,
            or there is no such ``table``.

    Source:
        Hallam and Tseng 2026, https://arxiv.org/abs/2601.05807: the scalar gate, after its abstract.

    Differs from the paper:
        1. There is a factor of 2: the gate is half open at first, so that the encoding starts as ``add`` does.
        2. There is a factor ``pace``, unless it is 1: Adam moves a parameter by the learning rate at most, so that a
           thousand steps of 1e-3 would move the gate's logit by one at most.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = GatedAddEncoding(spec)
        >>> _ = nn.init.constant_(encoding.gate, 1.0986 / 2**0.5)  # open to three quarters: 1.5 times the sinusoid
        >>> encoding.embed(torch.zeros(1, 1, 2), encoding(encoding.prepare(torch.tensor([[0.0]])))).detach()
        tensor([[[0.0000, 2.1213]]])
    """

    formula = r"x + 2\,\sigma(\mathrm{pace} \cdot g)\,\mathrm{ratio} \cdot s(p)"
    cite = ("hallam2026fusion",)
    mark = 17
    size = "1"
    paper = ()
    paper_size = 1

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        base: float = 10000.0,
        ratio: float = 1.0,
        table: str = "sinusoid",
        pace: float | None = None,
    ) -> None:
        super().__init__(spec)
        self.pace = spec.d_model**0.5 if pace is None else pace
        check_positive(self.name, pace=self.pace)
        self.make_table(table, spec.d_model, base, ratio, "d_model")
        self.gate = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the gate half open."""
        nn.init.zeros_(self.gate)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus the gated position."""
        return x + (2 * (self.pace * self.gate).sigmoid() * state).to(x.dtype)
