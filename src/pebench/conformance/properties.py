"""The properties, cheap ones first. Which apply follows from what the built instance declares.

A property is a function of a `Bench` that raises `BrokenError` where it does not hold, or whatever else the
encoding raises.
"""

import copy
import inspect
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from pebench.conformance.bench import (
    DIFFERENT,
    SAME,
    SETTINGS,
    Bench,
    BrokenError,
    Setting,
    Subject,
    differ,
    gap,
    holds,
    noise,
    parts,
    perturbed,
    same,
    shuffled,
)  # fmt: skip
from pebench.encodings.base import EncodingSpec, grid_positions
from pebench.encodings.checks import blame
from pebench.layers import initialise
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.attention import Masks
from pebench.models.base import SequenceModule
from pebench.models.transformer import Transformer

FAR = 100
"""How many times further than in training positions are that are beyond it."""


@dataclass(frozen=True)
class Property:
    """Something that an encoding is held to.

    Args:
        name: In a word or two.
        statement: In a line.
        run: Breaks where it does not hold.
        applies: Whether it is to hold at all, by what the instance declares.
        once: Whether one setting is enough, the first that is served.
        slow: Whether it takes more than moments.
    """

    name: str
    statement: str
    run: Callable[[Bench], None]
    applies: Callable[[Bench], bool]
    once: bool = False
    slow: bool = False


PROPERTIES: dict[str, Property] = {}


def _holds(
    name: str, *, when: Callable[[Bench], bool] = lambda bench: True, once: bool = False, slow: bool = False
) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Decorator: a function is a property, its docstring the statement."""

    def decorate(run: Callable[[Bench], None]) -> Callable[[Bench], None]:
        statement = (run.__doc__ or "").split("\n")[0].rstrip(".")
        PROPERTIES[name] = Property(name, statement, run, when, once, slow)
        return run

    return decorate


def checks(subject: Subject) -> Iterator[tuple[Property, Setting]]:
    """What is to be checked of an encoding, in order: all of a setting, then the next."""
    served = [setting for setting in SETTINGS if subject.serves(setting)]
    for setting in SETTINGS:
        yield PROPERTIES["constructs"], setting
        bench = Bench(subject, setting)
        if setting not in served or not _builds(bench):
            continue
        for name, item in PROPERTIES.items():
            if name != "constructs" and (not item.once or setting == served[0]) and item.applies(bench):
                yield item, setting


def _builds(bench: Bench) -> bool:
    try:
        return bool(bench.encoding)
    except Exception:
        return False


def check(item: Property, bench: Bench) -> None:
    """Check one property.

    Raises:
        BrokenError: If it does not hold, or the encoding fails with an exception of its own.
    """
    try:
        item.run(bench)
    except BrokenError as error:
        error.property, error.setting = item.name, bench.setting.name
        raise
    except Exception as error:
        broken = BrokenError("no exception", blame(error))
        broken.property, broken.setting = item.name, bench.setting.name
        raise broken from error


def _two_axes(bench: Bench) -> bool:
    return len(bench.extent) > 1


def _bidirectional(bench: Bench) -> bool:
    return not bench.causal


def _causal(bench: Bench) -> bool:
    return bench.causal


def _asks(bench: Bench) -> bool:
    """Whether positions matter to it."""
    return not (bench.encoding.contextual or bench.encoding.blind)


def _both(*conditions: Callable[[Bench], bool]) -> Callable[[Bench], bool]:
    return lambda bench: all(condition(bench) for condition in conditions)


@_holds("constructs")
def _constructs(bench: Bench) -> None:
    """Is built for the models that its class declares to serve, and refuses others by a ValueError with its name."""
    subject, setting = bench.subject, bench.setting
    usual, names = not subject.given, [part.name for part in _somewhere(subject) if hasattr(part, "name")]
    try:
        subject.build(setting.spec)
    except ValueError as error:
        holds(any(map(subject.serves, SETTINGS)), "one kind of model that it serves", f"none: {error}")
        holds(not usual or not subject.declares(setting), "an encoding of this model", f"ValueError: {error}")
        holds(not usual or any(n in str(error) for n in names), f"a message that names one of {names}", error)
        return
    holds(subject.declares(setting), "a ValueError, as its class does not serve such models", "an encoding")


def _somewhere(subject: Subject) -> list[Any]:
    """The encoding's parts in a setting that it serves, or its class."""
    built = (subject.build(setting.spec) for setting in SETTINGS if subject.serves(setting))
    return next((parts(encoding) for encoding in built), [subject.maker])


