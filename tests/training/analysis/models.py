"""Small models and captures with a known answer, which the tests of measures share."""

import torch
from torch import Tensor

from pebench.models import LanguageModel, TextClassifier
from pebench.training.analysis.capture import Capture, capture_batch

VOCABULARY, LENGTH, WIDTH = 12, 10, 16


def model(encoding: str, num_layers: int = 2, seed: int = 0, **options: object) -> LanguageModel:
    """Return a language model whose output layer is not zero, so that its loss depends on what it computes."""
    made = LanguageModel(
        encoding, options, vocab_size=VOCABULARY, max_len=LENGTH, d_model=WIDTH, num_layers=num_layers, num_heads=2,
        seed=seed,
    )  # fmt: skip
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        made.head.weight.copy_(torch.randn(made.head.weight.shape, generator=generator))
    return made.eval()


def batch(examples: int = 24) -> tuple[Tensor, Tensor]:
    """Return tokens, and random ones to predict."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCABULARY, (2, examples, LENGTH), generator=generator)
    return tokens[0], tokens[1]


def captured(encoding: str, num_layers: int = 2, **options: object) -> Capture:
    return capture_batch(model(encoding, num_layers, **options), batch())


def captured_padded(encoding: str, num_layers: int = 2) -> Capture:
    """Return a capture of texts of many lengths: two tokens at least, and as many as there are at most."""
    made = TextClassifier(
        encoding, vocab_size=VOCABULARY, max_len=LENGTH, d_model=WIDTH, num_layers=num_layers, num_heads=2,
        num_classes=2, seed=0,
    )  # fmt: skip
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        made.head.weight.copy_(torch.randn(made.head.weight.shape, generator=generator))
    tokens, _ = batch()
    lengths = 2 + torch.arange(len(tokens)) % (LENGTH - 1)
    return capture_batch(made.eval(), (tokens, lengths, torch.arange(len(tokens)) % 2))


def made_of(
    content: Tensor, position: Tensor | None, tokens: Tensor | None = None, valid: Tensor | None = None
) -> Capture:
    """Return a capture without a model: content (B, L, D), position (L, D), and valid (B, L) if there is padding."""
    length = content.shape[1]
    whole = content if position is None else content + position
    return Capture(
        module=model("none"),
        batch=None,
        tokens=tokens,
        positions=torch.arange(length)[:, None],
        valid=torch.ones(content.shape[:2], dtype=torch.bool) if valid is None else valid,
        content=content,
        position=position,
        additive=True,
        layers=(),
        output=whole,
    )
