"""Rotations of blocks of channels: the width of a block, skew-symmetric generators, and turns of heads."""

import torch
from torch import Tensor

from pebench.encodings.spec import EncodingSpec


def block_width(name: str, spec: EncodingSpec, block: int | None) -> int:
    """Return the width of a block of channels, by default the largest up to 8 that divides the heads' width.

    Args:
        name: The encoding's name, for the message.
        spec: Sizes of the model.
        block: The width that was asked for, if any.

    Raises:
        ValueError: If it is below 2 or does not divide the width of a head.
    """
    divisors = [n for n in range(2, min(8, spec.head_dim) + 1) if spec.head_dim % n == 0]
    width = (divisors or [0])[-1] if block is None else block
    if width < 2 or spec.head_dim % width:
        raise ValueError(
            f"block of encoding {name!r} must be 2 or more and divide the head width {spec.head_dim}, got {width}"
        )
    return width


def skew_matrices(entries: Tensor, block: int) -> Tensor:
    """Return skew-symmetric matrices (..., block, block), whose exponentials are rotations.

    Args:
        entries: (..., block * (block - 1) / 2), the entries below the diagonal, row by row.
        block: Width of the matrices.
    """
    rows, columns = torch.tril_indices(block, block, offset=-1, device=entries.device)
    lower = entries.new_zeros(*entries.shape[:-1], block, block)
    lower[..., rows, columns] = entries
    return lower - lower.mT


def turn_blocks(heads: Tensor, rotation: Tensor) -> Tensor:
    """Return queries or keys (B, H, L, K) with each block of channels turned.

    Args:
        heads: (B, H, L, K).
        rotation: (L, K / block, block, block) for all heads, or (H, L, K / block, block, block).
    """
    blocks = heads.float().unflatten(-1, (-1, rotation.shape[-1]))  # (B, H, L, K) to (B, H, L, K / block, block)
    with torch.autocast(heads.device.type, enabled=False):  # 16 bit would blur the angles
        turned = torch.einsum(f"{'h' * (rotation.ndim == 5)}lcij,bhlcj->bhlci", rotation, blocks)
    return turned.flatten(-2).to(heads.dtype)  # back to (B, H, L, K)
