"""Encodings from elsewhere: found by place, entry point or decorator, named where they fail, told of in records."""

import contextlib
import io
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

import pebench
from pebench.cli import main
from pebench.config import Options
from pebench.encodings import plugins, registry
from pebench.encodings.base import EncodingError, EncodingSpec, PositionalEncoding
from pebench.encodings.cards import card_of, read_card
from pebench.encodings.checks import Checked
from pebench.encodings.registry import encoding_card, encoding_cards, load_encoding, normal_options, register
from pebench.engine.execution import check_reach
from pebench.engine.executors.worker import work
from pebench.errors import UserError
from pebench.models import transformer
from pebench.models.transformer import Transformer
from pebench.results.page import Page
from pebench.results.provenance import changed_plugins, warnings
from pebench.results.tables import build_tables
from pebench.results.writers.markdown import markdown
from pebench.runs.records import FILE_NAME, Record, read_record, read_records
from pebench.tasks import configure

HEAD = "import torch\nfrom pebench import PositionalEncoding\n\n"
ROWS = (
    HEAD
    + '''
class Rows(PositionalEncoding):
    """Adds a number. And more."""

    size = "d_model"

    def __init__(self, spec, *, scale: float = 1.0, of: "str | None" = None):
        super().__init__(spec)
        self.scale = scale
        self.shift = torch.nn.Parameter(torch.zeros(spec.d_model))

    def reset_parameters(self):
        torch.nn.init.zeros_(self.shift)

    def embed(self, x, state):
        return x + self.scale + self.shift
'''
)
SMOKE = ["run", "--task", "vit-digits", "--tier", "smoke", "--device", "cpu", "--threads", "1", "--seeds", "1"]
SPEC = EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=(3,), causal=True)


