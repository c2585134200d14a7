"""What every task, tier, configuration and suite must keep to."""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import nn

from pebench.config import CORE_ENCODINGS, MONITORS, TIERS, ModelConfig, RunConfig, parse_settings, setting_names
from pebench.data import datamodule_of
from pebench.data.base import TensorDataModule
from pebench.encodings.base import EncodingSpec, build_encoding
from pebench.encodings.registry import encoding_card, encoding_cards, load_encoding, normal_options
from pebench.errors import UserError
from pebench.models.base import SequenceModule
from pebench.runs.plan import Plan
from pebench.runs.suite import Suite, load_suite, serves, suite_files
from pebench.tasks import TASKS, configure, default_tier, find_task, reconfigure
from pebench.training.runner import build

import lightning  # isort: skip

ROOT = Path(__file__).parents[2]
EMBEDDED = [name for name, task in TASKS.items() if task.embedded]
ENCODINGS = list(encoding_cards())
BUDGETS = [(name, tier) for name, task in TASKS.items() for tier in task.budgets]

every_task = pytest.mark.parametrize("task", TASKS)
every_embedded = pytest.mark.parametrize("task", EMBEDDED)
every_encoding = pytest.mark.parametrize("encoding", ENCODINGS)
every_budget = pytest.mark.parametrize(("task", "tier"), BUDGETS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def alone(monkeypatch, cache):
    """Neither network nor what this machine has set; the embedded data are prepared once for all tests here."""

    def refuse(*_):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(cache))
    monkeypatch.delenv("PEBENCH_DATA_DIR", raising=False)


# The card of a task


def resolve(path: str) -> type:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@every_task
def test_a_card_is_complete(task):
    card = TASKS[task]
    assert card.name == task
    assert re.fullmatch(r"(vit|text|lm)-[a-z0-9]+", task)
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
    assert configure(task, "add").tier == ("quick" if TASKS[task].embedded else "core")


