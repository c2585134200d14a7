"""Add-every-layer: a sinusoid, added to the residual stream before every block."""

from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.table import TableEncoding


@register("add-every-layer")
class AddEveryLayerEncoding(TableEncoding):
    """Fixed sinusoid, added to what every block is given, the first one included.

    The control of encodings that act in every layer, such as ``rope``: as often, but by addition. The sums add up:
    block i is given i times the sinusoid, unless blocks learn to remove it again.

    Args:
        spec: Sizes of the model; ``d_model`` must be a multiple of 2P.
        base: Base of the wavelengths, dimensionless.
        ratio: Root mean square of what is added each time, relative to the content's at initialisation; 1/N gives the
            last of N blocks as much as ``add`` does.

    Shape:
        residual: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_model`` is not a multiple of 2P, ``base`` is not positive, or ``ratio`` is negative.

    Source:
        Dehghani et al. 2019 (Universal Transformers), section 2.1, https://arxiv.org/abs/1807.03819.

    Differs from the paper:
        1. Layers have weights of their own, and no sinusoid that distinguishes them; there one block is repeated, and
           a second sinusoid counts the repetitions.
        2. There a norm follows every step; the residual stream here has none between blocks, so that sums add up.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=2, extent=(8,), causal=True)
        >>> encoding = AddEveryLayerEncoding(spec)
        >>> state = encoding.prepare(torch.tensor([[1.0]]))
        >>> encoding.residual(torch.zeros(1, 1, 2), None, state, layer=1)  # sqrt(2) times sin 1, cos 1
        tensor([[[1.1900, 0.7641]]])
    """

    formula = r"x^{(l)} + \mathrm{ratio} \cdot s(p) \quad \text{before every block } l"
    cite = ("dehghani2019universal",)
    mark = 46
    paper = ()
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, base: float = 10000.0, ratio: float = 1.0) -> None:
        super().__init__(spec)
        self.make_table("sinusoid", spec.d_model, base, ratio, "d_model")

    def residual(self, x: Tensor, valid: Tensor | None, state: Tensor, layer: int) -> Tensor:
        """Return the residual stream plus position."""
        return x + state.to(x.dtype)
