"""Running text as characters, bytes or byte pairs, each token with the number of bytes that it stands for."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from pebench.data.base import Prepared
from pebench.errors import UserError

BYTES = 256
"""Tokens that any text needs, one for each byte."""

CHUNK = 4096
"""Number of texts that are encoded at a time."""


def byte_pairs(texts: Mapping[str, Sequence[str]], vocab_size: int) -> Prepared:
    """Return texts in byte-pair tokens of a vocabulary made from the training split.

    Args:
        texts: Texts of each split, which follow one another.
        vocab_size: Vocabulary.

    Raises:
        UserError: If the vocabulary has no room for the bytes.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    # On bytes, all 256 of which are in the vocabulary: no text of the other splits is unknown, so that
    # bits per byte count all of it.
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    _require_room_for_bytes(vocab_size)
    tokenizer.train_from_iterator(texts["train"], trainer)
    tensors = {}
    for name, part in texts.items():
        chunks = (part[start : start + CHUNK] for start in range(0, len(part), CHUNK))
        # Of a token the library keeps a hundred bytes besides its number, until its chunk is done.
        lines = [np.asarray(line.ids, np.int32) for chunk in chunks for line in tokenizer.encode_batch(chunk)]
        tensors[name] = torch.from_numpy(np.concatenate(lines))
    # in byte-level BPE every character of a token's name stands for one byte
    sizes = [len(str(tokenizer.id_to_token(token))) for token in range(tokenizer.get_vocab_size())]
    return Prepared(tensors, {"token_bytes": sizes})


def characters(texts: Mapping[str, str], vocab_size: int) -> Prepared:
    """Return texts by characters; a byte of a character that the training text lacks is token 0.

    Args:
        texts: Text of each split.
        vocab_size: Vocabulary.

    Raises:
        UserError: If the vocabulary has no room for the characters.
    """
    # Of the training part alone: a vocabulary must not know what comes in the test.
    known = sorted(set(texts["train"]))
    if len(known) + 1 > vocab_size:
        raise UserError(f"data.vocab_size must be at least {len(known) + 1} here, got {vocab_size}.")
    number = {character: [index + 1] for index, character in enumerate(known)}
    # An unknown character is as many tokens as it has bytes: so each token has a number of bytes of its own, and
    # bits per byte count all of the text.
    number |= {c: [0] * len(c.encode()) for c in {*texts["val"], *texts["test"]} - {*known}}
    tensors = {
        name: torch.tensor([token for character in part for token in number[character]], dtype=torch.int32)
        for name, part in texts.items()
    }
    return Prepared(tensors, {"token_bytes": [1, *(len(character.encode()) for character in known)]})


def single_bytes(texts: Mapping[str, str], vocab_size: int) -> Prepared:
    """Return texts by the bytes of UTF-8, which are their own tokens.

    Args:
        texts: Text of each split.
        vocab_size: Vocabulary.

    Raises:
        UserError: If the vocabulary has no room for the bytes.
    """
    _require_room_for_bytes(vocab_size)
    tensors = {
        name: torch.from_numpy(np.frombuffer(part.encode(), dtype=np.uint8).astype(np.int32))
        for name, part in texts.items()
    }
    return Prepared(tensors, {"token_bytes": [1] * BYTES})


def _require_room_for_bytes(vocab_size: int) -> None:
    if vocab_size < BYTES:
        raise UserError(f"data.vocab_size must be at least the {BYTES} bytes here, got {vocab_size}.")