@dataclass
class Workplace:
    """A folder that commands are given in, and that modules are found in."""

    folder: Path

    def module(self, text: str, *, fresh: bool = True, name: str = "mine") -> str:
        """Write a module; its name, by default one that no other test has."""
        name = f"{name}_{uuid.uuid4().hex[:8]}" if fresh else name
        path = self.folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def package(self, distribution: str, entries: dict[str, str], version: str = "1.5") -> None:
        """Pretend that a package is installed which offers encodings."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"{name} = {place}" for name, place in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[pebench.encodings]", *lines]) + "\n")
        plugins.offered.cache_clear()

    def ask(self, *arguments: str, code: int = 0) -> str:
        """What a command says, done in this process."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            found = main(arguments)
        assert found == code, said.getvalue()
        return said.getvalue()

    def ask_anew(self, *arguments: str, code: int = 0, script: str = "") -> str:
        """What a command says in a process of its own, as `pebench` does it, which is not in this folder."""
        program = [sys.executable, "-P", *(["-m", "pebench"] if not script else ["-c", script])]
        done = subprocess.run([*program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(plugins, "used_folders", set())
    plugins.offered.cache_clear()
    yield Workplace(tmp_path)
    monkeypatch.undo()
    for name in [name for name, cls in registry._registered.items() if not cls.__module__.startswith("pebench.")]:
        del registry._registered[name]
    plugins.offered.cache_clear()


def options(out: Path, **more: Any) -> Options:
    return Options(out, device="cpu", threads=1, **more)


def done(encoding: str, out: Path, seed: int = 0) -> Record:
    """A smoke run of vit-digits, to its record."""
    config = configure("vit-digits", encoding, seed, "smoke")
    work(config, options(out))
    record = read_record(out / config.directory)
    assert record is not None
    return record


# Cards


@pytest.mark.parametrize("name", encoding_cards())
def test_the_card_that_is_read_is_what_the_class_is(name: str) -> None:
    assert encoding_card(name) == card_of(name, load_encoding(name))


def test_a_card_is_read_without_importing_anything(here: Workplace) -> None:
    module = here.module(ROWS)
    (here.folder / "parts").mkdir()
    (here.folder / "parts" / "__init__.py").write_text("raise SystemExit('imported')\n")
    here.module(ROWS, fresh=False, name="parts.rows")
    for place in (f"{module}:Rows", "parts.rows:Rows"):
        card = encoding_card(place)
        assert (card.name, card.summary) == (place, "Adds a number. And more")
        assert (card.options, card.types) == ({"scale": 1.0, "of": None}, {"scale": float, "of": str})
        assert (card.hooks, card.declared["size"], card.declared["axes"]) == (("embed",), "d_model", (1, 2))
        assert card.module not in sys.modules


def test_a_card_holds_what_is_inherited_from_ours_and_over_files(here: Workplace) -> None:
    first = here.module("from pebench.encodings.rope import RotaryEncoding as R\nclass First(R):\n    axes = (1,)\n")
    second = here.module(f"from {first} import First\nclass Second(First):\n    '''Twice.'''\n    beyond = 'clamps'\n")
    card = encoding_card(f"{second}:Second")
    assert second not in sys.modules
    assert (card.hooks, card.options, card.declared["axes"]) == (("query_key",), {"theta": None}, (1,))
    assert (card.declared["relative"], card.declared["beyond"]) == (True, "clamps")
    assert card == card_of(card.name, load_encoding(card.name))


def test_what_only_an_import_tells_is_imported(here: Workplace) -> None:
    text = ROWS.replace("scale: float = 1.0", "scale: float = 2 * HALF").replace("class Rows", "HALF = 0.5\nclass Rows")
    module = here.module(text)
    assert encoding_card(f"{module}:Rows").options["scale"] == 1.0
    assert module in sys.modules


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no 'Rows'"),
        ("Rows = 3", "expected a class that inherits from pebench.PositionalEncoding"),
        ("class Rows: ...", "expected a class that inherits from pebench.PositionalEncoding"),
        ("raise KeyError('gone')", r"importing \w+ failed with KeyError: 'gone'"),
        ("raise SystemExit(3)", r"importing \w+ failed with SystemExit: 3"),
        ("def", r"importing \w+ failed with SyntaxError"),
        ("import not_there_at_all", r"importing \w+ failed with ModuleNotFoundError"),
        (ROWS.replace("spec, *, scale", "spec, scale"), r"'scale' .* keyword-only: __init__\(self, spec, \*, scale"),
        (ROWS.replace("class Rows", "class rows"), r"has no 'Rows'\. Did you mean \w+:rows\?"),
        (ROWS.replace("scale: float = 1.0", "scale: float"), "option 'scale' of encoding .* needs a default"),
        (ROWS.replace("scale: float = 1.0", "scale: list = [1]"), r"option 'scale' .* must be .* got list = \[1\]"),
        (ROWS.replace("scale: float = 1.0", "scale=None"), "option 'scale' .* got no annotation = None"),
    ],
)
def test_what_is_no_encoding_is_refused_by_name(text: str, reason: str, here: Workplace) -> None:
    place = f"{here.module(text)}:Rows"
    for ask in (load_encoding, encoding_card):
        with pytest.raises(UserError, match=reason) as error:
            ask(place)
        assert place in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["not_there_at_all:Rows", "not_there_at_all.sub:Rows"])
def test_a_module_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(UserError, match="no module 'not_there_at_all' is installed or in this folder"):
        encoding_card(name)


@pytest.mark.parametrize("name", ["theirs", "theirs.py", "theirs.Rows", "theirs.py:Rows"])
def test_a_file_named_for_its_class_is_told_how_to_name_it(name: str, here: Workplace) -> None:
    here.module(ROWS, fresh=False, name="theirs")
    with pytest.raises(UserError, match="theirs:Class"):
        encoding_card(name)


@pytest.mark.parametrize("name", ["mine:", ":Rows", "mine:Ro ws", "../mine:Rows", "rop", "a:b:c"])
def test_what_is_no_name_is_unknown(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown encoding .* module:Class"):
        encoding_card(name)


def test_options_of_a_plug_in_are_checked_as_ours_are(here: Workplace) -> None:
    place = f"{here.module(ROWS)}:Rows"
    assert normal_options(place, {"scale": 2, "of": None}) == {"scale": 2.0}
    with pytest.raises(UserError, match=r"expects float, got 'x'"):
        normal_options(place, {"scale": "x"})
    with pytest.raises(UserError, match="Did you mean 'scale'"):
        normal_options(place, {"scal": 1.0})


# The decorator


def test_a_registered_class_is_known_by_its_name(here: Workplace) -> None:
    @pebench.register("mine")
    class Mine(PositionalEncoding):
        """Mine."""

        blind = True

        def __init__(self, spec: EncodingSpec, *, scale: float = 1.0) -> None:
            super().__init__(spec)

    assert load_encoding("mine") is Mine
    assert encoding_card("mine").options == {"scale": 1.0}
    assert "mine" in registry.plugin_cards()[0]
    assert configure("vit-digits", "mine", encoding_args={"scale": 2}).encoding_args == {"scale": 2.0}
    assert registry.origins([Mine])["mine"]["place"].startswith(__name__)

    class Other(PositionalEncoding):
        pass

    with pytest.raises(UserError, match=r"encoding 'mine' is .*Mine already; register Other by another name"):
        register("mine")(Other)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("rope", "one of pebench's own; register Mine by another"), ("a/b", "letters"), ("", "letters"), (".", "letters")],
)
def test_a_name_that_cannot_be_is_refused(name: str, reason: str, here: Workplace) -> None:
    class Mine(PositionalEncoding):
        blind = True

    with pytest.raises(UserError, match=reason):
        register(name)(Mine)


