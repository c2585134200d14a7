"""FoX: attention that decays with distance, at a rate that every token decides by its content."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.pairs import PairBias, by_blocks
from pebench.encodings.registry import register


@register("fox")
class FoxEncoding(PositionalEncoding):
    """Forgetting attention (FoX): the bias is the sum of log sigmoid(w·x_l + b) over the tokens l after the key.

    Every layer and head has its own w and b. With constant gates this is ALiBi. Tokens are counted in the
    order of the sequence; positions are not used.

    Args:
        spec: Sizes of the model, causal.
        b: Initial value of all b; the larger, the slower the decay at first.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: For a grid or a bidirectional model, or a b that is infinite or not a number.

    Source:
        Lin et al. 2025, "Forgetting Transformer", section 3, equations 5 to 8, https://arxiv.org/abs/2503.02130.

    Differs from the paper:
        1. The gate alone; the paper's "Pro" block has output gates, norms and shifts of keys and values too.

    Example:
        >>> spec = EncodingSpec(d_model=1, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = FoxEncoding(spec)
        >>> _ = encoding.weight.data.fill_(0.0)  # every token forgets half
        >>> x = torch.zeros(1, 3, 1)
        >>> encoding.bias(x, x, x, None, layer=0)[0, 0, 2].detach()  # log of 1/4, 1/2, 1
        tensor([-1.3863, -0.6931,  0.0000])
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + \sum_{l=j+1}^{i} \log \sigma(w \cdot x_l + b)"
    cite = ("lin2025forgetting",)
    aliases = ("forgetting", "forgettingtransformer")
    mark = 16
    axes = (1,)
    causal_only = True
    contextual = True
    relative = True
    kv_cache = "needs more"  # a sum of log gates for each head
    size = "num_layers * num_heads * (d_model + 1)"
    paper = ("contextual", "relative", "causal_only", "text")
    paper_size = 264  # 2 layers x 4 heads x (32 weights and a shift)

    def __init__(self, spec: EncodingSpec, *, b: float = 0.0) -> None:
        super().__init__(spec)
        if not math.isfinite(b):
            raise ValueError(f"b of encoding 'fox' must be finite, got {b}")
        self.b = b
        self.weight = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads, spec.d_model))
        self.shift = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 1/D), and set the shifts to ``b``."""
        nn.init.normal_(self.weight, std=self.spec.d_model**-0.5)
        nn.init.constant_(self.shift, self.b)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: None, layer: int) -> Tensor | PairBias:
        """Return the logarithm of what is left of every key at every query."""
        # 32-bit from here, as differences of long sums would lose their digits in 16 bit
        gates = F.linear(x, self.weight[layer].to(x.dtype), self.shift[layer].to(x.dtype)).float()  # (B, L, H)
        total = F.logsigmoid(gates).cumsum(dim=1).transpose(1, 2)  # (B, L, H) to (B, H, L)
        # a difference of two sums from the first token is the sum over the tokens between key and query
        # keys after the query come out positive; the causal mask hides them
        return by_blocks(x.shape[1], lambda queries, keys: total[..., queries, None] - total[..., None, :keys])
