"""The cards of tasks: complete, pinned, with tiers that make configurations."""

import re
from importlib import import_module

import pytest

from pebench.config import MONITORS, TIERS, setting_names
from pebench.data.base import TensorDataModule
from pebench.encodings.base import EncodingSpec
from pebench.encodings.build import build_encoding
from pebench.encodings.registry import encoding_cards
from pebench.models.base import SequenceModule
from pebench.runs.suite import serves
from pebench.tasks import TASKS, configure, default_tier, find_task

EMBEDDED = [name for name, task in TASKS.items() if task.embedded]
ENCODINGS = list(encoding_cards())
BUDGETS = [(name, tier) for name, task in TASKS.items() for tier in task.budgets]
every_task = pytest.mark.parametrize("task", TASKS)
every_encoding = pytest.mark.parametrize("encoding", ENCODINGS)
every_budget = pytest.mark.parametrize(("task", "tier"), BUDGETS)


# The card of a task


def resolve(path: str) -> type:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@every_task
def test_a_card_is_complete(task):
    card = TASKS[task]
    assert card.name == task
    assert re.fullmatch(r"(vit|text|lm|seq)-[a-z0-9-]+", task)
    for text in (card.summary, card.splits, card.unit):
        assert text.strip() == text != ""
        assert "\n" not in text
    assert "validation" in card.splits
    assert "test" in card.splits


@every_task
def test_a_card_names_its_classes(task):
    card = TASKS[task]
    assert issubclass(resolve(card.kind.module), SequenceModule)
    assert issubclass(resolve(card.data), TensorDataModule)
    assert resolve(card.data).source == card.source


@pytest.mark.parametrize("task", [name for name in TASKS if name not in EMBEDDED])
def test_a_source_is_pinned(task):
    source = TASKS[task].source
    assert source.url.startswith("https://")
    assert re.search(r"[0-9a-f]{32,64}$", source.pin)
    assert source.pin in str(source)
    assert source.local.startswith(source.folder + "/")


ARGUMENTS = {
    "vit": {},
    "text": {"vocab_size": 11, "max_len": 8},
    "lm": {"vocab_size": 11, "max_len": 8, "token_bytes": [1] * 11},
    "seq": {"vocab_size": 11, "max_len": 8},
}


@every_task
def test_the_metrics_of_a_card_are_measured(task):
    card = TASKS[task]
    module = resolve(card.kind.module)("none", **ARGUMENTS[task.split("-")[0]], d_model=8, num_layers=1, num_heads=2)
    chosen_by = {card.monitored(monitor)[0] for monitor in MONITORS}
    assert {f"val/{card.metric}", f"test/{card.metric}", *chosen_by} <= set(module.metrics)
    assert card.higher_is_better is (card.metric == "accuracy")


@every_task
def test_tiers_are_known_and_include_smoke(task):
    tiers = list(TASKS[task].budgets)
    assert tiers == [tier for tier in TIERS if tier in tiers]
    assert tiers[0] == "smoke"
    assert default_tier(TASKS[task]) in tiers[1:]


@every_budget
def test_every_tier_makes_a_configuration(task, tier):
    config, budget = configure(task, "add", tier=tier), TASKS[task].budgets[tier]
    assert (config.task, config.tier, config.seed) == (task, tier, 0)
    assert (config.model, config.data, config.train) == (budget.model, budget.data, budget.train)


@every_task
def test_the_smoke_tier_is_tiny(task):
    config = configure(task, "add", tier="smoke")
    assert config.train.max_steps == 2
    assert config.model.d_model * config.model.num_layers <= 16
    assert config.train.batch_size <= 16


@every_task
def test_a_task_without_a_tier_means_its_default(task):
    assert configure(task, "add").tier == ("minute" if TASKS[task].embedded else "core")


@every_encoding
def test_every_encoding_fits_every_tier(encoding):
    for task, tier in BUDGETS:
        if not task.startswith("seq-") or (task, tier) == ("seq-copy", "quick"):  # sequence tasks have one model
            check_fit(task, tier, encoding)


def check_fit(task, tier, encoding):
    config = configure(task, encoding, tier=tier)
    _, image = TASKS[task].image or (0, 0)
    extent = (image // config.data.patch_size,) * 2 if image else (config.data.max_len,)
    model = config.model
    spec = EncodingSpec(model.d_model, model.num_heads, model.num_layers, extent, causal=TASKS[task].causal)
    if serves(task, encoding):
        built = build_encoding(encoding, spec)
        assert 0 < built.content_width <= built.model_width
    else:
        with pytest.raises(ValueError, match=f"{encoding!r} serves"):
            build_encoding(encoding, spec)


@every_task
def test_only_data_settings_that_apply_can_be_set(task):
    names = [name for name in setting_names(configure(task, "add")) if name.startswith("data.")]
    assert names == (["data.patch_size"] if task.startswith("vit") else ["data.max_len", "data.vocab_size"])


@every_task
def test_a_card_can_be_found(task):
    assert find_task(task) is TASKS[task]
