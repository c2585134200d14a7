"""What `configure` takes and refuses."""

import math

import pytest

from pebench.config import parse_settings
from pebench.data import datamodule_of
from pebench.errors import UserError
from pebench.tasks import configure
from pebench.training.runner import build

# What configure() refuses

WRONG = {
    "task": (
        ("vit-digit", "add"),
        {},
        r"unknown task 'vit-digit'\. Did you mean 'vit-digits'\? Valid: corpus, images, lm-grammar, ",
    ),
    "encoding": (("vit-digits", "ropes"), {}, r"unknown encoding 'ropes'\. Did you mean 'rope'\? Valid: add, "),
    "tier": (
        ("vit-digits", "add"),
        {"tier": "quik"},
        r"'vit-digits' has no tier 'quik'\. Valid for it: smoke, minute, quick",
    ),
    "other tier": (("vit-digits", "add"), {"tier": "core"}, r"has no tier 'core'\. Valid for it: smoke, minute, quick"),
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
