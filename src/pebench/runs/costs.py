"""What a run will cost, before it runs: parameters and operations, in closed form but for the encoding."""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pebench.config import RunConfig
from pebench.encodings.registry import load_encoding
from pebench.errors import UserError
from pebench.tasks import find_task

if TYPE_CHECKING:
    from torch import Tensor

    from pebench.encodings.base import EncodingSpec, PositionalEncoding

TOLERANCE = 0.01
"""How far apart the costs of runs may be that count as matched, as a share."""


@dataclass(frozen=True)
class Cost:
    """What one run costs.

    Args:
        encoding: Trained parameters of the encoding.
        parameters: Trained parameters of the whole model.
        trunk: Floating-point operations of matrix products, forward and backward, on one example of full length, but
            for those in the encoding's hooks.
        hooks: Counts these, of so many examples together: it takes a second to begin, which only those wait for who
            ask.
        batch_size: Examples of a training step.
    """

    encoding: int
    parameters: int
    trunk: int
    hooks: Callable[[int], int] = field(repr=False, compare=False)
    batch_size: int

    @property
    def flops(self) -> int:
        """Floating-point operations of matrix products, forward and backward, on one example of full length alone."""
        return self.trunk + self.hooks(1)

    @property
    def flops_in_a_batch(self) -> int:
        """As `flops`, an example's part of a training step: what a batch shares, as a projected table, counts once."""
        one, two = self.hooks(1), self.hooks(2)
        return self.trunk + (one + (self.batch_size - 1) * (two - one)) // self.batch_size

    def of(self, regime: str) -> int:
        """What a regime makes equal: ``parameters``, or ``FLOPs``, those of a training step."""
        return self.parameters if regime == "parameters" else self.flops_in_a_batch


def cost(config: RunConfig) -> Cost:
    """Cost of a run. The model is counted by hand, the encoding by building and calling it: it may be anything.

    Backward takes two products for each of forward's, one for each factor; the pixels need no gradient.

    Raises:
        UserError: If the encoding cannot serve this model.
    """
    import torch

    from pebench.encodings.base import EncodingSpec, build_encoding
    from pebench.encodings.checks import blame

    task, model = find_task(config.task), config.model
    spec = EncodingSpec(model.d_model, model.num_heads, model.num_layers, task.extent(config.data), causal=task.causal)
    try:
        with torch.random.fork_rng(devices=[]):
            encoding = build_encoding(config.encoding, spec, config.encoding_args)
        d, content = encoding.model_width, encoding.content_width
    except UserError:
        raise
    except Exception as error:  # an encoding may be anyone's; ours refuse by a ValueError that says it all
        reason = str(error) if isinstance(error, ValueError) else blame(error)
        raise UserError(f"{config.task} with {config.encoding}: {reason}") from error
    width = _attention_width(encoding)
    own = sum(p.numel() for p in encoding.parameters() if p.requires_grad)
    length, layers = spec.max_len, model.num_layers
    d_ff = model.d_ff or 4 * model.d_model
    classes = task.num_classes or config.data.vocab_size or 0
    outputs = length if task.causal else 1
    pixels = task.image[0] * (config.data.patch_size or 1) ** 2 if task.image else 0
    inputs = (pixels + 1) * content if pixels else (config.data.vocab_size or 0) * content
    block = (4 * d + 4) * d + (2 * d + 1) * d_ff + d + 4 * d
    attention = length**2 * spec.num_heads * width
    forward = layers * length * (4 * d * d + 2 * d * d_ff) + attention + outputs * d * classes
    trunk = 3 * 2 * forward + 2 * 2 * length * pixels * content
    options = tuple(sorted(config.encoding_args.items()))
    hooks = functools.partial(_hook_flops, load_encoding(config.encoding), options, spec)
    parameters = own + inputs + layers * block + 2 * d + (d + 1) * classes
    return Cost(own, parameters, trunk, hooks, config.train.batch_size)


