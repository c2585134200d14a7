"""Classification of images, as patches."""

from typing import Any

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.tasks import published, sources
from pebench.tasks.base import EVERY_TENTH, Budget, Task, with_minute, with_smoke
from pebench.tasks.kinds import IMAGE_CLASSIFICATION


def _vit(name: str, **rest: Any) -> Task:
    # Factors of the side. With all of them, the images of every task are still tiled by their patches: 8, 10, 12 and 16
    # pixels by 2, 32, 40, 48 and 64 by 4.
    return Task(name=name, kind=IMAGE_CLASSIFICATION, beyond=(1.25, 1.5, 2), **rest)


def _cells(name: str, puzzle: str, summary: str, **rest: Any) -> Task:
    """Return a task on generated cells, of 64 patches."""
    model, data = ModelConfig(d_model=64, num_layers=2, num_heads=4), DataConfig(patch_size=2)
    return _vit(
        name,
        summary=f"{summary} (generated)",
        data=f"pebench.data.cells:{puzzle}",
        image=(3, 16),
        splits="different images of one generator, dealt out at random: 20,000 train, 1,000 validation, 2,000 test",
        budgets=with_minute(
            minute=Budget(model, data, TrainConfig(max_steps=1600, batch_size=64, learning_rate=3e-3, evaluations=4)),
            quick=Budget(model, data, TrainConfig(max_steps=6400, batch_size=64, learning_rate=2e-3, evaluations=10)),
        ),
        **rest,
    )


TASKS = (
    _vit(
        "vit-digits",
        summary="8x8 grey images of handwritten digits, 16 patches (embedded)",
        data="pebench.data.images:Digits",
        image=(1, 8),
        num_classes=10,
        chance=0.0585,  # digits come in turns, so the one that is most frequent in training is rare in the test split
        splits="by index modulo 5: 3 is validation, 4 is test, the rest is train",
        cite=("alpaydin1998optical",),
        budgets=with_minute(
            minute=Budget(
                ModelConfig(d_model=32, num_layers=1, num_heads=2),
                DataConfig(patch_size=2),
                TrainConfig(max_steps=200, batch_size=32, learning_rate=1e-2, evaluations=2),
            ),
            quick=Budget(
                ModelConfig(d_model=32, num_layers=2, num_heads=2),
                DataConfig(patch_size=2),
                TrainConfig(max_steps=300, batch_size=64, learning_rate=3e-3, evaluations=5),
            ),
        ),
    ),
    _vit(
        "vit-cifar10",
        summary="CIFAR-10, 32x32 colour images, 64 patches",
        data="pebench.data.images:CIFAR10",
        image=(3, 32),
        num_classes=10,
        chance=0.1,
        source=sources.CIFAR10,
        splits=EVERY_TENTH,
        cite=("krizhevsky2009learning",),
        published=published.CIFAR10,
        budgets=with_smoke(
            core=Budget(
                ModelConfig(d_model=64, num_layers=4, num_heads=2),
                DataConfig(patch_size=4),
                TrainConfig(max_steps=1500, batch_size=64, learning_rate=2e-3, evaluations=3),
            ),
            full=Budget(
                ModelConfig(d_model=192, num_layers=6, num_heads=6),
                DataConfig(patch_size=4),
                TrainConfig(max_steps=70_000, batch_size=128, learning_rate=1e-3, evaluations=20, monitor="metric"),
            ),
        ),
    ),
    _cells(
        "vit-three-cells", "ThreeCells", "Is the green or the blue cell nearer to the red one? After LOOPE",
        num_classes=2, chance=0.509, cite=("chowdhury2025loope",),
    ),
    _cells(
        "vit-relative-cell", "RelativeCell", "Which colour has the cell to which a marker points?",
        num_classes=8, chance=0.131, cite=("pebench",),
    ),
)  # fmt: skip