@_holds("declares")
def _declares(bench: Bench) -> None:
    """What it declares is possible, and of its kind."""
    encoding = bench.encoding
    holds(
        encoding.beyond in ("goes on", "clamps", "refuses"), "beyond 'goes on', 'clamps' or 'refuses'", encoding.beyond
    )
    for name in ("contextual", "relative", "isotropic", "mirror_blind", "blind"):
        value = getattr(encoding, name)
        holds(isinstance(value, bool), f"{name} True or False", repr(value))
    holds(encoding.spec == bench.spec, "the spec it was given", encoding.spec)
    holds(not encoding.contextual or encoding.relative, "a contextual encoding to ignore a shift", "relative = False")


@_holds("size", when=lambda bench: not bench.subject.given)
def _size(bench: Bench) -> None:
    """Has as many parameters as it declares, in two sizes of model."""
    larger = EncodingSpec(36, 3, 5, tuple(n + 4 for n in bench.extent), bench.causal)
    for spec in (bench.spec, larger):
        encoding = bench.subject.build(spec)
        count, declared = sum(p.numel() for p in encoding.parameters()), encoding.parameter_count()
        holds(count == declared, f"the {declared} parameters that it declares for {spec}", count)


@_holds("shape")
def _shape(bench: Bench) -> None:
    """Keeps shapes and types, in training and evaluation, and gives numbers."""
    model, shape = bench.model, (3, bench.length, bench.encoding.model_width)
    for mode in (copy.deepcopy(model).train(), copy.deepcopy(model).bfloat16(), model):
        dtype = next(mode.blocks.parameters()).dtype
        output = mode(bench.content.to(dtype))
        holds(output.shape == shape, f"an output of shape {shape}", tuple(output.shape))
        holds(output.dtype == dtype, f"an output in {dtype}", output.dtype)
        holds(bool(output.isfinite().all()), f"finite numbers in {dtype}", "infinities or none")


@_holds("places", when=_asks)
def _places(bench: Bench) -> None:
    """Wherever it takes tokens to be, in training too, their order on every axis stays."""
    encoding = bench.subject.build(bench.spec)
    with torch.no_grad():
        for mode in (True, False, True):
            places = encoding.train(mode).place(bench.positions.clone())
            for axis, column in enumerate(bench.positions.T):
                steps = places[column.argsort(stable=True), axis].diff()
                kept = bool(((steps > 0) == (column.sort().values.diff() > 0)).all() and (steps >= 0).all())
                holds(kept, f"the order on axis {axis} kept", places[:, axis].tolist())


@_holds("repeats")
def _repeats(bench: Bench) -> None:
    """In evaluation says the same twice, also after training and inference mode."""
    model, content = bench.trunk(), bench.content
    with torch.inference_mode():
        first = model(content) + 0
    model.train()
    model(content).square().mean().backward()
    same(model.eval()(content), first.clone(), "the same output as before training mode")


@_holds("training")
def _training(bench: Bench) -> None:
    """In training says what it says in evaluation, where tokens are taken to be at the same places; but for dropout."""
    model = bench.trunk()
    expected = model(bench.content)
    with torch.no_grad():
        places = model.encoding.place(bench.positions)
    for part in model.modules():
        part.training = not isinstance(part, nn.modules.dropout._DropoutNd)
    with mock.patch.object(model.encoding, "place", return_value=places):
        same(model(bench.content), expected, "the same output in training as in evaluation")


