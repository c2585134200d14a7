"""The test split at other lengths and resolutions: the same tokens, the same images, the same weights."""

import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from matplotlib.colors import to_rgb
from torch.nn import functional as F

from pebench.config import Options, RunConfig
from pebench.data import datamodule_of
from pebench.data.batches import IGNORE, Texts, Windows
from pebench.data.images import shuffle_patches
from pebench.encodings.base import grid_positions
from pebench.errors import UserError
from pebench.models import ViT
from pebench.models.base import SequenceModule
from pebench.results import grids
from pebench.results.figures import extrapolation
from pebench.results.figures.style import MUTED
from pebench.results.tables import build_tables
from pebench.runs.records import Record
from pebench.tasks import configure
from pebench.training.runner import build, train


def smoke(task: str, encoding: str, seed: int = 0, **settings: Any) -> RunConfig:
    return configure(task, encoding, seed, "smoke", {f"train.{name}": value for name, value in settings.items()})


def sizes(record: Record) -> set[str]:
    return {name.partition("@")[2] for name in record.metrics if "@" in name}


@pytest.mark.parametrize(("total", "length", "stride"), [(40, 8, 4), (41, 8, 4), (43, 8, 6), (5, 8, 4), (24, 8, 8)])
def test_windows_that_overlap_ask_for_every_token_once(total, length, stride):
    data = Windows(torch.arange(total), length, stride)
    _, targets = data[torch.arange(len(data))]
    assert sorted(targets[targets != IGNORE].tolist()) == list(range(1, total))
    asked = [int((row != IGNORE).nonzero()[0]) for row in targets]
    assert asked == [0] + [length - stride] * (len(data) - 1)  # with as much before it as the window allows


def weigh(module: SequenceModule, text: torch.Tensor, length: int, stride: int = 0) -> float:
    """Mean loss over the text's tokens, each asked once in windows of a length, in nats."""
    total, count, asked = 0.0, len(text) - 1, 0
    with torch.no_grad():
        for start in range(0, count, stride or length):
            part = text[start : start + length + 1]
            losses = F.cross_entropy(module(part[None, :-1])[0], part[1:], reduction="none")[asked - start :]
            total, asked = total + losses.sum().item(), start + len(part) - 1
            if asked == count:
                break
    return total / count


def test_a_language_model_is_asked_for_the_same_tokens_in_longer_windows(tmp_path, monkeypatch):
    seen: list[SequenceModule] = []
    real = SequenceModule.on_test_epoch_end
    monkeypatch.setattr(SequenceModule, "on_test_epoch_end", lambda self: (seen.append(self), real(self)))
    record = train(smoke("lm-grammar", "rope", max_steps=20), Options(tmp_path, device="cpu", threads=1))
    data = datamodule_of(record.config)
    data.prepare_data()
    data.setup()
    text = data.prepared.tensors["test"].long()
    assert sizes(record) == {"sliding", "2x", "4x"}
    assert record.metrics["test/loss"] == pytest.approx(weigh(seen[0], text, 64), rel=1e-4)
    assert record.metrics["test/loss@2x"] == pytest.approx(weigh(seen[0], text, 128), rel=1e-4)
    assert record.metrics["test/loss@4x"] == pytest.approx(weigh(seen[0], text, 256), rel=1e-4)
    assert record.metrics["test/loss@sliding"] == pytest.approx(weigh(seen[0], text, 64, stride=32), rel=1e-4)
    assert record.metrics["test/loss@sliding"] != pytest.approx(record.metrics["test/loss"], rel=3e-4)
    ratio = record.metrics["test/bits_per_byte@2x"] / record.metrics["test/bits_per_byte"]
    assert ratio == pytest.approx(record.metrics["test/loss@2x"] / record.metrics["test/loss"], rel=1e-4)


def test_an_encoding_that_refuses_other_sizes_has_the_control_alone(tmp_path, caplog):
    assert sizes(train(smoke("lm-grammar", "learned"), Options(tmp_path, device="cpu", threads=1))) == {"sliding"}
    assert sizes(train(smoke("vit-digits", "learned"), Options(tmp_path, device="cpu", threads=1))) == {"shuffled"}
    assert "nothing was measured" not in caplog.text  # which is no news of a table


