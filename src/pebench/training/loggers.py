"""Loggers of the user's choice beside TensorBoard's: any of Lightning's kind, by its place in Python."""

import contextlib
import inspect
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from pebench.config import RunConfig
from pebench.encodings.checks import blame
from pebench.encodings.options import split_options
from pebench.encodings.plugin_modules import load_object
from pebench.encodings.plugin_processes import note_folder
from pebench.encodings.plugins import Group, Plugin, at_place
from pebench.errors import UserError, unknown_name
from pebench.formatting import MOST, first_line, quoted
from pebench.runs.records import Record

log = logging.getLogger(__name__)

FOLDER = "loggers"
"""Folder of a run in which its loggers write."""

EXPECTED = "a logger as in lightning.pytorch.loggers.CSVLogger or my_module:MyLogger(option=value)"
LOGGERS = Group("logger", "", "class", "Class")
GIVEN = ("save_dir", "name", "version")
"""Arguments that a run gives its loggers, where they take them: those are its own."""


def check_loggers(texts: Sequence[str]) -> None:
    """Refuse loggers that do not exist or cannot be made; each is made once, in a temporary folder, and logs nothing.

    Args:
        texts: Loggers as the command line takes them.

    Raises:
        UserError: With the logger, and what was expected.
    """
    for text in texts:
        if texts.count(text) > 1:
            raise UserError(f"logger {quoted(text)} is given twice.")
        with tempfile.TemporaryDirectory() as folder:
            _make(text, {"save_dir": folder, "name": "check", "version": "check"})


def make_loggers(texts: Sequence[str], config: RunConfig, folder: Path, step: int) -> list["Guarded"]:
    """Return the loggers of an attempt at a run, which know its settings.

    Args:
        texts: Loggers as the command line takes them.
        config: The run's configuration.
        folder: The run's folder.
        step: Step that the attempt resumes from, 0 for a new run.
    """
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return []  # of the processes that share a run, the first alone logs
    made = []
    for number, text in enumerate(texts):
        own = folder / FOLDER / f"{number + 1}-{text.partition('(')[0].replace(':', '.').rpartition('.')[2]}"
        with _surviving(text):
            logger = Guarded(_make(text, _given(_class(text)[0], config, own, step)), text)
            logger.log_hyperparams(hyperparameters(config))
            made.append(logger)
    return made


class Guarded(Logger):
    """A logger that counts steps as records do, and whose errors cost no run: after one it logs no more.

    Args:
        inner: The logger of the user's choice.
        text: Its name in warnings.
    """

    def __init__(self, inner: Logger, text: str) -> None:
        super().__init__()
        self.inner, self.text, self.works = inner, text, True

    @property
    def name(self) -> str | None:
        """Its name."""
        return self.text

    @property
    def version(self) -> str | None:
        """None: a run's folder is its version."""
        return None

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log without the epoch, by the number of finished steps; see `finished_step`."""
        self._try(lambda: self.inner.log_metrics(without_epoch(metrics), finished_step(metrics, step)))

    @rank_zero_only
    def log_hyperparams(self, params: Mapping[str, Any]) -> None:  # type: ignore[override]
        """Log the settings of the run."""
        self._try(lambda: self.inner.log_hyperparams(dict(params)))

    def log_outcome(self, record: Record) -> None:
        """Log what was measured with the chosen weights, but for the test's metrics, which are there already."""
        found = {name: value for name, value in record.metrics.items() if "@" in name or not name.startswith("test/")}
        chosen = {f"chosen/{name.replace('/', '_').replace('@', '_')}": value for name, value in found.items()}
        self._try(lambda: self.inner.log_metrics(chosen, int(record.curve[-1]["step"])))
        self.close()

    @rank_zero_only
    def save(self) -> None:
        """Write what is logged."""
        self._try(self.inner.save)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Go on after training, as the test follows; after a failure the run is over."""
        self._try(lambda: self.inner.finalize(status))
        if status != "success":
            self.close("failed")

    @rank_zero_only
    def close(self, status: str = "success") -> None:
        """End the run in the logger: a service would count what the next run of this process logs to this one."""
        self._try(lambda: _end(self.inner, status))
        self.works = False

    def _try(self, action: Callable[[], Any]) -> None:
        if self.works:
            self.works = False
            with _surviving(self.text):
                action()
                self.works = True


def without_epoch(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics without the epoch, which means nothing in a stream without end."""
    return {name: value for name, value in metrics.items() if name != "epoch"}


