"""Encodings of installed packages, and failures that name the encoding."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench.encodings import registry
from pebench.encodings.base import EncodingError, PositionalEncoding
from pebench.encodings.checks import Checked
from pebench.encodings.registry import encoding_card, load_encoding
from pebench.engine.executors.worker import work
from pebench.errors import UserError
from pebench.models import cache, transformer
from pebench.models.transformer import Transformer
from pebench.runs.records import read_record, read_records
from pebench.tasks import configure

from .workplace import HEAD, ROWS, SMOKE, SPEC, Workplace, done, options


def test_a_package_offers_encodings_and_problems_are_reported(here: Workplace) -> None:
    module = here.module(ROWS)
    good = {"rows": f"{module}:Rows", "of-a-kind": f"{module}:Rows"}
    bad = {"gone": "not_there_at_all:X", "odd": "no place", "a b": f"{module}:Rows", "rope": f"{module}:Rows"}
    here.package("pebench-mine", good | bad | {"twice": f"{module}:Rows"})
    here.package("pebench-other", {"twice": "other:Rows"})
    cards, problems = registry.plugin_cards()
    assert list(cards) == sorted(good)
    assert module not in sys.modules
    assert len(problems) == 5
    for word in ("gone", "odd", "a b", "rope", "twice"):
        assert sum(f"encoding {word!r} of pebench-" in problem for problem in problems) == 1
    for name in ("gone", "odd", "twice"):
        with pytest.raises(UserError, match=name):
            encoding_card(name)
    assert load_encoding("rope").__module__ == "pebench.encodings.rope"
    assert "has the name of one of pebench's own" in registry.clash("rope")
    assert registry.clash("rows") == registry.clash("add") == ""
    assert load_encoding("rows").name == "rows"
    with pytest.raises(UserError, match="Did you mean 'rows'"):
        encoding_card("row")


@pytest.mark.slow
def test_a_broken_package_does_not_break_the_listing_nor_a_run(here: Workplace) -> None:
    module = here.module(ROWS)
    here.package("pebench-mine", {"rows": f"{module}:Rows", "gone": "not_there_at_all:X", "rope": f"{module}:Rows"})
    script = (
        f"import sys; sys.path.append({str(here.folder)!r}); from pebench.cli import main; raise SystemExit(main())"
    )
    listed = here.ask_anew("list", "encodings", script=script)
    words = " ".join(listed.split())  # lines are folded to the terminal's width
    assert re.search(r" Plug-ins rows .{,250}from pebench-mine 1\.5, mine_\w+:Rows ", words)
    assert "Cannot be used encoding 'gone' of pebench-mine 1.5: no module 'not_there_at_all'" in words
    assert "gone" in here.ask_anew("run", "--task", "vit-digits", "--pe", "gone", script=script, code=2)
    printed = here.ask_anew(*SMOKE, "--pe", "rows", "--pe", "rope", "--out", "runs", "--dry-run", script=script)
    assert "vit-digits/rows/seed0" in printed


def test_a_package_registers_its_own_class_by_the_name_that_it_offers(here: Workplace) -> None:
    module = here.module(ROWS.replace("class Rows", "import pebench\n@pebench.register('rows')\nclass Rows"))
    here.package("pebench-mine", {"rows": f"{module}:Rows"})
    record = done("rows", here.folder / "runs")
    facts = record.environment["plugins"]["rows"]
    assert (facts["distribution"], facts["version"], facts["place"]) == ("pebench-mine", "1.5", f"{module}:Rows")


FAILURES = {
    "def prepare(self, positions): raise ValueError('no such thing')": r"\(MINE.py:21\): prepare raised ValueError: no",
    "def forward(self, state): return helper()": r"\(MINE.py:24\): forward raised ZeroDivisionError: division by",
    "def bias(self, q, k, x, state, layer): return q @ q": r"\(MINE.py:21\): bias raised RuntimeError: ",
    "def reset_parameters(self): raise OSError('x')": r"\(MINE.py:21\): reset_parameters raised OSError: x",
    "def embed(self, x, state): return x[..., :-1]": "returned from embed a tensor of shape (1, 16, 15) and float32, "
    "expected one of shape (1, 16, 16)",
    "def embed(self, x, state): return None": "returned from embed nothing, expected a tensor, one of shape",
    "def embed(self, x, state): return x.long()": "returned from embed a tensor of shape (1, 16, 16) and int64, "
    "expected one of shape (1, 16, 16) of floating-point numbers",
    "def embed(self, x, state): return x.mul_(float('nan'))": "returned from embed NaN, expected numbers",
    "def place(self, positions): return positions[1:]": "returned from place a tensor of shape (15, 2) and float32, ",
    "def residual(self, x, valid, state, layer): return x.sum(0)": "returned from residual a tensor of shape (16, 16)",
    "def query_key(self, q, k, x, state, layer): return q": "returned from query_key a tensor of shape (1, 2, 16, 8) "
    "and float32, expected two tensors",
    "def query_key(self, q, k, x, state, layer): return q, k[..., :2]": "returned from query_key a tensor of shape "
    "(1, 2, 16, 2) and float32, expected one of shape (1, 2, 16, 8)",
    "def bias(self, q, k, x, state, layer): return x[..., :2]": "returned from bias a tensor of shape (1, 16, 2) "
    "and float32, expected one that broadcasts to shape (1, 2, 16, 16)",
    "def bias(self, q, k, x, state, layer): return torch.zeros(16, 16) / 0": "returned from bias NaN, expected numbers",
    "def bias(self, q, k, x, state, layer): return torch.ones(16, 16) / 0": "returned from bias infinity, expected",
    "def embed(self, x, state): return x.fill_(-float('inf'))": "returned from embed infinity, expected numbers",
    "def embed(self, x): return x": r"\(MINE.py:21\): TypeError: .*embed\(\) takes 2",
}


@pytest.mark.parametrize("hook", FAILURES)
def test_a_failure_has_the_name_of_the_encoding(hook: str, here: Workplace) -> None:
    module = here.module(f"{ROWS}\n    {hook}\n\ndef helper():\n    return 1 / 0\n")
    record = done(f"{module}:Rows", here.folder / "runs")
    assert not record.ok
    reason = (record.error or {})["reason"]
    encoded = FAILURES[hook] if "MINE" in FAILURES[hook] else rf"\(MINE.py:21\) {re.escape(FAILURES[hook])}"
    assert re.match(f"encoding '{module}:Rows' {encoded.replace('MINE', module)}", reason), reason


def test_of_encodings_within_others_the_inner_one_is_named(here: Workplace) -> None:
    module = here.module(f"{ROWS}\n    def prepare(self, positions): return 1 / 0\n")
    config = configure("vit-digits", "stack", 0, "smoke", encoding_args={"second": f"{module}:Rows"})
    work(config, options(here.folder))
    record = read_record(here.folder / config.directory)
    assert record is not None
    assert (record.error or {})["reason"].startswith(f"encoding '{module}:Rows' ({module}.py:21): prepare raised Zero")


def test_an_encoding_of_ours_that_raises_is_named_too(here: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "grid_positions", lambda extent, device=None: torch.full((16, 2), 0.5))
    reason = (done("learned", here.folder).error or {})["reason"]
    assert re.match(r"encoding 'learned' \(learned.py:\d+\): prepare raised ValueError: ", reason), reason


def test_what_constructors_raise_is_reported_before_anything_trains(here: Workplace) -> None:
    reasons = {
        "raise KeyError('x')": r"encoding '{name}' \({module}.py:\d+\): __init__ raised KeyError: 'x'",
        "raise ValueError('too narrow')": "too narrow",
        "self.weight = torch.nn.Parameter(torch.ones(1))": "Rows owns parameters and needs a method reset_parameters",
    }
    constructor = "class Rows(PositionalEncoding):\n    def __init__(self, spec):\n        super().__init__(spec)\n"
    modules = {here.module(f"{HEAD}{constructor}        {body}\n"): reason for body, reason in reasons.items()}
    names = [word for module in modules for word in ("--pe", f"{module}:Rows")]
    printed = here.ask(*SMOKE, "--pe", "add", *names, "--out", "runs", code=2)
    for module, reason in modules.items():
        name = f"{module}:Rows"
        assert re.search(f"vit-digits with {name}: " + reason.format(name=name, module=module), printed), printed
    assert "Traceback" not in printed
    assert not (here.folder / "runs").exists()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("def __init__(self, spec): self.spec = spec", "Odd does not call super().__init__(spec) in its __init__"),
        ("def biass(self, q, k, x, state, layer): return q", "Odd overrides none of place, embed, residual, query_key"),
    ],
)
def test_an_encoding_without_any_hook_is_refused(body: str, reason: str, here: Workplace) -> None:
    module = here.module(f"{HEAD}class Odd(PositionalEncoding):\n    {body}\n")
    name = f"{module}:Odd"
    for command in ([*SMOKE, "--pe", "add", "--pe", name, "--out", "runs"], ["plot-encoding", name]):
        assert reason in here.ask(*command, code=2)
    assert reason in here.ask("verify", name, code=1)
    assert not (here.folder / "runs").exists()


def test_a_function_in_place_of_a_class_is_named(here: Workplace) -> None:
    module = here.module("def odd(spec): ...\n")
    printed = here.ask(*SMOKE, "--pe", f"{module}:odd", code=2)
    assert f"encoding '{module}:odd' is the function odd, expected a class that inherits from" in printed


def test_a_file_that_another_module_hides_is_named(here: Workplace) -> None:
    (here.folder / "colorsys.py").write_text(ROWS)  # the name of a module of Python
    printed = here.ask(*SMOKE, "--pe", "colorsys:Rows", code=2)
    assert "has no 'Rows'. The file colorsys.py here is not imported, as another module has its name" in printed


def test_of_a_misspelt_name_the_classes_of_its_own_module_are_named_and_no_imported_ones(here: Workplace) -> None:
    module = here.module(f"{HEAD}from torch import Tensor as Rowes\nSIZE = 3\n{ROWS}")
    assert f"has no 'Rowz'. Did you mean {module}:Rows?" in here.ask(*SMOKE, "--pe", f"{module}:Rowz", code=2)
    assert "has no 'Size'. It has Rows.\n" in here.ask(*SMOKE, "--pe", f"{module}:Size", code=2)


def test_the_line_that_fails_on_import_is_named(here: Workplace) -> None:
    module = here.module("SIZE = 3\nraise KeyError('gone')\nclass Rows: ...\n")
    printed = here.ask(*SMOKE, "--pe", f"{module}:Rows", code=2)
    assert f"importing {module} failed with KeyError: 'gone' ({here.folder / module}.py:2)" in printed


def test_verify_does_not_claim_that_what_is_not_there_is_an_encoding(here: Workplace) -> None:
    module = here.module(f"{ROWS}\ndef mine(): ...\n")
    printed = here.ask("verify", f"{module}:gone", code=2)
    assert f"encoding or task '{module}:gone': " in printed
    assert "has no 'gone'. It has Rows, mine.\n" in printed


@pytest.mark.parametrize("name", ["my-module:Rows", "folder/my_module.py:Rows", "my module:Rows"])
def test_a_place_that_is_none_is_told_how_one_is_written(name: str, here: Workplace) -> None:
    with pytest.raises(UserError, match=r"Expected module:Class, where the names of modules have letters, digits and"):
        encoding_card(name)


def test_what_is_not_of_the_type_that_it_was_given_is_refused() -> None:
    class Wide(PositionalEncoding):
        def embed(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
            return x + state[:, :1]

        def query_key(self, q: Any, k: Any, x: Any, state: Any, layer: int) -> Any:
            return q, k.float()

    encoding, x = Checked(Wide(SPEC)), torch.zeros(2, 3, 8, dtype=torch.bfloat16)
    expected = r"returned from {} float32, expected bfloat16, as it was given: end with \.to\({}\.dtype\)"
    with pytest.raises(EncodingError, match=expected.format("embed", "x")):
        encoding.embed(x, torch.zeros(3, 1))
    heads = x.view(2, 2, 3, 4)
    with pytest.raises(EncodingError, match=expected.format("query_key", "q")):
        encoding.query_key(heads, heads, x, None, 0)
    with torch.autocast("cpu", torch.bfloat16):  # whose modules cast what they are given
        encoding.query_key(heads, heads, x, None, 0)


@pytest.mark.slow
def test_the_rest_of_a_suite_goes_on(here: Workplace) -> None:
    text = ROWS + "".join(
        f"\nclass {name}(Rows):\n    {hook}\n"
        for name, hook in {
            "Raising": "def prepare(self, positions): return {}['x']",
            "Narrow": "def embed(self, x, state): return x[..., :2]",
            "Nothing": "def embed(self, x, state): return x * float('nan')",
        }.items()
    )
    module = here.module(text)
    (here.folder / "suite.py").write_text(
        "from pebench import Suite\n"
        f"SUITE = Suite('s', '?', ['vit-digits'], ['add', '{module}:Rows', ('{module}:Rows', {{'scale': 2.0}}), "
        f"'{module}:Raising', '{module}:Narrow', '{module}:Nothing'], seeds=1, tier='smoke')\n"
    )
    printed = here.ask(
        "run", "--suite", "suite.py", "--device", "cpu", "--executor", "sequential", "--out", "runs", code=1
    )
    records = {Path(record.config.directory).parent.name: record for record in read_records(here.folder / "runs")}
    failed = {name.rpartition(".")[2] for name, record in records.items() if not record.ok}
    assert failed == {"Raising", "Narrow", "Nothing"}
    assert sum(record.ok for record in read_records(here.folder / "runs")) == 3
    assert len(re.findall(r"FAILED after \d+ s: encoding 'mine_", printed)) == 3


def test_hooks_are_checked_once_for_each_length(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PositionalEncoding] = []

    class Counted(Checked):
        def __init__(self, encoding: PositionalEncoding) -> None:
            made.append(encoding)
            super().__init__(encoding)

    monkeypatch.setattr(transformer, "Checked", Counted)
    trunk = Transformer(PositionalEncoding(SPEC))
    for length in (3, 3, 2, 3, 2):
        trunk(torch.randn(2, length, 8))
    assert len(made) == 2


def test_a_length_that_failed_is_checked_again() -> None:
    class Later(PositionalEncoding):
        def embed(self, x: torch.Tensor, state: Any) -> torch.Tensor:
            return x[..., :-1]

    trunk = Transformer(Later(SPEC))
    for _ in range(2):
        with pytest.raises(EncodingError, match=r"'Later' \(test_plugins.py:\d+\) returned from embed"):
            trunk(torch.randn(1, 3, 8))


@pytest.mark.parametrize("spoilt", ["content", "positions"])
def test_nan_that_an_encoding_was_given_is_not_its_fault(spoilt: str) -> None:
    trunk = Transformer(load_encoding("rope")(SPEC))
    content, positions = torch.randn(1, 3, 8), torch.arange(3.0).unsqueeze(1)
    {"content": content, "positions": positions}[spoilt][0, 0] = float("nan")
    assert trunk(content, positions).isnan().any()


@pytest.mark.parametrize("shape", [(), (3, 3), (2, 3, 3), (1, 2, 3, 3), (4, 2, 3, 3), (4, 1, 1, 3), (4, 2, 3, 1)])
def test_a_bias_may_have_every_shape_that_broadcasts(shape: tuple[int, ...]) -> None:
    class Shaped(PositionalEncoding):
        def bias(self, q: Any, k: Any, x: Any, state: Any, layer: int) -> torch.Tensor:
            return torch.full(shape, float("-inf")).clamp(min=-1e4)

    heads = torch.zeros(4, 2, 3, 4)
    encoded = Checked(Shaped(SPEC)).bias(heads, heads, torch.zeros(4, 3, 8), None, 0)
    assert encoded is not None
    assert encoded.shape == shape