@every_budget
@every_encoding
def test_every_encoding_fits_every_tier(task, tier, encoding):
    config = configure(task, encoding, tier=tier)
    image = {"vit-digits": 8, "vit-cifar10": 32}.get(task)
    extent = (image // config.data.patch_size,) * 2 if image else (config.data.max_len,)
    model = config.model
    spec = EncodingSpec(model.d_model, model.num_heads, model.num_layers, extent, causal=task.startswith("lm"))
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


# What configure() refuses

WRONG = {
    "task": (("vit-digit", "add"), {}, r"unknown task 'vit-digit'\. Did you mean 'vit-digits'\? Valid: lm-grammar, "),
    "encoding": (("vit-digits", "ropes"), {}, r"unknown encoding 'ropes'\. Did you mean 'rope'\? Valid: add, "),
    "tier": (("vit-digits", "add"), {"tier": "quik"}, r"'vit-digits' has no tier 'quik'\. Valid for it: smoke, quick"),
    "other tier": (("vit-digits", "add"), {"tier": "core"}, r"has no tier 'core'\. Valid for it: smoke, quick"),
    "option": (
        ("vit-digits", "rope"),
        {"encoding_args": {"thta": 1}},
        r"unknown option of encoding 'rope': 'thta'\. Did you mean 'theta'\?",
    ),
    "no option": (("vit-digits", "none"), {"encoding_args": {"ratio": 1}}, r"'ratio'\. Valid: \(it has none\)"),
    "seed": (("vit-digits", "add", -1), {}, r"a seed must be in \[0, 2\^32\), got -1"),
    "large seed": (("vit-digits", "add", 2**32), {}, r"a seed must be in \[0, 2\^32\), got 4294967296"),
}
WRONG_SETTINGS = {
    "model.d_mode": (8, r"unknown setting 'model\.d_mode'\. Did you mean 'model\.d_model'\?"),
    "max_steps": (8, r"unknown setting 'max_steps'\. Did you mean 'train\.max_steps'\?"),
    "data.max_len": (8, r"unknown setting 'data\.max_len'"),
    "train": (8, r"unknown setting 'train'"),
    "train.max_steps": ("1.5", r"train\.max_steps expects int, got '1\.5'"),
    "train.batch_size": (True, r"train\.batch_size expects int, got True"),
    "train.evaluations": (2.0, r"train\.evaluations expects int, got 2\.0"),
    "train.learning_rate": ("fast", r"train\.learning_rate expects float, got 'fast'"),
    "model.d_ff": ("wide", r"model\.d_ff expects .*int.*, got 'wide'"),
    "model.num_heads": (3, r"model\.d_model must be a multiple of model\.num_heads, got 32 and 3"),
    "model.dropout": (1.0, r"model\.dropout must be in \[0, 1\), got 1\.0"),
    "model.num_layers": (-1, r"model\.num_layers must be in \[0, inf\), got -1"),
    "data.patch_size": (-1, r"data\.patch_size must be positive, got -1"),
}


@pytest.mark.parametrize(("names", "options", "message"), WRONG.values(), ids=list(WRONG))
def test_what_does_not_exist_is_refused_with_what_does(names, options, message):
    with pytest.raises(UserError, match=message):
        configure(*names, **options)


@pytest.mark.parametrize(("name", "value", "message"), [(k, *v) for k, v in WRONG_SETTINGS.items()])
def test_a_wrong_setting_is_refused(name, value, message):
    with pytest.raises(UserError, match=message):
        configure("vit-digits", "add", settings={name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model.d_ff", -4),
        ("train.warmup", 3.0),
        ("train.clip", -1.0),
        ("train.weight_decay", -0.1),
        ("train.precision", "float33"),
        ("train.monitor", "val/accuracy"),
        ("train.learning_rate", math.inf),
    ],
)
def test_a_setting_that_cannot_work_is_refused(name, value):
    with pytest.raises(UserError, match=name):
        configure("vit-digits", "add", settings={name: value})


@pytest.mark.parametrize(
    "settings", [{"model.d_model": 128, "model.num_heads": 4}, {"model.num_heads": 5, "model.d_model": 50}]
)
def test_settings_are_checked_together(settings):
    model = configure("lm-wikitext2", "add", settings=settings).model  # 96 and 3 by default
    assert (model.d_model, model.num_heads) == (settings["model.d_model"], settings["model.num_heads"])


def test_the_same_options_make_the_same_run():
    keys = {configure("vit-digits", "rope", encoding_args=args).key for args in ({}, {"theta": None})}
    assert len(keys) == 1
    keys = {configure("vit-digits", "rope", encoding_args={"theta": theta}).key for theta in (10, 10.0)}
    assert len(keys) == 1
    with pytest.raises(UserError, match=r"'d_p' of encoding 'concat' expects int, got 2\.5"):
        configure("vit-digits", "concat", encoding_args={"d_p": 2.5})


def test_an_option_of_the_wrong_type_is_refused():
    with pytest.raises(UserError, match="theta"):
        configure("vit-digits", "rope", encoding_args={"theta": "large"})


@pytest.mark.parametrize(
    ("encoding", "options", "message"),
    [
        ("rope", {}, r"'rope' needs a head width that is a multiple of 4 for 2 position axes, got 3"),
        ("concat", {"d_p": 3}, r"d_p of encoding 'concat' must be .* multiple of 4.*, got 3"),
        ("concat", {"d_p": 8}, r"d_p of encoding 'concat' must be below d_model = 6, got 8"),
    ],
)
def test_a_width_that_an_encoding_cannot_use_is_said(encoding, options, message):
    config = configure("vit-digits", encoding, settings={"model.d_model": 6}, encoding_args=options)
    with pytest.raises(ValueError, match=message):
        build(config, datamodule_of(config))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("train.max_steps", "10", 10),
        ("train.max_steps", 10, 10),
        ("train.learning_rate", "1e-2", 0.01),
        ("train.learning_rate", 1, 1.0),
        ("model.d_ff", "64", 64),
        ("model.d_ff", None, None),
        ("model.d_ff", "null", None),
        ("train.precision", "bf16-mixed", "bf16-mixed"),
    ],
)
def test_a_setting_is_taken_as_text_or_as_a_value(name, value, expected):
    config, (part, leaf) = configure("vit-digits", "add", settings={name: value}), name.split(".")
    taken = getattr(getattr(config, part), leaf)
    assert (taken, type(taken)) == (expected, type(expected))