def _permuted(bench: Bench, order: Tensor, told: bool) -> None:
    """Tokens in another order, without a word of it: noticed or not, token by token and in the mean."""
    model, content = bench.model, bench.content
    one, other = model(content[:, order]), model(content)[:, order]
    compare: Any = differ if told else same
    compare(one, other, f"outputs that {'notice' if told else 'do not notice'} that tokens are moved")
    compare(one.mean(1), other.mean(1), f"a mean that {'notices' if told else 'does not notice'} that tokens are moved")


@_holds("order", when=_bidirectional)
def _order(bench: Bench) -> None:
    """Tokens in another order give another output, unless it declares to be blind."""
    _permuted(bench, shuffled(bench.length), told=not bench.encoding.blind)


@_holds("order of the past", when=_causal)
def _past_order(bench: Bench) -> None:
    """Where only one block attends, the last token notices the order of the others, unless blind.

    Attention of several causal layers knows an order by itself, that of one layer does not.
    """
    gaps = layers_told(bench)
    if bench.encoding.blind:
        holds(max(gaps) <= SAME, "a last token that does not notice the others' order", f"differences of {gaps}")
    else:
        holds(max(gaps) > DIFFERENT, "a last token that notices the others' order", f"differences of {gaps}")


def layers_told(bench: Bench) -> list[float]:
    """How far the last token's output moves with the order of the others, where one block alone attends.

    Args:
        bench: Of the encoding.

    Returns:
        A largest difference for each layer.
    """
    content, last = bench.content, bench.length - 1
    order = torch.cat((shuffled(last), torch.tensor([last])))
    return [gap(model(content[:, order])[:, -1], model(content)[:, -1]) for model in _one_attends(bench.model)]


def _one_attends(model: Transformer) -> Iterator[Transformer]:
    """Copies of a model, in each of which only one block's attention says anything."""
    for one in range(len(model.blocks)):
        other = copy.deepcopy(model)
        for layer, block in enumerate(other.blocks):
            if layer != one:
                nn.init.zeros_(block.attention.out.weight)  # type: ignore[union-attr, arg-type]
        yield other


@_holds("batch")
def _batch(bench: Bench) -> None:
    """Samples do not know of each other, nor of their number."""
    content = bench.noise(bench.length)  # as many as tokens: whoever takes one for the other does not fail by shape
    order = shuffled(len(content))
    output = bench.model(content)
    same(bench.model(content[order]), output[order], "samples in another order to give the same")
    same(bench.model(content[:1]), output[:1], "a sample alone to give the same")


@_holds("positions", when=_both(_bidirectional, _asks))
def _positions(bench: Bench) -> None:
    """Knows positions from the positions alone: tokens moved together with theirs give the same."""
    order = shuffled(bench.length)
    moved = bench.model(bench.content[:, order], bench.positions[order])
    same(moved, bench.model(bench.content)[:, order], "tokens moved with their positions to give the same")


@_holds("context", when=lambda bench: not _asks(bench))
def _context(bench: Bench) -> None:
    """Contextual, or blind, it never asks where tokens are."""
    for positions in (3 * bench.positions, bench.positions[shuffled(bench.length)], FAR * bench.positions + 0.5):
        same(bench.model(bench.content, positions), bench.model(bench.content), "positions to make no difference")


@_holds("defaults")
def _defaults(bench: Bench) -> None:
    """The default positions are 0, 1, 2, ..., or the grid's in row-major order."""
    given = bench.model(bench.content, grid_positions(bench.extent))
    same(given, bench.model(bench.content), "the default positions, given, to give the same", 0.0)


@_holds("rows first", when=_both(_two_axes, _asks))
def _rows_first(bench: Bench) -> None:
    """A grid counted column by column is another one."""
    rows, columns = bench.extent
    by_column = torch.tensor([[float(r), float(c)] for c in range(columns) for r in range(rows)])
    differ(bench.model(bench.content, by_column), bench.model(bench.content), "column-major positions to differ")


