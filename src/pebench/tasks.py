"""The tasks: what each one is, where its data comes from, and how long it trains at each tier. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pebench import sources
from pebench.config import DataConfig, ModelConfig, RunConfig, TrainConfig, override
from pebench.errors import UserError, unknown_name
from pebench.registry import normal_options


@dataclass(frozen=True)
class Budget:
    """Model, data and training settings of a task at one tier."""

    model: ModelConfig
    data: DataConfig
    train: TrainConfig


@dataclass(frozen=True)
class Task:
    """One data set with one metric.

    Args:
        name: ``<kind>-<data set>``.
        summary: One line for a list.
        module: Dotted path of the LightningModule.
        data: Dotted path of the LightningDataModule.
        splits: The rule by which train, validation and test are separate.
        metric: The headline metric, without its split.
        higher_is_better: The direction of the headline metric.
        select: The validation metric that chooses the weights to be tested (and its direction).
        unit: What throughput counts.
        citation: What to cite for the data.
        budgets: By tier.
        source: Where the data comes from, with the pinned revision or checksum; ``None`` if it is embedded.
        prepared_by: The data settings that the prepared tensors depend on.
    """

    name: str
    summary: str
    module: str
    data: str
    splits: str
    metric: str
    higher_is_better: bool
    unit: str
    citation: str
    budgets: dict[str, Budget] = field(repr=False)
    source: sources.Source | None = None
    prepared_by: tuple[str, ...] = ()
    select: tuple[str, str] = ("val/loss", "min")

    @property
    def embedded(self) -> bool:
        """Whether it needs no download."""
        return self.source is None

    def check_available(self, data: DataConfig, data_dir: Path | None) -> None:
        """Find out at once whether the data can be had: prepared before, at hand, or by the network.

        Raises:
            UserError: If it cannot.
        """
        if self.source is not None:
            settings = {name: getattr(data, name) for name in self.prepared_by}
            if not sources.prepared_file(self.source, self.source.title, settings, data_dir).is_file():
                sources.check_available(self.source, data_dir)


EVERY_TENTH = "validation is every tenth training example (the 10th, the 20th, ...); test is the published test split"


def _smoke(budget: Budget) -> Budget:
    """Two steps of a tiny model: does it run at all?"""
    train = replace(budget.train, max_steps=2, evaluations=1, batch_size=min(16, budget.train.batch_size))
    return replace(budget, model=ModelConfig(d_model=16, num_layers=1, num_heads=2), train=train)


def _with_smoke(**budgets: Budget) -> dict[str, Budget]:
    return {"smoke": _smoke(next(iter(budgets.values()))), **budgets}


def _short_texts(max_len: int) -> dict[str, Budget]:
    data = DataConfig(max_len=max_len, vocab_size=16_384)
    return _with_smoke(
        core=Budget(
            ModelConfig(d_model=64, num_layers=2, num_heads=2, dropout=0.1),
            data,
            TrainConfig(max_steps=2000, batch_size=64, learning_rate=1e-3, evaluations=4),
        ),
        full=Budget(
            ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.1),
            data,
            TrainConfig(max_steps=10_000, batch_size=64, learning_rate=5e-4, evaluations=20),
        ),
    )


def _vit(name: str, **rest: Any) -> Task:
    return Task(
        name=name, module="pebench.modules.vit:ViT", metric="accuracy", higher_is_better=True, unit="images", **rest
    )


def _text(name: str, **rest: Any) -> Task:
    module = "pebench.modules.text_classifier:TextClassifier"
    return Task(
        name=name, module=module, metric="accuracy", higher_is_better=True, unit="texts",
        prepared_by=("max_len", "vocab_size"), **rest,
    )  # fmt: skip


def _lm(name: str, **rest: Any) -> Task:
    module = "pebench.modules.language_model:LanguageModel"
    return Task(
        name=name, module=module, metric="bits_per_byte", higher_is_better=False, unit="windows",
        prepared_by=("vocab_size",), **rest,
    )  # fmt: skip


_ALL = (
    _vit(
        "vit-digits",
        summary="8x8 grey images of handwritten digits, 16 patches (embedded)",
        data="pebench.data.images:Digits",
        splits="by index modulo 5: 3 is validation, 4 is test, the rest is train",
        citation="E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998",
        budgets=_with_smoke(
            quick=Budget(
                ModelConfig(d_model=32, num_layers=2, num_heads=2),
                DataConfig(patch_size=2),
                TrainConfig(max_steps=300, batch_size=64, learning_rate=3e-3, evaluations=5),
            )
        ),
    ),
    _vit(
        "vit-cifar10",
        summary="CIFAR-10, 32x32 colour images, 64 patches",
        data="pebench.data.images:CIFAR10",
        source=sources.CIFAR10,
        splits=EVERY_TENTH,
        citation="A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        budgets=_with_smoke(
            core=Budget(
                ModelConfig(d_model=64, num_layers=4, num_heads=2),
                DataConfig(patch_size=4),
                TrainConfig(max_steps=1500, batch_size=64, learning_rate=2e-3, evaluations=3),
            ),
            full=Budget(
                ModelConfig(d_model=192, num_layers=6, num_heads=6),
                DataConfig(patch_size=4),
                TrainConfig(max_steps=70_000, batch_size=128, learning_rate=1e-3, evaluations=20),
            ),
        ),
    ),
    _text(
        "text-order",
        summary="Rhyme schemes: AABB, ABAB or ABBA; the label depends on order alone (embedded)",
        data="pebench.data.text:Order",
        splits="different texts of one generator, dealt out at random: 8,000 train, 1,000 validation, 2,000 test",
        citation="pebench",
        budgets=_with_smoke(
            quick=Budget(
                ModelConfig(d_model=64, num_layers=1, num_heads=4),
                DataConfig(max_len=16, vocab_size=10),
                TrainConfig(max_steps=1200, batch_size=64, learning_rate=3e-3, evaluations=5),
            )
        ),
    ),
    _text(
        "text-sst2",
        summary="SST-2, sentiment of phrases, short",
        data="pebench.data.text:SST2",
        source=sources.SST2,
        splits="validation is every tenth training example; test is the published validation split (no test labels)",
        citation="R. Socher et al., EMNLP 2013; A. Wang et al., GLUE, ICLR 2019",
        budgets=_short_texts(max_len=64),
    ),
    _text(
        "text-imdb",
        summary="IMDB, sentiment of film reviews, long documents",
        data="pebench.data.text:IMDB",
        source=sources.IMDB,
        splits=EVERY_TENTH,
        citation="A. Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011",
        budgets=_with_smoke(
            core=Budget(
                ModelConfig(d_model=64, num_layers=2, num_heads=2),
                DataConfig(max_len=512, vocab_size=16_384),
                TrainConfig(max_steps=700, batch_size=32, learning_rate=1e-3, evaluations=3),
            ),
            full=Budget(
                ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.1),
                DataConfig(max_len=1024, vocab_size=16_384),
                TrainConfig(max_steps=8000, batch_size=32, learning_rate=5e-4, evaluations=20),
            ),
        ),
    ),
    _text(
        "text-agnews",
        summary="AG News, four topics, short",
        data="pebench.data.text:AGNews",
        source=sources.AG_NEWS,
        splits=EVERY_TENTH,
        citation="X. Zhang, J. Zhao and Y. LeCun, Character-level Convolutional Networks, NeurIPS 2015",
        budgets=_short_texts(max_len=128),
    ),
    _lm(
        "lm-grammar",
        summary="Sentences of a small grammar with agreement across clauses (embedded)",
        data="pebench.data.language:Grammar",
        splits="three streams of one generator: 200,000 words train, 10,000 validation, 20,000 test",
        citation="pebench",
        budgets=_with_smoke(
            quick=Budget(
                ModelConfig(d_model=32, num_layers=2, num_heads=2),
                DataConfig(max_len=64, vocab_size=64),
                TrainConfig(max_steps=300, batch_size=16, learning_rate=3e-3, evaluations=5),
            )
        ),
    ),
    _lm(
        "lm-shakespeare",
        summary="Tiny Shakespeare, characters",
        data="pebench.data.language:Shakespeare",
        source=sources.SHAKESPEARE,
        splits="first 90 % of the characters train, next 5 % validation, last 5 % test",
        citation="A. Karpathy, char-rnn, 2015",
        budgets=_with_smoke(
            core=Budget(
                ModelConfig(d_model=128, num_layers=4, num_heads=4),
                DataConfig(max_len=64, vocab_size=128),
                TrainConfig(max_steps=2000, batch_size=12, learning_rate=1e-3, evaluations=8),
            ),
            full=Budget(
                ModelConfig(d_model=384, num_layers=6, num_heads=6, dropout=0.2),
                DataConfig(max_len=256, vocab_size=128),
                TrainConfig(max_steps=5000, batch_size=64, learning_rate=1e-3, evaluations=20),
            ),
        ),
    ),
    _lm(
        "lm-wikitext2",
        summary="WikiText-2, byte-pair tokens trained on its train split",
        data="pebench.data.language:WikiText2",
        source=sources.WIKITEXT2,
        splits="the published train, validation and test splits",
        citation="S. Merity et al., Pointer Sentinel Mixture Models, https://arxiv.org/abs/1609.07843",
        budgets=_with_smoke(
            core=Budget(
                ModelConfig(d_model=96, num_layers=4, num_heads=3),
                DataConfig(max_len=128, vocab_size=2048),
                TrainConfig(max_steps=1500, batch_size=16, learning_rate=2e-3, evaluations=3),
            ),
            full=Budget(
                ModelConfig(d_model=256, num_layers=6, num_heads=8, dropout=0.1),
                DataConfig(max_len=256, vocab_size=8192),
                TrainConfig(max_steps=10_000, batch_size=32, learning_rate=1e-3, evaluations=20),
            ),
        ),
    ),
)

TASKS: dict[str, Task] = {task.name: task for task in _ALL}


def find_task(name: str) -> Task:
    """The task called `name`.

    Raises:
        UserError: Where there is none, with the nearest name.
    """
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]


def default_tier(task: Task) -> str:
    """What a user means who names no tier: quick where the task is embedded, else core."""
    return "quick" if task.embedded else "core"


def configure(
    task: str,
    encoding: str,
    seed: int = 0,
    tier: str | None = None,
    settings: Mapping[str, Any] | None = None,
    encoding_args: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The configuration of one run: the task's budget at a tier, with some fields replaced.

    Args:
        task: Name of a task.
        encoding: Name of an encoding.
        seed: From 0.
        tier: One of the task's tiers; ``None`` takes the default.
        settings: Dotted names to values: ``{"train.max_steps": 10}``.
        encoding_args: Options of the encoding.

    Raises:
        UserError: For anything that does not exist or cannot work.
    """
    card = find_task(task)
    tier = tier or default_tier(card)
    if tier not in card.budgets:
        valid = ", ".join(card.budgets)
        raise UserError(f"task {task!r} has no tier {tier!r}. Valid for it: {valid}.")
    encoding_args = normal_options(encoding, encoding_args or {})
    budget = card.budgets[tier]
    config = RunConfig(
        task=task, encoding=encoding, seed=seed, tier=tier, encoding_args=encoding_args,
        model=budget.model, data=budget.data, train=budget.train,
    )  # fmt: skip
    return override(config, settings or {})
