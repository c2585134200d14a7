"""`pebench analyze` and `pebench run --analyze`: figures go into records, and mistakes are told kindly."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pebench
from pebench.cli import main
from pebench.data import datamodule
from pebench.errors import UserError
from pebench.models import LanguageModel, ViT
from pebench.results.compare import describe
from pebench.runs.records import read_record, write_record
from pebench.training.analysis import MEASURES
from pebench.training.analysis import run as analysis_run

RUN = ["run", "--task", "vit-digits", "--pe", "learned", "--pe", "rope", "--tier", "smoke", "--seeds", "1"]
QUIET = ["--executor", "sequential"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with weights, without figures."""
    out = tmp_path_factory.mktemp("analyze") / "runs"
    assert main([*RUN, *QUIET, "--keep-weights", "--out", str(out)]) == 0
    return out


def folders(out: Path) -> list[Path]:
    return sorted(path.parent for path in out.glob("*/*/*/record.json"))


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif value is not None:
        yield value


@pytest.mark.slow
def test_a_folder_of_runs_is_analyzed_once(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = [read_record(folder) for folder in folders(kept)]
    assert not any(record.analysis for record in before)
    assert main(["analyze", str(kept)]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("measured") == 2
    assert "2 runs analyzed; the records hold" in printed.out
    for folder, old in zip(folders(kept), before, strict=True):
        record = read_record(folder)
        assert replace(record, analysis={}) == old
        assert [*record.analysis["trained"]] == sorted(MEASURES)
        assert all(map(math.isfinite, numbers(record.analysis)))
    learned, rope = (read_record(folder).analysis["trained"] for folder in folders(kept))
    assert rope["energies"] is None
    assert 0 < learned["energies"]["overlap"] <= 1

    assert main(["analyze", *map(str, folders(kept))]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("known") == 2
    assert "0 runs analyzed, 2 known (--again measures them again); the records" in printed.out
    assert main(["analyze", "--again", str(folders(kept)[0])]) == 0
    assert capsys.readouterr().err.count("measured") == 1
    assert describe(folders(kept)[0]).count("overlap") == 2  # trained and untrained


def test_a_run_may_be_analyzed_as_it_ends(kept: Path, tmp_path: Path) -> None:
    assert main([*RUN, *QUIET, "--analyze", "--out", str(tmp_path)]) == 0
    main(["analyze", str(kept)])
    for folder, other in zip(folders(tmp_path), folders(kept), strict=True):
        ours, theirs = (read_record(where).analysis for where in (folder, other))
        assert [*ours["trained"]] == [*theirs["trained"]]
        # not to the last bit: sums of 64 bit depend on where a library finds its numbers in memory
        assert [*numbers(ours)] == pytest.approx([*numbers(theirs)], rel=1e-9)
        assert not (folder / "weights.safetensors").exists()


@pytest.mark.slow
def test_an_analysis_that_fails_loses_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(capture: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setitem(analysis_run.MEASURES, "shift", fail)
    with pytest.warns(UserWarning, match="was not analyzed"):
        assert main([*RUN, *QUIET, "--analyze", "--out", str(tmp_path)]) == 0
    assert all(record.ok and not record.analysis for record in map(read_record, folders(tmp_path)))


def test_a_record_without_figures_is_written_as_before(kept: Path, tmp_path: Path) -> None:
    record = replace(read_record(folders(kept)[0]), analysis={})
    assert "analysis" not in json.loads(write_record(record, tmp_path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("with_record", [False, True])
def test_without_weights_it_says_how_to_keep_them(
    with_record: bool, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path
    if with_record:
        write_record(replace(read_record(folders(kept)[0]), analysis={}), tmp_path)
        source = folders(tmp_path)[0]
    assert main(["analyze", str(source)]) == 2
    error = capsys.readouterr().err
    assert "--keep-weights" in error
    assert "Traceback" not in error


def test_a_folder_of_data_that_is_none_is_refused(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(kept), "--data-dir", "/nowhere"]) == 2
    assert "--data-dir expects a folder" in capsys.readouterr().err


def test_a_model_that_is_none_or_for_other_data_is_refused() -> None:
    data = datamodule("text-order")
    model = pebench.TextClassifier("add", **data.model_arguments() | {"num_classes": 7}, d_model=16, num_heads=2)
    for wrong, words in (
        (model, "with num_classes=3, got 7"),
        (model.head, "a model of pebench.models.* got Linear"),
    ):
        with pytest.raises(UserError, match=words):
            pebench.analyze(wrong, data)


def test_an_option_of_data_that_does_not_exist_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="unknown option of the data of 'vit-digits'"):
        datamodule("vit-digits", batchsize=3)


@pytest.mark.parametrize("task", ["vit-digits", "lm-grammar", "text-order"])
def test_a_model_of_ones_own_is_analyzed(task: str) -> None:
    data = datamodule(task)
    kind = {"vit-digits": ViT, "lm-grammar": LanguageModel, "text-order": pebench.TextClassifier}[task]
    model = kind("concat", **data.model_arguments(), d_model=16, num_layers=1, num_heads=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = pebench.analyze(model, data)
    assert found.trained["energies"] == found.untrained["energies"]  # it was not trained
    began = kind("concat", **data.model_arguments(), d_model=16, num_layers=1, num_heads=2, seed=model.seed + 1)
    other = pebench.analyze(model, data, began)
    assert other.trained["collisions"] == found.trained["collisions"]
    assert other.untrained["collisions"] == pebench.analyze(began, data).untrained["collisions"]
    assert other.untrained["collisions"] != found.untrained["collisions"]
    assert found.trained["energies"]["overlap"] == pytest.approx(0.0, abs=1e-9)
    assert found.trained["probes"]["position"][0] > 0.9
    assert all((value == before[name]).all() for name, value in model.state_dict().items())
    assert model.training