def test_a_class_may_be_defined_anew_as_in_a_notebook(here: Workplace) -> None:
    def cell() -> type:
        @register("mine")
        class Mine(PositionalEncoding):
            blind = True

        return Mine

    assert cell() is not (again := cell())
    assert load_encoding("mine") is again


SCRIPT = (
    HEAD.replace("import torch", "import sys, pebench")
    + """
from pebench.cli import main

@pebench.register("mine")
class Mine(PositionalEncoding):
    blind = True

if __name__ == "__main__":
    raise SystemExit(main())
"""
)


def test_what_a_script_registers_is_known_to_the_processes_of_its_runs(here: Workplace) -> None:
    (here.folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", *SMOKE, "--pe", "mine", "--pe", "add", "--out", "runs"]
    done = subprocess.run(command, cwd=here.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = [record for record in read_records(here.folder / "runs") if record.config.encoding == "mine"]
    assert record.environment["plugins"]["mine"]["sha256"] == plugins.digest(here.folder / "script.py")


def test_what_no_module_registers_is_refused_where_runs_cannot_know_it(
    here: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = here.ask_anew(*SMOKE, "--pe", "mine", script=SCRIPT, code=2)
    assert "encoding 'mine' was registered by a script, a notebook" in said
    assert "--pe module:Class" in said

    @register("mine")
    class Mine(PositionalEncoding):
        blind = True

    Mine.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", None, raising=False)
    for executor in ("local", "commands"):
        with pytest.raises(UserError, match="encoding 'mine' was registered by a script, a notebook"):
            check_reach([configure("vit-digits", "mine")], executor)
    check_reach([configure("vit-digits", "mine")], "sequential")
    here.ask_anew(*SMOKE, "--pe", "mine", "--executor", "sequential", "--out", "runs", script=SCRIPT)


SUITE = (
    HEAD
    + """
import pebench

@pebench.register("mine")
class Mine(PositionalEncoding):
    blind = True

SUITE = pebench.Suite("own", "Does it?", ["vit-digits"], ["mine"], 1, "smoke")
"""
)


def test_what_a_suites_file_registers_is_refused_where_runs_cannot_know_it(here: Workplace) -> None:
    (here.folder / "own.py").write_text(SUITE)
    said = here.ask("run", "--suite", "own.py", "--out", "runs", code=2)
    assert "encoding 'mine' was registered by a script, a notebook, a suite's file" in said
    here.ask("run", "--suite", "own.py", "--out", "runs", "--executor", "sequential")
    (record,) = read_records(here.folder / "runs")
    assert record.ok


def test_lines_for_a_scheduler_know_an_encoding_by_its_place_alone(here: Workplace) -> None:
    name = here.module(SUITE.rpartition("SUITE")[0])
    (here.folder / "own.py").write_text(
        f"import pebench, {name}\nSUITE = pebench.Suite('own', 'Does it?', ['vit-digits'], ['mine'], 1, 'smoke')\n"
    )
    here.ask("run", "--suite", "own.py", "--out", "runs")  # processes of runs import the module, too
    (record,) = read_records(here.folder / "runs")
    assert record.ok
    said = here.ask("run", "--suite", "own.py", "--out", "new", "--executor", "commands", code=2)
    assert "a module that runs of --executor commands do not import" in said


def test_a_process_adopts_the_modules_that_register(here: Workplace) -> None:
    module = here.module(ROWS.replace("class Rows", "import pebench\n@pebench.register('rows')\nclass Rows"))
    __import__(module)
    folders, modules = registry.needs()
    assert (str(here.folder.resolve()) in folders, module in modules) == (True, True)
    del registry._registered["rows"]
    sys.modules.pop(module)
    registry.adopt(folders, modules)
    assert load_encoding("rows").__module__ == module
    with pytest.raises(UserError, match="what registers encodings, not_there"):
        registry.adopt((), ["not_there"])


# Installed packages


def test_a_package_offers_encodings_and_what_is_wrong_is_told(here: Workplace) -> None:
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


def test_a_broken_package_does_not_break_the_listing_nor_a_run(here: Workplace) -> None:
    module = here.module(ROWS)
    here.package("pebench-mine", {"rows": f"{module}:Rows", "gone": "not_there_at_all:X", "rope": f"{module}:Rows"})
    script = (
        f"import sys; sys.path.append({str(here.folder)!r}); from pebench.cli import main; raise SystemExit(main())"
    )
    listed = here.ask_anew("list", "encodings", script=script)
    assert re.search(r"Plug-ins\n  rows .*\n.*\n.*from pebench-mine 1.5, mine_\w+:Rows\n", listed)
    assert "Cannot be used\n  encoding 'gone' of pebench-mine 1.5: no module 'not_there_at_all'" in listed
    assert "gone" in here.ask_anew("run", "--task", "vit-digits", "--pe", "gone", script=script, code=2)
    said = here.ask_anew(*SMOKE, "--pe", "rows", "--pe", "rope", "--out", "runs", "--dry-run", script=script)
    assert "vit-digits/rows/seed0" in said


def test_a_package_registers_its_own_class_by_the_name_that_it_offers(here: Workplace) -> None:
    module = here.module(ROWS.replace("class Rows", "import pebench\n@pebench.register('rows')\nclass Rows"))
    here.package("pebench-mine", {"rows": f"{module}:Rows"})
    record = done("rows", here.folder / "runs")
    facts = record.environment["plugins"]["rows"]
    assert (facts["distribution"], facts["version"], facts["place"]) == ("pebench-mine", "1.5", f"{module}:Rows")


# Failures


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
}


@pytest.mark.parametrize("hook", FAILURES)
def test_a_failure_has_the_name_of_the_encoding(hook: str, here: Workplace) -> None:
    module = here.module(f"{ROWS}\n    {hook}\n\ndef helper():\n    return 1 / 0\n")
    record = done(f"{module}:Rows", here.folder / "runs")
    assert not record.ok
    reason = (record.error or {})["reason"]
    told = FAILURES[hook] if "MINE" in FAILURES[hook] else rf"\(MINE.py:21\) {re.escape(FAILURES[hook])}"
    assert re.match(f"encoding '{module}:Rows' {told.replace('MINE', module)}", reason), reason


def test_of_encodings_within_others_the_inner_one_is_named(here: Workplace) -> None:
    module = here.module(f"{ROWS}\n    def prepare(self, positions): return 1 / 0\n")
    config = configure("vit-digits", "stack", 0, "smoke", encoding_args={"second": f"{module}:Rows"})
    work(config, options(here.folder))
    record = read_record(here.folder / config.directory)
    assert record is not None
    assert (record.error or {})["reason"].startswith(f"encoding '{module}:Rows' ({module}.py:21): prepare raised Zero")


def test_an_encoding_of_ours_that_raises_is_named_too(here: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "grid_positions", lambda extent, device=None: torch.full((16, 2), 0.5))
    reason = (done("learned", here.folder).error or {})["reason"]
    assert re.match(r"encoding 'learned' \(learned.py:\d+\): prepare raised ValueError: ", reason), reason


def test_what_constructors_raise_is_told_before_anything_trains(here: Workplace) -> None:
    reasons = {
        "raise KeyError('x')": r"encoding '{name}' \({module}.py:\d+\): __init__ raised KeyError: 'x'",
        "raise ValueError('too narrow')": "too narrow",
        "self.weight = torch.nn.Parameter(torch.ones(1))": "Rows owns parameters and needs a method reset_parameters",
    }
    constructor = "class Rows(PositionalEncoding):\n    def __init__(self, spec):\n        super().__init__(spec)\n"
    modules = {here.module(f"{HEAD}{constructor}        {body}\n"): reason for body, reason in reasons.items()}
    names = [word for module in modules for word in ("--pe", f"{module}:Rows")]
    said = here.ask(*SMOKE, "--pe", "add", *names, "--out", "runs", code=2)
    for module, reason in modules.items():
        name = f"{module}:Rows"
        assert re.search(f"vit-digits with {name}: " + reason.format(name=name, module=module), said), said
    assert "Traceback" not in said
    assert not (here.folder / "runs").exists()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("def __init__(self, spec): self.spec = spec", "Odd does not call super().__init__(spec) in its __init__"),
        ("def biass(self, q, k, x, state, layer): return q", "Odd overrides none of place, embed, residual, query_key"),
    ],
)
def test_what_could_tell_nothing_is_refused(body: str, reason: str, here: Workplace) -> None:
    module = here.module(f"{HEAD}class Odd(PositionalEncoding):\n    {body}\n")
    name = f"{module}:Odd"
    for command in ([*SMOKE, "--pe", "add", "--pe", name, "--out", "runs"], ["plot-encoding", name]):
        assert reason in here.ask(*command, code=2)
    assert reason in here.ask("verify", name, code=1)
    assert not (here.folder / "runs").exists()


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
    said = here.ask(
        "run", "--suite", "suite.py", "--device", "cpu", "--executor", "sequential", "--out", "runs", code=1
    )
    records = {Path(record.config.directory).parent.name: record for record in read_records(here.folder / "runs")}
    failed = {name.rpartition(".")[2] for name, record in records.items() if not record.ok}
    assert failed == {"Raising", "Narrow", "Nothing"}
    assert sum(record.ok for record in read_records(here.folder / "runs")) == 3
    assert said.count("FAILED: encoding 'mine_") == 3


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
    told = Checked(Shaped(SPEC)).bias(heads, heads, torch.zeros(4, 3, 8), None, 0)
    assert told is not None
    assert told.shape == shape


