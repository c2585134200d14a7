"""Concat-wide: position in additional channels, in a model that is wider by them."""

import math

from pebench.encodings.base import EncodingSpec
from pebench.encodings.concat import ConcatEncoding
from pebench.encodings.registry import register
from pebench.encodings.sinusoid import quarter


@register("concat-wide")
class ConcatWideEncoding(ConcatEncoding):
    """Fixed sinusoid of d_p channels next to content of D channels: the residual stream has D + d_p.

    Heads, norms and projections grow with the stream; the feed-forward layer's hidden width stays. The
    model is larger, so compare it under the regime ``parameters`` or ``FLOPs``.

    Args:
        spec: Sizes of the model.
        d_p: Channels for position, a multiple of 2P and of the number of heads; ``None`` takes a quarter of
            ``d_model``, rounded to such a multiple.
        base: Base of the wavelengths, dimensionless.
        ratio: Root mean square of the position's channels relative to the content's at initialisation.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none beyond the extent.

    Shape:
        embed: (B, L, D) to (B, L, D + d_p).

    Raises:
        ValueError: If ``d_p`` is not a multiple of 2P and of the number of heads, ``base`` is not positive,
            ``ratio`` is negative, or there is no such ``table``.

    Source:
        As for ``concat``; the plain form in tools such as torch-position-embedding's "concat" mode.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = ConcatWideEncoding(spec)
        >>> encoding.content_width, encoding.model_width
        (4, 6)
        >>> encoding.embed(torch.ones(1, 1, 4), encoding(encoding.prepare(torch.tensor([[1.0]]))))
        tensor([[[1.0000, 1.0000, 1.0000, 1.0000, 1.1900, 0.7641]]])
    """

    formula = r"[\,x\,;\,\mathrm{ratio} \cdot s(p)\,], \quad x \in \mathbb{R}^{D}, \quad s(p) \in \mathbb{R}^{d_p}"
    cite = ("vaswani2017attention",)
    mark = 10
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
    ) -> None:
        super(ConcatEncoding, self).__init__(spec)  # not concat's, which makes a table within the width
        step = math.lcm(2 * spec.num_axes, spec.num_heads)
        self.d_p = quarter(spec.d_model, step) if d_p is None else d_p
        self.make_table(table, self.d_p, base, ratio)
        if self.d_p % spec.num_heads:
            raise ValueError(
                f"d_p of encoding 'concat-wide' must be a multiple of the {spec.num_heads} heads, got {self.d_p}"
            )

    @property
    def content_width(self) -> int:
        """Width of content: all of D."""
        return self.spec.d_model

    @property
    def model_width(self) -> int:
        """Width of content and position: D + d_p."""
        return self.spec.d_model + self.d_p
