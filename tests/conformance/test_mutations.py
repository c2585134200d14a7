"""Faults seeded into the source of encodings: the conformance suite must notice every one of them.

A mutant is the real file with one replacement, executed as a module. What stays consistent with itself, such as
another base of the frequencies, is another encoding and no broken one: no property can object to it. For those the
examples of the mutated module are run, whose numbers are worked out by hand.
"""
# ruff: noqa: E501 - a fault is a line

import doctest
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from unittest import mock

import pytest

import pebench.encodings
from pebench.conformance import Bench, BrokenError, Setting, Subject, check, checks
from pebench.encodings import PositionalEncoding
from pebench.encodings.registry import encoding_cards, load_encoding
from tests.sampling import sampled

FOLDER = Path(pebench.encodings.__file__).parent
REAL = [load_encoding(name) for name in encoding_cards()]  # before any of them is imported by a mutant


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Args:
        kind: What is wrong.
        file: Where, without ``.py``.
        old: What is there; once.
        new: What is there instead.
        through: File of the encoding that shows it, where that is another.
    """

    kind: str
    file: str
    old: str
    new: str
    through: str = ""

    def __str__(self) -> str:
        return f"{self.through or self.file}: {self.kind}".replace(" ", "_")


BROKEN = [
    # signs and directions
    Mutant("keys turned backwards", "rope", "rotate(k, *state)", "rotate(k, state[0], -state[1])"),
    Mutant("half of a rotation's sign", "rope", "torch.cat((-sin, sin), dim=-1)", "torch.cat((sin, sin), dim=-1)"),
    Mutant("decay on queries alone", "xpos", "rotate(k, *state[2:])", "rotate(k, *state[:2])"),
    Mutant("decay of one sign", "xpos", "sin / decay", "sin * decay"),
    Mutant("keys at minus their phase", "pope", "polar(k, state +", "polar(k, -state +"),
    Mutant("says nothing in training", "sandwich", "return state", "return 0 * state if self.training else state"),
    # told to one side only
    Mutant("q told but not k", "rope", "return rotate(q, *state), rotate(k, *state)", "return rotate(q, *state), k"),
    Mutant("k told but not q", "lie_re", "return self._turn(q, state), self._turn(k, state)", "return q, self._turn(k, state)"),
    Mutant("q told but not k", "rope_mixed", "rotate(k, cos, sin)", "k"),
    # axes
    Mutant("rows alone", "rope_mixed", "state[:, :1] * rows + state[:, 1:] * columns", "state[:, :1] * (rows + columns)"),
    Mutant("columns alone", "alibi", "torch.linalg.vector_norm(different, dim=-1)", "different[..., -1].abs()"),
    Mutant("distance by row, then column", "kerple", ".norm(dim=-1, keepdim=True)", ".mul(torch.tensor([1.0, 2.0])[: positions.shape[1]]).norm(dim=-1, keepdim=True)"),
    Mutant("column forgotten", "raster", "number * spans[axis].clamp(min=size) + positions[:, axis : axis + 1]", "number * spans[axis].clamp(min=size) + positions[:, :1] * (axis == 0)"),
    Mutant("rows and columns share a table", "axial_learned", "positions.long() + starts", "positions.long()"),
    # shapes taken for what they are not
    Mutant("indexed by batch", "add", "torch.add(state.to(x.dtype), x", "torch.add(state.to(x.dtype)[: len(x), None], x"),
    Mutant("indexed by batch", "learned", "self.table[state] * self.pace", "self.table[: len(x), None] * self.pace"),
    Mutant("the number of tokens for positions", "add", "sinusoid(positions, self", "sinusoid(positions * 0 + positions.new_tensor(range(len(positions)))[:, None], self"),
    Mutant("positions from the sequence", "t5_bias", "unique_offsets(positions)", "unique_offsets(torch.arange(len(positions)).float()[:, None].expand_as(positions))"),
    Mutant("batch mixed in", "cope", "gates.flip(-1).cumsum(dim=-1).flip(-1)", "gates.mean(0, keepdim=True).expand_as(gates).flip(-1).cumsum(dim=-1).flip(-1)"),
    Mutant("sum over the batch", "fox", ".cumsum(dim=1)", ".cumsum(dim=0)"),
    # state kept too long, or by too many
    Mutant("stale state by length", "add", "        waves = sinusoid(positions, self.d_p, self.base, self.ratio * self.gain, self.slowest_of, self.center)", "        self.kept = getattr(self, 'kept', {})\n        waves = self.kept.setdefault(len(positions), sinusoid(positions, self.d_p, self.base, self.ratio * self.gain))"),
    Mutant("stale state for ever", "alibi", "        different, pairs = unique", "        positions = self.__dict__.setdefault('kept', positions)[: len(positions)]\n        different, pairs = unique"),
    Mutant("a table for all instances", "rope", "return in_32_bit(angles.cos(), positions.device), in_32_bit(angles.sin(), positions.device)", "return RotaryEncoding.prepare.__dict__.setdefault(str(positions.tolist()), (angles.cos().float(), angles.sin().float()))"),
    Mutant("kept by position for ever", "kerple", "        different, pairs = unique", "        self.kept = [*getattr(self, 'kept', []), positions + 0]\n        different, pairs = unique"),
    Mutant("kept in the class for ever", "add", "        waves = sinusoid(", "        type(self).kept = [*getattr(self, 'kept', []), 0]\n        waves = sinusoid("),
    Mutant("a table for all instances", "sandwich", "return pair_bias(in_32_bit((products - half) / rates, positions.device), which)", "return SandwichEncoding.prepare.__dict__.setdefault(str(positions.tolist()), pair_bias(((products - half) / rates).float(), which))"),
    Mutant("places of training in evaluation", "randomized", "torch.Generator().manual_seed(1000 * axis + size)", "torch.default_generator"),
    # gradients
    Mutant("no gradient", "learned", "self.table[state]", "self.table.detach()[state]"),
    Mutant("no gradient", "t5_bias", "torch.stack(axes)", "torch.stack(axes).detach()"),
    Mutant("no gradient for keys", "concat_qk", "self._project(state, table[layer]) for table in (self.queries, self.keys)", "self._project(state, table[layer]) for table in (self.queries, self.keys.detach())"),
    Mutant("trained, but prepared", "shaw", "queries] @ table.to(q.dtype).T", "queries] @ table.to(q.dtype).T.data"),
    Mutant("clamped at its start", "pope", "self.delta.float()", "self.delta.float().clamp(-6.28, 0)"),
    Mutant("dead below the least", "kerple", "x + (x.clamp(min=least) - x).detach()", "x.clamp(min=least)"),
    Mutant("zero at the start, for ever", "kerple", "-p * torch.log1p(a * distance)", "-p * torch.log1p(a * distance) * 0"),
    Mutant("both factors zero at first", "position_matrix", "nn.init.normal_(self.left, std=self.rank**-0.5)\n        nn.init.normal_(self.right, std=self.spec.d_model**-0.5)", "nn.init.zeros_(self.left)\n        nn.init.zeros_(self.right)"),
    Mutant("gate never opens", "gated_add", ".sigmoid() * state", ".sigmoid() * 0 * state"),
    # layers and heads
    Mutant("the first layer for all", "kerple", "values[layer]", "values[0]"),
    Mutant("the first layer for all", "swin_bias", "self.table[layer]", "self.table[0]"),
    Mutant("the next layer", "log_cpb", "self.second[layer]", "self.second[0]"),
    Mutant("one head for all", "t5_bias", "sum(dim=0), pairs", "sum(dim=0)[:, :1], pairs"),
    Mutant("one head for all", "rope_mixed", "self.frequencies[layer].float()", "self.frequencies[layer, :, :1].float()"),
    Mutant("heads and layers exchanged", "transformer_xl", "self.v[layer].to(q.dtype)", "self.v[0].to(q.dtype)"),
    # numbers
    Mutant("phases in 16 bit", "rope", "angles.cos(), positions.device), in_32_bit(angles.sin()", "angles.bfloat16().cos(), positions.device), in_32_bit(angles.bfloat16().sin()"),
    Mutant("waves in 16 bit", "sinusoid", "positions.unsqueeze(-1) * frequencies", "(positions.unsqueeze(-1).bfloat16() * frequencies.bfloat16()).double()", "add"),
    Mutant("angles in the heads' precision", "lie_re", "(state[:, :, None, None, None] * skew)", "(state[:, :, None, None, None].bfloat16().double() * skew)"),
    Mutant("rotated in the wrong type", "rope", "return turned.to(x.dtype)", "return turned"),
    Mutant("infinite bias", "fire", "torch.log1p(c * back.abs())", "torch.log(c * back.abs())"),
    Mutant("slopes of the default type", "alibi", "device=positions.device, dtype=torch.float32)", "device=positions.device)"),
    Mutant("rates of the default type", "sandwich", "device=distance.device, dtype=torch.float32)", "device=distance.device)"),
    Mutant("drawn in the default type", "rope_mixed", "torch.arange(quarter, dtype=torch.float32)", "torch.arange(quarter)"),
    # the future, padding, the past
    Mutant("sees the future", "cpe", "if self.spec.causal:", "if False:"),
    Mutant("mixes padding", "cpe", "x if valid is None else", "x if True else"),
    Mutant("counts the future", "cope", ".sigmoid().tril()", ".sigmoid()"),
    Mutant("forgets by the mean of all", "fox", "F.logsigmoid(gates)", "F.logsigmoid(gates - gates.mean(1, keepdim=True))"),
    Mutant("never sees far", "alibi", "return state", "return state.masked_fill(state < -0.02, -1e30)"),
    Mutant("causal where it is not", "sandwich", "return state", "return state + torch.full_like(state, -1e30).triu(1)"),
    Mutant("depends on the length", "xpos", "cos / decay, sin / decay", "cos * decay, sin * decay"),
    Mutant("scaled by the length", "lie_re", "torch.tensor(self.spec.extent, device=wide.device, dtype=wide.dtype)", "(wide.amax(0) + 1)"),
    Mutant("as loud as without it", "embed_scale", " * self.factor", ""),
    Mutant("no wider", "widened", "d_model=spec.d_model + more", "d_model=spec.d_model"),
    Mutant("as sharp as without it", "attention_scale", "q * self.factor, k", "q, k"),
    Mutant("squeezed below the trained length", "interpolated", "(extent / spans).clamp(max=1)", "(extent / spans)"),
    # declarations
    Mutant("declared relative", "add", "    def __init__", "    relative = True\n\n    def __init__"),
    Mutant("relative, not declared", "rope", "    relative = True\n", ""),
    Mutant("declared isotropic", "t5_bias", "    relative = True\n", "    relative = True\n    isotropic = True\n"),
    Mutant("mirror-blind, not declared", "alibi", "    mirror_blind = True\n", ""),
    Mutant("declared contextual", "alibi", "    relative = True\n", "    relative = True\n    contextual = True\n"),
    Mutant("declared blind", "none", "    blind = True\n", ""),
    Mutant("declared to refuse", "multiply", "    def __init__", "    beyond = 'refuses'\n\n    def __init__"),
    Mutant("clamps, declared to go on", "add", "sinusoid(positions, self", "sinusoid(positions.clamp(max=7), self"),
    Mutant("clamps too early", "add", "        waves = sinusoid(positions", "        self.beyond = 'clamps'\n        positions = positions.clamp(max=self.spec.extent[0] - 2)\n        waves = sinusoid(positions"),
    Mutant("refuses without its name", "swin_bias", "f\"encoding 'swin-bias' knows the integer", "f\"knows the integer"),
    Mutant("takes what is beyond", "positions", "(positions >= sizes).any()", "False", "learned"),
    Mutant("wrong number of parameters", "tupe", "max_len * d_model + 2 * d_model * d_model", "max_len * d_model + d_model * d_model"),
    Mutant("wrong number on grids", "cpe", "(3 ** num_axes + 1) * d_model", "4 * d_model"),
    Mutant("serves less than it says", "none", "    blind = True\n", "    blind = True\n\n    def __init__(self, spec):\n        super().__init__(spec)\n        if not spec.causal:\n            raise ValueError('none: no')\n"),
    Mutant("gates in no cache, declared to work", "fox", 'kv_cache = "needs more"', 'kv_cache = "works"'),
    Mutant("declared to go stale", "alibi", "    relative = True\n", "    relative = True\n    kv_cache = 'goes stale'\n"),
    Mutant("squeezes longer texts in silence", "add", "sinusoid(positions, self", "sinusoid(positions * min(1.0, self.spec.max_len / len(positions)), self"),
    # offsets
    Mutant("off by one at the table's end", "shaw", "+ self.clip).long()", "+ self.clip + 1).long()"),
    Mutant("last place missing", "randomized", "generator=chance)[:size]", "generator=chance)[: size - 1]"),
    Mutant("places out of order", "randomized", "drawn.sort().values", "drawn"),
    Mutant("offsets of the wrong pairs", "pairs", "return different, pairs if length >= LONG else Pairs(pairs.whole())", "return different, pairs if length >= LONG else Pairs(pairs.whole().flip(0))", "dynamic_bias"),
    Mutant("acts in no layer", "some_layers", "return layer in self.own", "return False"),
    Mutant("acts in no head", "some_heads", "torch.cat((encoded[:, : self.heads], rest), dim=1)", "torch.cat((q_ := plain[:, : self.heads], rest), dim=1)"),
    Mutant("declared what one of two is", "stack", "all(getattr(part, name)", "any(getattr(part, name)"),
    Mutant("shifted in evaluation", "shifted", "if self.training:", "if True:"),
    # encodings of 2024 to 2026
    Mutant("the token after", "key_offset", "(still[:, :, :1], still[:, :, :-1])", "(still[:, :, 1:], still[:, :, -1:])"),
    Mutant("takes padding for a token", "key_offset", "F.pad(~valid[:, :-1]", "F.pad(valid[:, :-1] & False"),
    Mutant("mixes padding", "path", "w if valid is None else w * valid.unsqueeze(-1)", "w"),
    Mutant("sum over the batch", "selective_rope", ".cumsum(dim=1)", ".cumsum(dim=0)"),
    Mutant("counts padding", "ssmax", "self._log_seen(valid)", "self._log_seen(valid | True)"),
    Mutant("the first layer for all", "dape", "self.second[layer]", "self.second[0]"),
    Mutant("outputs left turned", "gta", "rotate(o, cos, -sin)", "rotate(o, cos, 0 * sin)"),
    Mutant("outputs turned further", "gta", "rotate(o, cos, -sin)", "rotate(o, cos, sin)"),
    Mutant("values as they are", "gta", "return rotate(v, *state)", "return v"),
    Mutant("the first layer for all", "com_rope", "self.entries[layer]", "self.entries[0]"),
    Mutant("sum over the batch", "wall", "gates.cumsum(dim=-2)\n    found", "gates.cumsum(dim=0)\n    found"),
    Mutant("declared isotropic", "look_here", "    relative = True\n", "    relative = True\n    isotropic = True\n"),
]  # fmt: skip

OTHER = [
    Mutant("halves that meet elsewhere", "wall", "(early * (middle - before).exp())", "early"),
    Mutant("column-major cells", "positions", "rows * size + positions[:, axis].long()", "rows + positions[:, axis].long() * (extent[0] if axis else 1)"),
    Mutant("another base", "sinusoid", "base: float = 10000.0", "base: float = 1000.0"),
    Mutant("another base", "rope", "self.theta = theta if theta is not None else (10000.0", "self.theta = theta if theta is not None else (1000.0"),
    Mutant("centred over the positions at hand", "sinusoid", "_waves(in_64_bit(grid_positions(center, wide.device)), frequencies)", "waves"),
    Mutant("scaled before it is centred", "sinusoid", "(trained - mean).square()", "trained.square()"),
    Mutant("the fastest for the slowest", "sinusoid", "frequencies[every - pairs :]", "frequencies[:pairs]"),
    Mutant("turned the other way", "rope", "in_32_bit(angles.sin()", "in_32_bit(-angles.sin()"),
    Mutant("frequencies off by one", "sinusoid", "torch.arange(every, device=wide.device, dtype=wide.dtype)", "torch.arange(1, every + 1, device=wide.device, dtype=wide.dtype)"),
    Mutant("wrong slopes", "alibi", "2.0 ** (-8 * (i + 1) / whole)", "2.0 ** (-8 * i / whole)"),
    Mutant("slopes of the wrong sign", "alibi", "-distance[:, None] * rates", "distance[:, None] * rates"),
    Mutant("buckets off by one", "t5_bias", "self.exact + (ratio", "self.exact - 1 + (ratio"),
    Mutant("natural logarithm", "log_cpb", "torch.log2", "torch.log"),
    Mutant("once, at the input", "add_every_layer", "return x + state.to(x.dtype)", "return x + state.to(x.dtype) * (layer == 0)"),
    Mutant("a fourth root", "add_qk", "* 2**-0.5", "* 2**-0.25"),
    Mutant("without the square root", "concat_qk", "* 2**-0.25", "* 2**-0.5"),
    Mutant("clipped a token early", "deberta", "(distance + self.clip)", "(distance + self.clip - 1)"),
    Mutant("counted without the token itself", "cope", "gates.flip(-1).cumsum(dim=-1).flip(-1)", "(gates.flip(-1).cumsum(dim=-1).flip(-1) - gates)"),
    Mutant("before and after exchanged", "swin_bias", "unique_offsets(positions)", "unique_offsets(-positions)"),
    Mutant("stretched too far", "ntk_rope", "max(1, self.pairs - 1)", "max(1, self.pairs)"),
    Mutant("slow and fast exchanged", "yarn", "(1 - slowed + slowed / self.stretch(axis, length))", "(slowed + (1 - slowed) / self.stretch(axis, length))"),
    Mutant("all pairs turn", "p_rope", "self.turning = max(1, int(p * self.pairs))", "self.turning = self.pairs"),
    Mutant("reflected by its own token too", "path", "(scaled @ k.mT).tril(-1)", "(scaled @ k.mT).tril()"),
    Mutant("summed over queries", "grape", "steps.cumsum(dim=-1)", "steps.cumsum(dim=-2)"),
    Mutant("rows for columns", "spiral_rope", "torch.stack((turns.cos(), turns.sin()))", "torch.stack((turns.sin(), turns.cos()))"),
    Mutant("looks away", "look_here", "(down <= 0, down >= 0,", "(down >= 0, down <= 0,"),
    Mutant("a valley for a hill", "pape", "skew, along) - torch.einsum(", "skew, along) + torch.einsum("),
    Mutant("louder by the square root", "pape", "return parabolas * self.spec.head_dim**-0.5", "return parabolas"),
    Mutant("slow pairs turn too", "fope", "all_pairs > 2 * math.pi / spec.max_len", "all_pairs > 0"),
]  # fmt: skip
"""Faults that are consistent and wrong: other formulas than the papers'."""


