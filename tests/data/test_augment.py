"""Augmentation: torchvision's operations, a function of seed and step alone, of training images alone."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor
from torchvision.transforms import v2

from pebench.config import Augmentation
from pebench.data import datamodule_of
from pebench.data.augment import Draws, change_bytes, change_floats, erased, mixed
from pebench.data.base import TensorDataModule
from pebench.data.randaugment import OPERATIONS, rand_augment
from pebench.errors import UserError
from pebench.models import ViT
from pebench.runs.costs import cost
from pebench.tasks import configure, find_task
from tests.data.copies import load, seeded

ALL = Augmentation("2@9", mixup=0.8, cutmix=1.0, erasing=0.25, label_smoothing=0.1)
SETTINGS = {f"train.{name}": value for name, value in vars(ALL).items()}


def smooth(count: int, channels: int, side: int) -> Tensor:
    """Images of which neighbouring pixels resemble each other; one has one level, another lacks the bright ones."""
    noisy = torch.rand((count, channels, side, side), generator=seeded(0), dtype=torch.float32)
    images = (256 * torch.nn.functional.avg_pool2d(noisy, 3, 1, 1)).to(torch.uint8)
    images[0], images[1] = 7, images[1] // 4
    return images


@pytest.mark.parametrize("magnitude", [0, 9, 14])
@pytest.mark.parametrize(("channels", "side"), [(3, 32), (1, 8)])
@pytest.mark.parametrize("place", range(len(OPERATIONS)), ids=OPERATIONS)
def test_an_operation_is_torchvisions_on_each_image(place: int, channels: int, side: int, magnitude: int) -> None:
    name, images, theirs = OPERATIONS[place], smooth(12, channels, side), v2.RandAugment()
    strengths, two_ways = theirs._AUGMENTATION_SPACE[name]
    steps = strengths(31, side, side)
    for sign in (-1, 1):
        amount = 0.0 if steps is None else float(steps[magnitude]) * (sign if two_ways else 1)
        expected = torch.stack(
            [
                theirs._apply_image_or_video_transform(x, name, amount, theirs.interpolation, theirs._fill)
                for x in images
            ]
        )
        made = rand_augment(images, torch.full((1, 12), place), torch.full((1, 12), sign), magnitude)
        # Where a blend is a whole number, rounding decides which of two levels is taken: all of the image of one level.
        assert (made.int() - expected.int()).abs().max() <= (name in OPERATIONS[6:10])
        assert (made[1:] != expected[1:]).double().mean() < 0.03


def test_the_operations_are_all_of_torchvisions_in_its_order() -> None:
    assert tuple(v2.RandAugment._AUGMENTATION_SPACE) == OPERATIONS


def test_each_image_has_operations_of_its_own_one_after_the_other() -> None:
    images, count = smooth(60, 3, 16), 60
    kinds = torch.randint(0, len(OPERATIONS), (2, count), generator=seeded(1))
    signs = 2 * torch.randint(0, 2, (2, count), generator=seeded(2)) - 1
    alone = images.clone()
    for row in range(2):
        for i in range(count):
            alone[i : i + 1] = rand_augment(alone[i : i + 1], kinds[row, i].view(1, 1), signs[row, i].view(1, 1), 9)
    assert torch.equal(rand_augment(images, kinds, signs, 9), alone)
    assert torch.equal(images, smooth(60, 3, 16))  # the argument is left alone


def draws(count: int, step: int = 0, share: tuple[int, int] = (0, 1)) -> Draws:
    return Draws(0, step, count, share)


def test_rand_augment_draws_every_operation_and_both_directions_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("pebench.data.augment.rand_augment", lambda *given: seen.append(given))
    change_bytes(smooth(2800, 1, 2), Augmentation("3@5"), draws(2800))
    _, operations, signs, magnitude = seen[0]
    assert operations.shape == signs.shape == (3, 2800)
    assert magnitude == 5
    assert {*signs.flatten().tolist()} == {-1, 1}
    counts = (operations.flatten() * 2 + (signs.flatten() > 0)).bincount(minlength=28)
    assert 240 < counts.min() <= counts.max() < 360  # 300 are expected, with a standard deviation of 17


def test_erasing_takes_a_rectangle_of_the_asked_size_from_a_share_of_the_images() -> None:
    gone = erased(torch.ones(2000, 3, 32, 32), 0.25, draws(2000)) == 0
    assert torch.equal(gone[:, 0], gone[:, 2])
    gone = gone[:, 0]
    rows, columns = gone.any(2).sum(1), gone.any(1).sum(1)
    assert torch.equal(rows * columns, gone.sum((1, 2)))  # a rectangle, with nothing left in it
    hit = rows > 0
    assert 0.2 < hit.double().mean() < 0.3
    area, ratio = gone.sum((1, 2))[hit] / 32**2, rows[hit] / columns[hit]
    assert 0.01 < area.min() < 0.05 < 0.3 < area.max() < 0.36
    assert 0.2 < ratio.min() < 0.5 < 2 < ratio.max() < 5
    assert not erased(torch.ones(2000, 3, 32, 32), 1.0, draws(2000))[:, 0].flatten(1).all(1).any()


@pytest.mark.parametrize(
    ("area", "ratio", "height", "width"),
    [
        ([0, 0], [0, 0], 8, 26),  # 0.02 of 10,000 pixels, 0.3 times as high as wide
        ([0, 0], [1, 1], 26, 8),
        ([1, 1], [0.5, 0.5], 57, 58),  # 0.33 of them
        ([1, 0], [0, 1], 26, 8),  # the first, 31 high and 105 wide, does not fit
    ],
)
def test_a_rectangle_that_is_erased_is_as_drawn(area: list[float], ratio: list[float], height: int, width: int) -> None:
    drawn = iter([[*area, *[0] * 8], [*ratio, *[0] * 8], [0, 0.999, 0.999]])
    given = SimpleNamespace(
        noise=lambda purpose: None,
        uniform=lambda noise, rows: torch.tensor(next(drawn), dtype=torch.float64)[:rows, None],
    )
    gone = erased(torch.ones(1, 1, 100, 100), 1.0, given)[0, 0] == 0
    expected = torch.zeros(100, 100, dtype=torch.bool)
    expected[-height:, -width:] = True  # of all places the last
    assert torch.equal(gone, expected)


def mixture(asked: Augmentation, count: int = 2000) -> tuple[Tensor, Tensor]:
    """The share of each image's own pixels, and that of its label; the first half is white, the other black."""
    images = torch.zeros(count, 1, 32, 32)
    images[: count // 2] = 1
    made, labels = mixed(
        images, torch.nn.functional.one_hot((images[:, 0, 0, 0] < 1).long()).float(), asked, draws(count)
    )
    own = torch.cat([made[: count // 2], 1 - made[count // 2 :]])[:, 0]
    return own, torch.cat([labels[: count // 2, 0], labels[count // 2 :, 1]])


def test_mixup_weights_images_and_labels_alike() -> None:
    own, label = mixture(Augmentation(mixup=0.8))
    torch.testing.assert_close(own, label[:, None, None].expand_as(own))
    beta = torch.distributions.Beta(0.8, 0.8)
    assert abs(label.mean() - beta.mean) < 0.03
    assert abs(label.var() - beta.variance) < 0.01


def test_cutmix_puts_a_rectangle_in_and_counts_its_pixels() -> None:
    own, label = mixture(Augmentation(cutmix=1.0))
    assert {*own.flatten().tolist()} == {0, 1}
    torch.testing.assert_close(own.mean((1, 2)), label)
    gone = own == 0
    rows, columns = gone.any(2).sum(1), gone.any(1).sum(1)
    assert torch.equal(rows * columns, gone.sum((1, 2)))
    assert gone.double().mean(0).min() > 0.1  # every place may be cut
    # torchvision's, which draws one box for a batch
    cut = v2.CutMix(alpha=1.0, num_classes=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = [
            cut(torch.arange(2.0).view(2, 1, 1, 1).expand(2, 1, 32, 32), torch.arange(2))[1][0, 0] for _ in range(500)
        ]
    assert abs(label.mean() - torch.stack(theirs).mean()) < 0.04
    assert abs(label.std() - torch.stack(theirs).std()) < 0.04


def test_with_mixup_and_cutmix_each_image_draws_one() -> None:
    own, _ = mixture(Augmentation(mixup=0.8, cutmix=1.0))
    whole = (own.flatten(1).amin(1) == own.flatten(1).amax(1)) & (own[:, 0, 0] > 0) & (own[:, 0, 0] < 1)
    assert 0.4 < whole.double().mean() < 0.6


def test_smoothed_labels_give_the_loss_of_pytorchs_label_smoothing() -> None:
    labels, logits = torch.tensor([0, 3, 2, 2]), torch.randn((4, 5), generator=seeded(0))
    _, shares = change_floats(torch.zeros(4, 1, 2, 2), labels, 5, Augmentation(label_smoothing=0.1), draws(4))
    expected = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    torch.testing.assert_close(torch.nn.functional.cross_entropy(logits, shares), expected)


@pytest.mark.parametrize("processes", [2, 4])
def test_shares_of_a_batch_are_augmented_as_in_the_batch(processes: int) -> None:
    images, labels = smooth(16, 3, 16), torch.arange(16)
    whole = change_floats(change_bytes(images, ALL, draws(16)).float(), labels, 16, ALL, draws(16))
    for rank in range(processes):
        here = draws(16 // processes, share=(rank, processes))
        part = change_bytes(images[rank::processes], ALL, here).float()
        part = change_floats(part, labels[rank::processes], 16, ALL, here)
        assert all(torch.equal(ours, all_[rank::processes]) for ours, all_ in zip(part, whole, strict=True))


def batch(data: TensorDataModule, step: int = 3, training: bool = True) -> tuple[Tensor, Tensor]:
    data.trainer = SimpleNamespace(training=training, global_step=step, global_rank=0, world_size=1)
    return data.on_after_batch_transfer(data.split("train")[0][torch.arange(16)], 0)


def of_run(tmp_path: Path, encoding: str = "add", seed: int = 0, **settings: object) -> TensorDataModule:
    load("vit-cifar10", tmp_path)  # writes the small copy
    data = datamodule_of(configure("vit-cifar10", encoding, seed, settings=settings), tmp_path / "data")
    data.model_arguments()
    return data


def test_augmented_batches_are_paired_across_encodings_and_a_function_of_seed_and_step(tmp_path: Path) -> None:
    one, rope, other = (of_run(tmp_path, *row, **SETTINGS) for row in (("add", 0), ("rope", 0), ("add", 1)))
    images, labels = batch(one)
    torch.manual_seed(5)  # as a model that is built in between would leave it
    torch.rand(9)
    again = batch(rope)
    assert torch.equal(images, again[0])
    assert torch.equal(labels, again[1])
    for different in (batch(one, step=4), batch(other)):
        assert not torch.equal(images, different[0])
        assert not torch.equal(labels, different[1])
    before = torch.random.get_rng_state()
    batch(one)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_type_that_a_16_bit_training_makes_the_default_changes_nothing(tmp_path: Path) -> None:
    data = of_run(tmp_path, **SETTINGS)
    images, labels = batch(data)
    torch.set_default_dtype(torch.bfloat16)
    try:
        again = batch(data)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(images, again[0])
    assert torch.equal(labels, again[1])


def test_each_setting_changes_training_images_in_its_own_way_and_nothing_else(tmp_path: Path) -> None:
    plain = batch(of_run(tmp_path))
    for name, value in SETTINGS.items():
        data = of_run(tmp_path, **{name: value})
        images, labels = batch(data)
        assert torch.equal(images, plain[0]) == (name == "train.label_smoothing")
        assert (labels.ndim == 1) == (name in ("train.rand_augment", "train.erasing"))
        if labels.ndim == 2:
            torch.testing.assert_close(labels.sum(1), torch.ones(16))
        images, labels = batch(data, training=False)
        assert torch.equal(images, batch(of_run(tmp_path), training=False)[0])
        assert torch.equal(labels, plain[1])


def test_a_digit_is_augmented_too_and_trains_a_model_in_any_precision(tmp_path: Path) -> None:
    data = load("vit-digits", tmp_path, augmentation=ALL)
    images, labels = batch(data)
    assert images.shape == (16, 1, 8, 8)
    model = ViT("add", image_size=8, patch_size=2, channels=1, d_model=16, num_heads=2, num_layers=1)
    expected = model.loss((images, labels))
    assert expected.isfinite()
    for kind in (torch.float64, torch.bfloat16):
        torch.testing.assert_close(model.loss((images, labels.to(kind))), expected, atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rand_augment", "2", "2@9, got '2'"), ("rand_augment", "2@31", "up to 30"), ("rand_augment", "02@9", "2@9"),
        ("rand_augment", "0@9", "2@9"), ("mixup", -0.1, "0 or more, got -0.1"), ("cutmix", float("inf"), "0 or more"),
        ("cutmix", float("nan"), "0 or more"), ("erasing", 1.5, "from 0 to 1, got 1.5"),
        ("label_smoothing", 1.0, "from 0 to below 1, got 1.0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UserError, match=f"train.{name} .*{message}"):
        configure("vit-digits", "add", settings={f"train.{name}": value})
    with pytest.raises(UserError, match=message):
        Augmentation(**{name: value})


def test_data_of_a_user_that_cannot_be_augmented_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(find_task("vit-digits"), data=TensorDataModule)
    monkeypatch.setattr("pebench.data.find_task", lambda _: task)
    with pytest.raises(UserError, match="vit-digits: its data augment no images"):
        datamodule_of(configure("vit-digits", "add", settings=SETTINGS))


@pytest.mark.parametrize("name", SETTINGS)
def test_text_is_not_augmented(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} serves tasks on images.* got text-order"):
        cost(configure("text-order", "add", settings={name: SETTINGS[name]}))
