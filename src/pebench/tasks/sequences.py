"""Sequence tasks that isolate position, generated and with their lengths beyond the trained one."""

from typing import Any

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.tasks.base import Budget, Task, with_minute
from pebench.tasks.kinds import SEQUENCE_TASK

LENGTH = 32
"""Tokens of the longest sequence in training."""


def _sequences(name: str, puzzle: str, summary: str, vocab_size: int, steps: int = 1000, **rest: Any) -> Task:
    data = DataConfig(max_len=LENGTH, vocab_size=vocab_size)
    model = ModelConfig(d_model=64, num_layers=2, num_heads=4)
    return Task(
        name=f"seq-{name}",
        summary=f"{summary} (generated)",
        data=f"pebench.data.puzzles:{puzzle}",
        kind=SEQUENCE_TASK,
        splits="different sequences of one generator, dealt out at random: 20,000 train, 1,000 validation; 2,000 of "
        "the full length test",
        beyond=(2, 4, 8),
        prepared_by=("max_len", "vocab_size"),
        budgets=with_minute(
            minute=Budget(model, data, TrainConfig(max_steps=steps, batch_size=64, learning_rate=3e-3, evaluations=4)),
            quick=Budget(
                model, data, TrainConfig(max_steps=4 * steps, batch_size=64, learning_rate=2e-3, evaluations=10)
            ),
        ),
        **rest,
    )


TASKS = (
    _sequences(
        "copy", "Copy", "Copy a sequence of letters",
        vocab_size=12, steps=500, chance=0.1, cite=("kazemnejad2023impact",),
    ),
    _sequences(
        "reverse", "Reverse", "Say a sequence of letters backwards",
        vocab_size=12, steps=500, chance=0.1, cite=("kazemnejad2023impact",),
    ),
    _sequences(
        "lookup-index", "LookUpIndex", "Which letter is the i-th from the beginning?",
        vocab_size=24, chance=0.1, cite=("pebench",),
    ),
    _sequences(
        "lookup-offset", "LookUpOffset", "Which letter stands k tokens before?",
        vocab_size=24, chance=0.1, cite=("pebench",),
    ),
    _sequences(
        "what-where", "WhatWhere", "Which token stands k tokens from a given mark? Indirect indexing, as of PoPE",
        vocab_size=26, steps=2000, chance=0.073, cite=("gopalakrishnan2025decoupling",),
    ),
    _sequences(
        "recall", "Recall", "Which value came with a key? Multi-query associative recall",
        vocab_size=50, chance=0.0625, cite=("arora2024zoology",),
    ),
    _sequences(
        "flip-flop", "FlipFlop", "Read the bit that was last written",
        vocab_size=7, chance=0.5, cite=("liu2023exposing",),
    ),
    _sequences(
        "parity", "Parity", "The parity of all bits so far",
        vocab_size=5, chance=0.5, cite=("merrill2024illusion",),
    ),
    _sequences(
        "a5", "A5", "The product of all permutations so far, in the group A5",
        vocab_size=63, steps=2000, chance=0.037,  # above 1/60, as few products can stand early in a sequence
        cite=("merrill2024illusion",),
    ),
)  # fmt: skip
