"""A run in TensorBoard: its curves, its row under HParams, and a picture of its trained encoding."""

import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import rank_zero_experiment
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only

from pebench.config import RunConfig
from pebench.encodings.base import PositionalEncoding
from pebench.encodings.checks import blame
from pebench.encodings.effects import effects
from pebench.errors import UserError
from pebench.results.event_files import nameless_host
from pebench.results.inside import analysis_columns
from pebench.runs.records import Record
from pebench.tasks import find_task
from pebench.training.loggers import finished_step, hyperparameters, run_title, without_epoch

FAILED = ".failed"
"""Suffix of the event file that records a failure."""

OUTCOME = "with_chosen_weights"
"""Group of a finished run's metrics, single points; TensorBoard shows groups by name, so that curves come first."""

FIRST = ("encoding", "seed", "task")
"""First columns of the HParams tab."""

LONGEST = 512
"""Largest number of positions in a picture, which shows all pairs of them."""


class RunLogger(TensorBoardLogger):
    """Logger with one event file for each attempt at a run, and steps counted as in its record.

    Args:
        folder: The run's folder.
        resumed: Step that the attempt resumes from, 0 for a new run; what an earlier attempt logged later is not shown.
    """

    def __init__(self, folder: Any, resumed: int = 0) -> None:
        if resumed:
            _wait_for_next_second(Path(folder))
        super().__init__(
            folder, name="", version="", default_hp_metric=False, purge_step=resumed + 1 if resumed else None
        )

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """The writer of the event file, whose name is made without that of this machine."""
        if self._experiment is not None:
            return self._experiment
        with nameless_host():
            return super().experiment

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log without the epoch, by the number of finished steps; see `finished_step`."""
        shown = without_epoch(metrics)
        shown = {_tag(name) if name.startswith("test/") else name: value for name, value in shown.items()}
        super().log_metrics(shown, finished_step(metrics, step))

    @rank_zero_only
    def save(self) -> None:
        """Write what is logged to the disk; the hyperparameters are in the record."""
        if self._experiment is not None:
            self._experiment.flush()

    @rank_zero_only
    def finalize(self, status: str) -> None:
        """Go on with the same file after training: a closed one would be followed by another."""
        self.save()
        if status != "success":
            self.close()

    @rank_zero_only
    def close(self) -> None:
        """Close the file."""
        if self._experiment is not None:
            self._experiment.close()


def log_outcome(logger: RunLogger, record: Record, encoding: PositionalEncoding) -> None:
    """Log the result of a finished run, and close its file.

    Args:
        logger: The run's logger.
        record: The run's record.
        encoding: Encoding with the weights that were tested; it is moved to the CPU.
    """
    writer, step = logger.experiment, int(record.metrics["best_step"])
    for name, value in record.metrics.items():
        if name.startswith("val/") or "@" in name:
            writer.add_scalar(_tag(name), value, step)
    for title, figure in analysis_columns(record.analysis).items():
        if figure is not None:
            writer.add_scalar(f"analysis/{title}", figure, step)
    _log_hyperparameters(writer, record)
    trained = record.parameters["encoding"] > 0
    shown = trained or record.config.seed == 0  # a fixed one is the same with any seed
    if shown and encoding.spec.max_len <= LONGEST:
        try:
            note = f"trained for {step} steps" if trained else "nothing in it is trained"
            writer.add_image("encoding", _picture(encoding, record.config.encoding, note), step, dataformats="HWC")
        except UserError:  # it has no effect to draw
            pass
        except Exception as error:  # a picture is no reason to lose a run
            logging.getLogger(__name__).warning("the encoding could not be drawn: %s", blame(error))
    logger.close()


def log_failure(folder: Path, config: RunConfig) -> None:
    """Log that a run failed: a row under HParams without metrics, in a file of its own, which the next attempt removes.

    Args:
        folder: The run's folder.
        config: The run's configuration.
    """
    from tensorboard.plugins.hparams.api_pb2 import Status
    from tensorboard.plugins.hparams.metadata import SESSION_END_INFO_TAG
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from torch.utils.tensorboard import SummaryWriter

    summaries = _row(config, [])
    # hparams() knows success alone. The last of its summaries ends the session: its status is written over.
    plugin = summaries[-1].value[0].metadata.plugin_data
    # Their order is not documented; it could change with torch.
    assert summaries[-1].value[0].tag == SESSION_END_INFO_TAG
    content = HParamsPluginData.FromString(plugin.content)
    content.session_end_info.status = Status.STATUS_FAILURE
    plugin.content = content.SerializeToString()
    with nameless_host(), SummaryWriter(folder, filename_suffix=FAILED) as writer:
        for summary in summaries:
            writer.file_writer.add_summary(summary)


def _wait_for_next_second(folder: Path) -> None:
    """Wait until no earlier attempt's file was begun in this second.

    TensorBoard reads files in the order of their names, which hold whole seconds, and then a number as text: within
    one second the tenth file of a process comes before the ninth, and steps that the later attempt removed are shown.
    """
    # events.out.tfevents.SECONDS.host.process.number
    begun = [file.name.split(".")[3] for file in folder.glob("events.out.tfevents.*")]
    while str(int(now := time.time())) in begun:
        time.sleep(1 - now % 1)


def _tag(name: str) -> str:
    """Return the name of a record's metric in TensorBoard, where ``val/loss`` is the curve of many steps already.

    Example:
        >>> _tag("test/loss@2x")
        'with_chosen_weights/test_loss_2x'
    """
    return f"{OUTCOME}/{name.replace('/', '_').replace('@', '_')}"


def _log_hyperparameters(writer: Any, record: Record) -> None:
    """Log one row of the HParams tab; a second one, or one before the end, would be wrong.

    Its metrics are scalars that are there already; Lightning's own way would log them once more, at step 0.
    """
    headline = f"test/{find_task(record.config.task).metric}"
    names = [name for name in record.metrics if name != "best_step" and "@" not in name]
    names.sort(key=lambda name: (name != headline, not name.startswith("test/")))
    for summary in _row(record.config, list(map(_tag, names))):
        writer.file_writer.add_summary(summary)


def _row(config: RunConfig, metrics: Iterable[str]) -> tuple[Any, ...]:
    """Return the summaries of one row of the HParams tab, with a name that people can read.

    Args:
        config: The run's configuration.
        metrics: Tags of the scalars that are its metrics, in the order of the columns.
    """
    from tensorboard.plugins.hparams.metadata import SESSION_START_INFO_TAG
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from torch.utils.tensorboard.summary import hparams

    values = dict.fromkeys(metrics, 0.0)  # the values are those of the scalars
    summaries: tuple[Any, ...] = hparams(hyperparameters(config), values)
    assert summaries[1].value[0].tag == SESSION_START_INFO_TAG  # their order is not documented
    plugin = summaries[1].value[0].metadata.plugin_data
    content = HParamsPluginData.FromString(plugin.content)
    content.session_start_info.group_name = run_title(config)  # rows of one name would be averaged
    plugin.content = content.SerializeToString()
    plugin = summaries[0].value[0].metadata.plugin_data
    content = HParamsPluginData.FromString(plugin.content)
    for info in content.experiment.hparam_infos:
        info.differs = info.name in FIRST  # TensorBoard shows those that differ between runs before all others
    plugin.content = content.SerializeToString()
    return summaries


def _picture(encoding: PositionalEncoding, name: str, note: str) -> Any:
    """Return a picture of the effects of an encoding, as pixels (height, width, 3)."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from pebench.results.figures.encoding import draw

    # A canvas without pyplot: no display, no global figure, and safe in any thread.
    canvas = FigureCanvasAgg(draw(effects(encoding.cpu().float()), name, note))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]  # without alpha
