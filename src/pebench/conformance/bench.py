"""What properties are tested with: small models of one encoding, and two ways to compare what they say."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingLike, EncodingSpec, PositionalEncoding, build_encoding, grid_positions
from pebench.encodings.registry import load_encoding, parse_encoding
from pebench.layers import initialise
from pebench.models.transformer import Transformer

SAME = 2e-5
"""How far apart outputs may be that are to be the same: outputs are of scale 1, and 32-bit noise is a tenth of this."""

DIFFERENT = 1e-3
"""How far apart outputs must be that are to differ. What lies between is neither, and breaks both."""


class BrokenError(Exception):
    """A property does not hold.

    Args:
        expected: What was expected.
        got: What was got.

    Attributes:
        property: Name of the property.
        setting: Name of the setting in which it was tested.
    """

    property = setting = ""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(expected, got)
        self.expected, self.got = expected, got

    def __str__(self) -> str:
        return f"{self.property} ({self.setting}): expected {self.expected}, got {self.got}"


@dataclass(frozen=True)
class Setting:
    """A kind of model that an encoding may serve.

    Args:
        name: For messages.
        extent: Positions per axis in training.
        causal: Whether a token sees only the past.
    """

    name: str
    extent: tuple[int, ...]
    causal: bool

    @property
    def spec(self) -> EncodingSpec:
        """A small model of this kind."""
        return EncodingSpec(d_model=32, num_heads=4, num_layers=2, extent=self.extent, causal=self.causal)


SETTINGS = (
    Setting("causal text", (8,), True),
    Setting("text", (8,), False),
    Setting("grid", (3, 5), False),
    Setting("causal grid", (3, 5), True),
)


@dataclass(frozen=True)
class Subject:
    """An encoding to be tested.

    Args:
        encoding: A registered name, alone or with options, or a class (or function) that makes one of a spec.
        options: Keyword options of it.
    """

    encoding: EncodingLike
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """All options that do not have their defaults."""
        own = parse_encoding(self.encoding)[1] if isinstance(self.encoding, str) else {}
        return own | dict(self.options)

    @property
    def maker(self) -> Any:
        """The class, or function."""
        return load_encoding(parse_encoding(self.encoding)[0]) if isinstance(self.encoding, str) else self.encoding

    @property
    def name(self) -> str:
        """What to call it."""
        fallback = getattr(self.encoding, "__name__", "encoding")
        return self.encoding if isinstance(self.encoding, str) else getattr(self.encoding, "name", fallback)

    def build(self, spec: EncodingSpec, **options: Any) -> PositionalEncoding:
        """One for a model; `options` are added to its own."""
        return build_encoding(self.encoding, spec, {**self.options, **options})

    def declares(self, setting: Setting) -> bool:
        """Whether its class says that it serves such models; a function says nothing and is believed."""
        axes, causal_only = getattr(self.maker, "axes", (1, 2)), getattr(self.maker, "causal_only", False)
        return len(setting.extent) in axes and (setting.causal or not causal_only)

    def serves(self, setting: Setting) -> bool:
        """Whether it does not refuse such models; that it can be built is the first property."""
        try:
            self.build(setting.spec)
        except ValueError:
            return False
        except Exception:
            return True
        return True


class Bench:
    """Models of one encoding in one setting; those that all properties share are built once.

    Args:
        subject: The encoding.
        setting: The kind of model.
    """

    def __init__(self, subject: Subject, setting: Setting) -> None:
        self.subject, self.setting, self.spec = subject, setting, setting.spec
        self.extent, self.causal = setting.extent, setting.causal
        self.length = math.prod(setting.extent)

    @functools.cached_property
    def encoding(self) -> PositionalEncoding:
        """An instance, for what it declares."""
        return self.subject.build(self.spec)

    @functools.cached_property
    def model(self) -> Transformer:
        """A trunk, in evaluation, that properties leave as it is."""
        return self.trunk()

    @functools.cached_property
    def roomy(self) -> Transformer:
        """A trunk trained for three times the extent, so that sparse positions are within it."""
        return self.trunk(extent=tuple(3 * n for n in self.extent))

    @functools.cached_property
    def content(self) -> Tensor:
        """Content of a few tokens' sequences: (3, L, content_width)."""
        return self.noise(3)

    @functools.cached_property
    def positions(self) -> Tensor:
        """The default ones: (L, P)."""
        return grid_positions(self.extent)

    def trunk(self, seed: int = 0, options: Mapping[str, Any] | None = None, **changes: Any) -> Transformer:
        """A trunk of its own, its parameters moved from where they start.

        Args:
            seed: Of the parameters.
            options: Of the encoding, added to its own.
            changes: What its spec has different.
        """
        spec = replace(self.spec, **changes)
        return perturbed(Transformer(self.subject.build(spec, **(options or {}))), seed)

    def noise(self, batch: int, length: int | None = None, seed: int = 2) -> Tensor:
        """Content (batch, length, content_width) from N(0, 1)."""
        return noise(batch, length or self.length, self.encoding.content_width, seed=seed)


def perturbed(model: Any, seed: int = 0) -> Any:
    """A model in evaluation with parameters away from their initial values, where symmetries may hold by chance."""
    initialise(model, seed)
    random = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            width = parameter.shape[-1] if parameter.ndim else 1
            parameter += min(0.2, width**-0.5) * torch.randn(parameter.shape, generator=random)
    return model.eval()


def noise(*shape: int, seed: int = 2) -> Tensor:
    """Numbers from N(0, 1)."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def shuffled(n: int) -> Tensor:
    """An order of n things that leaves few in their place."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(3))


def gap(a: Tensor, b: Tensor) -> float:
    """Largest difference between two tensors of one shape; not a number where they hold such."""
    if a.shape != b.shape:
        raise BrokenError(f"outputs of one shape, {tuple(b.shape)}", f"{tuple(a.shape)}")
    return (a.detach().float() - b.detach().float()).abs().max().item()


def same(a: Tensor, b: Tensor, expected: str, tolerance: float = SAME) -> None:
    """Break unless two outputs are the same up to rounding."""
    if not (found := gap(a, b)) <= tolerance:
        raise BrokenError(expected, f"a difference of {found:.2g}, above {tolerance:g}")


def differ(a: Tensor, b: Tensor, expected: str) -> None:
    """Break unless two outputs differ by far more than rounding."""
    if not (found := gap(a, b)) > DIFFERENT:
        raise BrokenError(expected, f"a difference of {found:.2g}, not above {DIFFERENT:g}")


def holds(condition: bool, expected: str, got: object) -> None:
    """Break unless the condition holds."""
    if not condition:
        raise BrokenError(expected, str(got))


def parts(module: nn.Module) -> list[PositionalEncoding]:
    """An encoding and those inside it."""
    return [part for part in module.modules() if isinstance(part, PositionalEncoding)]
