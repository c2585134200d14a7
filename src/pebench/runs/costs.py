"""Cost of a run before it runs: parameters and floating-point operations, counted on the model and the encoding."""

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pebench.config import Augmentation, RunConfig
from pebench.errors import UserError
from pebench.formatting import MOST, cut
from pebench.tasks import find_task

if TYPE_CHECKING:
    from torch import Tensor

    from pebench.encodings.base import EncodingSpec, PositionalEncoding
    from pebench.models.outline import Ends

TOLERANCE = 0.01
"""Largest relative difference between the costs of runs that count as matched."""


@dataclass(frozen=True)
class Cost:
    """Parameters and floating-point operations of one run.

    Args:
        encoding: Trained parameters of the encoding.
        parameters: Trained parameters of the whole model.
        layers: Counts the floating-point operations of the model's own layers, forward and backward, on one example.
        hooks: Counts those of the encoding's hooks on so many examples together. Both count matrix products, and only
            when they are asked for: it takes a moment.
        batch_size: Examples in a training step.
    """

    encoding: int
    parameters: int
    layers: Callable[[], int] = field(repr=False, compare=False)
    hooks: Callable[[int], int] = field(repr=False, compare=False)
    batch_size: int

    @property
    def flops(self) -> int:
        """Floating-point operations, forward and backward, on one example of full length alone."""
        return self.layers() + self.hooks(1)

    @property
    def flops_in_a_batch(self) -> int:
        """One example's part of the floating-point operations of a training step.

        Operations that a batch shares, as those of a projected table, count once for all of it.
        """
        # Operations are linear in the examples: one more example adds its own part, and what is left of the first is
        # shared.
        one, two = self.hooks(1), self.hooks(2)
        return self.layers() + (one + (self.batch_size - 1) * (two - one)) // self.batch_size

    def of(self, regime: str) -> int:
        """Return the quantity that a regime makes equal: ``parameters``, or ``FLOPs``, those of a training step."""
        return self.parameters if regime == "parameters" else self.flops_in_a_batch


def cost(config: RunConfig) -> Cost:
    """Return the cost of a run, counted on its encoding and on its model's layers.

    Raises:
        UserError: If the encoding cannot serve this model.
    """
    import torch

    from pebench.encodings.base import EncodingSpec
    from pebench.encodings.build import build_encoding
    from pebench.encodings.checks import blame
    from pebench.models.counting import count_parameters
    from pebench.models.outline import Ends, Outline, encoding_widths

    task, model = find_task(config.task), config.model
    _check_task_has(config)
    spec = EncodingSpec(model.d_model, model.num_heads, model.num_layers, task.extent(config.data), causal=task.causal)
    try:
        with torch.random.fork_rng(devices=[]):
            # With numbers, unlike the outline below: the constructor of anyone's encoding may compute with its tables.
            encoding = build_encoding(config.encoding, spec, config.encoding_args)
            widths = encoding_widths(encoding)
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # of anyone's encoding; ours refuse by a ValueError that says it all
        reason = str(error) if isinstance(error, ValueError) else blame(error)
        raise UserError(f"{config.task} with {config.encoding}: {cut(reason, MOST)}") from error
    vocab_size, (channels, _) = config.data.vocab_size or 0, task.image or (0, 0)
    outputs = task.num_classes or vocab_size
    pooled, patch_size = not task.kind.per_token, config.data.patch_size or 1
    ends = Ends(vocab_size, channels, patch_size, outputs, pooled, model.tied, model.segments)
    try:
        with torch.device("meta"):  # parameters without numbers: nothing is drawn, and no memory taken
            outline = Outline(ends, encoding, model.d_ff)
    except ValueError as error:
        raise UserError(f"{config.task} with {config.encoding}: {error}") from error
    if config.train.token_table == "frozen":
        outline.input.requires_grad_(False)
    options = tuple(sorted(config.encoding_args.items()))  # hashable, for the cache of the counts
    maker: Any = type(encoding)  # mypy takes nn.Module's classes to have no hash
    return Cost(
        encoding=count_parameters(encoding),
        parameters=count_parameters(outline),
        layers=functools.partial(_layer_flops, ends, spec, model.d_ff, widths),
        hooks=functools.partial(_hook_flops, maker, options, spec),
        batch_size=config.train.batch_size,
    )


