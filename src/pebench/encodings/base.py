"""The interface of a positional encoding: one preparation and a few hooks, all optional.

Letters in shapes, here and everywhere: B batch, L length in tokens, P position axes (1 for text, 2 for
patches), D model width, H heads, K head width.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pebench.encodings.formulas import evaluate
from pebench.encodings.pairs import PairBias
from pebench.encodings.spec import EncodingSpec, grid_positions

__all__ = ["EncodingError", "EncodingSpec", "PositionalEncoding", "grid_positions", "name_of", "query_width"]

BEYOND = ("goes on", "clamps", "refuses")
"""Values of `PositionalEncoding.beyond`."""

KV_CACHE = ("works", "needs more", "goes stale")
"""Values of `PositionalEncoding.kv_cache`, the best first."""

SIZES = ("d_model", "num_heads", "num_layers", "head_dim", "num_axes", "max_len", "extent")
"""Names that `PositionalEncoding.size` may use, attributes of `EncodingSpec`."""


def name_of(encoding: object) -> str:
    """Return the name of an encoding, by default its class's."""
    return str(getattr(encoding, "name", type(encoding).__name__))


class EncodingError(Exception):
    """An encoding breaks the rules of its interface, or a hook returns something that it must not."""


class PositionalEncoding(nn.Module):
    """Gives a transformer the positions of its tokens. The base class gives none; override the hooks you need.

    The model calls `place`, then `prepare` when positions change, then `forward`, then `padded` where there is
    padding, and passes what that returns, the *state*, to the other hooks. It calls every hook, whatever the encoding:
    the defaults leave their input as it is. What the encoding uses of position it must take from ``positions``,
    never from the shape of its input, so that shifted, sparse and two-dimensional positions work alike.

    Content enters with root mean square 1 at initialisation. An encoding that writes to the input takes
    an option ``ratio``, the root mean square of its own part at initialisation, 1 by default: without
    such a rule a comparison of encodings is one of scales.

    An encoding that owns parameters draws them in a method ``reset_parameters``, which the model calls with a seed of
    the encoding's own. Positions are 32-bit, as angles must be, but the model may be of 16 bit: a hook returns
    what it was given in the type that it came in.

    Args:
        spec: Sizes of the model. Further options are keyword-only, with literal defaults.

    Attributes:
        axes: Numbers of position axes that it serves: 1 is text, 2 is a grid of patches.
        causal_only: It makes sense in a causal model alone.
        contextual: It counts or weighs the tokens in between, and never uses their positions.
        relative: A shift of all positions changes nothing.
        isotropic: All axes are alike: exchanging rows and columns changes nothing.
        mirror_blind: A bidirectional model with it cannot distinguish a sequence from its mirror image.
        wraps: It changes others, named in its options, and takes the attributes above and below from them.
        blind: It gives no position at all: the control.
        idle: Names of its parameters that change nothing by design, such as a number that all keys share, which
            softmax takes out again.
        beyond: Behaviour at positions outside the trained extent: ``goes on``, ``clamps`` them to the
            extent, or ``refuses`` them.
        kv_cache: How a cache of keys and values, as attention is given them, fares during generation: it
            ``works`` where those of earlier tokens stay as they are in every layer, and a next token takes nothing
            else of those tokens; it ``needs more`` beside it where it does, such as their gates; it ``goes stale``
            where they change, be it beyond the trained extent alone. A bias may be made anew from positions and keys.
        size: Number of its parameters with default options, as an expression in ``d_model``, ``num_heads``,
            ``num_layers``, ``head_dim``, ``num_axes``, ``max_len`` and ``extent``, with ``sum``, ``prod``, ``min``,
            ``max`` and ``range``.
        formula: The input of the blocks, the attention logit of query i and key j, or the positions that another
            encoding is given, in LaTeX. Not inherited.
        cite: Keys of what to cite for it, in pebench's ``references.bib``.
        aliases: Other names of it in the literature, in small letters and digits alone. Not inherited.
        mark: Place of its colour, marker and line in `pebench.results.figures.style`, as published pictures have them.
            A new encoding leaves it out: its place then follows from its name. Not inherited.
        paper: Properties that its paper gives it, read there and not in the code, so that a declaration and code that
            are wrong together are noticed: names of the true ones of the attributes above, ``refuses`` or ``clamps``,
            and ``text`` or ``images`` where it serves these alone. Not inherited.
        layouts: Names of parameters with one row for each position or offset, each with what its rows are for, one of
            ``cells``, ``axes`` and ``offsets``: they are interpolated where a model is made for another size.
        paper_size: Number of parameters by the paper, worked out by hand for a causal text model of D = 32, H = 4,
            two layers and eight positions (a grid of 3x5 where it serves images alone). Not inherited.
    """

    name: ClassVar[str]
    axes: ClassVar[tuple[int, ...]] = (1, 2)
    causal_only: ClassVar[bool] = False
    contextual: bool = False
    relative: bool = False
    isotropic: bool = False
    mirror_blind: bool = False
    wraps: ClassVar[bool] = False
    blind: bool = False
    idle: tuple[str, ...] = ()
    beyond: str = "goes on"
    kv_cache: str = "works"
    size: ClassVar[str] = "0"
    formula: ClassVar[str | None] = None
    cite: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    mark: ClassVar[int | None] = None
    paper: ClassVar[tuple[str, ...] | None] = None
    paper_size: ClassVar[int | None] = None
    layouts: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__()
        if spec.num_axes not in self.axes:
            served = " or ".join(map(str, self.axes))
            raise ValueError(
                f"encoding {name_of(self)!r} serves {served} position axes, got {spec.num_axes} (text has 1, images 2)"
            )
        if self.causal_only and not spec.causal:
            raise ValueError(f"encoding {name_of(self)!r} serves causal models alone, got a bidirectional one")
        self.spec = spec

    @property
    def content_width(self) -> int:
        """Width in which the model must embed its tokens or patches."""
        return self.spec.d_model

    @property
    def model_width(self) -> int:
        """Width of the residual stream, shared out among the heads."""
        return self.spec.d_model

    def parameter_count(self) -> int:
        """Return the number of parameters that `size` declares."""
        return evaluate(self.size, {name: getattr(self.spec, name) for name in SIZES})

    def state(self, positions: Tensor) -> Any:
        """Return the state that hooks are given for some positions: `place`, `prepare` and `forward` in turn.

        A model keeps what `prepare` returns between calls; this method keeps nothing.

        Args:
            positions: (L, P), one row per token, in units of tokens or patches.

        Raises:
            ValueError: For positions of another shape.
        """
        self.spec.check_positions(positions)
        # without gradients and in 32 bit as in the model, or a state that works here could fail there
        with torch.no_grad():
            prepared = self.prepare(self.place(positions).float())
        return self(prepared)

    def place(self, positions: Tensor) -> Tensor:
        """Return the positions that the encoding uses in place of the given ones: (L, P) to the same shape.

        Called in every forward pass, with gradients off; ``self.training`` is True in training. For
        policies, such as random positions in training; other encodings return what they are given.
        """
        return positions

    def prepare(self, positions: Tensor) -> Any:
        """Compute what the hooks need of the positions, once, as the model keeps it while they stay the same.

        By default the positions themselves. It must depend on them alone: it runs without gradients, so whatever is
        trained belongs in a hook, or in `forward` where all layers share it.

        Args:
            positions: (L, P), one row per token, in units of tokens or patches.
        """
        return positions

    def forward(self, state: Any) -> Any:
        """Compute what the hooks need of trained parameters, once in every forward pass, with gradients.

        For what all layers share: it is given what `prepare` returned, and hooks are given what it returns.
        """
        return state

    def padded(self, state: Any, valid: Tensor) -> Any:
        """Return the state for a batch with padding, for what looks at neighbours or counts tokens.

        Called after `forward` where a batch has padding, and not in others: what `forward` returns is for none.

        Args:
            state: Output of `forward`.
            valid: (B, L), False at padding.
        """
        return state

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """Change the input: (B, L, content_width) to (B, L, model_width)."""
        return x

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """Change the residual stream, before every block: (B, L, D) to the same shape.

        A hook that mixes tokens must leave out padding, and in a causal model the future.

        Args:
            x: (B, L, D).
            valid: (B, L), False at padding; None where there is none.
            state: Output of `forward`.
            layer: Index of the block, from 0.
        """
        return x

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Change queries and keys, in every layer: (B, H, L, K) each; both may widen K alike.

        Args:
            q: (B, H, L, K).
            k: (B, H, L, K).
            x: (B, L, D), whose projections queries and keys are.
            state: Output of `forward`.
            layer: Index of the block, from 0.
        """
        return q, k

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | PairBias | None:
        """Return a term of the attention logits, broadcastable to (B, H, L, L), added to q·k / sqrt(K).

        For long texts it should be of `pebench.encodings.pairs`, which need no tensor of all pairs. Arguments are
        those of `query_key`, with queries and keys as that returned them.
        """
        return None

    def value(self, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Change values, in every layer: (B, H, L, K) to the same shape. Arguments are those of `query_key`."""
        return v

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: Any, layer: int) -> Tensor:
        """Change what heads made of values `v`, before the output projection: (B, H, L, K) to the same shape."""
        return o


def query_width(encoding: PositionalEncoding, layer: int = 0) -> int:
    """Return the width of queries and keys after an encoding's hook in a layer, by calling it with one token."""
    spec, d = encoding.spec, encoding.model_width
    # asked of the hook itself and not declared: no declaration can then disagree with it
    dtype = next((parameter.dtype for parameter in encoding.parameters()), torch.float32)
    x = torch.zeros(1, 1, d, dtype=dtype)
    head = x.view(1, spec.num_heads, 1, -1)
    with torch.no_grad():
        state = encoding.state(grid_positions(spec.extent)[:1])
        return int(encoding.query_key(head, head, x, state, layer)[0].shape[-1])
