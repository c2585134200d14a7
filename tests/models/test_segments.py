"""Which of the two texts of a pair a token is of, given to the model as a sum or in channels of its own."""

from pathlib import Path

import pytest
import torch

from pebench.config import Options, RunConfig, override
from pebench.errors import UserError
from pebench.layers import SegmentedEmbedding
from pebench.models import TextClassifier
from pebench.models.counting import count_flops, count_parameters
from pebench.runs.costs import cost
from pebench.tasks import configure
from pebench.training.runner import train
from tests.data.copies import write_pairs

PAIR = torch.tensor([[5, 2, 6, 2, 0], [2, 5, 5, 5, 5], [5, 5, 5, 5, 5]])
SEGMENTS = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
SIZES = {"vocab_size": 12, "max_len": 8, "d_model": 32, "num_layers": 2, "num_heads": 4}


def filled(segments: str) -> SegmentedEmbedding:
    """An input layer of 8 channels whose token t is 10t everywhere, and whose segment s is s + 1."""
    made = SegmentedEmbedding(12, 8, segments, separator=2, pace=1.0)
    with torch.no_grad():
        made.table.copy_(10 * torch.arange(12.0)[:, None].expand_as(made.table))
        made.segment.table.copy_(torch.arange(1.0, 3.0)[:, None].expand_as(made.segment.table))
    return made


def test_a_sum_adds_the_vector_of_the_segment_in_every_channel() -> None:
    made = filled("sum")
    assert (made.table.shape, made.segment.table.shape) == ((12, 8), (2, 8))
    expected = 10.0 * PAIR + SEGMENTS + 1
    assert torch.equal(made(PAIR), expected[..., None].expand(-1, -1, 8))


def test_concat_gives_the_segment_the_last_eighth_of_the_channels() -> None:
    made = filled("concat")
    assert (made.table.shape, made.segment.table.shape) == ((12, 7), (2, 1))
    assert torch.equal(made(PAIR)[..., :7], (10.0 * PAIR)[..., None].expand(-1, -1, 7))
    assert torch.equal(made(PAIR)[..., 7], SEGMENTS + 1.0)


def test_one_channel_cannot_hold_both() -> None:
    with pytest.raises(ValueError, match="two channels of content or more, got 1"):
        SegmentedEmbedding(12, 1, "concat", separator=2)


@pytest.mark.parametrize("segments", ["sum", "concat"])
def test_tokens_and_segments_begin_equally_large(segments: str) -> None:
    torch.manual_seed(0)
    made = SegmentedEmbedding(2048, 256, segments, separator=2)
    tables = [made.table * made.pace, made.segment.table * made.segment.pace]
    assert [table.square().mean().sqrt().item() for table in tables] == pytest.approx([1, 1], abs=0.15)


def test_a_model_without_segments_is_the_one_that_it_was() -> None:
    usual, told = (TextClassifier("add", separator=separator, seed=5, **SIZES) for separator in (None, 2))
    summed = TextClassifier("add", segments="sum", separator=2, seed=5, **SIZES).state_dict()
    assert usual.state_dict().keys() == told.state_dict().keys() == summed.keys() - {"input.segment.table"}
    for name, weight in usual.state_dict().items():
        assert torch.equal(weight, told.state_dict()[name])
        assert torch.equal(weight, summed[name])  # drawn by name: a table more shifts none


def test_what_a_token_says_depends_on_where_the_separator_stands() -> None:
    first, second = torch.tensor([[5, 6, 2, 7]]), torch.tensor([[5, 2, 6, 7]])
    lengths = torch.tensor([4])
    answers = {}
    for segments in (None, "sum", "concat"):
        model = TextClassifier("none", segments=segments, separator=2, **SIZES).eval()
        with torch.no_grad():
            torch.nn.init.normal_(model.head.weight, generator=torch.Generator().manual_seed(0))
            answers[segments] = (model(first, lengths) - model(second, lengths)).abs().max().item()
    assert answers[None] == pytest.approx(0, abs=1e-6)  # to a bag of tokens they are the same
    assert min(answers["sum"], answers["concat"]) > 1e-3


def test_segments_need_a_token_that_separates_them() -> None:
    with pytest.raises(ValueError, match="expected the token that separates them"):
        TextClassifier("add", segments="sum", **SIZES)


@pytest.mark.parametrize("segments", ["sum", "concat"])
@pytest.mark.parametrize("encoding", ["add", "concat", "none"])
def test_a_plan_counts_what_a_model_with_segments_has(encoding: str, segments: str) -> None:
    config = configure("text-pairs", encoding, tier="smoke", settings={"model.segments": segments})
    data, model = config.data, classifier(config)
    tokens = torch.zeros(1, data.max_len, dtype=torch.long)
    with model.trunk.using_kernel("matmul"):
        flops = count_flops(lambda: model.loss((tokens, torch.tensor([data.max_len]), torch.tensor([0]))))
    assert (cost(config).parameters, cost(config).flops) == (count_parameters(model), flops)
    without = cost(override(config, {"model.segments": None}))
    content = model.trunk.encoding.content_width
    own = content // 8
    more = 2 * content if segments == "sum" else 2 * own - own * data.vocab_size
    assert cost(config).parameters - without.parameters == more
    assert cost(config).flops == without.flops


def classifier(config: RunConfig) -> TextClassifier:
    sizes = {
        "d_model": config.model.d_model,
        "num_layers": config.model.num_layers,
        "num_heads": config.model.num_heads,
    }
    text = {"vocab_size": config.data.vocab_size, "max_len": config.data.max_len, "separator": 2}
    return TextClassifier(config.encoding, config.encoding_args, segments=config.model.segments, **text, **sizes)


@pytest.mark.parametrize("task", ["vit-digits", "text-order", "lm-grammar"])
def test_what_is_no_pair_has_no_segments(task: str) -> None:
    with pytest.raises(UserError, match=f"model.segments serves tasks on pairs of texts.* got {task}"):
        cost(configure(task, "add", settings={"model.segments": "sum"}))


def test_an_unknown_way_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match=r"unknown model\.segments 'none'.* Valid: concat, null, sum"):
        configure("text-pairs", "add", settings={"model.segments": "none"})
    settings = {"model.segments": "concat", "model.d_model": 3, "model.num_heads": 1}
    narrow = configure("text-pairs", "concat", settings=settings, encoding_args={"d_p": 2})
    with pytest.raises(UserError, match="two channels of content or more"):
        cost(narrow)


@pytest.mark.parametrize("segments", ["sum", "concat"])
def test_a_run_with_segments_says_so_in_its_record(
    segments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pebench.tasks.sources.check_contents", lambda *_: None)  # a small copy is not the published
    write_pairs(tmp_path / "data")
    config = configure("text-pairs", "add", tier="smoke", settings={"model.segments": segments, "train.batch_size": 4})
    record = train(config, Options(tmp_path, device="cpu", threads=1, data_dir=tmp_path / "data"))
    assert record.parameters["total"] == cost(config).parameters
    assert record.to_dict()["config"]["model"]["segments"] == segments
    assert "test/accuracy" in record.metrics
