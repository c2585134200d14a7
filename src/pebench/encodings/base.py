"""The interface of a positional encoding: one preparation and a few hooks, all optional.

Letters in shapes, here and everywhere: B batch, L length in tokens, P position axes (1 for text, 2 for
patches), D model width, H heads, K head width.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from pebench.encodings.registry import load_encoding, parse_encoding
from pebench.layers import undrawable


@dataclass(frozen=True)
class EncodingSpec:
    """The model an encoding is built for.

    Args:
        d_model: Width D of the residual stream.
        num_heads: Attention heads H.
        num_layers: Number of blocks.
        extent: Positions per axis in training: ``(256,)`` for text, ``(8, 8)`` for a grid of patches.
        causal: Whether a token sees only itself and what came before.

    Raises:
        ValueError: If there is no channel, head, axis or position, fewer than no blocks, or the heads do not divide the
            width.
    """

    d_model: int
    num_heads: int
    num_layers: int
    extent: tuple[int, ...]
    causal: bool

    def __post_init__(self) -> None:
        for name, least in (("d_model", 1), ("num_heads", 1), ("num_layers", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, got {getattr(self, name)}")
        if min(self.extent, default=0) < 1:
            raise ValueError(f"extent must have 1 or more positions on each of 1 or more axes, got {self.extent}")
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model must be a multiple of num_heads, got {self.d_model} and {self.num_heads}")

    @property
    def head_dim(self) -> int:
        """Width K of a head."""
        return self.d_model // self.num_heads

    @property
    def num_axes(self) -> int:
        """Number P of position axes."""
        return len(self.extent)

    @property
    def max_len(self) -> int:
        """Number of tokens in training."""
        return prod(self.extent)


def name_of(encoding: object) -> str:
    """What to call an encoding."""
    return str(getattr(encoding, "name", type(encoding).__name__))


class EncodingError(Exception):
    """An encoding is not what it must be, or has returned what it must not."""


class PositionalEncoding(nn.Module):
    """Tells a transformer where its tokens are. As it stands it says nothing; override what you need.

    The model calls `place`, then `prepare` when positions change, then `forward`, and gives what that
    returns, the *state*, to the other hooks. It calls every hook, whatever the encoding: the defaults
    leave their input as it is. What the encoding knows of position it must take from ``positions``,
    never from the shape of its input, so that shifted, sparse and two-dimensional positions work alike.

    Content enters with root mean square 1 at initialisation. An encoding that writes to the input takes
    an option ``ratio``, the root mean square of its own part at initialisation, 1 by default: without
    such a rule a comparison of encodings is one of scales.

    One that owns parameters draws them in a method ``reset_parameters``, which the model calls with a seed of
    the encoding's own. Positions are 32-bit, as angles must be, but the model may be of 16 bit: a hook returns
    what it was given in the type that it came in.

    Args:
        spec: The model it is built for. Further options are keyword-only, with literal defaults.

    Attributes:
        axes: Numbers of position axes that it serves: 1 is text, 2 is a grid of patches.
        causal_only: Whether it makes sense in a causal model alone.
        contextual: Whether it counts or weighs the tokens in between, and never asks where they are.
        relative: Whether a shift of all positions changes nothing.
        isotropic: Whether all axes are one to it: exchanging rows and columns changes nothing.
        mirror_blind: Whether a bidirectional model with it cannot tell a sequence from its mirror image.
        wraps: Whether it changes others, named in its options, and takes the attributes above and below from them.
        blind: Whether it tells nothing at all: the control.
        idle: Names of its parameters that belong to it and yet change nothing, as a number that all keys share does,
            which softmax takes out again.
        beyond: What it does with positions outside the trained extent: ``goes on``, ``clamps`` them to the
            extent, or ``refuses`` them.
        size: Number of its parameters with default options, as an expression in ``d_model``, ``num_heads``,
            ``num_layers``, ``head_dim``, ``num_axes``, ``max_len`` and ``extent``, with ``sum``, ``prod``, ``min``,
            ``max`` and ``range``.
        cite: Keys of what to cite for it, in pebench's ``references.bib``.
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
    size: ClassVar[str] = "0"
    cite: ClassVar[tuple[str, ...]] = ()

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
        """Width of the model behind the input, of which every head has its share."""
        return self.spec.d_model

    def parameter_count(self) -> int:
        """The number of parameters that `size` declares."""
        names = ("d_model", "num_heads", "num_layers", "head_dim", "num_axes", "max_len", "extent")
        values = {name: getattr(self.spec, name) for name in names}
        functions = {"sum": sum, "prod": prod, "min": min, "max": max, "range": range}
        return int(eval(self.size, {"__builtins__": functions, **values}))

    def place(self, positions: Tensor) -> Tensor:
        """Where the encoding takes the tokens to be: (L, P) to the same shape.

        Called in every forward pass, with gradients off; ``self.training`` says whether it is one of
        training. For policies, such as random positions in training; all else returns what it gets.
        """
        return positions

    def prepare(self, positions: Tensor) -> Any:
        """What the hooks need to know of the positions, computed once and kept while they stay the same.

        By default the positions. It must depend on them alone: it runs without gradients, so whatever is
        trained belongs into a hook, or into `forward` where all layers share it.

        Args:
            positions: (L, P), one row per token, in units of tokens or patches.
        """
        return positions

    def forward(self, state: Any) -> Any:
        """What hooks need of trained parameters, computed once in every forward pass; with gradients.

        For what all layers share: it is given what `prepare` returned, and hooks are given what it returns.
        """
        return state

    def embed(self, x: Tensor, state: Any) -> Tensor:
        """Tell the input: (B, L, content_width) to (B, L, model_width)."""
        return x

    def residual(self, x: Tensor, valid: Tensor | None, state: Any, layer: int) -> Tensor:
        """Tell the residual stream, before every block: (B, L, D) to the same shape.

        What mixes tokens here must leave out those that are padding, and in a causal model the future.

        Args:
            x: (B, L, D).
            valid: (B, L), False at padding; None where there is none.
            state: From `prepare`.
            layer: The block.
        """
        return x

    def query_key(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> tuple[Tensor, Tensor]:
        """Tell queries and keys, in every layer: (B, H, L, K) each; both may widen K alike.

        Args:
            q: (B, H, L, K).
            k: (B, H, L, K).
            x: (B, L, D), what queries and keys are projections of.
            state: From `prepare`.
            layer: The block.
        """
        return q, k

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Any, layer: int) -> Tensor | None:
        """Tell the attention logits: a term, broadcastable to (B, H, L, L), added to q·k / sqrt(K).

        Args:
            q: (B, H, L, K), as `query_key` returned it.
            k: (B, H, L, K), likewise.
            x: (B, L, D), what they are projections of.
            state: From `prepare`.
            layer: The block.
        """
        return None