def _check_task_has(config: RunConfig) -> None:
    """Refuse settings for something that the task or its model lacks."""
    task, model = find_task(config.task), config.model
    predicts = task.kind.per_token and not task.image and not task.num_classes
    for name, given, served, serves in (
        ("model.tied", model.tied, predicts, "tasks that predict tokens, as lm-wikitext2"),
        ("model.token_scale", model.token_scale, predicts, "tasks that predict tokens, as lm-wikitext2"),
        ("model.token_pace", model.token_pace, not task.image, "tasks on text, which have a token table"),
        ("model.segments", model.segments, task.separator is not None, "tasks on pairs of texts, such as text-pairs"),
        ("train.token_table", config.train.token_table, not task.image, "tasks on text, which have a token table"),
        *(
            (f"train.{name}", value, task.image, "tasks on images, as vit-cifar10")
            for name, value in vars(Augmentation.of(config.train)).items()
        ),
    ):
        if given and not served:
            raise UserError(f"{name} serves {serves}, got {config.task}.")
    if config.train.token_table and (model.tied or model.segments):
        raise UserError(
            "train.token_table needs a token table that does nothing else: no model.tied, no model.segments."
        )


@functools.cache
def _layer_flops(ends: "Ends", spec: "EncodingSpec", d_ff: int | None, widths: tuple[int, ...]) -> int:
    """Return the floating-point operations of a model's own layers; encodings of the same widths share the count."""
    import torch

    from pebench.models.outline import layer_flops

    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        # With gradients whatever the caller has set, as backward is counted, and without a trace in its random numbers.
        return layer_flops(ends, spec, d_ff, widths)


@functools.cache
def _hook_flops(maker: Any, options: tuple[tuple[str, Any], ...], spec: "EncodingSpec", examples: int) -> int:
    """Return the floating-point operations in the hooks of all layers, forward and backward, on a few examples.

    Zero where a hook fails: it fails in its runs, whose records say so, and must not keep the others from theirs.
    """
    import torch

    from pebench.encodings.base import grid_positions
    from pebench.encodings.build import build_encoding
    from pebench.models.counting import count_flops

    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        try:
            encoding = build_encoding(maker, spec, dict(options))
            with torch.no_grad():
                prepared = encoding.prepare(encoding.place(grid_positions(spec.extent)).float())  # which runs keep
            shape, dtype = (examples, spec.max_len, encoding.content_width), torch.get_default_dtype()  # as parameters
            content = torch.zeros(shape, dtype=dtype, requires_grad=True)
            # One scalar of every output, so that backward runs through each hook as training does.
            return count_flops(lambda: torch.stack([x.sum() for x in _hook_outputs(encoding, content, prepared)]).sum())
        except Exception:
            return 0


def _hook_outputs(encoding: "PositionalEncoding", content: "Tensor", prepared: Any) -> Iterator["Tensor"]:
    """Yield the hooks' outputs one after the other, in the order in which a model calls them.

    Args:
        encoding: Encoding to call.
        content: (B, L, content_width), a leaf: hooks are given copies, as some write in place.
        prepared: State from `prepare`.
    """
    from pebench.encodings.pairs import whole

    spec, state = encoding.spec, encoding(prepared)
    yield (x := encoding.embed(content.clone(), state))
    heads = x.unflatten(-1, (spec.num_heads, -1)).transpose(1, 2)  # (B, L, D) to (B, L, H, K) to (B, H, L, K)
    for layer in range(spec.num_layers):
        yield encoding.residual(x.clone(), None, state, layer)
        q, k = encoding.query_key(heads.clone(), heads.clone(), x.clone(), state, layer)
        bias = whole(encoding.bias(q, k, x, state, layer))
        yield from (q, k) if bias is None else (q, k, bias)
        yield (v := encoding.value(heads.clone(), x, state, layer))
        yield encoding.output(v.clone(), v, x, state, layer)


def check_costs(configs: Iterable[RunConfig]) -> dict[str, Cost]:
    """Return the cost of every kind of run, by `RunConfig.kind_key`.

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
    """Return a run that costs as much as another under its regime, by the width of its feed-forward layers.

    Args:
        config: Run to match.
        reference: Run to match it to: the same task with another encoding.

    Raises:
        UserError: If no width brings it within 1 %, which a suite may not call matched.
    """
    if config.regime == "width":
        return config
    # Costs are linear in the width of the feed-forward layers, so two widths give the line on which the target's lies.
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
    # None at the usual width, so that a row that needs no matching has the settings of a run at equal width.
    return replace(config, model=replace(config.model, d_ff=None if d_ff == usual else d_ff))
