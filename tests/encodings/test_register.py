"""Encodings that are registered by the decorator, and the processes of runs that must know them."""

import subprocess
import sys

import pytest

import pebench
from pebench.encodings import plugin_modules, registered, registry
from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import encoding_card, load_encoding, register
from pebench.engine.execution import check_reach
from pebench.errors import UserError
from pebench.runs.records import read_records
from pebench.tasks import configure

from .workplace import HEAD, ROWS, SMOKE, Workplace


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


@pytest.mark.slow
def test_what_a_script_registers_is_known_to_the_processes_of_its_runs(here: Workplace) -> None:
    (here.folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", *SMOKE, "--pe", "mine", "--pe", "add", "--out", "runs"]
    done = subprocess.run(command, cwd=here.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = [record for record in read_records(here.folder / "runs") if record.config.encoding == "mine"]
    assert record.environment["plugins"]["mine"]["sha256"] == plugin_modules.digest(here.folder / "script.py")


@pytest.mark.slow
def test_what_no_module_registers_is_refused_where_runs_cannot_know_it(
    here: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = here.ask_anew(*SMOKE, "--pe", "mine", script=SCRIPT, code=2)
    assert "encoding 'mine' was registered by a script, a notebook" in printed
    assert "--pe module:Class" in printed

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
    printed = here.ask("run", "--suite", "own.py", "--out", "runs", code=2)
    assert "encoding 'mine' was registered by a script, a notebook, a suite's file" in printed
    here.ask("run", "--suite", "own.py", "--out", "runs", "--executor", "sequential")
    (record,) = read_records(here.folder / "runs")
    assert record.ok


@pytest.mark.slow
def test_lines_for_a_scheduler_know_an_encoding_by_its_place_alone(here: Workplace) -> None:
    name = here.module(SUITE.rpartition("SUITE")[0])
    (here.folder / "own.py").write_text(
        f"import pebench, {name}\nSUITE = pebench.Suite('own', 'Does it?', ['vit-digits'], ['mine'], 1, 'smoke')\n"
    )
    here.ask("run", "--suite", "own.py", "--out", "runs")  # processes of runs import the module, too
    (record,) = read_records(here.folder / "runs")
    assert record.ok
    printed = here.ask("run", "--suite", "own.py", "--out", "new", "--executor", "commands", code=2)
    assert "a module that runs of --executor commands do not import" in printed


def test_a_process_adopts_the_modules_that_register(here: Workplace) -> None:
    module = here.module(ROWS.replace("class Rows", "import pebench\n@pebench.register('rows')\nclass Rows"))
    __import__(module)
    folders, modules = registry.needs()
    assert (str(here.folder.resolve()) in folders, module in modules) == (True, True)
    del registered.classes["rows"]
    sys.modules.pop(module)
    sys.path[:] = [place for place in sys.path if place not in folders]
    registry.adopt(folders, modules)
    assert sys.path[-len(folders) :] == [*folders]
    assert load_encoding("rows").__module__ == module
    with pytest.raises(UserError, match="what registers encodings, not_there"):
        registry.adopt((), ["not_there"])
