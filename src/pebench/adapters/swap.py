"""Swap the positional encoding of a model that is not ours."""

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from pebench.adapters.huggingface import TextTrunk
from pebench.adapters.placed import Placed
from pebench.adapters.rotations import ModelRotation
from pebench.adapters.timm_vit import PatchTrunk
from pebench.encodings.base import EncodingError, PositionalEncoding, name_of
from pebench.encodings.build import EncodingLike, build_encoding
from pebench.encodings.registry import parse_encoding
from pebench.encodings.spec import EncodingSpec
from pebench.errors import UserError
from pebench.formatting import quoted

Model = TypeVar("Model", bound=nn.Module)


class Trunk(Protocol):
    """The part of a foreign model that hooks are placed in."""

    trunk: Any

    def spec(self, max_len: int | None) -> EncodingSpec:
        """Return the sizes of the model."""

    def unit(self) -> float:
        """Return the root mean square of the model's content."""

    def table(self) -> Tensor | None:
        """Return the model's own table of positions (L, D); None where it has none."""

    def rotation(self) -> dict[str, Any] | None:
        """Return the options of `ModelRotation` that rotate as the model itself does; None if it does not rotate."""

    def install(self, placed: Placed) -> None:
        """Turn off what the model ships with, and put an encoding in its place."""


KNOWN: dict[str, type] = {
    "transformers.models.gpt2.modeling_gpt2.GPT2Model": TextTrunk,
    "transformers.models.llama.modeling_llama.LlamaModel": TextTrunk,
    "timm.models.vision_transformer.VisionTransformer": PatchTrunk,
}
"""Classes that we know, by name as none of these libraries is imported for it, and their adapters."""


def swap(model: Model, encoding: EncodingLike, max_len: int | None = None) -> Model:
    """Give a model of another library one of our encodings in place of its own.

    The model is changed, and keeps its class and all other weights. A model that has been swapped may be again.
    What it ships with keeps the model's own weights: ``learned`` takes over its table and ``rope`` the frequencies of
    its rotations, so that the outputs stay the same; not so where you give an option that says otherwise, or once the
    model has been swapped.

    Args:
        model: A GPT2Model or LlamaModel of transformers, a VisionTransformer of timm, or any module with one in it.
        encoding: A name, alone or with options, as in ``"rope(theta=500.0)"``, or a class of yours; ``"none"`` gives
            no position at all.
        max_len: Number of tokens that a text has in training; by default the longest that the model serves.

    Returns:
        The same model.

    Raises:
        UserError: For a model that we do not know, an encoding that it cannot have, or an unknown name.
    """
    if not isinstance(model, nn.Module):
        raise UserError(f"expected a model, a torch.nn.Module, got {quoted(model)}")
    trunk = trunk_of(model)
    unit = trunk.unit()
    built = _built(encoding, trunk.spec(max_len), trunk, unit)
    weight = next(trunk.trunk.parameters())
    placed = Placed(built, unit).to(weight.device, weight.dtype).train(trunk.trunk.training)
    trunk.install(placed)
    return model


def trunk_of(model: nn.Module) -> Trunk:
    """Return the adapter of the one trunk in a model that we know.

    Raises:
        UserError: If there is none, or more than one.
    """
    found = [(KNOWN[name], module) for module in model.modules() for name in _names(module) if name in KNOWN]
    if len(found) != 1:
        known = ", ".join(sorted(name.rpartition(".")[2] for name in KNOWN))
        got = f"{type(model).__name__} with {len(found)} of them" if found else type(model).__name__
        raise UserError(
            f"expected a model with one {known} in it, got {got}. A model of your own calls the hooks of an encoding "
            "itself: see the guide 'Your own model'"
        )
    adapter, module = found[0]
    made: Trunk = adapter(model, module)
    return made


def _names(module: nn.Module) -> list[str]:
    return [f"{cls.__module__}.{cls.__qualname__}" for cls in type(module).__mro__]


def _built(encoding: EncodingLike, spec: EncodingSpec, trunk: Trunk, unit: float) -> PositionalEncoding:
    """Return the encoding, built for the model, with the model's own weights where it is what that ships with.

    Raises:
        UserError: If the model cannot have it.
    """
    name, given = parse_encoding(encoding) if isinstance(encoding, str) else ("", {})
    own: dict[str, Any] = {}
    table = trunk.table()
    if name != "learned" or given.keys() & {"ratio", "start", "pace"}:
        table = None
    if table is not None:
        own["pace"] = 1 / unit  # the table is then stored as the model has it, and moves in training as it did
    if name == "rope" and "theta" not in given and (rotation := trunk.rotation()) is not None:
        encoding, own = ModelRotation, given | rotation
    try:
        built = build_encoding(encoding, spec, own)
    except (ValueError, TypeError, EncodingError) as error:
        raise UserError(f"this model cannot have the encoding: {error}") from error
    for width, role in ((built.content_width, "embeds"), (built.model_width, "mixes")):
        if width != spec.d_model:
            raise UserError(
                f"encoding {name_of(built)!r} needs a model that {role} tokens in {width} channels, got one of "
                f"{spec.d_model} whose weights fix its width"
            )
    if table is not None:
        _fill(built, table)
    return built


def _fill(learned: PositionalEncoding, table: Tensor) -> None:
    """Copy a model's own table of positions (L, D) into an encoding."""
    rows = learned.spec.max_len
    if rows > len(table):
        raise UserError(
            f"max_len must be at most {len(table)}, the rows of the model's own table, got {rows}; "
            "learned(ratio=1.0, start='normal', pace=1.0) draws a new one"
        )
    with torch.no_grad():
        next(learned.parameters()).copy_(table[:rows])