def check_positive(name: str, **options: float) -> None:
    """Refuse an option that is not a positive number.

    Args:
        name: Of the encoding, for the message.
        options: Values by name.

    Raises:
        ValueError: If one is zero, negative, infinite or no number.

    Example:
        >>> check_positive("rope", theta=-1.0)
        Traceback (most recent call last):
        ...
        ValueError: theta of encoding 'rope' must be positive and finite, got -1.0
    """
    for option, value in options.items():
        if not 0 < value < inf:
            raise ValueError(f"{option} of encoding {name!r} must be positive and finite, got {value}")


def check_ratio(name: str, ratio: float) -> None:
    """Refuse a ratio of root mean squares that can be none.

    Args:
        name: Of the encoding, for the message.
        ratio: Position's to content's; zero tells nothing to begin with.

    Raises:
        ValueError: If it is negative, infinite or no number.

    Example:
        >>> check_ratio("add", -1.0)
        Traceback (most recent call last):
        ...
        ValueError: ratio of encoding 'add' must be zero or more and finite, got -1.0
    """
    if not 0 <= ratio < inf:
        raise ValueError(f"ratio of encoding {name!r} must be zero or more and finite, got {ratio}")


def cells(positions: Tensor, extent: tuple[int, ...], name: str) -> Tensor:
    """Row-major numbers of the cells at `positions`, for an encoding that has a table of them.

    Args:
        positions: (L, P).
        extent: Size of each axis.
        name: Of the encoding, for the message.

    Returns:
        (L,) integers.

    Raises:
        ValueError: For a position that is negative, fractional or beyond the extent.

    Example:
        >>> cells(torch.tensor([[2.0, 1.0]]), (3, 5), "learned").tolist()
        [11]
    """
    sizes = torch.tensor(extent, device=positions.device)
    if (positions < 0).any() or (positions >= sizes).any() or (positions != positions.floor()).any():
        raise ValueError(
            f"encoding {name!r} knows the integer positions below {extent}, "
            f"got positions from {positions.amin(0).tolist()} to {positions.amax(0).tolist()}"
        )
    rows = torch.zeros(len(positions), dtype=torch.long, device=positions.device)
    for axis, size in enumerate(extent):
        rows = rows * size + positions[:, axis].long()
    return rows


