"""FoX: attention that forgets, at a rate that every token decides for itself."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register


@register("fox")
class FoxEncoding(PositionalEncoding):
    """Forgetting attention (FoX): the bias is the sum of log sigmoid(w·x_l + b) over the tokens l after the key.

    w and b belong to a layer and head. With constant gates this is ALiBi. Tokens are counted in the
    order of the sequence; positions are never asked for.

    Args:
        spec: The model, causal.
        b: At initialisation; the larger, the less is forgotten at first.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: For a grid or a bidirectional model, or a b that is infinite or no number.

    Source:
        Lin et al. 2025, "Forgetting Transformer", section 3, equations 5 to 8, https://arxiv.org/abs/2503.02130.

    Differs from the paper:
        1. Nothing but the gate: its "Pro" block has output gates, norms and shifts of keys and values too.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = FoxEncoding(spec)
        >>> _ = encoding.weight.data.fill_(0.0)  # every token forgets half
        >>> x = torch.zeros(1, 3, 1)
        >>> encoding.bias(x, x, x, None, layer=0)[0, 0, 2].detach()  # log of 1/4, 1/2, 1
        tensor([-1.3863, -0.6931,  0.0000])
    """

    cite = ("lin2025forgetting",)
    axes = (1,)
    causal_only = True
    contextual = True
    relative = True
    size = "num_layers * num_heads * (d_model + 1)"

    def __init__(self, spec: EncodingSpec, *, b: float = 0.0) -> None:
        super().__init__(spec)
        if not math.isfinite(b):
            raise ValueError(f"b of encoding 'fox' must be finite, got {b}")
        self.b = b
        self.weight = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads, spec.d_model))
        self.shift = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 1/D)."""
        nn.init.normal_(self.weight, std=self.spec.d_model**-0.5)
        nn.init.constant_(self.shift, self.b)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: None, layer: int) -> Tensor:
        """What is left of every key at every query, as a logarithm."""
        gates = F.linear(x, self.weight[layer].to(x.dtype), self.shift[layer].to(x.dtype)).float()
        total = F.logsigmoid(gates).cumsum(dim=1).transpose(1, 2)  # (B, H, L)
        return total.unsqueeze(-1) - total.unsqueeze(-2)