# Records


def test_a_record_says_where_a_plug_in_comes_from(here: Workplace, capsys: pytest.CaptureFixture[str]) -> None:
    module = here.module(ROWS)
    name, out = f"{module}:Rows", here.folder / "runs"
    record = done(name, out)
    assert record.ok, record.error
    digest = plugins.digest(here.folder / f"{module}.py")
    facts = {"place": name, "sha256": digest, "summary": "Adds a number. And more"}
    assert record.environment["plugins"] == {name: facts}
    assert record.config.directory.startswith(f"vit-digits/{module}.Rows/seed0-")
    assert record.parameters["encoding"] == 16
    assert "plugins" not in done("add", out).environment
    page = markdown(Page.of(read_records(out)))
    assert f"- Plug-ins: {name}: {name}, source {digest[:12]}\n" in page
    assert f"**{name}**: Adds a number. And more. ({name}, source {digest[:12]})\n" in page
    assert f"--pe {name}" in page
    assert f"plugins.{name}.sha256" in here.ask("show", str(out / record.config.directory))


def test_a_plug_in_within_another_encoding_is_told_of(here: Workplace) -> None:
    module = here.module(ROWS)
    config = configure("vit-digits", "stack", 0, "smoke", encoding_args={"first": f"{module}:Rows(scale=2)"})
    work(config, options(here.folder))
    record = read_record(here.folder / config.directory)
    assert record is not None
    assert list(record.environment["plugins"]) == [f"{module}:Rows"]


