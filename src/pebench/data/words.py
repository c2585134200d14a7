"""A vocabulary of words, made from training texts alone, and texts as numbers of it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

SPECIAL = ("[pad]", "[unk]")
"""Tokens 0 and 1 of every vocabulary."""

CHUNK = 1000
"""Texts encoded at a time."""


def train_words(texts: Sequence[str], vocab_size: int, special: Sequence[str] = SPECIAL) -> Any:
    """Return a tokenizer into lower-case words and punctuation, for the most frequent words of `texts`.

    Args:
        texts: Texts whose words are counted; the training split alone.
        vocab_size: Largest vocabulary, special tokens included.
        special: Tokens that come first.

    Returns:
        A `tokenizers.Tokenizer`.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token=SPECIAL[1]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, special_tokens=list(special), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Any, texts: Sequence[str], max_len: int) -> tuple[Tensor, Tensor]:
    """Return texts end to end as token ids, and the length of each; an empty text is one unknown token.

    Args:
        tokenizer: A `tokenizers.Tokenizer`.
        texts: The texts.
        max_len: Largest number of tokens kept of a text.
    """
    tokenizer.enable_truncation(max_len)
    tokens, lengths = [np.zeros(0, dtype=np.int32)], list[int]()  # there may be no texts
    for ids in token_ids(tokenizer, texts):
        tokens.append(np.concatenate(ids))
        lengths += map(len, ids)
    return torch.from_numpy(np.concatenate(tokens)), torch.tensor(lengths, dtype=torch.int32)


def token_ids(tokenizer: Any, texts: Sequence[str]) -> Iterator[list[Any]]:
    """Yield the token ids of texts, an array for each, some texts at a time; an empty text is one unknown token.

    Args:
        tokenizer: A `tokenizers.Tokenizer`.
        texts: Texts, encoded some at a time, as the tokenizer's own objects are large.
    """
    for start in range(0, len(texts), CHUNK):
        encodings = tokenizer.encode_batch(texts[start : start + CHUNK])
        # A text of no token would have no mean to classify.
        yield [np.asarray(encoding.ids or [1], dtype=np.int32) for encoding in encodings]
