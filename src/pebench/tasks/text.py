"""Classification of texts, short and long."""

from typing import Any

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.tasks import published, sources
from pebench.tasks.base import EVERY_TENTH, Budget, Task, with_minute, with_smoke
from pebench.tasks.kinds import TEXT_CLASSIFICATION


def _short_texts(max_len: int, train: TrainConfig) -> dict[str, Budget]:
    data = DataConfig(max_len=max_len, vocab_size=16_384)
    return with_smoke(
        core=Budget(ModelConfig(d_model=64, num_layers=2, num_heads=2, dropout=0.1), data, train),
        full=Budget(
            ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.1),
            data,
            TrainConfig(max_steps=10_000, batch_size=64, learning_rate=5e-4, evaluations=20, monitor="metric"),
        ),
    )


# Accuracy still rises where training goes on after the lowest validation loss: there it chooses the weights.
SHORT = TrainConfig(max_steps=1000, batch_size=64, learning_rate=4e-3, evaluations=10, monitor="metric")
# Pages of protocol 0.1 name settings that are not the budget's, and so need the budget as it was.
SHORT_BEFORE = TrainConfig(max_steps=2000, batch_size=64, learning_rate=1e-3, evaluations=4)


def _text(name: str, **rest: Any) -> Task:
    # Both change the tensors that are kept: texts are cut to the length, and words beyond the vocabulary are unknown.
    return Task(name=name, kind=TEXT_CLASSIFICATION, prepared_by=("max_len", "vocab_size"), **rest)


TASKS = (
    _text(
        "text-order",
        summary="Rhyme schemes: AABB, ABAB or ABBA; the label depends on order alone (embedded)",
        data="pebench.data.text:Order",
        num_classes=3,
        # Of a test split: the share of the class that is the most frequent one in training. So below.
        chance=0.325,
        splits="different texts of one generator, dealt out at random: 8,000 train, 1,000 validation, 2,000 test",
        cite=("pebench",),
        budgets=with_minute(
            minute=Budget(
                ModelConfig(d_model=64, num_layers=1, num_heads=4),
                DataConfig(max_len=16, vocab_size=10),
                TrainConfig(max_steps=600, batch_size=64, learning_rate=4e-3, evaluations=2),
            ),
            quick=Budget(
                ModelConfig(d_model=64, num_layers=1, num_heads=4),
                DataConfig(max_len=16, vocab_size=10),
                TrainConfig(max_steps=1200, batch_size=64, learning_rate=3e-3, evaluations=5),
            ),
        ),
    ),
    _text(
        "text-sst2",
        summary="SST-2, sentiment of phrases and sentences, short",
        data="pebench.data.text:SST2",
        num_classes=2,
        chance=0.5092,
        source=sources.SST2,
        splits=(
            "validation is every tenth sentence of the training split, with its phrases; test is the published "
            "validation split (no test labels)"
        ),
        splits_before={
            "0.1": "validation is every tenth text of the training split, which most often is part of another that "
            "trains; test is the published validation split (no test labels)"
        },
        cite=("socher2013recursive", "wang2019glue"),
        published=published.SST2,
        budgets=_short_texts(64, SHORT),
        budgets_before={"0.1": _short_texts(64, SHORT_BEFORE)},
    ),
    _text(
        "text-pairs",
        summary="WikiText-2, does the second paragraph follow the first? (BERT's own task)",
        data="pebench.data.pairs:WikiText2Pairs",
        num_classes=2,
        chance=0.5,
        source=sources.WIKITEXT2_PAIRS,
        separator=2,  # after those for padding and unknown words
        splits="the published train, validation and test splits, which have articles of their own",
        cite=("merity2017pointer", "devlin2019bert"),
        budgets=with_smoke(
            core=Budget(
                ModelConfig(d_model=64, num_layers=2, num_heads=2, dropout=0.1),
                DataConfig(max_len=128, vocab_size=16_384),
                TrainConfig(max_steps=4000, batch_size=32, learning_rate=2e-3, evaluations=5, monitor="metric"),
            ),
            full=Budget(
                ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.1),
                DataConfig(max_len=256, vocab_size=16_384),
                TrainConfig(max_steps=10_000, batch_size=64, learning_rate=5e-4, evaluations=20, monitor="metric"),
            ),
        ),
    ),
    _text(
        "text-imdb",
        summary="IMDB, sentiment of film reviews, long documents",
        data="pebench.data.text:IMDB",
        num_classes=2,
        chance=0.5,
        source=sources.IMDB,
        splits=EVERY_TENTH,
        cite=("maas2011learning",),
        published=published.IMDB,
        budgets=with_smoke(
            core=Budget(
                ModelConfig(d_model=64, num_layers=2, num_heads=2),
                DataConfig(max_len=512, vocab_size=16_384),
                TrainConfig(max_steps=700, batch_size=32, learning_rate=1e-3, evaluations=3),
            ),
            full=Budget(
                ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.1),
                DataConfig(max_len=1024, vocab_size=16_384),
                TrainConfig(max_steps=8000, batch_size=32, learning_rate=5e-4, evaluations=20, monitor="metric"),
            ),
        ),
    ),
    _text(
        "text-agnews",
        summary="AG News, four topics, short",
        data="pebench.data.text:AGNews",
        num_classes=4,
        chance=0.25,
        source=sources.AG_NEWS,
        splits=EVERY_TENTH,
        cite=("zhang2015character",),
        published=published.AG_NEWS,
        budgets=_short_texts(128, SHORT),
    ),
    _text(
        "text-20newsgroups",
        summary="20 Newsgroups, twenty topics, posts without headers, footers and quotes",
        data="pebench.data.text:Newsgroups",
        num_classes=20,
        chance=0.0527,
        source=sources.NEWSGROUPS,
        splits=EVERY_TENTH,
        cite=("lang1995newsweeder",),
        budgets=with_smoke(
            core=Budget(
                ModelConfig(d_model=64, num_layers=2, num_heads=2, dropout=0.1),
                DataConfig(max_len=256, vocab_size=16_384),
                TrainConfig(max_steps=1000, batch_size=32, learning_rate=2e-3, evaluations=4, monitor="metric"),
            ),
            full=Budget(
                ModelConfig(d_model=128, num_layers=4, num_heads=4, dropout=0.1),
                DataConfig(max_len=512, vocab_size=16_384),
                TrainConfig(max_steps=8000, batch_size=32, learning_rate=5e-4, evaluations=20, monitor="metric"),
            ),
        ),
    ),
)