def test_assignments_are_read_as_settings():
    assert parse_settings(["a.b=1", " c = x=y "], "--set") == {"a.b": "1", "c": "x=y"}
    with pytest.raises(UserError, match=r"--set expects key=value, got 'a'"):
        parse_settings(["a"], "--set")
    assert parse_settings(["a=1", "a=2"], "--set") == {"a": "2"}
    with pytest.raises(UserError, match=r"--select a is given twice"):
        parse_settings(["a=1", "a = 2"], "--select")


# Configurations

BASE = RunConfig("vit-digits", "rope", encoding_args={"theta": 10.0})
OTHERS = {
    "task": replace(BASE, task="vit-cifar10"),
    "encoding": replace(BASE, encoding="add", encoding_args={}),
    "option": replace(BASE, encoding_args={"theta": 20.0}),
    "no option": replace(BASE, encoding_args={}),
    "seed": replace(BASE, seed=1),
    "tier": replace(BASE, tier="full"),
    "model": replace(BASE, model=replace(BASE.model, dropout=0.1)),
    "data": replace(BASE, data=replace(BASE.data, patch_size=2)),
    "train": replace(BASE, train=replace(BASE.train, clip=2.0)),
    "monitor": replace(BASE, train=replace(BASE.train, monitor="metric")),
    "regime": replace(BASE, regime="FLOPs"),
    "selected": replace(BASE, selected=("train.clip",)),
    "stage": replace(BASE, stage="select"),
}


def test_a_key_is_stable():
    """A change here orphans every record: it must come with a new PROTOCOL_VERSION, or not at all."""
    assert BASE.key == "301a50d282ce"


def test_the_key_differs_with_whatever_decides_the_outcome():
    keys = [BASE.key, *(other.key for other in OTHERS.values())]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[0-9a-f]{12}", key) for key in keys)


def test_the_key_differs_between_protocols(monkeypatch):
    before = BASE.key
    monkeypatch.setattr("pebench.config.run.PROTOCOL_VERSION", "0.0")
    assert replace(BASE).key != before


@pytest.mark.parametrize("value", [1, 1.0, "1"])
def test_the_key_does_not_depend_on_how_a_setting_was_written(value):
    assert configure("vit-digits", "add", settings={"train.clip": value}).key == configure("vit-digits", "add").key


def test_the_key_does_not_depend_on_the_order_of_options():
    one, other = ({"d_p": 8, "ratio": 2.0}, {"ratio": 2.0, "d_p": 8})
    assert RunConfig("t", "concat", encoding_args=one).key == RunConfig("t", "concat", encoding_args=other).key


def python(code: str, **environment: str) -> str:
    environment = os.environ | environment
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_key_is_the_same_in_every_process(hash_seed):
    code = (
        "from pebench.tasks import configure;"
        "print(configure('text-order', 'concat', 2, encoding_args={'d_p': 8, 'base': 9.0, 'ratio': 2.0}).key)"
    )
    here = configure("text-order", "concat", 2, encoding_args={"d_p": 8, "base": 9.0, "ratio": 2.0}).key
    assert python(code, PYTHONHASHSEED=hash_seed) == here


@every_task
@every_encoding
def test_a_configuration_survives_json(task, encoding):
    config = configure(task, encoding, 3, encoding_args=dict(encoding_card(encoding).options))
    for read in (RunConfig.from_dict, reconfigure):
        again = read(json.loads(json.dumps(config.to_dict())))
        assert again == config
        assert again.key == config.key


def test_a_configuration_that_cannot_work_is_not_read():
    values = BASE.to_dict() | {"model": vars(ModelConfig()) | {"num_heads": 3}}
    with pytest.raises(UserError, match=r"model\.d_model must be a multiple"):
        RunConfig.from_dict(values)


