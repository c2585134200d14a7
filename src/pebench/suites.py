"""Suites: declared sets of runs with a question. A suite is a Python file that defines ``SUITE``."""

import ast
import itertools
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pebench.config import CORE_ENCODINGS, RunConfig
from pebench.errors import UserError, unknown_name
from pebench.registry import encoding_card
from pebench.tasks import configure

Encoding = str | tuple[str, Mapping[str, Any]]
"""An encoding's name, or its name and options."""


@dataclass(frozen=True)
class Suite:
    """Tasks x encodings x seeds, and why.

    Args:
        name: What it is called on the command line and in results.
        question: What it is to answer.
        tasks: Names of tasks.
        encodings: Names of encodings, or pairs of a name and options.
        seeds: Seeds 0 to this minus one, or the seeds themselves.
        tier: One of the tasks' tiers; ``None`` takes each task's default.
        settings: Dotted names to values, for all runs: ``{"train.max_steps": 100}``.
        regime: What is equal between rows: ``width``.
        cost: What it was measured to cost, with the machine.
        expect: What the authors expect to see.
    """

    name: str
    question: str
    tasks: Sequence[str]
    encodings: Sequence[Encoding] = CORE_ENCODINGS
    seeds: int | Sequence[int] = 3
    tier: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    regime: str = "width"
    cost: str = ""
    expect: str = ""

    def plan(self) -> list[RunConfig]:
        """Every run, seed by seed, so that an interrupted suite has complete rows.

        Raises:
            UserError: For anything that does not exist or cannot work.
        """
        seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        kinds = [self._configure(*kind) for kind in itertools.product(self.tasks, self.encodings)]
        return [replace(config, seed=seed) for seed in seeds for config in kinds]

    def _configure(self, task: str, encoding: Encoding) -> RunConfig:
        name, options = (encoding, {}) if isinstance(encoding, str) else encoding
        prefix = "encoding."
        common = {k.removeprefix(prefix): v for k, v in self.settings.items() if k.startswith(prefix)}
        known = encoding_card(name).options
        options = {k: _value(v) for k, v in common.items() if k in known} | dict(options)
        settings = {k: v for k, v in self.settings.items() if not k.startswith(prefix)}
        return configure(task, name, 0, self.tier, settings, options)


def _value(value: Any) -> Any:
    """A literal given as text, or the value itself."""
    try:
        return ast.literal_eval(value) if isinstance(value, str) else value
    except (ValueError, SyntaxError):
        return value


def check_encoding_settings(suite: Suite) -> None:
    """Refuse an ``encoding.`` setting that none of the suite's encodings knows.

    Raises:
        UserError: With the options that exist.
    """
    names = [encoding if isinstance(encoding, str) else encoding[0] for encoding in suite.encodings]
    known = {f"encoding.{option}" for name in names for option in encoding_card(name).options}
    for setting in suite.settings:
        if setting.startswith("encoding.") and setting not in known:
            raise unknown_name("encoding option", setting, known or {"(none: these encodings have no options)"})


def suite_files() -> dict[str, Path]:
    """The suites that come with pebench, by name."""
    here = Path(__file__).parent
    folder = here / "benchmarks"  # in a wheel
    if not folder.is_dir():
        folder = here.parents[1] / "benchmarks"  # in a checkout
    return {path.stem: path for path in sorted(folder.glob("*.py")) if _defines_suite(path)}


def _defines_suite(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [getattr(t, "id", None) for node in body if isinstance(node, ast.Assign) for t in node.targets]
    return "SUITE" in names


def load_suite(name_or_file: str) -> Suite:
    """A suite by its name, or from a file of the user's own.

    Raises:
        UserError: If there is none, or the file does not define one.
    """
    path = suite_files().get(name_or_file) or Path(name_or_file)
    if not path.is_file():
        if path.suffix == ".py":
            raise UserError(f"expected a suite file, but {name_or_file!r} does not exist.")
        raise unknown_name("suite", name_or_file, suite_files())
    try:
        suite = runpy.run_path(str(path)).get("SUITE")
    except Exception as error:
        raise UserError(f"suite file {path} cannot be read: {type(error).__name__}: {error}") from error
    if not isinstance(suite, Suite):
        raise UserError(f"suite file {path} must define SUITE = pebench.Suite(...), got {type(suite).__name__}.")
    return suite
