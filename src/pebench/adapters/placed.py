"""An encoding inside of a model that is not ours, and what one forward pass gives to its hooks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.base import PositionalEncoding
from pebench.encodings.wrapper import overrides
from pebench.models.apart import Apart
from pebench.models.attention import Masks
from pebench.models.cache import ForwardCache


class Placed(nn.Module):
    """An encoding in a model that is not ours.

    Encodings expect content of root mean square 1, as ours has. Other models' has another one, the unit, which is
    divided out before a hook that changes the stream and multiplied in after it, so that an option ``ratio`` means
    the same here.

    Attributes:
        encoding: The encoding.
        unit: Root mean square of the model's content, kept with its weights.
        given: The last forward pass, where the model has no way of handing it on.
    """

    encoding: PositionalEncoding
    unit: Tensor

    def __init__(self, encoding: PositionalEncoding, unit: float) -> None:
        super().__init__()
        self.given: Given | None = None
        self.encoding = encoding
        self.register_buffer("unit", torch.tensor(unit, dtype=torch.float32))
        self.cache = ForwardCache(encoding.spec.max_len)

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle without the last pass, whose tensors have a graph."""
        return {**super().__getstate__(), "given": None}

    def alike(self, positions: Tensor) -> "Given":
        """Return a pass in which all rows have the same positions (L, P) and no padding."""
        with torch.inference_mode(False), torch.no_grad():  # what is kept must serve training too
            prepared = self.cache.prepared(self.encoding, self.encoding.place(positions))
        self.cache.end_pass(len(positions))
        masks = Masks(self.encoding.spec.causal, len(positions), positions.device, None)
        return Given(self, self.encoding, self.encoding(prepared), masks, len(positions))

    def apart(self, documents: Tensor, positions: Tensor | None) -> "Given":
        """Return a pass in which texts have positions of their own.

        Args:
            documents: (B, L), the text that each token of a row is of, negative at padding.
            positions: (B, L, P); None numbers the tokens of each text from 0.
        """
        length, causal = documents.shape[1], self.encoding.spec.causal
        encoding = Apart(lambda length: self.encoding, documents, positions)
        return Given(self, encoding, None, Masks(causal, length, documents.device, None, documents), length)


@dataclass(frozen=True)
class Given:
    """One forward pass, as hooks are given it.

    Args:
        placed: The encoding in its model.
        encoding: The encoding, or what stands in for it where rows have positions of their own.
        state: Its state.
        masks: Masks of padding and of the future.
        length: Number of tokens L that have positions.
        x: (B, L, D), whose projections are the queries and keys of this layer.
    """

    placed: Placed
    encoding: PositionalEncoding | Apart
    state: Any
    masks: Masks
    length: int
    x: Tensor | None = None

    def embed(self, content: Tensor) -> Tensor:
        """Change the input: (B, L, D) to the same shape."""
        return self._scaled(content, lambda x: self.encoding.embed(x, self.state))

    def residual(self, x: Tensor, layer: int) -> Tensor:
        """Change the residual stream before a block: (B, L, D) to the same shape."""
        if not overrides(self.placed.encoding, "residual"):  # not even a copy, in every block
            return x
        return self._scaled(x, lambda x: self.encoding.residual(x, None, self.state, layer))

    def _scaled(self, x: Tensor, hook: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a hook to a stream of root mean square 1; one that it leaves alone comes back unrounded."""
        scaled = x / self.placed.unit
        changed = hook(scaled)
        return x if changed is scaled else changed * self.placed.unit
