"""GRAPE-AP: a decay along the path from key to query, at rates that the query and the tokens on the way decide."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.encodings.alibi import slopes
from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import in_32_bit, in_64_bit
from pebench.encodings.registry import register
from pebench.encodings.rope import rotate


@register("grape-ap")
class GrapePathEncoding(PositionalEncoding):
    """Path-integral GRAPE: the bias is slope · sum of log sigmoid(u_i·R_l u_l / n) over the tokens l after the key.

    u is a projection of the content to n channels for each head of each layer, on the right at root mean square 1, and
    R_l turns all of its pairs by l radians, l the token's position. The slopes are those of ``alibi``. As with
    ``fox`` attention decays from token to token, but each query has rates of its own.

    Args:
        spec: Sizes of the model, causal.
        channels: Channels n of u, an even number.

    Shape:
        bias: (B, H, L, L).

    Raises:
        ValueError: If ``channels`` is odd or below 2; for a grid or a bidirectional model.

    Source:
        Zhang et al. 2025, "Group Representational Position Encoding", the additive path integral,
        https://arxiv.org/abs/2512.07805, as in the authors' code (model/llama-mha-grape-ap-v1.py), with its
        width of 8.

    Differs from the paper:
        1. The authors' code norms queries and keys besides.
        2. It turns the other way, which exchanges the halves of u: the same to a model trained from the start.

    Example:
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = GrapePathEncoding(spec, channels=2)
        >>> _ = encoding.weight.data.fill_(0.0)  # log sigmoid(0) is -log 2, the slope 1/256
        >>> x = torch.zeros(1, 3, 2)
        >>> 256 * encoding.bias(x, x, x, encoding.prepare(torch.arange(3.0)[:, None]), layer=0)[0, 0, 2].detach()
        tensor([-1.3863, -0.6931,  0.0000])
    """

    formula = (
        r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}} + m_h \sum_{l=j+1}^{i} \log \sigma\left(\frac{u_i \cdot R_l "
        r"\hat{u}_l}{n}\right), \quad u_l = W x_l, \quad R_l = \mathrm{diag}\left(\rho(l), \dots, "
        r"\rho(l)\right), \quad m_h = 2^{-8h/H}"
    )
    cite = ("zhang2025group",)
    aliases = ("grape", "pathintegral")
    axes = (1,)
    causal_only = True
    kv_cache = "needs more"  # projections u of all tokens
    size = "num_layers * num_heads * 8 * d_model"
    paper = ("causal_only", "text")
    paper_size = 2048  # 2 layers x 4 heads x 8 x 32

    def __init__(self, spec: EncodingSpec, *, channels: int = 8) -> None:
        super().__init__(spec)
        if channels < 2 or channels % 2:
            raise ValueError(f"channels of encoding 'grape-ap' must be even and 2 or more, got {channels}")
        self.channels = channels
        self.weight = nn.Parameter(torch.empty(spec.num_layers, spec.num_heads * channels, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the projections from N(0, 1/D)."""
        nn.init.normal_(self.weight, std=self.spec.d_model**-0.5)

    def prepare(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of the positions in radians: (L, 1) each, 32-bit."""
        angles = in_64_bit(positions)
        return in_32_bit(angles.cos(), positions.device), in_32_bit(angles.sin(), positions.device)

    def bias(self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Return the sum over the path of every pair."""
        rates = torch.tensor(slopes(self.spec.num_heads), device=x.device, dtype=torch.float32)
        with torch.autocast(x.device.type, enabled=False):  # long sums lose their digits in 16 bit
            u = F.linear(x.float(), self.weight[layer].float())
            u = u.unflatten(-1, (self.spec.num_heads, self.channels)).transpose(1, 2)  # (B, L, H n) to (B, H, L, n)
            cos, sin = (part.expand(-1, self.channels // 2) for part in state)  # every pair turns alike
            scores = u @ rotate(F.rms_norm(u, (self.channels,)), cos, sin).mT / self.channels  # (B, H, L, L)
            steps = F.logsigmoid(scores).tril()
            # the sum over the tokens up to the query, less that up to the key; later keys are hidden
            return rates[:, None, None] * (steps.sum(dim=-1, keepdim=True) - steps.cumsum(dim=-1))
