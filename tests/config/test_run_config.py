"""The configuration of a run: its dotted settings, and the keys that published records are found by."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pebench.config import (
    LATER,
    PROTOCOL_VERSION,
    SECTIONS,
    DataConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
    dotted_settings,
    override,
    setting_names,
)
from pebench.errors import UserError
from pebench.tasks import TASKS, configure

ROOT = Path(__file__).parents[2]
CONFIG = RunConfig(
    "vit-digits", "concat", 3, "smoke", {"d_p": 8}, ModelConfig(d_model=64, d_ff=100), DataConfig(patch_size=2),
    TrainConfig(max_steps=7), selected=("train.learning_rate",),
)  # fmt: skip


@pytest.mark.parametrize(
    "file", sorted((ROOT / "results").rglob("*.jsonl")), ids=lambda file: f"{file.parent.name}-{file.stem}"
)
def test_every_published_record_keeps_its_key(file: Path) -> None:
    kinds: dict[bytes, RunConfig] = {}
    for line in file.read_bytes().splitlines():
        values: dict[str, Any] = orjson.loads(line)
        if values.get("protocol") != PROTOCOL_VERSION:  # keys are this protocol's
            continue
        config = values["config"]
        seed = config.pop("seed")
        kind = orjson.dumps(config)
        if kind not in kinds:
            kinds[kind] = RunConfig.from_dict(config)
            config["train"].setdefault("monitor", "loss")  # records from before this setting lack it
            assert kinds[kind].to_dict() == config | {"seed": 0}
        assert kinds[kind].with_seed(seed).key == values["key"]


def test_settings_are_every_field_of_every_section_by_dotted_name() -> None:
    expected = [f"{section}.{f.name}" for section, kind in SECTIONS.items() for f in fields(kind)]
    model = replace(CONFIG.model, tied=True, token_pace=1.0, token_scale=0.02, segments="sum")
    later = replace(CONFIG, model=model, train=replace(CONFIG.train, token_table="frozen", beyond="2"))
    augmented = replace(later.train, rand_augment="2@9", mixup=0.8, cutmix=1.0, erasing=0.25, label_smoothing=0.1)
    later = replace(later, train=replace(augmented, capture=True, interpolate="linear"))
    assert list(later.settings()) == expected
    assert list(CONFIG.settings()) == [name for name in expected if name not in LATER]
    assert [name.partition(".")[0] for name in expected] == ["model"] * 9 + ["data"] * 3 + ["train"] * 19
    assert CONFIG.settings()["model.d_model"] == 64
    assert CONFIG.settings()["data.max_len"] is None
    assert CONFIG.settings()["train.max_steps"] == 7


@pytest.mark.parametrize("task", TASKS)
def test_a_tasks_budget_has_settings_too(task: str) -> None:
    for tier, budget in TASKS[task].budgets.items():
        assert dotted_settings(budget) == configure(task, "none", tier=tier).settings()


def test_overriding_every_setting_with_its_own_value_changes_nothing() -> None:
    own = CONFIG.values_of(setting_names(CONFIG))
    assert override(CONFIG, own) == CONFIG
    assert setting_names(CONFIG) == [
        *(name for name in CONFIG.settings() if name not in ("data.max_len", "data.vocab_size")),
        *LATER,
    ]


def test_a_later_setting_counts_where_it_is_set_and_leaves_all_else_as_it_was() -> None:
    tied = override(CONFIG, {"model.tied": "true"})
    assert (tied.model.tied, override(tied, {"model.tied": False})) == (True, CONFIG)
    assert tied.kind_key != CONFIG.kind_key
    assert tied.to_dict()["model"] == {**CONFIG.to_dict()["model"], "tied": True}
    assert "tied" not in CONFIG.to_dict()["model"]
    assert (RunConfig.from_dict(tied.to_dict()), RunConfig.from_dict(CONFIG.to_dict())) == (tied, CONFIG)
    assert [config.values_of(["model.tied"])["model.tied"] for config in (CONFIG, tied)] == [False, True]


@pytest.mark.parametrize("spelling", ["null", "None", None])
def test_none_may_be_spelled_as_in_json_or_in_python(spelling: str | None) -> None:
    assert CONFIG.model.d_ff == 100
    assert override(CONFIG, {"model.d_ff": spelling}).model.d_ff is None
    with pytest.raises(UserError, match=r"model.num_layers expects int"):
        override(CONFIG, {"model.num_layers": spelling})


def test_some_settings_come_in_the_order_in_which_they_were_named() -> None:
    assert list(CONFIG.values_of(["train.clip", "model.d_ff"]).items()) == [("train.clip", 1.0), ("model.d_ff", 100)]
    assert CONFIG.selected_values == {"train.learning_rate": 1e-3}
    with pytest.raises(KeyError):
        CONFIG.values_of(["model.width"])


def test_a_label_has_the_options_in_alphabetical_order() -> None:
    assert RunConfig("vit-digits", "add").label == "add"
    assert replace(CONFIG, encoding_args={"ratio": 0.5, "d_p": 8}).label == "concat (d_p=8, ratio=0.5)"


def test_a_folder_names_task_encoding_stage_seed_and_key() -> None:
    assert CONFIG.directory == f"vit-digits/concat/seed3-{CONFIG.key}"
    other = replace(CONFIG, encoding="module:Class", encoding_args={}, stage="select")
    assert other.directory == f"vit-digits/module.Class/select-seed3-{other.key}"


def test_another_seed_is_the_same_kind_of_run() -> None:
    other = CONFIG.with_seed(4)
    assert other == replace(CONFIG, seed=4)
    assert (other.kind_key, other.key) == (replace(CONFIG, seed=4).kind_key, replace(CONFIG, seed=4).key)
    assert other.key != CONFIG.key
