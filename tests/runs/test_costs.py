"""Costs are those that PyTorch counts of whole models, and matching makes them equal."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from pebench.config import ModelConfig, RunConfig
from pebench.data import datamodule_of
from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import encoding_cards
from pebench.errors import UserError
from pebench.models.counting import count_parameters
from pebench.runs.costs import check_costs, cost, matched
from pebench.tasks import TASKS, configure
from pebench.training.probe import probe
from pebench.training.runner import build
from tests.sampling import sampled

EMBEDDED = ["vit-digits", "text-order", "lm-grammar"]
MODELS = {
    "small": ModelConfig(d_model=24, num_layers=2, num_heads=2),
    "deep": ModelConfig(d_model=32, num_layers=3, num_heads=4, d_ff=40),
}


def serves(encoding: str, task: str) -> bool:
    try:
        return bool(cost(configure(task, encoding)))
    except UserError:
        return False


SERVED = [(encoding, task) for encoding in encoding_cards() for task in EMBEDDED if serves(encoding, task)]
SERVED.append(("rope", "seq-copy"))
COUNTED = [
    pytest.param(encoding, task, size, id=f"{encoding}-{task}-{size}") for encoding, task in SERVED for size in MODELS
]
MATCHED = [
    pytest.param(regime, encoding, task, id=f"{regime}-{encoding}-{task}")
    for encoding, task in SERVED for regime in ("parameters", "FLOPs")
]  # fmt: skip


def full_length_batch(config: RunConfig) -> tuple[torch.Tensor, ...]:
    """One example of the largest size that the task has."""
    task, length = TASKS[config.task], config.data.max_len or 0
    label = torch.zeros(1, dtype=torch.long)
    if task.image:
        channels, side = task.image
        return torch.zeros(1, channels, side, side), label
    tokens = torch.zeros(1, length, dtype=torch.long)
    return (tokens, tokens) if task.causal else (tokens, torch.tensor([length]), label)


@pytest.mark.parametrize(("encoding", "task", "size"), sampled(COUNTED, 0.2, lambda encoding, *_: encoding))
def test_costs_are_those_that_pytorch_counts(encoding: str, task: str, size: str) -> None:
    config = replace(configure(task, encoding), model=MODELS[size])
    module = build(config, datamodule_of(config))
    module.loss(full_length_batch(config))  # what is prepared is kept, and costs nothing in a step
    with module.trunk.using_kernel("matmul"), FlopCounterMode(display=False) as counter:  # the fused one hides products
        module.loss(full_length_batch(config)).backward()
    found = cost(config)
    assert found.parameters == count_parameters(module)
    assert found.encoding == count_parameters(module.trunk.encoding)
    assert found.flops == counter.get_total_flops()


@pytest.mark.parametrize("name", [*EMBEDDED, "seq-copy", "seq-recall"])
def test_what_a_task_says_of_its_data_is_so(name: str) -> None:
    config = configure(name, "none")
    facts, task = datamodule_of(config).model_arguments(), TASKS[name]
    assert facts.get("num_classes") == task.num_classes
    assert facts.get("vocab_size") == config.data.vocab_size
    assert (facts.get("channels"), facts.get("image_size")) == (task.image or (None, None))
    assert build(config, datamodule_of(config)).trunk.encoding.spec.extent == task.extent(config.data)
    assert build(config, datamodule_of(config)).trunk.encoding.spec.causal == task.causal


@pytest.mark.parametrize(("regime", "encoding", "task"), sampled(MATCHED, 0.2, lambda _, encoding, task: encoding))
def test_a_matched_run_costs_what_its_reference_does(regime: str, encoding: str, task: str) -> None:
    reference = replace(configure(task, "add"), regime=regime)
    config = replace(configure(task, encoding), regime=regime)
    if cost(replace(config, model=replace(config.model, d_ff=1))).of(regime) > 1.01 * cost(reference).of(regime):
        with pytest.raises(UserError, match=rf"no model\.d_ff matches {regime}"):  # whatever the rest of the model is
            matched(config, reference)
        return
    run = matched(config, reference)
    assert cost(run).of(regime) == pytest.approx(cost(reference).of(regime), rel=0.01)
    assert replace(run, model=reference.model, encoding="add", encoding_args={}) == reference  # nothing else has moved


def test_a_run_that_costs_the_same_already_is_left_alone() -> None:
    for regime in ("width", "parameters", "FLOPs"):
        run = replace(configure("vit-digits", "rope"), regime=regime)
        assert matched(run, replace(run, encoding="add")) == run


def test_what_cannot_be_matched_is_refused_with_the_nearest() -> None:
    narrow: dict[str, Any] = {"model.d_model": 8, "model.num_heads": 1, "model.d_ff": 4, "data.max_len": 4096}
    reference, learned = (
        replace(configure("lm-grammar", name, settings=narrow), regime="parameters") for name in ("add", "learned")
    )
    with pytest.raises(UserError, match=r"lm-grammar with learned: no model\.d_ff matches parameters to add's [\d,]+ "):
        matched(learned, reference)


@pytest.mark.parametrize("regime", ["parameters", "FLOPs"])
def test_a_model_without_layers_cannot_be_matched(regime: str) -> None:
    bag, reference = (
        replace(configure("text-order", name, settings={"model.num_layers": 0}), regime=regime)
        for name in ("learned", "add")
    )
    with pytest.raises(UserError, match="without layers has no feed-forward layers to match"):
        matched(bag, reference)


def test_all_that_cannot_work_is_told_at_once() -> None:
    kinds = [configure("vit-digits", name, settings={"model.d_model": 30}) for name in ("none", "add", "rope")]
    with pytest.raises(UserError) as caught:
        check_costs(kinds)
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        "vit-digits with add", "vit-digits with rope",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "value", "served", "refused"),
    [
        ("model.segments", "sum", "text-pairs", "text-order"),
        ("model.tied", True, "lm-grammar", "text-order"),
        ("model.token_scale", 0.02, "lm-grammar", "vit-digits"),
        ("model.token_pace", 1.0, "text-order", "vit-digits"),
        ("train.cutmix", 1.0, "vit-digits", "text-order"),
        ("train.token_table", "frozen", "text-order", "vit-digits"),
    ],
)
def test_settings_serve_the_tasks_that_have_what_they_change(
    setting: str, value: Any, served: str, refused: str
) -> None:
    assert cost(configure(served, "add", settings={setting: value}))
    with pytest.raises(UserError, match=rf"{setting} serves .*, got {refused}\."):
        cost(configure(refused, "add", settings={setting: value}))


def test_patches_must_fill_the_image() -> None:
    with pytest.raises(UserError, match=r"data\.patch_size must divide the image's 8 pixels, got 3"):
        cost(configure("vit-digits", "none", settings={"data.patch_size": 3}))


def test_counting_an_encoding_does_not_touch_the_random_stream() -> None:
    torch.manual_seed(0)
    expected = torch.rand(())
    torch.manual_seed(0)
    cost(configure("vit-digits", "learned"))
    assert torch.rand(()) == expected


class Counted(PositionalEncoding):
    """Multiplies the input with a trained matrix, and says nothing of what that costs."""

    def __init__(self, spec: EncodingSpec) -> None:
        super().__init__(spec)
        self.matrix = torch.nn.Parameter(torch.empty(spec.d_model, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.eye_(self.matrix)

    def embed(self, x: torch.Tensor, state: Any) -> torch.Tensor:
        x += 1.0  # in place, as a model allows
        return x @ self.matrix


class Failing(PositionalEncoding):
    """Its hooks fail; its runs say so."""

    name = "failing"

    def embed(self, x: torch.Tensor, state: Any) -> torch.Tensor:
        raise RuntimeError("no")


def test_hooks_that_fail_cost_nothing() -> None:
    plain = cost(configure("vit-digits", "none")).flops
    assert cost(configure("vit-digits", f"{__name__}:Failing")).flops == plain


def test_products_in_the_hooks_of_anyones_encoding_are_counted() -> None:
    config = configure("vit-digits", f"{__name__}:Counted")
    plain = cost(configure("vit-digits", "none")).flops
    assert cost(config).flops - plain == 3 * 2 * 16 * config.model.d_model**2


@pytest.mark.parametrize("encoding", ["concat-qk", "log-cpb", "add-proj", "cope"])
def test_in_a_training_step_what_a_batch_shares_counts_once(encoding: str) -> None:
    config = configure("lm-grammar" if encoding == "cope" else "vit-digits", encoding, settings={"train.batch_size": 6})
    module = build(config, datamodule_of(config))
    batch = tuple(part.repeat(6, *[1] * (part.dim() - 1)) for part in full_length_batch(config))
    module.loss(batch)  # what is prepared is kept, and costs nothing in a step
    with module.trunk.using_kernel("matmul"), FlopCounterMode(display=False) as counter:  # the fused one hides products
        module.loss(batch).backward()
    assert cost(config).of("FLOPs") == counter.get_total_flops() // 6
    assert (cost(config).of("FLOPs") == cost(config).flops) == (encoding == "cope")  # which shares nothing


def test_a_record_counts_the_text_of_median_length() -> None:
    config = configure("text-order", "none")
    data = datamodule_of(config)
    data.prepare_data()
    data.setup()
    _, lengths = data.split("train")
    assert lengths is not None
    median = int(lengths.double().quantile(0.5, interpolation="higher"))
    assert int(lengths.min()) < median < int(lengths.max())
    assert (
        probe(build(config, data), data).flops == cost(replace(config, data=replace(config.data, max_len=median))).flops
    )
