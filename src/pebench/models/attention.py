"""Softmax attention: its two kernels, the choice between them, and the masks that are added to the logits."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.pairs import ByBlock, PairBias
from pebench.memo import Memo

HIDDEN = -1e30
"""Logit of a key that is padding: its weight is 0, but a row of nothing else is still no division of 0 by 0."""

KernelChoice = Callable[[Tensor, Tensor | PairBias | None], str]
"""A function of queries (B, H, L, K) and mask, or bias of pairs, that returns the name of a kernel."""


def split_heads(qkv: Tensor, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values of every head from those of a layer side by side.

    Args:
        qkv: (B, L, 3D).
        num_heads: Heads H, each of K = D / H channels.

    Returns:
        Three views (B, H, L, K).
    """
    # Not as a dimension that is unbound: the backward pass would copy the joined gradients once more.
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    return q, k, v


def fastest_kernel(q: Tensor, mask: Tensor | PairBias | None) -> str:
    """Return the fastest way of computing attention: ``"sdpa"``, ``"matmul"``, ``"blocks"`` or ``"flex"``.

    On a CPU, PyTorch's fused kernel is slow in 16 bit and has no fast path for a mask that needs a
    gradient; plain matrix products beat it there. On CUDA the fused kernel always wins. A bias of pairs is made by
    blocks of queries on a CPU, and whole elsewhere, until ``"flex"`` has been measured there.
    """
    if isinstance(mask, PairBias):
        return "blocks" if q.device.type == "cpu" else "sdpa"
    if q.device.type == "cpu" and (q.dtype == torch.bfloat16 or (mask is not None and mask.requires_grad)):
        return "matmul"
    return "sdpa"


def stand_in(bias: Tensor | PairBias) -> Tensor | PairBias:
    """Return an empty bias for which `fastest_kernel` chooses as for another."""
    nothing = torch.empty(0, 0, dtype=torch.float32, requires_grad=bias.requires_grad)
    return ByBlock(0, lambda queries, keys: nothing) if isinstance(bias, PairBias) else nothing


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    kernel: str | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Compute softmax attention.

    Args:
        q: (B, H, L, K).
        k: (B, H, L, K).
        v: (B, H, L, V).
        mask: Added to the scaled logits, broadcastable to (B, H, L, L). It holds the causal mask already.
        causal: Mask the future; only where `mask` is None.
        scale: Factor of q·k.
        kernel: ``"sdpa"``, PyTorch's fused kernel, or ``"matmul"``, plain matrix products; by default the faster one.
        dropout: Probability of dropping an attention weight.

    Returns:
        (B, H, L, V).
    """
    if (kernel or fastest_kernel(q, mask)) == "sdpa":
        return _fused(q, k, v, mask, causal, scale, dropout)
    logits = q @ k.transpose(-2, -1)  # (B, H, L, K) @ (B, H, K, L) to (B, H, L, L)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) * scale  # 16 bits are too few for a softmax
    if causal:
        mask = causal_mask(q.shape[-2], q.device)
    if mask is not None:
        logits = logits + mask
    # The weights are of 32 bit at least, and a product refuses two types.
    weights = logits.softmax(dim=-1).to(v.dtype)
    return (F.dropout(weights, dropout) if dropout else weights) @ v


def _fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float, dropout: float) -> Tensor:
    missing = q.shape[-1] - v.shape[-1]
    padded = missing > 0 and q.device.type == "cpu"  # the fused kernel of CPUs takes heads of one width alone
    if padded:
        v = F.pad(v, (0, missing))
    # PyTorch documents a float mask of the queries' type alone; biases may be of 32 bit beside queries of 16.
    mask = None if mask is None else mask.to(q.dtype)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=scale)
    return mixed[..., :-missing] if padded else mixed


def causal_mask(length: int, device: torch.device) -> Tensor:
    """Return (L, L): zero where a row may look, minus infinity in its future."""
    # Infinity is safe here, other than for padding: every row sees itself at least.
    return torch.full((length, length), float("-inf"), device=device, dtype=torch.float32).triu(1)


class Masks:
    """Masks of padding and of the future, added to a bias once, however many layers and steps share it.

    Args:
        causal: Hide the future.
        length: Number of tokens L.
        device: Device of the masks.
        valid: (B, L), False at padding; None where there is none.
        documents: (B, L), the text that each token of a row is of, in place of `valid`: tokens see their own text
            alone, and padding is a text of its own.
    """

    def __init__(
        self,
        causal: bool,
        length: int,
        device: torch.device,
        valid: Tensor | None,
        documents: Tensor | None = None,
    ) -> None:
        self.causal, self.length, self.device = causal, length, device
        self.padding: Tensor | None = None
        if documents is not None:
            # Padding sees padding: no row of logits is empty, even where HIDDEN is infinite, as in float16.
            others = documents[:, None, :, None] != documents[:, None, None, :]  # (B, 1, L, L)
            self.padding = torch.zeros(others.shape, device=device, dtype=torch.float32).masked_fill(others, HIDDEN)
        elif valid is not None:
            padding = torch.zeros(valid.shape, device=device, dtype=torch.float32).masked_fill(~valid, HIDDEN)
            self.padding = padding[:, None, None, :]  # (B, L) to (B, 1, 1, L), the keys' axis
        self._future: Tensor | None = None
        self._sum: Memo[Tensor] = Memo(uncounted=True)

    def fold(self, bias: Tensor | None) -> Tensor | None:
        """Return the sum that is added to the logits; None where it would be the causal mask alone, or nothing.

        The sum is kept until another bias comes: an encoding without weights returns the tensor that it prepared in
        every layer and pass.

        Args:
            bias: (H, L, L), (L, L), or what else broadcasts to (B, H, L, L); None without one.
        """
        # `causal` of the kernel then hides the future, which needs no (L, L) and takes the kernel's fast path.
        source = self.padding if bias is None else bias
        if source is None:
            return None
        return self._sum.made_of(source, lambda: self._total(bias))

    def _total(self, bias: Tensor | None) -> Tensor:
        with torch.inference_mode(False):  # an inference tensor could not serve training later
            # (H, L, L) would do, but PyTorch's fused kernel takes two dimensions or four
            whole = bias[None] if bias is not None and bias.ndim == 3 else bias
            terms = [term for term in (whole, self.padding, self.future) if term is not None]
            return sum(terms[1:], start=terms[0])

    @property
    def future(self) -> Tensor | None:
        """The causal mask (L, L), made when first asked for; None where nothing is hidden."""
        if self.causal and self._future is None:
            self._future = causal_mask(self.length, self.device)
        return self._future

    def end_pass(self) -> None:
        """Drop a sum that no later pass may have."""
        self._sum.end_pass()