@_holds("axes", when=_both(_two_axes, _asks))
def _axes(bench: Bench) -> None:
    """Every axis matters: moving tokens along it, and giving all the same position on it."""
    for axis in range(len(bench.extent)):
        squashed = bench.positions.clone()
        squashed[:, axis] = 0
        differ(bench.model(bench.content, squashed), bench.model(bench.content), f"axis {axis} to matter")
        if not bench.causal:
            order = torch.arange(bench.length).view(bench.extent).roll(1, axis).flatten()
            _permuted(bench, order, told=True)


@_holds("sparse", when=_asks)
def _sparse(bench: Bench) -> None:
    """Sparse positions are not dense ones, with padding or without."""
    model, cut = bench.roomy, 2 * bench.length // 3
    for valid in (None, torch.arange(bench.length).expand(3, -1) < cut):
        one, other = (model(bench.content, step * bench.positions, valid)[:, :cut] for step in (3, 1))
        differ(one, other, "positions three apart to differ from those one apart")


@_holds("state", when=_asks)
def _state(bench: Bench) -> None:
    """New positions replace what was prepared for the old ones, and old ones come back."""
    model, near, far = bench.roomy, bench.positions.clone(), 2 * bench.positions
    outputs = [model(bench.content, positions) for positions in (near, far, near.clone(), far)]
    differ(outputs[0], outputs[1], "other positions to give another output")
    same(outputs[2], outputs[0], "the first positions, again, to give the same", 0.0)
    same(outputs[3], outputs[1], "the second positions, again, to give the same", 0.0)


@_holds("shift")
def _shift(bench: Bench) -> None:
    """A shift of all positions changes nothing where it declares to be relative, and something elsewhere."""
    encoding, content, axes = bench.encoding, bench.content, len(bench.extent)
    if encoding.relative:
        for shift, tolerance in (([7.0, 13.0], 1e-4), ([1000.0, 1024.0], 3e-3)):  # angles in 32 bit lose digits far out
            moved = bench.model(content, bench.positions + torch.tensor(shift)[:axes])
            same(moved, bench.model(content), f"a shift by {shift[:axes]} to change nothing", tolerance)
        return
    steps = (1.0, 1000.0) if encoding.beyond == "goes on" else (1.0,)
    for axis in range(axes):
        moves = [step * torch.eye(axes)[axis] for step in steps]
        gaps = [gap(bench.roomy(content, bench.positions + m), bench.roomy(content, bench.positions)) for m in moves]
        holds(
            max(gaps) > DIFFERENT,
            f"a shift on axis {axis} to be noticed, as relative is False",
            f"differences of {gaps}",
        )


@_holds("isotropic", when=_both(_two_axes, _asks))
def _isotropic(bench: Bench) -> None:
    """Exchanging rows and columns changes nothing where it declares so, and something elsewhere."""
    model, positions = bench.trunk(extent=(4, 4)), grid_positions((4, 4))
    content = bench.noise(3, 16)
    compare: Any = same if bench.encoding.isotropic else differ
    expected = f"rows and columns exchanged, as isotropic is {bench.encoding.isotropic}, to give"
    expected += " the same" if bench.encoding.isotropic else " another output"
    compare(model(content, positions.flip(-1)), model(content, positions), expected)


@_holds("mirror", when=_bidirectional)
def _mirror(bench: Bench) -> None:
    """A sequence and its mirror image give the same where it declares to be blind to that, and not elsewhere."""
    blind = bench.encoding.mirror_blind
    compare: Any = same if blind else differ
    expected = f"the mirror image, as mirror_blind is {blind}, to give {'the same' if blind else 'another output'}"
    one, other = bench.model(bench.content.flip(1)), bench.model(bench.content).flip(1)
    compare(one, other, expected)
    compare(one.mean(1), other.mean(1), expected + " in the mean")


