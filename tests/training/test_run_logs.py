"""A finished run in TensorBoard: the numbers of its record, once."""

import re
from collections import Counter
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from pebench.runs.records import Record, find_record
from pebench.tasks import configure
from pebench.training.runner import train
from tests.training.helpers import event_files, options, smoke


def test_tensorboard_shows_the_curve_of_the_record(record: Record, events: EventAccumulator) -> None:
    for name in (name for name in record.metrics if name.startswith("val/")):
        points = events.Scalars(name)
        assert [point.step for point in points] == [point["step"] for point in record.curve]
        assert [point.value for point in points] == pytest.approx([point[name] for point in record.curve], rel=1e-6)


def test_tensorboard_shows_the_outcome_of_the_record_once(record: Record, events: EventAccumulator) -> None:
    for name, value in record.metrics.items():
        if name != "best_step":
            (point,) = events.Scalars("with_chosen_weights/" + re.sub("[/@]", "_", name))
            assert point.value == pytest.approx(value, rel=1e-6)
            assert point.step == (
                record.curve[-1]["step"]
                if name.startswith("test/") and "@" not in name
                else record.metrics["best_step"]
            )


def test_a_run_leaves_one_event_file_with_a_picture_of_what_it_has_learnt(
    folder: Path, events: EventAccumulator
) -> None:
    assert len(event_files(folder)) == 1
    (picture,) = events.Images("encoding")
    assert (picture.width, picture.height) == (720, 360)


def test_a_picture_that_cannot_be_drawn_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no ink")

    monkeypatch.setattr("pebench.training.tensorboard.effects", fail)
    config = configure("vit-digits", "learned", 0, "smoke")
    assert train(config, options(tmp_path)).ok
    assert "no ink" in caplog.text


def test_a_tensorboard_that_cannot_be_written_costs_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("pebench.training.runner.log_outcome", fail)
    with pytest.warns(UserWarning, match="TensorBoard lacks the outcome of this run: no space left"):
        assert train(smoke(), options(tmp_path)).ok
    assert find_record(smoke(), tmp_path)


def test_tensorboard_has_one_row_of_hyperparameters(record: Record, folder: Path) -> None:
    values = [value for path in event_files(folder) for event in EventFileLoader(str(path)).Load()
              for value in event.summary.value]  # fmt: skip
    tags = Counter(value.tag for value in values)
    assert tags["_hparams_/session_start_info"] == 1
    assert "hp_metric" not in tags
    start = next(value for value in values if value.tag == "_hparams_/session_start_info")
    content = start.metadata.plugin_data.content
    assert all(text.encode() in content for text in ("encoding", record.config.encoding, record.config.task, "smoke"))
