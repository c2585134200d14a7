"""``pebench plot-encoding``: the picture of an encoding, or of several on one scale."""

import argparse
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebench.cli.verify import read_options
from pebench.encodings.registry import encoding_card
from pebench.errors import UserError
from pebench.formatting import format_encoding

if TYPE_CHECKING:
    from pebench.encodings.base import EncodingSpec
    from pebench.encodings.effects import Effect

SUFFIXES = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Suffixes of pictures, and the metadata to leave out so that a picture has the same bytes every day."""

LONGEST = 2048
"""Largest number of positions; every pair of them has a pixel."""


def plot_command(options: argparse.Namespace) -> int:
    """Write the picture of an encoding, or of several on one scale."""
    chosen = {}
    for text in options.encodings:
        name, values = read_options(text, options.settings)
        chosen[format_encoding(name, values)] = name, values
    output = options.output or Path(re.sub(r"[^\w.-]+", "_", "-".join(options.encodings)) + ".svg")
    if output.suffix.lower() not in SUFFIXES:
        raise UserError(f"--output must end in {', '.join(SUFFIXES)}, got {str(output)!r}.")
    import matplotlib

    from pebench.results.figures.encoding import draw, draw_together

    found = {label: _measured(name, values, options) for label, (name, values) in chosen.items()}
    notes = list(dict.fromkeys(note for _, note in found.values()))
    extents = {effect.extent for effects, _ in found.values() for effect in effects}
    if len(extents) > 1:
        raise UserError(
            f"expected encodings of text alone or of grids alone in one picture, got both: {', '.join(found)}. "
            "--grid draws all of them on a square of patches."
        )
    if len(found) == 1:
        figure = draw(next(iter(found.values()))[0], next(iter(found)), notes[0])
    else:
        each = {label: effects for label, (effects, _) in found.items()}
        figure = draw_together(each, f"{', '.join(found)}, on one scale", "\n".join(notes))
    output.parent.mkdir(parents=True, exist_ok=True)
    # The ids in an SVG are random without a salt, and the file would differ each time.
    with matplotlib.rc_context({"svg.hashsalt": "pebench"}):
        figure.savefig(output, dpi=200, metadata=SUFFIXES[output.suffix.lower()])
    sys.stdout.write(f"{output}\n")
    return 0


def _measured(name: str, values: Mapping[str, Any], options: argparse.Namespace) -> "tuple[list[Effect], str]":
    """Return the effects of an encoding, and the small print of its picture.

    Raises:
        UserError: If it cannot be built, has no effect, or raises anything.
    """
    import torch

    from pebench.encodings.build import build_encoding
    from pebench.encodings.checks import blame
    from pebench.encodings.effects import effects
    from pebench.models.transformer import Transformer

    try:
        spec = _spec(name, options)
        encoding = build_encoding(name, spec, dict(values))
        with torch.no_grad():  # which checks what hooks return
            Transformer(encoding).eval()(torch.zeros(1, spec.max_len, encoding.content_width, dtype=torch.float32))
        found = effects(encoding, options.seed)
    except UserError:
        raise
    except Exception as error:  # one's own encoding may raise anything
        raise UserError(str(error) if isinstance(error, ValueError) else blame(error)) from error
    redrawn = any(effect.redrawn for effect in found)
    return found, _note(spec, redrawn, sum(p.numel() for p in encoding.parameters()) > 0)


def _spec(name: str, options: argparse.Namespace) -> "EncodingSpec":
    """Return the model that the encoding is drawn in.

    Raises:
        UserError: For a length that is too long, or not a square where a grid is asked for.
        ValueError: If the heads do not divide the width.
    """
    from pebench.encodings.base import EncodingSpec

    declared, length = encoding_card(name).declared, options.length
    if not 2 <= length <= LONGEST:
        raise UserError(f"--length must be from 2 to {LONGEST} positions, got {length}.")
    extent: tuple[int, ...] = (length,)
    if options.grid or declared["axes"] == (2,):
        side = math.isqrt(length)
        if side**2 != length:
            raise UserError(f"on a grid --length must be a square, such as {side**2}, got {length}.")
        extent = (side, side)
    return EncodingSpec(
        d_model=options.d_model, num_heads=options.heads, num_layers=4, extent=extent,
        causal=options.causal or declared["causal_only"],
    )  # fmt: skip


def _note(spec: "EncodingSpec", redrawn: bool, trained: bool) -> str:
    """Return the small print of the picture: the size of the model, and how its parameters were drawn."""
    model = f"width {spec.d_model}, {spec.num_heads} heads, {' x '.join(map(str, spec.extent))} positions"
    if redrawn:
        return f"{model}; untrained, parameters drawn from N(0, 0.01): as initialised it tells nothing"
    return f"{model}; untrained" if trained else model