@pytest.mark.parametrize("file", sorted((ROOT / "results").glob("*.jsonl")), ids=lambda file: file.stem)
def test_a_published_configuration_is_read_as_the_same_run(file):
    kinds = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)["config"]
        kinds[RunConfig.from_dict(values).kind_key] = values
    for values in kinds.values():
        assert reconfigure(values).key == RunConfig.from_dict(values).key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "vit-digit"}, "unknown task 'vit-digit'. Did you mean 'vit-digits'?"),
        ({"task": ["vit-digits"]}, "task expects str, got ['vit-digits']."),
        ({"encoding": "../../rope"}, "unknown encoding '../../rope'."),
        ({"encoding": None}, "unknown encoding 'null'."),
        ({"encoding_args": {"thet": 5.0}}, "unknown option of encoding 'rope': 'thet'. Did you mean 'theta'?"),
        ({"encoding_args": {"theta": "x"}}, "option 'theta' of encoding 'rope' expects float, got 'x'."),
        ({"encoding_args": 3}, "encoding_args expects a mapping, got 3."),
        ({"tier": 7}, "tier expects str, got 7."),
        ({"tier": "full"}, "task 'vit-digits' has no tier 'full'."),
        ({"seed": 1.5}, "seed expects int, got 1.5."),
        ({"seed": -1}, "a seed must be in [0, 2^32), got -1."),
        ({"model": 3}, "model expects a mapping, got 3."),
        ({"model": {"num_heads": 3}}, "model.d_model must be a multiple of model.num_heads"),
        ({"train": {"max_step": 3}}, "unknown setting 'train.max_step'. Did you mean 'train.max_steps'?"),
        ({"train": {"learning_rate": "fast"}}, "train.learning_rate expects float, got 'fast'."),
        ({"train": {"learning_rate": None}}, "train.learning_rate expects float, got None."),
        ({"data": {"max_len": 3}}, "unknown setting 'data.max_len'."),
        ({"data": {"patch_size": None}}, "data.patch_size expects int, got None."),
        ({"regime": "cost"}, "unknown regime 'cost'."),
        ({"stage": []}, "stage expects str, got []."),
        ({"selected": ["rate"]}, "unknown selected setting 'rate'."),
        ({"sed": 3}, "unknown part of a configuration 'sed'. Did you mean 'seed'?"),
    ],
)
def test_a_configuration_is_checked_as_on_the_command_line(changes, message):
    with pytest.raises(UserError, match=re.escape(message)):
        reconfigure(configure("vit-digits", "rope", 0, "smoke").to_dict() | changes)


@pytest.mark.parametrize("name", ["task", "encoding", "model", "data", "train"])
def test_a_configuration_that_lacks_something_says_what(name):
    values = BASE.to_dict()
    del values[name]
    with pytest.raises(UserError, match=f"{name} is missing"):
        reconfigure(values)


def test_a_number_means_the_same_in_a_configuration_as_on_the_command_line():
    usual = configure("vit-digits", "rope", 0, "smoke")
    asked = configure("vit-digits", "rope", 0, "smoke", {"train.learning_rate": "1"}, {"theta": 500})
    train = vars(usual.train) | {"learning_rate": 1}
    assert reconfigure(usual.to_dict() | {"train": train, "encoding_args": {"theta": 500}}).key == asked.key


@every_task
@every_encoding
def test_a_directory_has_a_plain_name(task, encoding):
    directory = configure(task, encoding, 11).directory
    assert re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+/seed11-[0-9a-f]{12}", directory)
    assert directory.startswith(f"{task}/{encoding}/")


@pytest.mark.parametrize("options", [{"theta": "../../x"}, {"theta": 'a"b\n'}, {"theta": "ü" * 300}])
def test_no_option_shows_in_the_directory(options):
    assert re.fullmatch(
        r"vit-digits/rope/seed0-[0-9a-f]{12}", RunConfig("vit-digits", "rope", 0, "x", options).directory
    )


# Encodings, by name


def test_the_core_encodings_exist():
    assert set(CORE_ENCODINGS) <= set(ENCODINGS)


@every_encoding
def test_an_encodings_card_is_what_its_class_says(encoding):
    card, cls = encoding_card(encoding), load_encoding(encoding)
    assert (cls.name, cls.__module__) == (encoding, card.module)
    assert card.summary
    assert dict(cls.__init__.__kwdefaults__ or {}) == card.options
    assert normal_options(encoding, card.options) == {}


LIGHT = (
    "config",
    "encodings.registry",
    "tasks",
    "runs.suite",
    "runs.records",
    "seeding",
    "results.stats",
    "results.page",
)


@pytest.mark.parametrize("module", LIGHT)
def test_what_makes_tables_does_not_load_torch(module):
    heavy = "{'torch', 'lightning', 'torchmetrics', 'torchvision', 'datasets', 'sklearn'}"
    assert python(f"import sys, pebench.{module}; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_configuring_a_run_does_not_load_torch():
    code = (
        "import sys; from pebench.tasks import configure; configure('vit-digits', 'rope', settings={'train.clip': '2'})"
    )
    assert python(f"{code}; print('torch' in sys.modules)") == "False"


# Training, on the embedded data


def quiet(**options) -> lightning.Trainer:
    return lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, **options,
    )  # fmt: skip


