"""Configurations: keys that are stable, and survive JSON; and what loads without torch."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pebench.config import CORE_ENCODINGS, ModelConfig, RunConfig
from pebench.encodings.registry import encoding_card, encoding_cards, load_encoding, normal_options
from pebench.errors import UserError
from pebench.tasks import TASKS, configure, reconfigure

ROOT = Path(__file__).parents[2]
ENCODINGS = list(encoding_cards())
SOME_TASKS = [name for name in TASKS if not name.startswith("seq-") or name == "seq-copy"]  # which have one model
every_encoding = pytest.mark.parametrize("encoding", ENCODINGS)


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


@every_encoding
def test_a_configuration_survives_json(encoding):
    for task in SOME_TASKS:
        config = configure(task, encoding, 3, encoding_args=dict(encoding_card(encoding).options))
        for read in (RunConfig.from_dict, reconfigure):
            again = read(json.loads(json.dumps(config.to_dict())))
            assert again == config
            assert again.key == config.key


def test_a_configuration_that_cannot_work_is_not_read():
    values = BASE.to_dict() | {"model": vars(ModelConfig()) | {"num_heads": 3}}
    with pytest.raises(UserError, match=r"model\.d_model must be a multiple"):
        RunConfig.from_dict(values)


@pytest.mark.parametrize("file", sorted((ROOT / "results").glob("*/runs.jsonl")), ids=lambda file: file.parent.name)
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


@every_encoding
def test_a_directory_has_a_plain_name(encoding):
    for task in SOME_TASKS:
        directory = configure(task, encoding, 11).directory
        assert re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+/seed11-[0-9a-f]{12}", directory)
        assert directory.startswith(f"{task}/{encoding}/")


@pytest.mark.parametrize("options", [{"theta": "../../x"}, {"theta": 'a"b'}, {"theta": "ü" * 300}])
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
