"""Small models of one encoding, which the properties are tested with."""

import contextlib
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding, grid_positions
from pebench.encodings.build import EncodingLike, build_encoding
from pebench.encodings.registry import load_encoding, parse_encoding
from pebench.layers import initialise
from pebench.models.transformer import Transformer


@dataclass(frozen=True)
class Setting:
    """A kind of model that an encoding may serve.

    Args:
        name: Name in messages.
        extent: Number of training positions on each axis.
        causal: True if a token attends to the past alone.
    """

    name: str
    extent: tuple[int, ...]
    causal: bool

    @property
    def spec(self) -> EncodingSpec:
        """Specification of a small model of this kind."""
        return EncodingSpec(d_model=32, num_heads=4, num_layers=2, extent=self.extent, causal=self.causal)


SETTINGS = (
    Setting("causal text", (8,), True),
    Setting("text", (8,), False),
    # sides that differ, so that exchanged axes do not go unnoticed
    Setting("grid", (3, 5), False),
    Setting("causal grid", (3, 5), True),
)


DEFAULTS = (torch.bfloat16, torch.float16, torch.float64)
"""Types that Lightning makes torch's default, by its precisions ``bf16-true``, ``16-true`` and ``64-true``."""


@dataclass(frozen=True)
class Subject:
    """An encoding under test.

    Args:
        encoding: A registered name, alone or with options, or a class or function that builds an encoding from a spec.
        options: Keyword options of the encoding.
    """

    encoding: EncodingLike
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """All options that are set explicitly, in the name or apart from it."""
        own = parse_encoding(self.encoding)[1] if isinstance(self.encoding, str) else {}
        return own | dict(self.options)

    @property
    def maker(self) -> Any:
        """The class or function that builds the encoding."""
        return load_encoding(parse_encoding(self.encoding)[0]) if isinstance(self.encoding, str) else self.encoding

    @property
    def name(self) -> str:
        """Name of the encoding for messages."""
        fallback = getattr(self.encoding, "__name__", "encoding")
        return self.encoding if isinstance(self.encoding, str) else getattr(self.encoding, "name", fallback)

    def build(self, spec: EncodingSpec, **options: Any) -> PositionalEncoding:
        """Build the encoding for a model; `options` override its own."""
        return build_encoding(self.encoding, spec, {**self.options, **options})

    def declares(self, setting: Setting) -> bool:
        """Return True if its class declares that it serves such models.

        A function declares nothing, so it is assumed to serve all.
        """
        axes, causal_only = getattr(self.maker, "axes", (1, 2)), getattr(self.maker, "causal_only", False)
        return len(setting.extent) in axes and (setting.causal or not causal_only)

    def serves(self, setting: Setting) -> bool:
        """Return True unless building the encoding for such a model raises ValueError.

        Another exception is a fault of the encoding and no refusal: the first property reports it.
        """
        try:
            self.build(setting.spec)
        except ValueError:
            return False
        except Exception:
            return True
        return True


class Bench:
    """Models of one encoding in one setting; those that several properties use are built once.

    Args:
        subject: The encoding under test.
        setting: The kind of model.
    """

    def __init__(self, subject: Subject, setting: Setting) -> None:
        self.subject, self.setting, self.spec = subject, setting, setting.spec
        self.extent, self.causal = setting.extent, setting.causal
        self.length = math.prod(setting.extent)

    @functools.cached_property
    def encoding(self) -> PositionalEncoding:
        """An instance to read declarations from."""
        return self.subject.build(self.spec)

    @property
    def builds(self) -> bool:
        """True if the encoding can be built; the property "constructs" reports why not."""
        try:
            return bool(self.encoding)
        except Exception:
            return False

    @property
    def larger(self) -> EncodingSpec:
        """A larger spec. Each of its sizes is another, so that no formula is right by taking one for the other."""
        return EncodingSpec(36, 3, 5, tuple(n + 4 for n in self.extent), self.causal)

    @functools.cached_property
    def model(self) -> Transformer:
        """A trunk in evaluation mode, which properties must leave as it is."""
        return self.trunk()

    @functools.cached_property
    def roomy(self) -> Transformer:
        """A trunk trained for three times the extent, so that sparse positions lie within it."""
        return self.trunk(extent=tuple(3 * n for n in self.extent))

    @functools.cached_property
    def content(self) -> Tensor:
        """Content of three sequences: (3, L, content_width)."""
        return self.noise(3)

    @functools.cached_property
    def positions(self) -> Tensor:
        """The default positions: (L, P)."""
        return grid_positions(self.extent)

    def trunk(self, seed: int = 0, options: Mapping[str, Any] | None = None, **changes: Any) -> Transformer:
        """Build a new trunk with perturbed parameters.

        Args:
            seed: Seed of the parameters.
            options: Options of the encoding that override its own.
            changes: Fields of the spec that differ from the setting's.
        """
        spec = replace(self.spec, **changes)
        return perturbed(Transformer(self.subject.build(spec, **(options or {}))), seed)

    def noise(self, batch: int, length: int | None = None, seed: int = 2) -> Tensor:
        """Return content (batch, length, content_width) drawn from N(0, 1)."""
        return noise(batch, length or self.length, self.encoding.content_width, seed=seed)


def perturbed(model: Any, seed: int = 0) -> Any:
    """Initialise a model, add noise to its parameters, and return it in evaluation mode.

    Initial values such as 0 and 1 make some outputs equal by chance, and would hide a fault.
    """
    initialise(model, seed)
    random = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            # as loud as a layer's weights usually are, so that 32-bit and 16-bit tolerances hold for all encodings
            width = parameter.shape[-1] if parameter.ndim else 1
            drawn = torch.randn(parameter.shape, generator=random, dtype=torch.float32)
            parameter += min(0.2, width**-0.5) * drawn
    return model.eval()


def noise(*shape: int, seed: int = 2) -> Tensor:
    """Return numbers of this shape drawn from N(0, 1)."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make the tensors of this type that are made without one, as Lightning does in 16 bit and in 64."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def shuffled(n: int) -> Tensor:
    """Return a fixed permutation of n indices that leaves few in their place."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(3))


def parts(module: nn.Module) -> list[PositionalEncoding]:
    """Return an encoding and all encodings inside it."""
    return [part for part in module.modules() if isinstance(part, PositionalEncoding)]