def test_an_encoding_that_refuses_some_sizes_is_measured_at_the_others(tmp_path):
    config = configure("lm-grammar", "randomized", 0, "smoke", encoding_args={"times": 2})
    assert sizes(train(config, Options(tmp_path, device="cpu", threads=1))) == {"sliding", "2x"}


def test_images_are_enlarged_and_their_patches_numbered_on(tmp_path):
    record = train(smoke("vit-digits", "rope"), Options(tmp_path, device="cpu", threads=1))
    assert sizes(record) == {"shuffled", "1.25x", "1.5x", "2x"}
    data = datamodule_of(record.config)
    module = build(record.config, data).eval()
    _, (label, loader) = data.beyond((1.5,))
    images, labels = data.on_after_batch_transfer(next(iter(loader)), 0)
    assert (label, images.shape[1:]) == ("1.5x", (1, 12, 12))
    assert torch.equal(labels, data.prepared.tensors["test_labels"][: len(labels)])
    assert images.mean().item() == pytest.approx(0.0, abs=0.2)
    torch.nn.init.normal_(module.head.weight)
    with torch.no_grad():
        told = module(images, grid_positions((6, 6)))
        assert torch.equal(module(images), told)
        assert not torch.equal(module(images, grid_positions((6, 6)) * 0.5), told)
    with pytest.raises(ValueError, match="patches of side 2 tile"):
        module(images[..., :11])


def test_images_that_are_not_square_have_rows_and_columns():
    module = ViT("add", image_size=8, patch_size=2, channels=1, num_classes=3, d_model=16, num_layers=1, num_heads=2)
    torch.nn.init.normal_(module.eval().head.weight)
    images = torch.randn(2, 1, 12, 8)
    assert torch.equal(module(images), module(images, grid_positions((6, 4))))


def test_a_run_whose_encoding_breaks_there_is_kept(tmp_path, monkeypatch):
    from pebench.encodings.rope import RotaryEncoding

    real = RotaryEncoding.prepare

    def prepare(self, positions):
        if len(positions) > self.spec.max_len:
            raise IndexError("too long")
        return real(self, positions)

    monkeypatch.setattr(RotaryEncoding, "prepare", prepare)
    record = train(smoke("lm-grammar", "rope"), Options(tmp_path, device="cpu", threads=1))
    assert record.ok
    assert sizes(record) == {"sliding"}


def test_memory_of_a_size_that_does_not_fit_is_free_for_what_follows(tmp_path, monkeypatch):
    from pebench.encodings.rope import RotaryEncoding

    real, biases, freed = RotaryEncoding.prepare, [], []

    def prepare(self, positions):
        if len(positions) > self.spec.max_len:
            bias = torch.zeros(8)
            biases.append(weakref.ref(bias))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, positions)

    monkeypatch.setattr(RotaryEncoding, "prepare", prepare)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: freed.extend(bias() is None for bias in biases))
    record = train(smoke("lm-grammar", "rope"), Options(tmp_path, device="cpu", threads=1))
    assert sizes(record) == {"sliding"}
    assert freed[:3] == [True] * 3  # after 2x and after 4x, once the errors no longer hold what they had made


def test_a_loss_that_is_infinite_there_is_left_out_and_the_run_is_kept(tmp_path, monkeypatch, caplog):
    real = ViT.forward

    def forward(self, images, positions=None):
        logits = real(self, images, positions)
        return logits.sign() * 3e38 if images.shape[-1] > self.image_size else logits

    monkeypatch.setattr(ViT, "forward", forward)
    record = train(smoke("vit-digits", "rope"), Options(tmp_path, device="cpu", threads=1))
    assert record.ok
    told = {name for name in record.metrics if "@" in name}
    assert told == {f"test/accuracy@{size}" for size in ("shuffled", "1.25x", "1.5x", "2x")} | {"test/loss@shuffled"}
    assert "nothing was measured at 1.5x: test/loss is inf" in caplog.text


def test_a_run_that_selects_sees_no_test_split_of_any_size(tmp_path):
    config = replace(smoke("lm-grammar", "rope"), stage="select", selected=("train.learning_rate",))
    assert not sizes(train(config, Options(tmp_path, device="cpu", threads=1)))