def finished_step(metrics: Mapping[str, float], step: int | None) -> int | None:
    """Return the number of finished steps, as records count.

    Lightning counts the steps before the present one in training, and all of them in the test.
    """
    return step if step is None or any(name.startswith("test/") for name in metrics) else step + 1


def run_title(config: RunConfig) -> str:
    """Return a name of a run that people can read; the key keeps runs apart that differ in a setting alone."""
    return f"{config.label}, {config.task}, seed {config.seed} ({config.key[:8]})"


def hyperparameters(config: RunConfig) -> dict[str, Any]:
    """Return the settings of a run, by the names that the command line gives them."""
    return {
        # As text a seed is a category; as a number TensorBoard would draw it as a quantity.
        "encoding": config.encoding, "task": config.task, "seed": str(config.seed), "tier": config.tier,
        **{f"encoding.{name}": value for name, value in config.encoding_args.items()},
        **{name: value for name, value in config.settings().items() if value is not None},
    }  # fmt: skip


def _class(text: str) -> tuple[type[Logger], dict[str, Any]]:
    """Return the class that a text names, and the options in it.

    Raises:
        UserError: If there is no such class, or it is no logger.
    """
    name, options = split_options(text, EXPECTED)
    place = name if ":" in name else ":".join(name.rpartition(".")[::2])
    plugin = at_place(place, LOGGERS)
    if plugin is None:
        raise UserError(f"expected {EXPECTED}, got {quoted(text)}.")
    found = load_object(Plugin(name, place, group=LOGGERS))
    if not (isinstance(found, type) and issubclass(found, Logger)):
        raise UserError(f"logger {quoted(name)} is no class of lightning.pytorch.loggers.Logger.")
    note_folder(plugin)  # the processes of runs search it too
    return found, options


def _make(text: str, given: Mapping[str, Any]) -> Logger:
    """Return a logger with the options in its text, and of `given` what it takes and its text does not name.

    Raises:
        UserError: If it has no such option, or cannot be made.
    """
    cls, options = _class(text)
    known = inspect.signature(cls).parameters
    if wrong := [name for name in options if name not in known and not _takes_any(cls)]:
        raise unknown_name(f"option of logger {text.partition('(')[0]!r}:", wrong[0], known)
    if own := [name for name in options if name in GIVEN]:
        raise UserError(f"logger {quoted(text)}: {own[0]} is the run's own, and set for each run. Leave it out.")
    try:
        return cls(**options, **{name: value for name, value in given.items() if name in known})
    except (Exception, SystemExit) as error:  # of another's code
        raise UserError(
            f"logger {quoted(text)} cannot be made: {first_line(f'{type(error).__name__}: {error}', MOST)}"
        ) from error


def _takes_any(cls: type) -> bool:
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(cls).parameters.values())


def _given(cls: type[Logger], config: RunConfig, folder: Path, step: int) -> dict[str, Any]:
    """Return the arguments that tell a logger of a run where to write and what the run is called.

    Loggers whose name has a default, as CSVLogger's, make a folder of it, and of the version: there an attempt that
    resumes must not write over the earlier one. Services show the name, and go on with the run of that version.
    """
    shutil.rmtree(folder / f"from_step_{step}", ignore_errors=True)  # of an attempt that came no further
    folder.mkdir(parents=True, exist_ok=True)
    name = inspect.signature(cls).parameters.get("name")
    files = name is not None and isinstance(name.default, str)
    title, version = ("", f"from_step_{step}") if files else (run_title(config), config.key)
    return {"save_dir": str(folder), "name": title, "version": version}


def _end(logger: Logger, status: str) -> None:
    """Finalize a logger, and finish the run of a service, which Lightning leaves open."""
    logger.finalize(status)
    finish = getattr(getattr(logger, "experiment", None), "finish", None)
    if callable(finish):
        finish()


@contextlib.contextmanager
def _surviving(text: str) -> Iterator[None]:
    """Make a warning of an error: a logger is no reason to lose a run."""
    try:
        yield
    except (Exception, SystemExit) as error:
        log.warning("%s logs no more of this run: %s", text, blame(error))
