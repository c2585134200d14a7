"""What the golden tests share: an encoding whose every parameter has moved, and what attention makes of it."""

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from pebench.encodings import EncodingSpec, PositionalEncoding, build_encoding
from pebench.layers import initialise

Position = tuple[float, ...]
Vector = list[float]
Matrix = list[Vector]

TEXT: list[Position] = [(0.0,), (1.0,), (2.5,), (7.0,), (300.0,)]
GRID: list[Position] = [(0.0, 0.0), (0.0, 4.0), (2.0, 1.0), (1.0, 2.0), (0.5, 40.0)]
TEXT_CELLS: list[Position] = [(0.0,), (4.0,), (8.0,), (3.0,), (7.0,)]
GRID_CELLS: list[Position] = [(0.0, 0.0), (0.0, 4.0), (2.0, 1.0), (1.0, 2.0), (8.0, 8.0)]

text_and_grid = pytest.mark.parametrize("positions", [TEXT, GRID], ids=["text", "grid"])
text_and_grid_cells = pytest.mark.parametrize("positions", [TEXT_CELLS, GRID_CELLS], ids=["text", "grid"])
both_ways = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
each_layer = pytest.mark.parametrize("layer", [0, 1])


def noise(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def fresh(
    name: str,
    extent: tuple[int, ...] = (9,),
    *,
    causal: bool = False,
    width: int = 24,
    heads: int = 2,
    layers: int = 2,
    **options: Any,
) -> PositionalEncoding:
    encoding = build_encoding(name, EncodingSpec(width, heads, layers, extent, causal), options)
    initialise(encoding, seed=0)
    return encoding


def moved(encoding: PositionalEncoding) -> PositionalEncoding:
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=random)
    return encoding.eval()


def encode(name: str, positions: Sequence[Position], extent: tuple[int, ...] = (), **settings: Any) -> Any:
    return moved(fresh(name, extent or (9,) * len(positions[0]), **settings))


def numbers(tensor: Tensor) -> Any:
    return tensor.detach().double().tolist()


def state_of(encoding: PositionalEncoding, positions: Sequence[Position]) -> Any:
    with torch.no_grad():
        return encoding.state(torch.tensor(positions))


@dataclass
class Attention:
    """One layer's queries, keys and input as lists, head by head; what the encoding made of them as tensors."""

    q: list[Matrix]
    k: list[Matrix]
    x: Matrix
    encoded: tuple[Tensor, Tensor]
    bias: Tensor | None
    logits: Tensor
    causal: bool

    def check(self, rule: Callable[[int, int, int], float], tolerance: float = 1e-5) -> None:
        """Logits are those of a rule of head, query and key, wherever a query may look."""
        heads, length = self.logits.shape[:2]
        for h in range(heads):
            for i in range(length):
                for j in range(i + 1 if self.causal else length):
                    found = self.logits[h, i, j].item()
                    assert found == pytest.approx(rule(h, i, j), abs=tolerance), f"head {h}, query {i}, key {j}"

    def content(self, h: int, i: int, j: int) -> float:
        """q·k / sqrt(K), the logit without an encoding."""
        return dot(self.q[h][i], self.k[h][j]) * len(self.q[h][i]) ** -0.5

    def check_bias(self, rule: Callable[[int, int, int], float], tolerance: float = 1e-5) -> None:
        """Logits are q·k / sqrt(K) plus a rule, and queries and keys are as they were."""
        assert numbers(self.encoded[0]) == self.q
        assert numbers(self.encoded[1]) == self.k
        self.check(lambda h, i, j: self.content(h, i, j) + rule(h, i, j), tolerance)


def attend(encoding: PositionalEncoding, positions: Sequence[Position], layer: int = 0) -> Attention:
    """What `SelfAttention` gives to softmax, of the second of two samples."""
    spec, length = encoding.spec, len(positions)
    q, k = (noise(2, spec.num_heads, length, spec.head_dim, seed=seed) for seed in (2, 3))
    x, state = noise(2, length, spec.d_model, seed=4), state_of(encoding, positions)
    with torch.no_grad():
        encoded = encoding.query_key(q, k, x, state, layer)
        bias = encoding.bias(*encoded, x, state, layer)
    logits = encoded[0].double() @ encoded[1].double().mT * spec.head_dim**-0.5
    if bias is not None:
        bias = bias.expand(2, spec.num_heads, length, length)[1]
        logits = logits + bias
    ours = numbers(q[1]), numbers(k[1]), numbers(x[1])
    return Attention(*ours, (encoded[0][1], encoded[1][1]), bias, logits[1], spec.causal)


def assert_rows(found: Tensor, expected: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(
        found.detach().double(), torch.tensor(expected, dtype=torch.float64), atol=tolerance, rtol=0
    )


def dot(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def times(matrix: Matrix, vector: Vector) -> Vector:
    return [dot(row, vector) for row in matrix]


def plus(a: Vector, b: Vector) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def share(vector: Vector, head: int, heads: int) -> Vector:
    """The channels of one head."""
    width = len(vector) // heads
    return vector[head * width : (head + 1) * width]


def wave(position: Position, width: int, base: float = 10000.0, ratio: float = 1.0) -> Vector:
    """sqrt(2) ratio (sin, cos) of every frequency, axis after axis."""
    n, row = width // len(position), []
    for p in position:
        for i in range(n // 2):
            angle = p * base ** (-2 * i / n)
            row += [math.sqrt(2) * ratio * math.sin(angle), math.sqrt(2) * ratio * math.cos(angle)]
    return row


def pairs(vector: Vector) -> list[complex]:
    """Channels c and c + K/2 as one complex number."""
    half = len(vector) // 2
    return [complex(vector[c], vector[c + half]) for c in range(half)]


def rotated(vector: Vector, angles: Vector) -> Vector:
    turned = [z * cmath.exp(1j * angle) for z, angle in zip(pairs(vector), angles, strict=True)]
    return [z.real for z in turned] + [z.imag for z in turned]


def by_angle(seen: Attention, angles: list[Vector], growth: float = 1.0) -> Callable[[int, int, int], float]:
    """The logit of rotary encodings: the real part of q times k's conjugate, turned by the angle between them."""

    def rule(h: int, i: int, j: int) -> float:
        terms = zip(pairs(seen.q[h][i]), pairs(seen.k[h][j]), angles[i], angles[j], strict=True)
        total = math.fsum((q * k.conjugate() * cmath.exp(1j * (a - b))).real for q, k, a, b in terms)
        return growth**2 * total * len(seen.q[h][i]) ** -0.5

    return rule


def rope_angles(positions, n=6, theta=10000.0):
    n //= len(positions[0])
    theta = theta if len(positions[0]) == 1 else 100.0
    return [[p * theta ** (-i / n) for p in position for i in range(n)] for position in positions]


def alibi(positions, heads=2):
    return lambda h, i, j: -(2 ** (-8 * (h + 1) / heads)) * math.dist(positions[i], positions[j])