@contextmanager
def mutated(mutant: Mutant) -> Iterator[ModuleType]:
    """Execute the module of the encoding that shows the fault, and forget it afterwards."""
    source = source_of(mutant.file)
    assert source.count(mutant.old) == 1, f"expected {mutant.old!r} once in {mutant.file}.py"
    with execute(mutant.file, source.replace(mutant.old, mutant.new)) as module:
        if not mutant.through:
            yield module
            return
        functions = {name: found for name, found in vars(module).items() if isinstance(found, FunctionType)}
        real = vars(sys.modules[f"pebench.encodings.{mutant.file}"])
        with mock.patch.dict(real, functions), execute(mutant.through, source_of(mutant.through)) as module:
            yield module


def source_of(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def registered(name: str):
    """A `register` that leaves the registry as it is."""

    def decorate(cls: type) -> type:
        cls.name = name
        return cls

    return decorate


@contextmanager
def execute(name: str, source: str) -> Iterator[ModuleType]:
    module = ModuleType(f"pebench.encodings.mutant_{name}")
    sys.modules[module.__name__] = module  # where pickle looks for it
    try:
        with mock.patch("pebench.encodings.registry.register", registered):
            exec(compile(source, f"{name}.py", "exec"), vars(module))
        yield module
    finally:
        del sys.modules[module.__name__]


def encoding_of(module: ModuleType) -> type:
    own = [cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == module.__name__]
    return next(cls for cls in own if issubclass(cls, PositionalEncoding))


def broken_property(cls: type) -> str | None:
    benches: dict[Setting, Bench] = {}
    subject = Subject(cls)
    for item, setting in sorted(checks(subject), key=lambda pair: pair[0].slow):
        try:
            check(item, benches.setdefault(setting, Bench(subject, setting)))
        except BrokenError as error:
            return str(error)
    return None


def wrong_examples(module: ModuleType) -> int:
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(module):
        runner.run(test, out=lambda text: None)
    return runner.failures


def cases(mutants: list[Mutant]) -> list:
    """The default run tests a third of the mutants; all of them take a minute."""
    return sampled([pytest.param(mutant, id=str(mutant)) for mutant in mutants], 1 / 3)


@pytest.mark.parametrize("mutant", [*BROKEN, *OTHER], ids=str)
def test_what_a_mutant_replaces_stands_once_in_its_file(mutant: Mutant):
    """Also of mutants that only the slow group runs: whoever renames a variable sees it in the default run."""
    assert source_of(mutant.file).count(mutant.old) == 1


@pytest.mark.parametrize("mutant", cases(BROKEN))
def test_a_fault_breaks_a_property(mutant: Mutant):
    with mutated(mutant) as module:
        assert broken_property(encoding_of(module))


@pytest.mark.parametrize("mutant", OTHER, ids=str)
def test_another_formula_breaks_an_example(mutant: Mutant):
    with mutated(mutant) as module:
        assert wrong_examples(module)


SOUND = ["add", "dynamic_bias", "learned", "none", "rope", "some_layers"]


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in SOUND], 1 / 3))
def test_without_a_fault_nothing_breaks(name: str):
    with mutated(Mutant("none", name, "@register", "@register")) as module:
        assert broken_property(encoding_of(module)) is None
        assert not wrong_examples(module)
