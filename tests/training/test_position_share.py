"""How much of the residual stream is position: shares of variance, of known data and of known models."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from pebench import ViT
from pebench.config import Options, RunConfig
from pebench.data import datamodule_of
from pebench.encodings.base import PositionalEncoding
from pebench.errors import InterruptedRunError
from pebench.results import grids
from pebench.results.figures.position_share import draw
from pebench.results.tables import build_tables
from pebench.runs.records import Record
from pebench.tasks import configure
from pebench.training.position_share import PositionShare, measure_position_share, position_shares
from pebench.training.runner import build, train


def share_of(x: torch.Tensor, valid: torch.Tensor | None = None) -> float | None:
    share = PositionShare(x.shape[1], x.shape[2])
    for rows in range(0, len(x), 7):
        share.update(x[rows : rows + 7], None if valid is None else valid[rows : rows + 7])
    return share.compute()


def vectors(position: float, content: float, examples: int = 400) -> torch.Tensor:
    noise = torch.Generator().manual_seed(0)
    told, said = torch.randn(1, 30, 16, generator=noise), torch.randn(examples, 30, 16, generator=noise)
    told = (told - told.mean(1, keepdim=True)) / told.std(1, correction=0, keepdim=True)
    return 5 + position * told + content * said


@pytest.mark.parametrize(("position", "content"), [(1.0, 1.0), (0.5, 1.0), (1.0, 3.0)])
def test_it_is_the_share_of_what_varies_by_position(position, content):
    expected = position**2 / (position**2 + content**2)
    assert share_of(vectors(position, content)) == pytest.approx(expected, abs=0.01)


def test_it_is_zero_on_average_where_position_tells_nothing_and_one_where_it_tells_all():
    noise = torch.Generator().manual_seed(0)
    found = [share_of(torch.randn(3, 30, 16, generator=noise)) for _ in range(100)]
    assert abs(sum(found) / len(found)) < 0.01  # the plain ratio would be a third
    assert share_of(vectors(1.0, 0.0, examples=3)) == pytest.approx(1.0)


def test_what_an_example_has_in_common_is_not_taken_for_position():
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(400, 30, 16, generator=noise) + 3 * torch.randn(400, 1, 16, generator=noise)
    assert -1 / 400 < share_of(x) < 0.001


def test_it_is_not_known_of_one_vector_a_position_or_of_equal_ones():
    assert share_of(torch.randn(1, 5, 4)) is None
    assert share_of(torch.ones(6, 5, 4)) is None
    assert share_of(torch.full((6, 5, 4), float("nan"))) is None


def test_padding_does_not_count():
    x = vectors(1.0, 1.0)
    valid = torch.arange(30) < torch.randint(1, 31, (len(x), 1), generator=torch.Generator().manual_seed(0))
    noisy = torch.where(valid[..., None], x, 100.0)
    assert share_of(noisy, valid) == pytest.approx(share_of(x * valid[..., None], valid))
    assert share_of(noisy, valid) == pytest.approx(0.5, abs=0.05)


def smoke(task: str, encoding: str, **options: Any) -> RunConfig:
    return configure(task, encoding, 0, "smoke", encoding_args=options)


def shares(task: str, encoding: str, **options: Any) -> list[float | None]:
    config = smoke(task, encoding, **options)
    data = datamodule_of(config)
    return position_shares(build(config, data), data)


@pytest.mark.parametrize("task", ["text-order", "lm-grammar", "vit-digits"])
def test_what_is_told_at_the_input_is_seen_there(task):
    none, add, loud = shares(task, "none"), shares(task, "add"), shares(task, "add", ratio=3.0)
    assert None not in (*none, *add, *loud)
    assert none[0] < add[0] < loud[0] < 1
    assert shares(task, "rope")[0] == none[0]  # which acts later


@pytest.mark.parametrize("task", ["text-order", "lm-grammar", "vit-digits"])
def test_positions_at_the_beginning_can_be_left_out(task):
    config = smoke(task, "add")
    data = datamodule_of(config)
    module = build(config, data)
    length = module.trunk.encoding.spec.max_len
    whole, none, some, one = (
        position_shares(copy.deepcopy(module), data, start=start) for start in (0, length, 1, length - 1)
    )
    assert whole == position_shares(module, data)
    assert some != whole
    assert one == pytest.approx([0.0] * len(whole), abs=1e-9)  # nothing lies between one position
    assert none == [None] * len(whole)


def test_padding_does_not_count_where_the_beginning_is_left_out():
    data = datamodule_of(smoke("text-order", "add"))
    module = build(smoke("text-order", "add"), data).eval()
    tokens, lengths, _ = data.split("val")[0][torch.randperm(512, generator=torch.Generator().manual_seed(1))]
    valid = torch.arange(tokens.shape[1]) < lengths[:, None]
    assert valid[:, :4].all() > valid[:, 4:].all()
    data.split = lambda name: (TensorDataset(tokens, lengths, lengths * 0), None)
    with module.trunk.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0])), torch.no_grad():
        seen = []
        module(tokens, lengths)
    share = PositionShare(tokens.shape[1], module.trunk.d_model)
    share.update(seen[0][:, 4:], valid[:, 4:])
    assert position_shares(module, data, start=4)[0] == pytest.approx(share.compute())


def test_a_run_records_it_before_and_after_and_the_table_shows_it(tmp_path):
    records = [train(smoke("vit-digits", name), Options(tmp_path, device="cpu", threads=1)) for name in ("add", "none")]
    for record in records:
        config = record.config
        data = datamodule_of(config)
        fresh = position_shares(build(config, data), data)
        assert record.position_shares["untrained"] == pytest.approx(fresh)
        assert record.position_shares["trained"] != pytest.approx(fresh)
        assert len(fresh) == config.model.num_layers + 1
    grid = grids.position_shares(build_tables(records)[0])
    assert list(grid)[:4] == ["Encoding", "input, untrained", "input", "into the output"]
    shown = [f"{100 * record.position_shares['untrained'][0]:.1f}" for record in records]
    assert grid["input, untrained"].texts == shown
    figure = draw(build_tables(records)[0])
    assert figure is not None
    heights = [line.get_ydata() for line in figure.axes[0].lines]
    for record, height in zip(records, heights, strict=True):
        assert list(height) == pytest.approx([100 * share for share in record.position_shares["trained"]])


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # within torch.compile
def test_a_compiled_model_is_measured_and_left_as_it_is():
    config = smoke("vit-digits", "add")
    data = datamodule_of(config)
    module = build(config, data)
    before = position_shares(build(config, data), data)
    module.trunk.compile(backend="eager")
    module.loss(data.on_after_batch_transfer(data.split("val")[0][torch.arange(4)], 0))
    found = measure_position_share(build(config, data), module, data, lambda: False)
    assert found == {"untrained": before, "trained": before}
    assert not module.trunk.norm._forward_pre_hooks


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("task", ["text-order", "vit-digits"])
def test_a_model_of_another_precision_is_measured_in_32_bit(task: str, dtype: torch.dtype):
    config = smoke(task, "add")
    data = datamodule_of(config)
    module = build(config, data).to(dtype)
    found = measure_position_share(build(config, data), module, data, lambda: False)
    assert found["trained"] == position_shares(build(config, data).to(dtype).float(), data)
    assert {parameter.dtype for parameter in module.parameters()} == {dtype}


class Stubborn(PositionalEncoding):
    """Cannot be built twice, or copied."""

    name = "stubborn"
    blind = True

    def __deepcopy__(self, memo):
        raise TypeError("not to be copied")


def test_what_cannot_be_measured_is_no_reason_to_lose_a_run(caplog):
    config = smoke("vit-digits", "none")
    data = datamodule_of(config)
    module = ViT(Stubborn, **data.model_arguments(), d_model=16, num_layers=1, num_heads=2)
    assert measure_position_share(build(config, data), module, data, lambda: False) == {}
    assert "were not measured: TypeError: not to be copied" in caplog.text
    with pytest.raises(InterruptedRunError):
        measure_position_share(build(config, data), module, data, lambda: True)


def test_rows_of_different_depth_and_seeds_without_it_are_shown(tmp_path):
    config = smoke("vit-digits", "add")
    depths = {0: [0.5, 0.25], 1: [0.5, 0.25, 0.125], 2: None}
    records = [
        Record(
            config.with_seed(seed), metrics={"test/accuracy": 0.5},
            position_shares={"untrained": shares, "trained": shares} if shares else {},
        )
        for seed, shares in depths.items()
    ]  # fmt: skip
    table = build_tables(records)[0]
    grid = grids.position_shares(table)
    assert list(grid)[3:] == ["into block 2", "into the output"]
    assert [column.texts[0] for column in grid.values()][2:] == ["50.0 ± 0.0 (n=2)", "25.0 ± 0.0 (n=2)", "12.5 (n=1)"]
    assert draw(table) is not None


def test_a_run_that_selects_does_not_measure_it(tmp_path):
    config = replace(smoke("vit-digits", "add"), stage="select", selected=("train.learning_rate",))
    assert train(config, Options(tmp_path, device="cpu", threads=1)).position_shares == {}


def test_a_table_of_records_without_it_has_no_such_part(tmp_path):
    record = train(smoke("vit-digits", "add"), Options(tmp_path, device="cpu", threads=1))
    table = build_tables([replace(record, position_shares={})])[0]
    assert (grids.position_shares(table), draw(table)) == ({}, None)


@pytest.mark.parametrize(("lacking", "drawn"), [("none", False), ("rope", True)])
def test_shares_are_drawn_where_there_is_something_to_compare_them_with(lacking, drawn):
    shares = {"untrained": [0.5, 0.25], "trained": [0.5, 0.25]}
    records = [
        Record(
            smoke("vit-digits", name), metrics={"test/accuracy": 0.5},
            position_shares={} if name == lacking else shares,
        )
        for name in ("add", "none", "rope")
    ]  # fmt: skip
    assert (draw(build_tables(records)[0]) is not None) == drawn