def awake(module: SequenceModule) -> SequenceModule:
    """With an output layer that is not zero, so that the metrics have something to say."""
    nn.init.normal_(module.head.weight, std=0.2, generator=torch.Generator().manual_seed(0))
    return module


@pytest.mark.parametrize(("task", "encoding"), [(t, e) for t in EMBEDDED for e in ENCODINGS if serves(t, e)])
def test_every_task_trains_with_every_encoding_that_serves_it(task, encoding):
    config = configure(task, encoding, tier="smoke")
    data = datamodule_of(config)
    module, trainer = build(config, data), quiet(fast_dev_run=True)
    before = {name: parameter.clone() for name, parameter in module.named_parameters()}
    trainer.fit(module, datamodule=data)
    moved = [name for name, parameter in module.named_parameters() if not torch.equal(parameter, before[name])]
    assert "head.weight" in moved
    assert all(parameter.isfinite().all() for parameter in module.parameters())
    trainer.test(module, datamodule=data, verbose=False)
    assert math.isfinite(trainer.callback_metrics[f"test/{TASKS[task].metric}"])


@pytest.mark.parametrize(
    ("task", "encoding", "size"), [("vit-digits", "add", 64), ("text-order", "learned", 64), ("lm-grammar", "add", 4)]
)
def test_a_task_overfits_one_batch(task, encoding, size):
    config = configure(task, encoding, settings={"train.batch_size": size})
    data = datamodule_of(config)
    module = build(config, data)
    batch = data.on_after_batch_transfer(next(iter(data.train_dataloader())), 0)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    losses = []
    while len(losses) < 60 and (not losses or losses[-1] >= losses[0] / 4):
        loss = module.loss(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


@every_embedded
def test_validation_does_not_depend_on_the_batch_size(task):
    measured = []
    for size in (8, 32):
        config = configure(task, "add", tier="smoke", settings={"train.batch_size": size})
        data = datamodule_of(config)
        module = awake(build(config, data))
        measured.append(quiet().validate(module, datamodule=data, verbose=False)[0])
    assert measured[0] == pytest.approx(measured[1], abs=1e-5, rel=1e-5)
    assert f"val/{TASKS[task].metric}" in measured[0]


@every_embedded
def test_validation_measures_the_whole_split(task):
    config = configure(task, "add", tier="smoke")
    data = datamodule_of(config)
    module = awake(build(config, data)).eval()
    rows, _ = data.split("val")
    batch = data.on_after_batch_transfer(rows[torch.arange(len(rows))], 0)
    with torch.no_grad():
        whole = module.loss(batch).item()
    measured = quiet().validate(module, datamodule=data, verbose=False)[0]
    assert measured["val/loss"] == pytest.approx(whole, abs=1e-5)


@every_embedded
def test_the_first_loss_is_that_of_a_guess(task):
    classes = {"vit-digits": 10, "text-order": 3, "lm-grammar": 35}[task]
    config = configure(task, "add", tier="smoke")
    data = datamodule_of(config)
    metrics = quiet().validate(build(config, data), datamodule=data, verbose=False)[0]
    assert metrics["val/loss"] == pytest.approx(math.log(classes), abs=1e-5)


def test_bits_per_byte_are_the_loss_over_the_bytes():
    config = configure("lm-grammar", "add", tier="smoke")
    data = datamodule_of(config)
    measured = quiet().validate(awake(build(config, data)), datamodule=data, verbose=False)[0]
    tokens = data.prepared.tensors["val"][1:].long()  # all but the first are asked for
    size = torch.tensor(data.describe()["token_bytes"])[tokens].sum().item()
    expected = measured["val/loss"] * len(tokens) / size / math.log(2)
    assert measured["val/bits_per_byte"] == pytest.approx(expected, rel=1e-5)
    assert measured["val/perplexity"] == pytest.approx(math.exp(measured["val/loss"]), rel=1e-5)


# Suites


def planned(suite: Suite) -> list[RunConfig]:
    return Plan(suite, suite.kinds()).testing({})


@pytest.mark.parametrize("name", suite_files())
def test_every_suite_can_be_planned(name):
    suite = load_suite(name)
    plan = Plan(suite, suite.kinds())
    runs = [*plan.selecting(), *plan.testing({})]
    assert suite.name == name
    assert suite.question
    assert suite.expect
    assert f"{len(runs) + plan.undecided({})} runs" in suite.cost
    left_out = [pair for pair in product(suite.tasks, suite.encodings) if suite.where_served and not serves(*pair)]
    varied = math.prod(len(values) for values in suite.vary.values())
    assert len(plan.kinds) == (len(suite.tasks) * len(suite.encodings) - len(left_out)) * varied
    assert len({config.key for config in runs}) == len(runs) > 0
    assert len(runs) == len(plan.selecting()) + (0 if suite.select else len(suite.tested_seeds) * len(plan.kinds))


def test_quickstart_is_every_embedded_task_with_the_core_encodings():
    suite = load_suite("quickstart")
    rows = [(seed, task, name) for seed in range(suite.seeds) for task in EMBEDDED for name in CORE_ENCODINGS]
    assert [(config.seed, config.task, config.encoding) for config in planned(suite)] == rows
    assert {config.tier for config in planned(suite)} == {"quick"}


def test_a_plan_goes_seed_by_seed():
    plan = planned(Suite("s", "?", ["vit-digits", "text-order"], ["add", "none"], seeds=[4, 2]))
    assert [config.seed for config in plan] == [4] * 4 + [2] * 4
    assert Counter(config.encoding for config in plan) == {"add": 4, "none": 4}


def test_a_number_of_seeds_counts_from_zero():
    assert [config.seed for config in planned(Suite("s", "?", ["vit-digits"], ["add"], seeds=3))] == [0, 1, 2]


def test_an_encoding_can_bring_options():
    suite = Suite("s", "?", ["vit-digits"], ["rope", ("rope", {"theta": 10.0}), ("concat", {"d_p": 8})], seeds=1)
    plan = planned(suite)
    assert [dict(config.encoding_args) for config in plan] == [{}, {"theta": 10.0}, {"d_p": 8}]
    assert len({config.key for config in plan}) == 3


def test_a_suites_settings_reach_every_run():
    suite = Suite("s", "?", ["vit-digits"], ["add", "rope"], 1, settings={"train.max_steps": "7", "model.dropout": 0.5})
    assert [(c.train.max_steps, c.model.dropout) for c in planned(suite)] == [(7, 0.5)] * 2


def test_an_encoding_setting_reaches_the_encodings_that_know_it():
    settings = {"encoding.ratio": "0.5"}
    suite = Suite("s", "?", ["vit-digits"], ["add", "none", ("learned", {"ratio": 2.0})], 1, settings=settings)
    assert [dict(config.encoding_args) for config in planned(suite)] == [{"ratio": 0.5}, {}, {"ratio": 2.0}]


def test_an_encoding_setting_that_none_knows_is_refused():
    suite = Suite("s", "?", ["vit-digits"], ["add", "none"], 1, settings={"encoding.ratoi": 1})
    with pytest.raises(UserError, match=r"'encoding\.ratoi'\. Did you mean 'encoding\.ratio'\?"):
        suite.kinds()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tasks": ["vit-digit"]}, "Did you mean 'vit-digits'"),
        ({"encodings": ["ad"]}, "Did you mean 'add'"),
        ({"encodings": [("add", {"d_q": 8})]}, "option of encoding 'add': 'd_q'"),
        ({"tier": "core"}, "has no tier 'core'"),
        ({"settings": {"train.steps": 1}}, "unknown setting 'train.steps'"),
        ({"seeds": [-1]}, "a seed must be"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(changed, message):
    values = {"tasks": ["vit-digits"], "encodings": ["add"], "seeds": 1} | changed
    with pytest.raises(UserError, match=message):
        planned(Suite("s", "?", **values))


def test_a_suite_file_of_ones_own_works(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import pebench\n"
        "SUITE = pebench.Suite('mine', 'Is 8 enough?', ['vit-digits'], [('concat', {'d_p': 8}), 'none'], seeds=2)\n"
    )
    plan = planned(load_suite(str(file)))
    assert [(c.encoding, c.seed, dict(c.encoding_args)) for c in plan] == [
        ("concat", 0, {"d_p": 8}), ("none", 0, {}), ("concat", 1, {"d_p": 8}), ("none", 1, {}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("SUITE = (", "cannot be read: SyntaxError"),
        ("import no_such_module", "cannot be read: ModuleNotFoundError"),
        ("x = 1\ny = 1 / 0", r"line 2, cannot be read: ZeroDivisionError"),
        ("SUITE = pebench.Suite()", "cannot be read: NameError"),
        ("from pebench import Suite; SUITE = Suite('s', '?')", "cannot be read: TypeError"),
        ("import sys; sys.exit(0)", "cannot be read: SystemExit: 0"),
        ("from pebench import Suite; SUITE = Suite('s', '?', ['vit-digits'], seeds='3')", "seeds must be int"),
        ("", r"must define SUITE = pebench\.Suite\(\.\.\.\), but it defines none"),
        ("SUITE = {}", r"must define SUITE = pebench\.Suite\(\.\.\.\), but SUITE is dict"),
    ],
)
def test_a_suite_file_that_is_wrong_says_why(content, message, tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        load_suite(str(file))
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("tasks", "vit-digits", "list[str]"),
        ("tasks", [3], "list[str]"),
        ("encodings", [("rope",)], "list[str | tuple[str, dict[str, Any]]]"),
        ("encodings", ["add", ("rope", 3)], "list[str | tuple[str, dict[str, Any]]]"),
        ("seeds", "3", "int | list[int]"),
        ("seeds", 2.5, "int | list[int]"),
        ("seeds", True, "int | list[int]"),
        ("seeds", [0, 0.5], "int | list[int]"),
        ("tier", ["smoke"], "str | None"),
        ("settings", ["train.max_steps"], "dict[str, Any]"),
        ("settings", {3: 4}, "dict[str, Any]"),
        ("vary", ["model.num_layers"], "dict[str, Any]"),
        ("select", ["train.learning_rate"], "dict[str, Any]"),
        ("selection_seeds", "2", "int | dict[str, int]"),
        ("selection_seeds", {"vit-digits": "2"}, "int | dict[str, int]"),
        ("where_served", "no", "bool"),
        ("declared", 20261121, "str"),
        ("remarks", "One.", "list[str]"),
        ("contrasts", ["add-rope"], "list[tuple[str, str]]"),
        ("margin", 0.01, "dict[str, float]"),
        ("margin", {"accuracy": "0.01"}, "dict[str, float]"),
    ],
)
def test_a_field_of_a_suite_of_another_kind_is_told(field, value, expected):
    with pytest.raises(UserError) as caught:
        Suite(**{"name": "mine", "question": "?", "tasks": ["vit-digits"], field: value})
    assert str(caught.value) == f"{field} must be {expected}, got {value!r}."


def test_a_suite_takes_what_python_counts_as_the_same():
    suite = Suite(
        "mine", "?", ("vit-digits",), [["rope", {"theta": 5}], "add"], seeds=range(2), margin={"accuracy": 1},
        contrasts=[["rope (theta=5.0)", "add"]],
    )  # fmt: skip
    assert [config.label for config in suite.kinds()] == ["rope (theta=5.0)", "add"]


@pytest.mark.parametrize("seeds", [0, -1, []])
def test_a_suite_without_seeds_is_a_mistake(seeds):
    with pytest.raises(UserError, match="seeds must be at least 1, or a list of some, got"):
        Suite("mine", "?", ["vit-digits"], seeds=seeds).kinds()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quickstar", r"unknown suite 'quickstar'\. Did you mean 'quickstart'\?"),
        ("no/such/file.py", "expected a suite file, but 'no/such/file.py' does not exist"),
        (".", r"unknown suite '\.'"),
    ],
)
def test_a_suite_that_is_not_there_is_said(name, message):
    with pytest.raises(UserError, match=message):
        load_suite(name)


@pytest.mark.parametrize("task", [task for task in TASKS.values() if task.source], ids=lambda task: task.name)
def test_prepared_data_need_neither_network_nor_copy(task, tmp_path, monkeypatch):
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("pebench.tasks.sources.reachable", lambda url: False)
    config = configure(task.name, "none")
    with pytest.raises(UserError):
        task.check_available(config.data, None)
    datamodule_of(config).file.touch()
    task.check_available(config.data, None)