@_holds("future", when=_causal)
def _future(bench: Bench) -> None:
    """In a causal model nothing is seen of the future, in 32 bit or 16."""
    cuts, content = torch.arange(1, bench.length), bench.noise(1)
    past = (torch.arange(bench.length) < cuts[:, None]).unsqueeze(-1)
    before = content.expand(len(cuts), -1, -1)
    after = torch.where(past, before, 10 * bench.noise(len(cuts), seed=7))
    for model in (bench.model, copy.deepcopy(bench.model).bfloat16()):
        dtype = next(model.blocks.parameters()).dtype
        one, other = (torch.where(past, model(x.to(dtype)), 0.0) for x in (after, before))
        same(one, other, f"another future to change nothing in {dtype}")


@_holds("reach")
def _reach(bench: Bench) -> None:
    """The last token sees all others, without a block in between; in a bidirectional model so does the first."""
    for token in (-1,) if bench.causal else (-1, 0):
        unseen = [_unseen(model, bench.content, token) for model in _one_attends(bench.model)]
        holds(not all(unseen), f"token {token} to see every token in some block", f"nothing of tokens {unseen}")


def _unseen(model: Transformer, content: Tensor, token: int) -> list[int]:
    content = content.clone().requires_grad_()
    model(content)[:, token].pow(3).sum().backward()
    assert content.grad is not None
    return (content.grad.abs().amax(dim=(0, 2)) <= 1e-7).nonzero().flatten().tolist()  # those that are masked have 0


@_holds("prefix", when=_causal)
def _prefix(bench: Bench) -> None:
    """In a causal model a prefix gives the prefix of the output."""
    output = bench.model(bench.content)
    for n in range(1, bench.length):
        same(
            bench.model(bench.content[:, :n], bench.positions[:n]), output[:, :n], f"{n} tokens alone to give the same"
        )


@_holds("padding", when=lambda bench: not _two_axes(bench))
def _padding(bench: Bench) -> None:
    """Padding has no influence, behind a text or before it, in 32 bit or 16."""
    lengths, short = torch.tensor([5, 3, 1]), 5
    behind = torch.arange(bench.length) < lengths[:, None]
    before = torch.arange(bench.length) >= bench.length - lengths[:, None]
    for autocast, tolerance in ((False, SAME), (True, 0.1)):  # 16 bit rounds; what leaks is louder than both
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            for valid in (behind, before) if bench.causal else (behind,):
                _other_padding(bench, valid, tolerance)
            cut = behind[:, :short]
            one, other = bench.model(bench.content[:, :short], None, cut), bench.model(bench.content, None, behind)
            same(one[cut], other[:, :short][cut], "less padding to change nothing", tolerance)
            alone = bench.model(bench.content[2:, :1], None, behind[2:, :1])
            same(alone, other[2:, :1], "a text without its padding to give the same", tolerance)


def _other_padding(bench: Bench, valid: Tensor, tolerance: float) -> None:
    garbage = torch.where(valid.unsqueeze(-1), bench.content, 30 * bench.noise(3, seed=7))
    one, other = bench.model(garbage, None, valid)[valid], bench.model(bench.content, None, valid)[valid]
    holds(bool(one.isfinite().all()), "finite numbers beside padding", "infinities or none")
    same(one, other, "what stands at padding to change nothing", tolerance)


@_holds("kernels")
def _kernels(bench: Bench) -> None:
    """Fused attention and plain matrix products give the same."""
    outputs = []
    valid = torch.arange(bench.length).expand(3, -1) >= torch.tensor([[0], [1], [0]])
    for kernel in ("sdpa", "matmul"):
        with bench.model.using_kernel(kernel):
            outputs.append([bench.model(bench.content), bench.model(bench.content, None, valid)[valid]])
    for one, other in zip(*outputs, strict=True):
        same(one, other, "fused attention to give the same as plain")