def test_records_of_different_sources_are_warned_of(here: Workplace) -> None:
    module = here.module(ROWS)
    first = done(f"{module}:Rows", here.folder / "runs")
    assert changed_plugins([first]) == []
    facts = {"plugins": {f"{module}:Rows": {"place": f"{module}:Rows", "sha256": "0" * 64}}}
    second = replace(first, config=first.config.with_seed(1), environment={**first.environment, **facts})
    (table,) = build_tables([first, second])
    assert f"Runs of {module}:Rows were not made with the same source of it: 000000000000, " in str(warnings(table))
    (told,) = changed_plugins([first, second])
    assert re.search(r"has changed since .* source was 000000000000 and is [0-9a-f]{12} now", told)


def test_a_change_of_the_source_is_told_when_runs_are_skipped(here: Workplace) -> None:
    module = here.module(ROWS)
    command = [*SMOKE, "--pe", f"{module}:Rows", "--executor", "sequential", "--out", "runs"]
    assert "has changed" not in here.ask_anew(*command)
    assert "has changed" not in here.ask_anew(*command)
    (here.folder / f"{module}.py").write_text(ROWS + "\n# changed\n")
    assert f"encoding '{module}:Rows' has changed since runs here were done with it" in here.ask_anew(*command)


def test_records_are_read_where_the_plug_in_is_not(here: Workplace) -> None:
    module = here.module(ROWS)
    done(f"{module}:Rows", here.folder / "runs")
    done("add", here.folder / "runs")
    (here.folder / f"{module}.py").unlink()
    for command in (["report", "runs"], ["compare", "runs", "runs"], ["report", "runs", "--format", "json"]):
        assert f"{module}:Rows" in here.ask_anew(*command)
    assert "2 done" in here.ask_anew("status", "runs")
    (record,) = here.folder.glob(f"runs/*/{module}.Rows/*/{FILE_NAME}")
    assert f"no module '{module}' is installed" in here.ask_anew("run", "--config", str(record), "--out", "new", code=2)


