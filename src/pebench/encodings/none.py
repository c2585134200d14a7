"""No positional encoding: the control of every comparison."""

from pebench.encodings.base import PositionalEncoding
from pebench.encodings.registry import register


@register("none")
class NoEncoding(PositionalEncoding):
    """No encoding (NoPE): bidirectional attention sees a bag of tokens, causal attention only prefixes.

    Source:
        Haviv et al. 2022, https://arxiv.org/abs/2203.16634; Kazemnejad et al. 2023,
        https://arxiv.org/abs/2305.19466; on images Dosovitskiy et al. 2020, appendix D.4,
        https://arxiv.org/abs/2010.11929.

    Example:
        >>> import torch
        >>> from pebench.encodings import EncodingSpec
        >>> encoding = NoEncoding(EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True))
        >>> encoding.embed(torch.ones(1, 2, 4), None).sum().item()
        8.0
    """

    formula = r"\ell_{ij} = \frac{q_i \cdot k_j}{\sqrt{K}}"
    cite = ("haviv2022transformer", "kazemnejad2023impact", "dosovitskiy2021image")
    aliases = ("nope",)
    mark = 3
    relative = True
    isotropic = True
    mirror_blind = True
    blind = True
    paper = ("relative", "isotropic", "mirror_blind", "blind")
    paper_size = 0