@_holds("16 bit")
def _sixteen_bit(bench: Bench) -> None:
    """16-bit models and autocast stay near 32 bit; far out too, where it goes on: angles are taken in 32 bit.

    What the 32-bit model is trained to is rounded to 16 bit as well: a frequency that is a parameter turns
    elsewhere far out if it is rounded, whatever the encoding does.
    """
    narrow = copy.deepcopy(bench.model).bfloat16()
    rounded = copy.deepcopy(bench.model)
    with torch.no_grad():
        for parameter in rounded.parameters():
            parameter.copy_(parameter.bfloat16())
    places = [bench.positions.clone()]
    if bench.encoding.beyond == "goes on":
        places.append(15990 + bench.positions)
    for positions in places:
        exact = rounded(bench.content, positions)
        with torch.autocast("cpu", torch.bfloat16):
            cast = rounded(bench.content, positions.clone())
        cut = narrow(bench.content.bfloat16(), positions.clone())
        for output, way in ((cast, "under autocast"), (cut, "in a 16-bit model")):
            error = (output.float() - exact).square().mean().sqrt().item()
            place = f"an error below 0.05 {way} at position {positions.amax():g}"
            holds(error < 0.05, place, f"{error:.2g} (autocast multiplies matrices in 16 bit, by @ and einsum too)")


@_holds("beyond", when=_asks)
def _beyond(bench: Bench) -> None:
    """Beyond the trained extent it does what it declares: goes on, clamps to the extent, or refuses by name."""
    model, content, far = bench.model, bench.content, FAR * bench.positions
    if bench.encoding.beyond == "refuses":
        names = [part.name for part in parts(bench.encoding) if hasattr(part, "name")]
        try:
            model(content, far)
        except ValueError as error:
            holds(any(name in str(error) for name in names), f"a message that names one of {names}", error)
            return
        raise BrokenError("a ValueError beyond the trained extent", "an output")
    output = model(content, far)
    holds(bool(output.isfinite().all()), "finite numbers beyond the trained extent", "infinities or none")
    if bench.encoding.beyond == "goes on":
        differ(output, model(content), "positions beyond the trained extent to differ from those within")
        moved = model(content, (15990 + bench.positions)[shuffled(bench.length)])
        differ(moved, model(content, 15990 + bench.positions), "neighbours far out to be told apart")
        return
    clamped = far.minimum(torch.tensor(bench.extent) - 1.0)
    same(output, model(content, clamped), "positions beyond the trained extent to be clamped to it")


@_holds("longer", when=lambda b: not _two_axes(b) and b.encoding.beyond != "refuses")
def _longer(bench: Bench) -> None:
    """Where it does not refuse, a longer text gives numbers, and its tokens are still told apart."""
    content = bench.noise(2, 3 * bench.length)
    output = bench.model(content)
    holds(bool(output.isfinite().all()), "finite numbers in a longer text", "infinities or none")
    if not (bench.causal or bench.encoding.blind):
        order = shuffled(content.shape[1])
        differ(bench.model(content[:, order]), output[:, order], "the order of a longer text to be noticed")


@_holds("gradients")
def _gradients(bench: Bench) -> None:
    """Gradients reach every parameter, in every layer and head; but those declared idle.

    At first, after training, and where training has turned signs: what is clamped must not be lost.
    """
    fresh = Transformer(bench.subject.build(bench.spec))
    initialise(fresh, seed=0)
    weights = noise(3, bench.length, bench.encoding.model_width, seed=5)
    opposite = bench.trunk()
    with torch.no_grad():
        for parameter in opposite.encoding.parameters():
            parameter.neg_()
    for model in (fresh, bench.trunk(), opposite):
        (model.train()(bench.content) * weights).sum().backward()
        starved = {name for name, _ in model.encoding.named_parameters()} - set(model.encoding.idle)
        starved = {name for name in starved if _starved(model, name)}
        holds(
            not starved,
            "a gradient for every parameter",
            f"none for (all of) {sorted(starved)}; `prepare` runs without",
        )
        busy = [name for name in model.encoding.idle if not _starved(model, name)]
        holds(not busy, f"no gradient for the idle {list(model.encoding.idle)}", f"one for {busy}")