def test_an_image_is_enlarged_only_to_whole_patches(tmp_path):
    config = configure("vit-digits", "rope", 0, "smoke", {"data.patch_size": 8})
    assert sizes(train(config, Options(tmp_path, device="cpu", threads=1))) == {"2x", "shuffled"}


def test_sizes_are_a_table_and_a_picture():
    records = [
        Record(smoke("vit-digits", name, seed), metrics={"test/accuracy": 0.5, **more})
        for name, more in (("add", {"test/accuracy@1.5x": 0.25, "test/accuracy@2x": 0.125}), ("learned", {}))
        for seed in (0, 1)
    ]
    (table,) = build_tables(records)
    grid = grids.extrapolation(table)
    assert [*grid] == ["Encoding", "accuracy % ↑ at 1x", "at 1.5x", "at 2x"]
    assert grid["at 2x"].texts == ["12.50 ± 0.00", grids.NOTHING]
    axes = extrapolation.draw(table).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1x", "1.5x", "2x"]
    assert axes.lines[0].get_ydata().tolist() == [50.0, 25.0, 12.5]
    (dotted,) = (line for line in axes.lines if line.get_linestyle() == ":")
    assert [*dotted.get_xdata()] == [1.0, 1.0]  # the trained size
    assert to_rgb(dotted.get_color()) == to_rgb(MUTED)
    (plain,) = build_tables(records[2:])
    assert not grids.extrapolation(plain)
    assert extrapolation.draw(plain) is None


def test_a_size_that_some_runs_lack_or_diverge_at_says_how_many_it_is_of():
    sizes = [{"test/accuracy@2x": value} for value in (0.25, 0.5, float("nan"))] + [{}]
    records = [
        Record(smoke("vit-digits", "add", seed), metrics={"test/accuracy": 0.5, **more})
        for seed, more in enumerate(sizes)
    ]
    (table,) = build_tables([*records, Record(smoke("vit-digits", "add", 9), metrics=sizes[0], status="failed")])
    assert grids.extrapolation(table)["at 2x"].texts == ["37.50 ± 158.83 (n=2)"]  # 12.706 times 12.5


@pytest.mark.parametrize("encoding", ["learned", "axial-learned", "swin-bias", "concat"])
def test_tables_are_interpolated_where_an_encoding_refuses_and_a_run_asks_for_it(tmp_path, monkeypatch, encoding):
    seen: list[tuple[str, tuple[int, ...]]] = []
    real = ViT.resized

    def resized(self: ViT, **how: Any) -> ViT:
        seen.append((how["interpolation"], how["image_size"]))
        return real(self, **how)

    monkeypatch.setattr(ViT, "resized", resized)
    options = {"table": "learned"} if encoding == "concat" else {}
    config = configure("vit-digits", encoding, 0, "smoke", {"train.interpolate": "bicubic"}, options)
    record = train(config, Options(tmp_path, device="cpu", threads=1))
    assert seen == [("bicubic", side) for side in (10, 12, 16)]
    assert sizes(record) == {"shuffled", "1.25x", "1.5x", "2x"}
    assert record.beyond == {"policy": "interpolates"}


def test_longer_texts_have_interpolated_tables(tmp_path):
    config = smoke("lm-grammar", "learned", interpolate="linear")
    record = train(config, Options(tmp_path, device="cpu", threads=1))
    assert sizes(record) == {"sliding", "2x", "4x"}
    assert {*record.beyond["by_position"]} == {"bits_per_byte@2x", "bits_per_byte@4x"}
    assert record.metrics["test/loss@sliding"] == pytest.approx(3.55, abs=0.3)


