"""House rules that hold for every file: sizes, layers, docstrings, annotations, and no test of wall-clock time.

Each test lists every offender as `path:line: reason`. Ruff holds functions to a number of statements and arguments.
"""

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pebench"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SCRIPTS = sorted(path for folder in ("benchmarks", "examples", "docs") for path in (ROOT / folder).rglob("*.py"))

Function = ast.FunctionDef | ast.AsyncFunctionDef
CLOCKS = {
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns",
}  # fmt: skip
"""Functions of the module `time` that read a clock."""


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def require_none(offenders: list[str]) -> None:
    assert not offenders, f"{len(offenders)} to mend:\n" + "\n".join(offenders)  # all of them, a line each


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            yield node


FLOATS = {"zeros", "ones", "empty", "full", "rand", "randn", "linspace", "logspace", "eye"}
"""Functions of `torch` that make tensors of the default type where they are given none."""


def untyped(path: Path) -> Iterator[ast.Call]:
    """Yield the calls that make a tensor of the default type; parameters are of it by design."""
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if isinstance(call.func, ast.Attribute)]
    parameters = {id(given) for call in calls if call.func.attr == "Parameter" for given in call.args}
    names = FLOATS | ({"tensor"} if path.parent.name == "encodings" else set())
    for call in calls:
        made = ast.unparse(call.func.value) == "torch" and call.func.attr in names and id(call) not in parameters
        if made and not any(keyword.arg == "dtype" for keyword in call.keywords):
            yield call


def test_tensors_name_their_type() -> None:
    """Lightning sets the default type in 16-bit training, which is too coarse for positions, tables and masks."""
    require_none([f"{place(path, call.lineno)}: give a dtype" for path in SOURCES for call in untyped(path)])


@pytest.mark.parametrize(
    ("files", "most"), [(SOURCES, 300), (SCRIPTS, 300), (TESTS, 500)], ids=["src", "scripts", "tests"]
)
def test_files_are_short(files: list[Path], most: int) -> None:
    require_none([f"{place(path, 1)}: {lines(path)} lines, at most {most}" for path in files if lines(path) > most])


def test_functions_are_short() -> None:
    """60 lines at most, from `def` to the last, docstring included."""
    offenders = []
    for path in (*SOURCES, *TESTS, *SCRIPTS):
        for function in functions(path):
            length = (function.end_lineno or 0) - function.lineno + 1
            if length > 60:
                offenders.append(f"{place(path, function.lineno)}: {function.name} has {length} lines, at most 60")
    require_none(offenders)


