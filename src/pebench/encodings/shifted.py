"""Shifted: all positions moved by a random number in training, so that a model must learn from differences."""

from dataclasses import replace

import torch
from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.build import build_encoding
from pebench.encodings.registry import register
from pebench.encodings.wrapper import RandomWrapper


@register("shifted")
class ShiftedEncoding(RandomWrapper):
    """Another encoding whose positions are moved by a random whole number per axis in training (SHAPE).

    Args:
        spec: Sizes of the model.
        of: The other encoding: a name, alone or with options.
        most: Largest shift, in tokens or patches; ``None`` takes each axis's trained length.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If ``most`` is negative.

    Source:
        Kiyono et al. 2021, "SHAPE: Shifted Absolute Position Embedding", section 3.2,
        https://arxiv.org/abs/2109.05644.

    Differs from the paper:
        1. A batch shares its shift; the paper's sequences have their own.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(4,), causal=True)
        >>> encoding, positions = ShiftedEncoding(spec), torch.arange(4.0)[:, None]
        >>> encoding.eval().place(positions) is positions
        True
    """

    formula = r"p' = p + u, \quad u \in \{0, \dots, \mathrm{most}\} \text{ drawn at random in training}"
    cite = ("kiyono2021shape",)
    mark = 36
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "add", most: int | None = None) -> None:
        if most is not None and most < 0:
            raise ValueError(f"most of encoding 'shifted' must be 0 or more, got {most}")
        self_most = tuple(n if most is None else most for n in spec.extent)
        longer = tuple(n + m for n, m in zip(spec.extent, self_most, strict=True))
        relative = build_encoding(of, spec).relative  # offsets are no larger than without a shift
        super().__init__(spec, of, spec if relative else replace(spec, extent=longer))
        self.most = self_most

    def place(self, positions: Tensor) -> Tensor:
        """Return the positions, shifted in training: (L, P)."""
        if self.training:
            generator = self.generator()
            shift = [int(torch.randint(most + 1, (), generator=generator)) for most in self.most]
            # a new tensor in every step, so that the model prepares anew
            positions = positions + torch.tensor(shift, dtype=positions.dtype, device=positions.device)
        return self.inner.place(positions)
