"""Builds an encoding for a model, from its name or its class, and refuses one that lacks what a model needs."""

from collections.abc import Callable, Mapping
from typing import Any

from pebench.encodings.base import EncodingError, PositionalEncoding
from pebench.encodings.registry import load_encoding, normal_options, parse_encoding
from pebench.encodings.spec import EncodingSpec
from pebench.layers import undrawable

ACTING = ("place", "embed", "residual", "query_key", "bias", "value", "output")
"""Hooks of which an encoding overrides one at least."""

EncodingLike = str | Callable[..., PositionalEncoding]
"""A registered name, a name with options, or a class (or function) that makes an encoding from a spec."""


def build_encoding(
    encoding: EncodingLike, spec: EncodingSpec, options: Mapping[str, Any] | None = None
) -> PositionalEncoding:
    """Build an encoding for a model.

    Args:
        encoding: A registered name, alone or with options, as in ``"rope(theta=500.0)"``; or a class that
            takes a spec and options.
        spec: Sizes of the model.
        options: Keyword options of the encoding.

    Raises:
        UserError: For an unknown name, or an option that it does not have.
        ValueError: By the encoding, if it cannot serve this model.
        EncodingError: If it overrides no hook, or lacks what a model needs of it.
    """
    options = dict(options or {})
    if isinstance(encoding, str):
        name, own = parse_encoding(encoding)
        # options given apart override those in the name
        encoding, options = load_encoding(name), normal_options(name, own | options)
    built = encoding(spec, **options)
    if not isinstance(built, PositionalEncoding):
        raise TypeError(f"expected a PositionalEncoding from {encoding!r}, got {type(built).__name__}")
    if problem := _problem(built):
        raise EncodingError(f"{type(built).__name__} {problem}")
    return built


def _problem(encoding: PositionalEncoding) -> str:
    """Return what is missing in an encoding; empty if nothing is."""
    cls = type(encoding)
    # set by the constructor of nn.Module; without it, any parameter fails with a message about torch's internals
    if "_parameters" not in vars(encoding):
        return "does not call super().__init__(spec) in its __init__"
    if problem := undrawable(encoding):
        return problem
    if not encoding.blind and all(getattr(cls, hook) is getattr(PositionalEncoding, hook) for hook in ACTING):
        return f"overrides none of {', '.join(ACTING)}, so that it gives no position; a control declares `blind = True`"
    return ""