def _starved(model: Transformer, name: str) -> bool:
    """Whether a parameter of the encoding, or its part for some layer or head, has no gradient but rounding."""
    spec, grad = model.encoding.spec, model.encoding.get_parameter(name).grad
    if grad is None:
        return True
    holds(bool(grad.isfinite().all()), f"a finite gradient for {name}", "infinities or none")
    others = [axis for axis, size in enumerate(grad.shape) if size not in (spec.num_layers, spec.num_heads)]
    parts = grad.abs().amax(dim=others) if others else grad.abs()
    scale = max(p.grad.abs().max() for p in model.blocks.parameters() if p.grad is not None)
    return bool((parts <= 1e-6 * scale).any())


@_holds("saves")
def _saves(bench: Bench) -> None:
    """A fresh instance that loads the state of a used one gives the same, whatever the length it was used at."""
    used, fresh = bench.trunk(), bench.trunk(seed=5)
    output = used(bench.content)
    used(bench.content[:, :2], bench.positions[:2].clone())
    fresh(bench.content[:, :3], bench.positions[:3].clone())
    fresh.load_state_dict(used.state_dict())
    same(fresh(bench.content), output, "a model that loads another's state to give the same", 0.0)
    names = set(used.state_dict()) - set(bench.trunk().state_dict())
    holds(not names, "a state of the same names after use", f"{sorted(names)} on top")


@_holds("copies")
def _copies(bench: Bench) -> None:
    """A copy of a used model gives the same, and so does one that was pickled."""
    model = bench.trunk()
    output = model(bench.content)
    twins = [copy.deepcopy(model)]
    if "<locals>" not in getattr(bench.subject.maker, "__qualname__", ""):  # which Python cannot pickle
        twins.append(pickle.loads(pickle.dumps(model)))
    for twin in twins:
        same(twin(bench.content), output, "a copy to give the same", 0.0)
    with torch.no_grad():
        for parameter in twins[0].parameters():
            parameter.zero_()
    same(model(bench.content), output, "a change of the copy to leave the original alone", 0.0)


@_holds("memory", once=True)
def _memory(bench: Bench) -> None:
    """What it keeps does not grow with the number of positions it has seen."""
    model, sizes = bench.trunk(), []
    for step in range(1, 12):
        n = 2 + step % 3
        model(bench.content[:, :n], bench.positions[:n] + (0 if bench.encoding.beyond == "refuses" else step % 5))
        sizes.append(_kept(model.encoding))
    holds(max(sizes[6:]) <= max(sizes[:6]), "as many bytes kept after many positions as after few", sizes)


def _kept(module: nn.Module) -> int:
    """Bytes of all tensors that modules hold, wherever they hide them, and entries of their collections."""
    seen: dict[int, int] = {}
    classes = {base for part in module.modules() for base in type(part).__mro__} - set(nn.Module.__mro__)
    stack: list[Any] = [vars(part) for part in module.modules()] + [dict(vars(cls)) for cls in classes]
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            seen[item.data_ptr()] = item.untyped_storage().nbytes()
        elif id(item) not in seen and isinstance(item, dict | list | tuple | set):
            seen[id(item)] = 8 * len(item)
            stack += item.values() if hasattr(item, "values") else item
    return sum(seen.values())


@_holds("instances", once=True)
def _instances(bench: Bench) -> None:
    """Instances with other options, or in other models, share nothing."""
    size: dict[str, Any] = {"num_heads": 2, "extent": tuple(8 * n for n in bench.extent)}
    model, positions = bench.trunk(**size), 8 * bench.positions  # wide and far enough for every option to matter
    before, gaps = model(bench.content, positions), {}
    for options, changes in _variations(bench, size):
        other = bench.trunk(options=options, **{**size, **changes})
        between = other(noise(3, bench.length, other.encoding.content_width), positions)
        after = model(bench.content, positions)
        same(after, before, f"another instance with {options or changes} to change nothing", 0.0)
        if options:  # other parameters are a difference, too
            alike = [p.shape for p in other.parameters()] == [p.shape for p in model.parameters()]
            gaps[str(options)] = gap(between, before) if alike else math.inf
    holds(not gaps or max(gaps.values()) > DIFFERENT, "some other option to make a difference", gaps)