def test_few_modules_are_loose_at_the_top() -> None:
    loose = [path.name for path in PACKAGE.glob("*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert len(loose) <= 10, loose


def test_imports_have_few_layers_and_every_package_is_in_one() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    assert len(contract["layers"]) <= 10
    named = {name for layer in contract["layers"] for name in re.findall(r"pebench\.(\w+)", layer)}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages - named == set(), "in no layer of pyproject.toml's contract"


def test_no_exception_to_an_import_points_up_without_a_reason() -> None:
    """Each import that the layers' contract ignores has a comment on its line."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = text.partition('type = "layers"')[2].partition("[[tool.importlinter")[0]
    arrows = [line for line in contract.splitlines() if "->" in line]
    require_none([line for line in arrows if "#" not in line])


OPENING = re.compile(r"(What|Whether|Of|Whose|As many)\b")


def described(path: Path) -> Iterator[tuple[int, str]]:
    """All docstrings of a file with their lines; also the strings that stand below constants and attributes."""
    for node in ast.walk(parsed(path)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement in body:
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def test_docstrings_open_with_what_a_thing_is_or_does() -> None:
    offenders = []
    for path in (*SOURCES, *SCRIPTS):
        for line, text in described(path):
            if OPENING.match(text.strip()):
                offenders.append(f"{place(path, line)}: {text.strip().splitlines()[0]}")
    require_none(offenders)


def test_arguments_are_described_by_what_they_are() -> None:
    """No entry of an Args, Attributes, Returns or Raises section opens with a dangling genitive or question."""
    entry = re.compile(r"^\s+\*{0,2}(\w+)(?: \([^)]*\))?: (What|Whether|Of|Whose|As many)\b")
    offenders = []
    for path in (*SOURCES, *SCRIPTS):
        for line, text in described(path):
            for offset, row in enumerate(text.splitlines()):
                if entry.match(row):
                    offenders.append(f"{place(path, line + offset)}: {row.strip()}")
    require_none(offenders)


def public_functions(path: Path) -> Iterator[Function]:
    """The functions of a module, and the methods of its classes, whose names and classes' names are public."""
    found: list[tuple[ast.AST, bool]] = [(parsed(path), False)]
    while found:
        scope, in_class = found.pop()
        for node in getattr(scope, "body", []):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.append((node, True))
            if isinstance(node, Function) and not node.name.startswith("_") and not overrides(node, in_class):
                yield node


def overrides(function: Function, in_class: bool) -> bool:
    """Return True for what needs no docstring of its own: overrides, overloads and property setters."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    return bool(decorators & {"override", "overload", "setter"})


@functools.cache
def inherited_names() -> frozenset[str]:
    """Names of methods that base classes of Lightning and PyTorch, and our own base classes, document."""
    import lightning
    import torch

    from pebench.encodings.base import PositionalEncoding

    bases = (
        lightning.LightningModule, lightning.LightningDataModule, lightning.Callback, torch.nn.Module,
        torch.utils.data.Dataset, torch.utils.data.Sampler, PositionalEncoding,
    )  # fmt: skip
    return frozenset(name for base in bases for name in dir(base))


def test_public_functions_have_docstrings() -> None:
    offenders = []
    for path in SOURCES:
        for function in public_functions(path):
            if ast.get_docstring(function) is None and function.name not in inherited_names():
                offenders.append(f"{place(path, function.lineno)}: {function.name} has no docstring")
    require_none(offenders)


def test_public_functions_have_annotations() -> None:
    offenders = []
    for path in SOURCES:
        for function in public_functions(path):
            arguments = function.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            named += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
            bare = [a.arg for a in named if a.annotation is None and a.arg not in ("self", "cls")]
            if bare or function.returns is None:
                offenders.append(
                    f"{place(path, function.lineno)}: {function.name} lacks types of {bare or 'its result'}"
                )
    require_none(offenders)


def clock_reads(node: ast.AST) -> bool:
    """Return True if an expression reads a clock: `time.perf_counter()`, or `perf_counter()` imported from `time`."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = ast.unparse(call.func)
            module, _, function = name.rpartition(".")
            if function in CLOCKS and module in ("time", "") and name != "time":
                return True
    return False


def uses(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def has_difference(node: ast.AST, times: set[str]) -> bool:
    """Return True if an expression subtracts times: `time.monotonic() - start`."""
    return any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and (clock_reads(n) or uses(n, times))
        for n in ast.walk(node)
    )


def timed_asserts(function: Function) -> Iterator[ast.Assert]:
    """Yield the asserts of a function on a difference of clock readings, in the assert or in a variable before it.

    Whether one holds depends on how busy the machine is. A deadline is none of them: `assert time.monotonic() < end`
    in a loop that waits for another process ends a test that would wait for ever.
    """
    times: set[str] = set()  # variables that hold a reading
    spans: set[str] = set()  # variables that hold a difference of readings
    assignments = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    for _ in assignments:  # again, as a variable may be assigned from another
        for assignment in assignments:
            names = {n.id for target in assignment.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            if not is_arithmetic(assignment.value):
                continue
            if has_difference(assignment.value, times) or uses(assignment.value, spans):
                spans |= names
            elif clock_reads(assignment.value) or uses(assignment.value, times):
                times |= names
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and (has_difference(node.test, times) or uses(node.test, spans)):
            yield node


def is_arithmetic(node: ast.AST) -> bool:
    """Return True for readings of a clock and sums of them: what another call makes of a time is no time."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(clock_reads(call) and not call.args for call in calls)


def test_no_test_asserts_on_wall_clock_time() -> None:
    offenders = []
    for path in TESTS:
        for function in functions(path):
            offenders += [f"{place(path, node.lineno)}: {ast.unparse(node.test)}" for node in timed_asserts(function)]
    require_none(sorted(set(offenders)))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("assert time.perf_counter() - start < 3", True),
        ("start = time.monotonic()\n    f()\n    assert time.monotonic() - start < 3", True),
        ("start = perf_counter()\n    spent = perf_counter() - start\n    assert spent < 3", True),
        ("a = time.time()\n    b = a + 1\n    c = b - 2\n    d = 2 * c\n    assert 3 > d", True),
        ("deadline = time.monotonic() + 9\n    while time.monotonic() < deadline:\n        f()\n    assert f()", False),
        ("start = time.monotonic()\n    found = f(start)\n    assert found == 3", False),
        ("end = time.monotonic() + 9\n    while not f():\n        assert time.monotonic() < end", False),
        ("assert record.time - 3 < 3", False),
    ],
)
def test_an_assert_on_the_clock_is_found(body: str, found: bool) -> None:
    (function,) = ast.parse(f"def f():\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert bool(list(timed_asserts(function))) is found
