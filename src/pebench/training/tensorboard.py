"""What a run leaves for TensorBoard: its curves, its row under HParams, a picture of what its encoding has learnt."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only

from pebench.config import RunConfig
from pebench.encodings.base import PositionalEncoding
from pebench.encodings.checks import blame
from pebench.encodings.effects import effects
from pebench.errors import UserError
from pebench.runs.records import Record

FAILED = ".failed"
"""What the name of the file ends with that tells of a failure."""

LONGEST = 512
"""Positions that a picture has at most: it takes all pairs of them."""


class RunLogger(TensorBoardLogger):
    """One event file for each attempt at a run, and the steps of its record.

    Args:
        folder: Of the run.
        resumed: The step that it resumes from, 0 if it is new; what an earlier attempt logged later is not shown.
    """

    def __init__(self, folder: Any, resumed: int = 0) -> None:
        if resumed:
            _wait_out_the_second(Path(folder))
        super().__init__(
            folder, name="", version="", default_hp_metric=False, purge_step=resumed + 1 if resumed else None
        )

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log without the epoch, which says nothing here, and with the steps that are done, as records count them.

        Lightning counts those before the present one in training, and all of them in the test.
        """
        told = {name: value for name, value in metrics.items() if name != "epoch"}
        done = step is None or any(name.startswith("test/") for name in told)
        super().log_metrics(told, step if done else step + 1)  # type: ignore[operator]

    @rank_zero_only
    def save(self) -> None:
        """Have what is logged on the disk; the hyperparameters are in the record."""
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
    """Log what only the end of a run knows, and close its file.

    Args:
        logger: Of the run.
        record: Of the run.
        encoding: With the weights that were tested; it is moved to the CPU.
    """
    writer, step = logger.experiment, int(record.metrics["best_step"])
    for name, value in record.metrics.items():
        if name.startswith("val/") or "@" in name:
            writer.add_scalar(_tag(name), value, step)
    _log_hyperparameters(writer, record)
    trained = record.parameters["encoding"] > 0
    told = trained or record.config.seed == 0  # a fixed one is the same with any seed
    if told and encoding.spec.max_len <= LONGEST:
        try:
            note = f"trained for {step} steps" if trained else "nothing in it is trained"
            writer.add_image("encoding", _picture(encoding, record.config.encoding, note), step, dataformats="HWC")
        except UserError:  # it tells nothing of position
            pass
        except Exception as error:  # a picture is no reason to lose a run
            logging.getLogger(__name__).warning("the encoding could not be drawn: %s", blame(error))
    logger.close()


def log_failure(folder: Path, config: RunConfig) -> None:
    """Log that a run failed, in a file of its own, which the next attempt removes: a row under HParams without metrics.

    Args:
        folder: Of the run.
        config: Of the run.
    """
    from tensorboard.plugins.hparams.api_pb2 import Status
    from tensorboard.plugins.hparams.metadata import SESSION_END_INFO_TAG
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard.summary import hparams

    summaries = hparams(_hyperparameters(config), {})
    plugin = summaries[-1].value[0].metadata.plugin_data
    assert summaries[-1].value[0].tag == SESSION_END_INFO_TAG
    content = HParamsPluginData.FromString(plugin.content)
    content.session_end_info.status = Status.STATUS_FAILURE
    plugin.content = content.SerializeToString()
    with SummaryWriter(folder, filename_suffix=FAILED) as writer:
        for summary in summaries:
            writer.file_writer.add_summary(summary)


def _wait_out_the_second(folder: Path) -> None:
    """Begin no file in the second of an earlier attempt's.

    TensorBoard reads files in the order of their names, which tell whole seconds, and then a number as text: within
    one second the tenth file of a process comes before the ninth, and what the later attempt takes back is shown.
    """
    begun = [file.name.split(".")[3] for file in folder.glob("events.out.tfevents.*")]
    while str(int(now := time.time())) in begun:
        time.sleep(1 - now % 1)


def _tag(name: str) -> str:
    """What a record's metric is called here: ``val/loss`` is that of many steps already."""
    if "@" in name:
        return name.replace("test/", "beyond/").replace("@", "_")
    return name.replace("val/", "best/")


def _log_hyperparameters(writer: Any, record: Record) -> None:
    """One row of the HParams tab; a second one, or one before the end, would be wrong.

    Its metrics are scalars that are there already; Lightning's own way would log them once more, at step 0.
    """
    from torch.utils.tensorboard.summary import hparams

    metrics = [_tag(name) for name in record.metrics if name != "best_step" and "@" not in name]
    values = dict.fromkeys(metrics, 0.0)  # the values are those of the scalars
    for summary in hparams(_hyperparameters(record.config), values):
        writer.file_writer.add_summary(summary)


def _hyperparameters(config: RunConfig) -> dict[str, Any]:
    return {
        "task": config.task, "encoding": config.encoding, "seed": str(config.seed), "tier": config.tier,
        **{f"encoding.{name}": value for name, value in config.encoding_args.items()},
        **{name: value for name, value in config.settings().items() if value is not None},
    }  # fmt: skip


def _picture(encoding: PositionalEncoding, name: str, note: str) -> Any:
    """What the encoding tells by now, as pixels (height, width, 3)."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from pebench.results.figures.encoding import draw

    canvas = FigureCanvasAgg(draw(effects(encoding.cpu().float()), name, note))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]
