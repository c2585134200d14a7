"""Some-layers: another encoding in all layers but every k-th, or in those alone."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.pairs import PairBias
from pebench.encodings.registry import register
from pebench.encodings.wrapper import Wrapper


@register("some-layers")
class SomeLayersEncoding(Wrapper):
    """Another encoding in all layers but every k-th, counted from 1; or in those alone.

    Args:
        spec: Sizes of the model.
        of: The other encoding, which acts in attention alone: a name, alone or with options.
        every: Period k, in layers.
        but: True leaves the other encoding out of every k-th layer; False keeps it in those alone.

    Shape:
        As the other encoding's.

    Raises:
        ValueError: If no layer is left, or the other encoding acts on the input.

    Source:
        Yang et al. 2025, "Rope to Nope and Back Again", https://arxiv.org/abs/2501.18795:
        no encoding in every 4th layer.

    Differs from the paper:
        1. The layers with an encoding attend to everything; the paper's attend to a window.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=4, extent=(8,), causal=True)
        >>> encoding, x = SomeLayersEncoding(spec, of="alibi", every=2), torch.zeros(1, 1, 2, 2)
        >>> state = encoding.prepare(torch.tensor([[0.0], [1.0]]))
        >>> [encoding.bias(x, x, x, state, layer) is None for layer in range(4)]
        [False, True, False, True]
    """

    formula = (
        r"\ell^{(l)}_{ij} = \begin{cases} \frac{q_i \cdot k_j}{\sqrt{K}} & l \equiv 0 \pmod k \\ "
        r"\ell'^{(l)}_{ij} & \text{else} \end{cases}"
    )
    cite = ("yang2025rope",)
    aliases = ("irope", "rnope")
    mark = 38
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, of: str = "rope", every: int = 4, but: bool = True) -> None:
        chosen = [n for n in range(spec.num_layers) if every > 0 and ((n + 1) % every == 0) != but]
        if not chosen:
            raise ValueError(f"encoding 'some-layers' acts in none of {spec.num_layers} layers with every={every}")
        super().__init__(spec, of, replace(spec, num_layers=len(chosen)))  # with parameters for the chosen layers alone
        self.refuse_input()
        self.own = {layer: number for number, layer in enumerate(chosen)}

    def acts(self, layer: int) -> bool:
        """Return True if the other encoding acts in a layer, counted from 0."""
        return layer in self.own

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Return the other encoding's queries and keys in its layers, and plain ones in the others."""
        return self.inner.query_key(q, k, x, state, self.own[layer]) if self.acts(layer) else (q, k)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | PairBias | None:
        """Return the other encoding's bias in its layers, and None in the others."""
        return self.inner.bias(q, k, x, state, self.own[layer]) if self.acts(layer) else None

    def value(self, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's values in its layers, and plain ones in the others."""
        return self.inner.value(v, x, state, self.own[layer]) if self.acts(layer) else v

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Return the other encoding's output of heads in its layers, and the plain one in the others."""
        return self.inner.output(o, v, x, state, self.own[layer]) if self.acts(layer) else o