def _variations(bench: Bench, size: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Options, and changes of the model, with which another instance can be built: numbers are doubled, and halved."""
    tries: list[tuple[dict[str, Any], dict[str, Any]]] = [({}, {"num_heads": 1}), ({}, {"d_model": 64})]
    built = bench.subject.build(replace(bench.spec, **size))
    for name, option in inspect.signature(bench.subject.maker).parameters.items():
        now = bench.subject.given.get(name, option.default)
        now = getattr(built, name, None) if now is None else now
        if option.kind == option.KEYWORD_ONLY and isinstance(now, int | float) and not isinstance(now, bool):
            tries += [({name: 2 * now or 1}, {}), ({name: now // 2 if isinstance(now, int) else now / 2}, {})]
    for options, changes in tries:
        try:
            bench.subject.build(replace(bench.spec, **{**size, **changes}), **options)
        except (ValueError, TypeError):
            continue
        yield options, changes


@_holds("models")
def _models(bench: Bench) -> None:
    """The image, text or language model of this setting has a loss that reaches all of its parameters."""
    made = _module(bench)
    if made is None:
        return
    model, batch = made
    loss = model.loss(batch)
    holds(bool(loss.isfinite()), "a finite loss", loss.item())
    loss.backward()
    starved = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    holds(not starved, "a finite gradient for every parameter", f"none for {starved}")


def _module(bench: Bench) -> tuple[SequenceModule, tuple[Tensor, ...]] | None:
    """The LightningModule of a setting with a batch; None where we have none."""
    size: Any = {"d_model": 32, "num_layers": 2, "num_heads": 4}
    random, name, options = torch.Generator().manual_seed(5), bench.subject.encoding, bench.subject.options
    tokens, labels = torch.randint(11, (4, 9), generator=random), torch.tensor([0, 1, 2, 0])
    model: SequenceModule
    if bench.setting.name == "grid":
        model = perturbed(ViT(name, options, image_size=8, patch_size=2, **size))
        return model, (noise(4, 3, 8, 8), labels)
    if bench.setting.name == "text":
        model = perturbed(TextClassifier(name, options, vocab_size=11, max_len=9, num_classes=3, **size))
        return model, (tokens, torch.tensor([9, 2, 7, 5]), labels)
    if bench.setting.name == "causal text":
        model = perturbed(LanguageModel(name, options, vocab_size=11, max_len=8, **size))
        return model, (tokens[:, :-1], tokens[:, 1:])
    return None


@_holds("compiled", once=True, slow=True)
def _compiled(bench: Bench) -> None:
    """Compiled in one piece, its hooks give the same, and the same gradients."""
    model = bench.trunk()
    with torch.no_grad():
        prepared = model.encoding.prepare(model.encoding.place(bench.positions))

    def run(x: Tensor) -> Tensor:
        state = model.encoding(prepared)
        masks = Masks(bench.spec.causal, x.shape[1], x.device, None)
        x = model.encoding.embed(x, state)
        for layer, block in enumerate(model.blocks):
            x = block(model.encoding.residual(x, None, state, layer), model.encoding, state, masks)
        return x

    torch._dynamo.reset()
    compiled = torch.compile(run, backend="eager", fullgraph=True)
    outputs = []
    for function in (run, compiled):
        content = bench.content.clone().requires_grad_()
        output = function(content)
        output.pow(3).mean().backward()
        assert content.grad is not None
        outputs.append((output.detach(), content.grad))
    torch._dynamo.reset()
    for one, other in zip(*outputs, strict=True):
        same(one, other, "compiled hooks to give the same")