def test_a_record_is_reproduced(here: Workplace) -> None:
    module = here.module(ROWS)
    config = configure("vit-digits", f"{module}:Rows", 0, "smoke", encoding_args={"scale": 2})
    work(config, options(here.folder / "first"))
    first = read_record(here.folder / "first" / config.directory)
    where = "--config", f"first/{config.directory}/{FILE_NAME}", "--out", "again"
    here.ask("run", *where, "--threads", "1", "--device", "cpu", "--executor", "sequential")
    again = read_record(here.folder / "again" / config.directory)
    assert first is not None
    assert again is not None
    assert (again.config, again.metrics) == (first.config, first.metrics)


def test_printed_commands_find_the_module_from_anywhere(
    here: Workplace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    module = here.module(ROWS)
    out = here.folder / "runs"
    said = here.ask(*SMOKE, "--pe", f"{module}:Rows", "--executor", "commands", "--out", str(out))
    (line,) = [line for line in said.splitlines() if "--config" in line]
    assert line.startswith(f"PYTHONPATH={here.folder.resolve()}:")
    command = line.replace("pebench run", f"{sys.executable} -m pebench run")
    subprocess.run(command, shell=True, cwd=tmp_path_factory.mktemp("elsewhere"), check=True, capture_output=True)
    assert len(read_records(out)) == 1


# The example


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that examples/plugin is installed to, with nothing from the network."""
    import shutil

    pytest.importorskip("setuptools")
    source, site = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).parents[2] / "examples" / "plugin", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--target", site, source], check=True)
    return site


@pytest.fixture
def beside(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a command says where the example is installed."""
    source = str(Path(pebench.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{source}:{installed}")
    return Workplace(tmp_path).ask_anew


def test_the_example_is_listed(beside: Callable[..., str]) -> None:
    assert re.search(r"Plug-ins\n  binary +input .*\n.*\n.*from pebench-binary 0.1.0", beside("list", "encodings"))


def test_the_example_runs_by_name_and_by_place(beside: Callable[..., str], tmp_path: Path) -> None:
    names = ("--pe", "add", "--pe", "binary", "--pe", "pebench_binary:BinaryEncoding")
    beside(*SMOKE, *names, "--set", "encoding.bits=3", "--out", "runs")
    records = {record.config.encoding: record for record in read_records(tmp_path / "runs")}
    by_name, by_place = (records[name] for name in ("binary", "pebench_binary:BinaryEncoding"))
    assert by_name.config.encoding_args == {"bits": 3}
    assert by_name.environment["plugins"]["binary"]["distribution"] == "pebench-binary"
    assert list(by_place.environment["plugins"]) == ["pebench_binary:BinaryEncoding"]
    assert "pebench-binary 0.1.0" in beside("report", "runs")
    assert json.loads(beside("report", "runs", "--format", "json"))


def test_the_tests_of_the_example_pass(beside: Callable[..., str]) -> None:
    folder = Path(__file__).parents[2] / "examples" / "plugin"
    script = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    where = ["-c", "/dev/null", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder / "tests")]
    assert "2 passed" in beside("-q", *where, script=script)


def test_a_card_of_ours_can_be_read_by_its_place() -> None:
    assert read_card("x", "pebench.encodings.rope", "RotaryEncoding").hooks == ("query_key",)


def test_the_last_definition_of_a_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one_base.py").write_text(
        'from pebench import PositionalEncoding\n\nclass Rows(PositionalEncoding):\n    """Of the base."""\n'
    )
    (tmp_path / "one_own.py").write_text(
        'from one_base import Rows\n\nclass Rows(Rows):\n    """Our own."""\n    relative = True\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    card = read_card("x", "one_own", "Rows")
    assert (card.summary, card.declared["relative"]) == ("Our own", True)
