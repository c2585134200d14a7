"""Concat: position in channels of its own, which the content gives up, so that the trunk keeps its width."""

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.sinusoid import quarter
from pebench.encodings.table import TableEncoding


@register("concat")
class ConcatEncoding(TableEncoding):
    """Fixed sinusoid in the last d_p channels, content in the first D - d_p.

    The model after the input is unchanged: only the content's embedding is narrower. This is the
    plain reading of "concatenate instead of add"; it is neither concatenation followed by a projection
    nor a wider trunk.

    Args:
        spec: Sizes of the model.
        d_p: Channels for position, a multiple of 2P; ``None`` takes a quarter of ``d_model``.
        base: Base of the wavelengths, dimensionless.
        ratio: Root mean square of the position's channels relative to the content's at initialisation.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none beyond the extent.
        centered: Subtract the sinusoid's mean over the trained positions, from every position, before it is scaled to
            ``ratio``.
        slowest_of: Width of a sinusoid of which the ``d_p`` slowest channels are taken; ``None`` takes one of d_p.

    Shape:
        embed: (B, L, D - d_p) to (B, L, D).

    Raises:
        ValueError: If ``d_p`` is not a multiple of 2P or leaves no channel for content, ``base`` is not
            positive, ``ratio`` is negative, there is no such ``table``, ``slowest_of`` is below ``d_p``, one position
            is to be centred, or a learned table has either of these options.

    Source:
        The question is as old as Vaswani et al. 2017, https://arxiv.org/abs/1706.03762; concatenation
        with a projection is compared to addition by Hallam and Tseng 2026, https://arxiv.org/abs/2601.05807.

    Differs from the paper:
        No paper that we could read defines the split; a quarter of the width is our default, not a finding.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = ConcatEncoding(spec, d_p=2)
        >>> encoding.content_width
        2
        >>> encoding.embed(torch.ones(1, 1, 2), encoding(encoding.prepare(torch.tensor([[1.0]]))))
        tensor([[[1.0000, 1.0000, 1.1900, 0.7641]]])
    """

    formula = (
        r"[\,x\,;\,\mathrm{ratio} \cdot s(p)\,], \quad x \in \mathbb{R}^{D - d_p}, \quad s(p) \in "
        r"\mathbb{R}^{d_p}"
    )
    cite = ("vaswani2017attention",)
    aliases = ("concatenate", "concatenated", "concatenation")
    mark = 1
    paper = ()
    paper_size = 0

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        d_p: int | None = None,
        base: float = 10000.0,
        ratio: float = 1.0,
        table: str = "sinusoid",
        centered: bool = False,
        slowest_of: int | None = None,
    ) -> None:
        super().__init__(spec)
        self.d_p = quarter(spec.d_model, 2 * spec.num_axes) if d_p is None else d_p
        if self.d_p >= spec.d_model:  # checked before the table, whose pace is the content's width
            raise ValueError(f"d_p of encoding 'concat' must be below d_model = {spec.d_model}, got {self.d_p}")
        self.make_table(table, self.d_p, base, ratio, centered=centered, slowest_of=slowest_of)

    @property
    def content_width(self) -> int:
        """Width left for content: D - d_p."""
        return self.spec.d_model - self.d_p

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content and position side by side."""
        position = state.to(x.dtype).expand(x.shape[0], -1, -1)  # (L, d_p) to (B, L, d_p)
        return torch.cat((x, position), dim=-1)