@pytest.mark.parametrize("encoding", ["rope", "deberta"])
def test_an_encoding_that_goes_on_is_never_interpolated(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(SequenceModule, "resized", None)
    record = train(smoke("lm-grammar", encoding, interpolate="linear"), Options(tmp_path, device="cpu", threads=1))
    assert sizes(record) == {"sliding", "2x", "4x"}
    assert record.beyond["policy"] == "goes on"


@pytest.mark.parametrize("of", ["add", "concat"])  # the second would have a table with another option
def test_one_without_tables_still_refuses(tmp_path, caplog, of):
    config = configure("vit-digits", "permuted", 0, "smoke", {"train.interpolate": "linear"}, {"of": of})
    record = train(config, Options(tmp_path, device="cpu", threads=1))
    assert (sizes(record), record.beyond) == ({"shuffled"}, {"policy": "refuses"})
    assert "nothing was measured" not in caplog.text


def test_interpolation_is_a_part_of_the_key_alone_where_it_is_asked_for():
    assert smoke("vit-digits", "learned", interpolate=None).key == smoke("vit-digits", "learned").key
    assert smoke("vit-digits", "learned", interpolate="linear").key != smoke("vit-digits", "learned").key
    with pytest.raises(UserError, match=r"train\.interpolate"):
        smoke("vit-digits", "learned", interpolate="cubic")


def test_a_page_tells_the_policy_where_a_record_does():
    records = [
        Record(smoke("vit-digits", name), metrics={"test/accuracy": 0.5, "test/accuracy@shuffled": 0.1}, beyond=beyond)
        for name, beyond in (("add", {"policy": "goes on"}), ("learned", {"policy": "refuses"}), ("rope", {}))
    ]
    (table,) = build_tables(records)
    assert grids.extrapolation(table)["policy"].texts == ["goes on", "refuses", grids.NOTHING]
    (older,) = build_tables(records[2:])
    assert "policy" not in grids.extrapolation(older)


@pytest.mark.slow
def test_without_an_encoding_a_classifier_does_not_see_that_its_input_is_shuffled(tmp_path):
    for task in ("text-order", "vit-digits"):
        metrics = train(smoke(task, "none", max_steps=40), Options(tmp_path, device="cpu", threads=1)).metrics
        assert metrics["test/accuracy@shuffled"] == pytest.approx(metrics["test/accuracy"], abs=0.002)
    metrics = train(
        configure("text-order", "add", 0, None, {"train.max_steps": 600}), Options(tmp_path, threads=1)
    ).metrics
    assert metrics["test/accuracy"] - metrics["test/accuracy@shuffled"] > 0.1


def test_shuffled_texts_have_the_same_tokens_in_another_order():
    lengths = torch.tensor([5, 1, 40])
    texts = Texts(torch.arange(46), lengths, torch.tensor([0, 1, 0]))
    shuffled = texts.shuffled()
    for index in range(3):
        before, after = (data[torch.tensor([index])][0][0] for data in (texts, shuffled))
        assert sorted(after.tolist()) == before.tolist()
    assert not torch.equal(shuffled.tokens, texts.tokens)
    assert torch.equal(shuffled.tokens, texts.shuffled().tokens)
    assert torch.equal(shuffled.labels, texts.labels)


def test_shuffled_images_have_the_same_patches_in_another_order():
    images = torch.arange(2 * 3 * 8 * 8).view(2, 3, 8, 8)
    shuffled = shuffle_patches(images, 4, torch.Generator().manual_seed(0))
    assert not torch.equal(shuffled, images)
    for before, after in zip(images, shuffled, strict=True):
        patches = [
            sorted(image[:, y : y + 4, x : x + 4].flatten().tolist() for y in (0, 4) for x in (0, 4))
            for image in (before, after)
        ]
        assert patches[0] == patches[1]


def test_images_are_enlarged_by_bilinear_interpolation():
    data = datamodule_of(smoke("vit-digits", "rope"))
    data.prepare_data()
    data.setup()
    _, (label, loader) = data.beyond((2,))
    images, _ = next(iter(loader))
    small = data.prepared.tensors["test_images"][: len(images)].float()
    assert (label, images.dtype) == ("2x", torch.uint8)
    torch.testing.assert_close(images.float(), F.interpolate(small, scale_factor=2, mode="bilinear"), atol=1, rtol=0)


def test_each_image_is_shuffled_in_an_order_of_its_own():
    images = torch.arange(64).view(1, 1, 8, 8).expand(9, -1, -1, -1)
    shuffled = shuffle_patches(images, 2, torch.Generator().manual_seed(0))
    assert len(shuffled.flatten(1).unique(dim=0)) == 9


def test_what_is_measured_beyond_training_drops_no_channel(tmp_path, monkeypatch):
    modes: set[bool] = set()
    update = ViT.update
    monkeypatch.setattr(ViT, "update", lambda self, *what: (modes.add(self.training), update(self, *what)))
    train(smoke("vit-digits", "rope"), Options(tmp_path, device="cpu", threads=1))
    assert modes == {False}