def _attention_width(encoding: "PositionalEncoding") -> int:
    """Widths of a query and a value, as the hooks make them, summed over all layers.

    A hook that fails here will fail in its runs, whose records say so; it must not keep the others from theirs.
    """
    from pebench.encodings.base import query_width

    layers, usual = encoding.spec.num_layers, encoding.model_width // encoding.spec.num_heads
    try:
        return layers * usual + sum(query_width(encoding, layer) for layer in range(layers))
    except Exception:
        return 2 * layers * usual


@functools.cache
def _hook_flops(maker: Any, options: tuple[tuple[str, Any], ...], spec: "EncodingSpec", examples: int) -> int:
    """Operations of the matrix products in the hooks, over all layers, forward and backward, for a few examples.

    As PyTorch counts them; zero where a hook fails.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from pebench.encodings.base import build_encoding, grid_positions

    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        try:
            encoding = build_encoding(maker, spec, dict(options))
            with torch.no_grad():
                prepared = encoding.prepare(encoding.place(grid_positions(spec.extent)).float())  # which runs keep
            content = torch.zeros(examples, spec.max_len, encoding.content_width, requires_grad=True)
            with FlopCounterMode(display=False) as counter:
                told = [part.sum() for part in _told(encoding, content, prepared) if part.requires_grad]
                torch.autograd.backward(told)
        except Exception:
            return 0
    return int(counter.get_total_flops())


def _told(encoding: "PositionalEncoding", content: "Tensor", prepared: Any) -> Iterator["Tensor"]:
    """What the hooks return, one after the other, as a model would call them."""
    spec, state = encoding.spec, encoding(prepared)
    yield (x := encoding.embed(content.clone(), state))  # as some write in place, which a leaf forbids
    heads = x.unflatten(-1, (spec.num_heads, -1)).transpose(1, 2)
    for layer in range(spec.num_layers):
        yield encoding.residual(x.clone(), None, state, layer)
        q, k = encoding.query_key(heads.clone(), heads.clone(), x.clone(), state, layer)
        bias = encoding.bias(q, k, x, state, layer)
        yield from (q, k) if bias is None else (q, k, bias)


def check_costs(configs: Iterable[RunConfig]) -> dict[str, Cost]:
    """The cost of every kind of run, by `RunConfig.kind_key`.

    Raises:
        UserError: Naming every run that cannot work.
    """
    costs, problems = {}, []
    for config in configs:
        try:
            costs[config.kind_key] = cost(config)
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("\n".join(dict.fromkeys(problems)))
    return costs


def matched(config: RunConfig, reference: RunConfig) -> RunConfig:
    """A run made as costly as another under its regime, by the width of its feed-forward layers.

    Args:
        config: Of the run.
        reference: What it is to be matched to: the same task with another encoding.

    Raises:
        UserError: If no width brings it within 1 %, which a suite may not call matched.
    """
    if config.regime == "width":
        return config
    target, narrow = cost(reference).of(config.regime), _with_d_ff(config, 1)
    least = cost(narrow).of(config.regime)
    slope = cost(_with_d_ff(config, 2)).of(config.regime) - least
    if not slope:
        raise UserError(f"{config.task} without layers has no feed-forward layers to match {config.regime} by.")
    result = _with_d_ff(config, max(1, 1 + round((target - least) / slope)))
    reached = cost(result).of(config.regime)
    if abs(reached - target) > TOLERANCE * target:
        raise UserError(
            f"{config.task} with {config.encoding}: no model.d_ff matches {config.regime} to {reference.encoding}'s "
            f"{target:,} within {TOLERANCE:.0%}; the nearest has {reached:,}."
        )
    return result


def _with_d_ff(config: RunConfig, d_ff: int) -> RunConfig:
    usual = 4 * config.model.d_model
    return replace(config, model=replace(config.model, d_ff=None if d_ff == usual else d_ff))
