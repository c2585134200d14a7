"""Widened: another encoding in a wider model, to separate the effect of the width from concat-wide's positions."""

import math
from dataclasses import replace

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.sinusoid import quarter
from pebench.encodings.wrapper import Wrapper


@register("widened")
class WidenedEncoding(Wrapper):
    """Another encoding in a model whose residual stream is n channels wider, all of which that encoding deals out.

    The control of ``concat-wide``, whose stream is as wide with the same n, but has position alone in n channels.
    Heads, norms and projections grow with the stream; the feed-forward layer's hidden width stays. The model is
    larger, so compare it under the regime ``parameters`` or ``FLOPs``.

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        channels: Number n of additional channels, a multiple of the number of heads; ``None`` takes the default of
            ``concat-wide``: a quarter of ``d_model``, rounded to a multiple of that number and of 2P.

    Shape:
        As the other encoding's in a model of width D + n.

    Raises:
        ValueError: If ``channels`` is not a positive multiple of the number of heads.

    Source:
        None: a control.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = WidenedEncoding(spec, of="add")
        >>> encoding.content_width, encoding.model_width  # those of concat-wide are 4 and 6
        (6, 6)
    """

    cite = ("pebench",)
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "add", channels: int | None = None) -> None:
        step = math.lcm(2 * spec.num_axes, spec.num_heads)
        more = quarter(spec.d_model, step) if channels is None else channels
        if more < 1 or more % spec.num_heads:
            raise ValueError(
                f"channels of encoding 'widened' must be a positive multiple of the {spec.num_heads} heads, got {more}"
            )
        super().__init__(spec, of, replace(spec, d_model=spec.d_model + more))
        self.channels = more
