"""Token tables that a run takes of another one: which run that is, what is taken, and that frozen means frozen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

import pebench
from pebench.config import RunConfig
from pebench.data import datamodule_of
from pebench.engine.observer import Observer, Stage
from pebench.errors import UserError
from pebench.runs.costs import cost
from pebench.runs.records import WEIGHTS
from pebench.runs.token_tables import table_source, table_sources
from pebench.tasks import configure
from pebench.training.runner import build
from pebench.training.token_tables import principal
from pebench.training.weights import load_weights

SETTINGS = {"train.max_steps": 4, "train.evaluations": 1, "model.d_model": 32}
HOW: dict[str, Any] = {"tier": "smoke", "device": "cpu", "threads": 1, "executor": "sequential"}


class Stages(Observer):
    """Remembers the titles of stages and what is noted."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.notes: list[str] = []

    def planned(self, stage: Stage) -> None:
        self.titles.append(stage.title)

    def note(self, message: str) -> None:
        self.notes.append(message)


def configured(encoding: str, table: str | None = None, task: str = "text-order", **settings: Any) -> RunConfig:
    return configure(task, encoding, tier="smoke", settings=SETTINGS | {"train.token_table": table, **settings})


def run(encodings: list[str], out: Path, table: str, observer: Observer | None = None, **more: Any) -> Any:
    settings: Mapping[str, Any] = {**SETTINGS, "train.token_table": table}
    return pebench.run(
        "text-order", encodings, 1, settings=settings, out=out, reference=encodings[0], observer=observer, **HOW, **more
    )


def table_of(config: RunConfig, out: Path) -> torch.Tensor:
    """The vectors of tokens as they enter the model."""
    layer: Any = load_weights(out / config.directory).get_submodule("input")
    return (layer.table * layer.pace).detach()


def test_the_source_is_the_same_run_without_an_encoding() -> None:
    config = configured("concat", "frozen", **{"train.learning_rate": 3e-3}).with_seed(4)
    source = table_source(config)
    assert source is not None
    assert source.key == configured("none", **{"train.learning_rate": 3e-3}).with_seed(4).key
    assert table_source(source) is None
    assert table_sources([config, configured("add", "trained", **{"train.learning_rate": 3e-3}).with_seed(4)]) == [
        source
    ]
    assert "token_table" not in str(source.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("table", ["frozen", "trained"])
def test_runs_take_the_table_of_a_run_that_is_made_first(table: str, tmp_path: Path) -> None:
    stages = Stages()
    found = run(["add", "concat"], tmp_path, table, stages, keep_weights=True)
    assert stages.titles == ["making token tables", ""]
    assert {(record.config.encoding, record.ok) for record in found.records} == {("add", True), ("concat", True)}
    given = table_of(configured("none"), tmp_path)
    for name, expected in (("add", given), ("concat", principal(given, 24))):
        found_table = table_of(configured(name, table), tmp_path)
        assert torch.allclose(found_table, expected, atol=1e-6) == (table == "frozen")
        assert torch.allclose(found_table, expected, atol=0.5)  # a few steps from where it began
        began: Any = build(configured(name, table), datamodule_of(configured(name, table)), tmp_path)
        assert torch.allclose((began.input.table * began.input.pace).detach(), expected, atol=1e-6)
        record = next(record for record in found.records if record.config.encoding == name)
        assert record.parameters["total"] == cost(record.config).parameters
        assert (
            cost(record.config).parameters == cost(configured(name)).parameters - (table == "frozen") * expected.numel()
        )
    again = Stages()
    run(["add", "concat"], tmp_path, table, again)
    assert again.titles == ["making token tables", ""]


def test_a_preview_counts_the_runs_that_tables_are_of(tmp_path: Path) -> None:
    found = pebench.preview_suite([configured("add", "frozen"), configured("rope", "trained")], tmp_path)
    assert [config.encoding for config in found.waiting] == ["none", "add", "rope"]


def test_commands_come_in_two_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stages = Stages()
    pebench.run_suite([configured("add", "frozen")], tmp_path, executor="commands", observer=stages)
    assert capsys.readouterr().out.count("pebench run") == 1
    assert stages.notes == ["once these are done, the same command prints the runs that take their token tables"]


def test_a_table_that_was_not_kept_is_missed_before_anything_trains(tmp_path: Path) -> None:
    run(["add"], tmp_path, "frozen")
    (tmp_path / configured("none").directory / WEIGHTS).unlink()
    with pytest.raises(UserError, match="no token table to take"):
        run(["add", "rope"], tmp_path, "frozen")


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("vit-digits", {}, "tasks on text, which have a token table"),
        ("lm-wikitext2", {"model.tied": True}, "no model.tied"),
        ("text-order", {"train.token_table": "cold"}, "train.token_table"),
    ],
)
def test_refusals(task: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        cost(configured("add", "frozen", task, **settings))


def test_narrower_vectors_keep_the_components_of_most_energy() -> None:
    axes = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).double()).Q
    parts = torch.randn(60, 4, generator=torch.Generator().manual_seed(1)).double() * torch.tensor([9.0, 4.0, 1.0, 0.1])
    vectors = (parts @ axes.T).float()
    found = principal(vectors, 2)
    assert torch.equal(principal(vectors, 4), vectors)
    energies = torch.linalg.svdvals(vectors.double()).square()
    assert torch.allclose(found.double().square().sum(0), energies[:2], rtol=1e-4)
    assert abs(float(torch.corrcoef(torch.stack((found[:, 0].double(), parts[:, 0])))[0, 1])) > 0.99