def offsets(positions: Tensor) -> tuple[Tensor, Tensor]:
    """The different offsets between tokens, so that an encoding computes something for each only once.

    Args:
        positions: (L, P).

    Returns:
        (U, P), each a key's position minus a query's; and which of them every pair has: (L, L), query by key.

    Example:
        >>> different, pairs = offsets(torch.tensor([[0.0], [1.0], [2.0]]))
        >>> different.flatten().tolist(), pairs[0].tolist()
        ([-2.0, -1.0, 0.0, 1.0, 2.0], [2, 3, 4])
    """
    every = (positions.unsqueeze(0) - positions.unsqueeze(1)).flatten(0, 1)
    rows = None if every.shape[1] == 1 else 0  # numbers are sorted ten times as fast as rows of one
    different, pairs = torch.unique(every, dim=rows, return_inverse=True)
    different = different.view(-1, every.shape[1])
    return different, pairs.view(len(positions), len(positions))


def spread(table: Tensor, rows: Tensor) -> Tensor:
    """A row of a table for every pair of tokens, as a bias; its backward pass is the fast one of several.

    Args:
        table: (R, H).
        rows: (L, L), query by key.

    Returns:
        (1, H, L, L).

    Example:
        >>> spread(torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor([[[[1., 2.],
                  [2., 1.]]]])
    """
    return table.T.index_select(1, rows.flatten()).view(1, table.shape[1], *rows.shape)


def query_width(encoding: PositionalEncoding, layer: int = 0) -> int:
    """Width of queries and keys as an encoding makes them in a layer, found by giving it one."""
    spec, d = encoding.spec, encoding.model_width
    head, x = torch.zeros(1, spec.num_heads, 1, d // spec.num_heads), torch.zeros(1, 1, d)
    with torch.no_grad():
        state = encoding(encoding.prepare(encoding.place(grid_positions(spec.extent)[:1])))
        return int(encoding.query_key(head, head, x, state, layer)[0].shape[-1])


TELLING = ("place", "embed", "residual", "query_key", "bias")
"""The hooks by which an encoding tells anything."""

EncodingLike = str | Callable[..., PositionalEncoding]
"""A registered name, such a name with options, or a class (or function) that makes an encoding of a spec."""


def build_encoding(
    encoding: EncodingLike, spec: EncodingSpec, options: Mapping[str, Any] | None = None
) -> PositionalEncoding:
    """Make an encoding for a model.

    Args:
        encoding: A registered name, alone or with options, as in ``"rope(theta=500.0)"``; or a class that
            takes a spec and options.
        spec: The model.
        options: Keyword options of the encoding.

    Raises:
        UserError: For an unknown name.
        ValueError: By the encoding, where it cannot serve this model.
        EncodingError: If it tells nothing, or lacks what a model needs of it.
    """
    options = dict(options or {})
    if isinstance(encoding, str):
        name, own = parse_encoding(encoding)
        encoding, options = load_encoding(name), own | options
    built = encoding(spec, **options)
    if not isinstance(built, PositionalEncoding):
        raise TypeError(f"expected a PositionalEncoding from {encoding!r}, got {type(built).__name__}")
    if problem := _lack(built):
        raise EncodingError(f"{type(built).__name__} {problem}")
    return built


def _lack(encoding: PositionalEncoding) -> str:
    """What is missing in an encoding, in words; nothing where all is well."""
    cls = type(encoding)
    if "_parameters" not in vars(encoding):
        return "does not call super().__init__(spec) in its __init__"
    if problem := undrawable(encoding):
        return problem
    if not encoding.blind and all(getattr(cls, hook) is getattr(PositionalEncoding, hook) for hook in TELLING):
        return f"overrides none of {', '.join(TELLING)}, so that it tells nothing; a control declares `blind = True`"
    return ""


def grid_positions(extent: tuple[int, ...], device: torch.device | str | None = None) -> Tensor:
    """Integer positions of a full grid in row-major order, as floats.

    Args:
        extent: Size of each axis.
        device: Where to make them.

    Returns:
        (L, P) with L the product of the sizes.

    Example:
        >>> grid_positions((2, 2)).tolist()
        [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    axes = [torch.arange(n, device=device, dtype=torch.float32) for n in extent]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(-1, len(extent))
