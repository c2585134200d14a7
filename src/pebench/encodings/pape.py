"""PaPE: a sum of parabolas of the offset, as steep and as skewed as the query's content sets them."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.registry import register


@register("pape")
class ParabolicEncoding(PositionalEncoding):
    """Parabolic encoding (PaPE): to q·k a sum over n parabolas is added, -a u² + b u, u the offset along a direction.

    a = softplus(A x) and b = B x come from the query's content, the directions are trained. Every head of every layer
    has its own. It needs (H, L, L, n) of memory.

    Args:
        spec: Sizes of the model.
        parabolas: Number n of parabolas for each head.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``parabolas`` is below 1, or for positions with one axis.

    Source:
        Øhrstrøm et al. 2026, "Parabolic Position Encoding", section 3, https://arxiv.org/abs/2602.01418; initial
        variances, and the division of the parabolas too by sqrt(K), from the authors' code (pape/nn/positions/pape.py).

    Differs from the paper:
        1. Eight parabolas for each head; the authors' 50 would be a third of our small models.
        2. As a bias of differences, not as products of wider queries and keys, whose squares of positions cancel.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(2, 2), causal=False)
        >>> encoding = ParabolicEncoding(spec, parabolas=1)
        >>> _ = encoding.directions.data.copy_(torch.tensor([1.0, 0.0]))  # along rows
        >>> _ = encoding.content.data.copy_(torch.tensor([0.0, 0.75])[None, :, None, None, None])
        >>> x = torch.ones(1, 2, 4)  # a is log 2 and b is 3, sqrt(K) is 2
        >>> encoding.bias(x, x, x, encoding.prepare(torch.tensor([[0.0, 0.0], [2.0, 5.0]])), layer=0)[0, 0].detach()
        tensor([[ 0.0000, -4.3863],
                [ 1.6137,  0.0000]])
    """

    formula = (
        r"\ell_{ij} = \frac{1}{\sqrt{K}} \left(q_i \cdot k_j + \sum_{m=1}^{n} \left(b_{im} u_{ijm} - a_{im} u_{ijm}^2"
        r"\right)\right), \quad u_{ijm} = d_m \cdot (p_i - p_j), \quad a_{im} = \mathrm{softplus}(A_m \cdot x_i), "
        r"\quad b_{im} = B_m \cdot x_i"
    )
    cite = ("ohrstrom2026parabolic",)
    aliases = ("parabolic",)
    axes = (2,)
    relative = True
    size = "num_layers * num_heads * 8 * (num_axes + 2 * d_model)"
    paper = ("relative", "images")
    paper_size = 4224  # 2 layers x 4 heads x 8 parabolas x (2 axes + 2 x 32 weights)

    def __init__(self, spec: EncodingSpec, *, parabolas: int = 8) -> None:
        super().__init__(spec)
        if parabolas < 1:
            raise ValueError(f"parabolas of encoding 'pape' must be 1 or more, got {parabolas}")
        layers, heads = spec.num_layers, spec.num_heads
        self.directions = nn.Parameter(torch.empty(layers, heads, parabolas, spec.num_axes))
        self.content = nn.Parameter(torch.empty(layers, 2, heads, parabolas, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights from U(-1/sqrt(n), 1/sqrt(n)), n the inputs: axes, or channels of content."""
        for weight in (self.directions, self.content):
            bound = weight.shape[-1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the offsets of all pairs, a query's position minus a key's: (P, L, L)."""
        return (positions.unsqueeze(1) - positions.unsqueeze(0)).permute(2, 0, 1).contiguous()

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: Tensor, layer: int) -> Tensor:
        """Return the sum of every head's parabolas over sqrt(K), as it stands beside q·k."""
        with torch.autocast(x.device.type, enabled=False):  # squares of far offsets would be blurred in 16 bit
            steep, skew = torch.einsum("bld,shnd->sbhln", x.float(), self.content[layer].float())  # (B, H, L, n) each
            along = torch.einsum("hnp,pij->hijn", self.directions[layer].float(), state)  # (H, L, L, n)
            parabolas = torch.einsum("bhin,hijn->bhij", skew, along) - torch.einsum(
                "bhin,hijn->bhij", F.softplus(steep), along.square()
            )
            return parabolas * self.spec.head_dim**-0.5
