"""Products of all pairs of tokens, found half by half, where every token between query and key changes the key."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def padded_to_blocks(part: Tensor, block: int) -> Tensor:
    """Cut tokens into blocks whose number is a power of two, with zeros after the last token.

    Args:
        part: (..., L, K).
        block: Tokens in a block.

    Returns:
        (..., blocks, block, K).
    """
    length = part.shape[-2]
    blocks = 2 ** math.ceil(math.log2(math.ceil(length / block)))
    return F.pad(part, (0, 0, 0, blocks * block - length)).unflatten(-2, (blocks, block))


def joined(within: Tensor, across: Tensor) -> Tensor:
    """Join neighbouring blocks of pairs, query by key, in which a query sees no later key.

    Args:
        within: (..., 2n, half, half), pairs of which both tokens are in one block.
        across: (..., n, half, half), queries of the second of two blocks with keys of the first.

    Returns:
        (..., n, 2 half, 2 half), zero where the key is in a later block.
    """
    first, second = within.unflatten(-3, (-1, 2)).unbind(-3)
    rows = torch.cat((first, torch.zeros_like(first)), dim=-1), torch.cat((across, second), dim=-1)
    return torch.cat(rows, dim=-2)
