"""Language modelling."""

from typing import Any

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.tasks import published, sources
from pebench.tasks.base import Budget, Task, with_minute, with_smoke
from pebench.tasks.kinds import LANGUAGE_MODELLING


def _lm(name: str, **rest: Any) -> Task:
    # Prepared by the vocabulary alone: tokens are one long row, which is cut to windows of any length when it is read.
    return Task(name=name, kind=LANGUAGE_MODELLING, beyond=(2, 4), prepared_by=("vocab_size",), **rest)


_PAIRS_BUDGETS = with_smoke(
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
)
"""Budgets of texts in byte pairs."""

TASKS = (
    _lm(
        "lm-grammar",
        summary="Sentences of a small grammar with agreement across clauses (embedded)",
        data="pebench.data.language:Grammar",
        # Of the best constant prediction, the frequencies of tokens in training, in bits per byte of the test split; so
        # below. `pebench verify` measures it again.
        chance=0.9239,
        splits="three streams of one generator: 200,000 words train, 10,000 validation, 20,000 test",
        cite=("pebench",),
        budgets=with_minute(
            minute=Budget(
                ModelConfig(d_model=32, num_layers=1, num_heads=2),
                DataConfig(max_len=64, vocab_size=35),
                TrainConfig(max_steps=150, batch_size=8, learning_rate=1e-2, evaluations=2),
            ),
            quick=Budget(
                ModelConfig(d_model=32, num_layers=2, num_heads=2),
                DataConfig(max_len=64, vocab_size=35),
                TrainConfig(max_steps=300, batch_size=16, learning_rate=3e-3, evaluations=5),
            ),
        ),
    ),
    _lm(
        "lm-shakespeare",
        summary="Tiny Shakespeare, characters",
        data="pebench.data.language:Shakespeare",
        chance=4.8503,
        source=sources.SHAKESPEARE,
        splits="first 90 % of the characters train, next 5 % validation, last 5 % test",
        cite=("karpathy2015charrnn",),
        published=published.SHAKESPEARE,
        budgets=with_smoke(
            core=Budget(
                # nanoGPT's recipe for a CPU; full is its recipe for a GPU. It publishes a loss for each, which a gate
                # compares ours to.
                ModelConfig(d_model=128, num_layers=4, num_heads=4),
                DataConfig(max_len=64, vocab_size=66),  # 65 characters, and one more for any other
                TrainConfig(max_steps=2000, batch_size=12, learning_rate=1e-3, evaluations=8),
            ),
            full=Budget(
                ModelConfig(d_model=384, num_layers=6, num_heads=6, dropout=0.2),
                DataConfig(max_len=256, vocab_size=66),
                TrainConfig(max_steps=5000, batch_size=64, learning_rate=1e-3, evaluations=20),
            ),
        ),
    ),
    _lm(
        "lm-wikitext2",
        summary="WikiText-2, byte-pair tokens trained on its train split",
        data="pebench.data.language:WikiText2",
        chance=2.9369,
        source=sources.WIKITEXT2,
        splits="the published train, validation and test splits",
        cite=("merity2017pointer",),
        published=published.WIKITEXT2,
        test_text=published.WIKITEXT2_TEST,
        budgets=_PAIRS_BUDGETS,
    ),
    _lm(
        "lm-imdb",
        summary="IMDB's reviews as running text, byte-pair tokens trained on its train split",
        data="pebench.data.language:ReviewText",
        chance=2.9182,
        source=sources.IMDB_TEXT,
        splits=(
            "validation is every tenth review of the published training split, test is every tenth of the published "
            "test split, and all others train but for 63 that are copies of those"
        ),
        cite=("maas2011learning",),
        budgets=_PAIRS_BUDGETS,
    ),
)
