"""Tasks from elsewhere: found by place, entry point or registration, named where they fail, described in records."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import pebench
from pebench.cli import main
from pebench.encodings import plugin_modules, plugin_processes, plugins
from pebench.engine.execution import check_reach
from pebench.errors import UserError
from pebench.results.provenance import changed_plugins
from pebench.runs.records import Record, read_records
from pebench.runs.suite import Suite
from pebench.tasks import TASKS, Task, configure, find_task, register_task, registry
from tests.encodings.workplace import Workplace

EXAMPLES = Path(__file__).parents[2] / "examples"
MINE = '''
from dataclasses import replace

from pebench.tasks import TASKS

whole = replace(TASKS["vit-digits"], summary="Digits of mine")


def part(*, steps: int = 300, rate: float = 3e-3):
    """The same for other steps."""
    usual = TASKS["vit-digits"].budgets["minute"]
    if steps < 1:
        raise ValueError("steps must be positive")
    train = replace(usual.train, max_steps=steps, learning_rate=rate)
    return replace(TASKS["vit-digits"], budgets={**TASKS["vit-digits"].budgets, "minute": replace(usual, train=train)})


def needy(steps):
    return whole


def empty():
    return None


number = 3
class Kind: ...
'''
ORDER = TASKS["text-order"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(plugin_processes, "used_folders", set())
    for name in ("_registered", "_modules", "_loaded", "_origins", "_found"):
        monkeypatch.setattr(registry, name, {})
    plugins.offered.cache_clear()
    yield Workplace(tmp_path)
    monkeypatch.undo()
    plugins.offered.cache_clear()


def offer(here: Workplace, distribution: str, entries: dict[str, str]) -> None:
    """Pretend that a package is installed which offers tasks."""
    here.package(distribution, entries)
    for path in here.folder.glob("*.dist-info/entry_points.txt"):
        path.write_text(path.read_text().replace("[pebench.encodings]", "[pebench.tasks]"))
    plugins.offered.cache_clear()


def test_a_task_in_a_module_is_found_by_its_place(here: Workplace) -> None:
    place = f"{here.module(MINE)}:whole"
    assert (find_task(place).name, find_task(place).summary) == (place, "Digits of mine")
    config = configure(place, "rope", 1)
    assert config.task == place
    assert config.directory == f"{place.replace(':', '.')}/rope/seed1-{config.key}"


def test_options_are_in_the_name_unless_they_are_the_defaults(here: Workplace) -> None:
    place = f"{here.module(MINE)}:part"
    assert configure(f"{place}( steps = 7 )", "add").task == f"{place}(steps=7)"
    assert configure(f"{place}(steps=7,rate=1)", "add").task == f"{place}(rate=1.0, steps=7)"
    assert configure(f"{place}(steps=300)", "add").key == configure(place, "add").key
    assert configure(f"{place}(steps=7)", "add").train.max_steps == 7
    assert configure(f"{place}(steps=7)", "add").directory.split("/")[0] == place.replace(":", ".")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("PLACE:part(step=7)", r"unknown option of task 'PLACE:part': 'step'\. Did you mean 'steps'\?"),
        ("PLACE:part(steps=1.5)", r"option 'steps' of task 'PLACE:part' expects int, got 1\.5"),
        ("PLACE:part(rate=1e999)", r"option 'rate' of task 'PLACE:part' must be finite"),
        ("PLACE:part(steps=0)", r"task 'PLACE:part\(steps=0\)': steps must be positive"),
        ("PLACE:part(7)", r"expected a task as in vit-digits or my_module:my_task\(length=32\), values as Python"),
        ("PLACE:part(steps=7", r"The bracket at the end is missing"),
        ("PLACE:part(steps=my file.csv)", r"A text needs quotes, unless it is one word: steps='my file\.csv'"),
        ("PLACE:part(steps=a #1.csv)", r"A text needs quotes, unless it is one word: steps='a #1\.csv'"),
        ("PLACE:whole(steps=7)", r"task 'PLACE:whole' has no options, got steps"),
        ("vit-digits(steps=7)", r"task 'vit-digits' has no options, got steps"),
        ("PLACE:whol", r"has no 'whol'\. Did you mean PLACE:whole\?"),
        ("PLACE:number", r"task 'PLACE:number' is 3, expected a pebench\.Task, or a function that returns one"),
        ("PLACE:needy", r"option 'steps' of task 'PLACE:needy' must be keyword-only, with a bool, int, float or str"),
        ("PLACE:empty", r"task 'PLACE:empty' returned None, expected a pebench\.Task"),
        ("not_there_at_all:task", "no module 'not_there_at_all' is installed or in this folder"),
        ("PLACE", r"unknown task 'PLACE'\. A task in PLACE\.py is PLACE:my_task"),
        ("rope", r"unknown task 'rope': it is an encoding, which --pe rope names"),
        ("PLACE:Kind", r"is the class Kind, expected a pebench\.Task, .* An encoding is named by --pe\."),
        ("vit-digit", r"unknown task 'vit-digit'\. Did you mean 'vit-digits'\?"),
    ],
)
def test_what_is_no_task_is_refused_by_name(name: str, reason: str, here: Workplace) -> None:
    module = here.module(MINE)
    with pytest.raises(UserError, match=reason.replace("PLACE", module)) as caught:
        find_task(name.replace("PLACE", module))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ("kind='text'", r"kind expects a pebench\.TaskKind, such as \S+, got 'text'"),
        ("data=3", "data expects a class, or its place as in my_module:MyData, got 3"),
        ("budgets={}", "budgets expects one tier at least, got none"),
        ("budgets={'quick': 3}", r"budgets expects pebench\.tasks\.Budget by tier, got {'quick': 3}"),
        ("beyond=2", r"beyond expects a tuple of numbers, such as \(2, 4\), got 2"),
        ("prepared_by='max_len'", r"prepared_by expects a tuple of data settings, .*, got 'max_len'"),
        ("num_classes='2'", "num_classes expects a whole number, or None, got '2'"),
        ("chance='half'", "chance expects a number, or None, got 'half'"),
    ],
)
@pytest.mark.parametrize("made", ["mine = ", "def mine(): return "], ids=["task", "function"])
def test_a_field_of_another_type_is_refused(
    changed: str, reason: str, made: str, here: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    module = here.module(f"{MINE}\n{made}replace(whole, {changed})")
    with pytest.raises(UserError, match=f"task '\\S+': {reason}"):
        find_task(f"{module}:mine")
    assert main(["verify", f"{module}:mine"]) == 2
    assert main(["run", "--task", f"{module}:mine", "--pe", "none", "--dry-run"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_module_that_fails_is_reported(here: Workplace) -> None:
    module = here.module("raise KeyError('gone')\nwhole = 3")
    with pytest.raises(UserError, match=r"importing \w+ failed with KeyError: 'gone'"):
        find_task(f"{module}:whole")


def test_a_registered_task_is_known_by_its_name(here: Workplace) -> None:
    pebench.register_task(replace(ORDER, name="mine", summary="Mine"))

    @register_task("mine-of-steps")
    def mine(*, steps: int = 5) -> Task:
        quick = ORDER.budgets["quick"]
        return replace(ORDER, budgets={"quick": replace(quick, train=replace(quick.train, max_steps=steps))})

    assert find_task("mine").summary == "Mine"
    assert configure("mine-of-steps(steps=7)", "add").train.max_steps == 7
    assert sorted(registry.plugin_tasks()[0]) == ["mine", "mine-of-steps"]
    assert registry.task_origin(find_task("mine"))["sha256"] == plugin_modules.digest(Path(__file__))
    assert registry.task_origin(find_task("vit-digits")) == {}
    assert __name__ in registry.needs()[1]
    with pytest.raises(UserError, match="Did you mean 'mine'"):
        find_task("mines")


@pytest.mark.parametrize(
    ("name", "reason"), [("vit-digits", "one of pebench's own; register this one by another name"), ("a/b", "letters")]
)
def test_a_name_that_cannot_be_is_refused(name: str, reason: str, here: Workplace) -> None:
    with pytest.raises(UserError, match=reason):
        register_task(replace(ORDER, name=name))


def test_two_modules_cannot_register_one_name(here: Workplace) -> None:
    text = "from dataclasses import replace\nimport pebench\nfrom pebench.tasks import TASKS\n"
    first, second = (
        here.module(text + "pebench.register_task(replace(TASKS['text-order'], name='mine'))") for _ in range(2)
    )
    __import__(first)
    with pytest.raises(UserError, match=f"task 'mine' is of {first} already; register this one by another name"):
        __import__(second)


def test_what_no_module_registers_is_refused_where_runs_cannot_know_it(
    here: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_task(replace(ORDER, name="mine"))
    registry._modules["mine"] = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", None, raising=False)
    for executor in ("local", "commands"):
        with pytest.raises(UserError, match="task 'mine' was registered by a script, a notebook"):
            check_reach([configure("mine", "add")], executor)
    check_reach([configure("mine", "add")], "sequential")


def test_a_package_offers_tasks_and_what_is_wrong_is_reported(
    here: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    module = here.module(MINE)
    good = {"digits": f"{module}:whole", "few-digits": f"{module}:part"}
    offer(
        here, "pebench-mine", {**good, "gone": "not_there_at_all:x", "odd": "no place", "vit-digits": f"{module}:part"}
    )
    tasks, problems = registry.plugin_tasks()
    assert list(tasks) == sorted(good)
    assert len(problems) == 3
    for word in ("gone", "odd", "vit-digits"):
        assert sum(f"task {word!r} of pebench-mine 1.5" in problem for problem in problems) == 1
    assert find_task("vit-digits") is TASKS["vit-digits"]
    assert configure("few-digits(steps=7)", "add").task == "few-digits(steps=7)"
    facts = registry.task_origin(find_task("digits"))
    assert (facts["distribution"], facts["version"], facts["place"]) == ("pebench-mine", "1.5", f"{module}:whole")
    assert main(["list", "tasks"]) == 0
    text = capsys.readouterr().out
    assert "digits             Digits of mine [smoke, minute, quick]" in text
    assert "cannot be used:    task 'gone' of pebench-mine 1.5: no module 'not_there_at_all'" in text


def test_a_suite_may_have_tasks_of_ones_own(here: Workplace) -> None:
    place = f"{here.module(MINE)}:part"
    tasks = [place, f"{place}(steps=7)", "vit-digits"]
    suite = Suite("mine", "?", tasks, ["add"], 1, margin={place: 0.01}, settings={"train.clip": {tasks[1]: 2.0}})
    kinds = suite.kinds()
    assert [kind.task for kind in kinds] == tasks
    assert [kind.train.clip for kind in kinds] == [1.0, 2.0, 1.0]
    assert (suite.margin_of(place), suite.margin_of(tasks[1])) == (0.01, 0.005)
    with pytest.raises(UserError, match=r"write task '\w+:part\(steps=300\)' as '\w+:part' in a suite"):
        Suite("mine", "?", [f"{place}(steps=300)"], ["add"], 1).kinds()


def test_a_task_that_has_changed_since_its_runs_is_reported(here: Workplace) -> None:
    place = f"{here.module(MINE)}:part(steps=7)"
    environment = {"task": {"place": place, "sha256": "0" * 64}}
    (text,) = changed_plugins([Record(configure(place, "add"), environment=environment)])
    assert text.startswith(f"task {place!r} has changed since runs here were done with it: its source was 000000000000")


def test_prepared_data_of_ones_own_are_made_anew_when_their_code_changes(here: Workplace) -> None:
    text = "from pebench.data.images import Digits\nclass Mine(Digits):\n    title = 'mine'\n"
    module = __import__(here.module(text))
    before = module.Mine().file
    assert module.Mine().file == before
    Path(module.__file__).write_text(text + "# another\n")
    assert module.Mine().file != before


@pytest.mark.slow
def test_the_example_goes_from_a_task_to_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: Workplace, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its own commands; its processes find the module, and records hold where the task came from."""
    monkeypatch.chdir(EXAMPLES)
    text = (EXAMPLES / "own_task.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    verify, run, other = (shlex.split(line)[1:] for line in text.splitlines() if line.startswith("pebench"))
    assert main(verify) == 0
    how = ["--seeds", "1", "--tier", "smoke", "--device", "cpu", "--threads", "1", "--out", str(tmp_path / "runs")]
    assert main([*run, *how, "--executor", "sequential"]) == 0
    pebench_away = [sys.executable, "-P", "-m", "pebench"]  # which is not in its folder's path by itself
    done = subprocess.run([*pebench_away, *other, *how], cwd=EXAMPLES, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    capsys.readouterr()
    assert main(["report", str(tmp_path / "runs")]) == 0
    report = capsys.readouterr().out
    for name in ("own_task:first_or_last", "'own_task:first_or_last(length=24)'"):
        assert report.count(f"pebench run --task {name} ") == 1
    assert f"own_task:first_or_last, source {plugin_modules.digest(EXAMPLES / 'own_task.py')[:12]}" in report
    records = read_records(tmp_path / "runs")
    assert {record.config.task for record in records} == {
        "own_task:first_or_last", "own_task:first_or_last(length=24)",
    }  # fmt: skip
    assert {record.environment["task"]["place"] for record in records} == {"own_task:first_or_last"}
    assert main(["status", str(tmp_path / "runs")]) == 0
    # where the module is not to be had, a report says what it needs, and status does without it
    for words, code, said in (
        (["report", "runs"], 2, "the task 'own_task:first_or_last', whose metric is in code of yours"),
        (["status", "runs"], 0, "4 runs: 4 done"),
    ):
        done = subprocess.run([*pebench_away, *words], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False)
        assert said in " ".join((done.stdout + done.stderr).split())
