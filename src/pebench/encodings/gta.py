"""GTA: rotations of values too, and of what heads make of them back, so that content is mixed by offsets."""

from torch import Tensor

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding, rotate


@register("gta")
class GeometricTransformEncoding(RotaryEncoding):
    """Rotary embedding of values too, which each head's output turns back (GTA): o_i is the sum of a_ij R_(j-i) v_j.

    With ``rope`` an offset decides how much of a token is taken; here also what is taken of it, so that an output tells
    where a value came from. The angles are those of ``rope``.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2P.
        theta: Base of the frequencies; ``None`` as for ``rope``.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.
        value: v (B, H, L, K) to the same shape.
        output: o (B, H, L, K) to the same shape.

    Raises:
        ValueError: If ``head_dim`` is not a multiple of 2P or ``theta`` is not positive.

    Source:
        Miyato et al. 2024, "GTA: A Geometry-Aware Attention Mechanism for Multi-View Transformers", section 3,
        https://arxiv.org/abs/2310.10375, with rotations in planes (SO(2)) for the positions of text and patches, as in
        the authors' code for images (branch DiT, gta.py).

    Differs from the paper:
        1. The paper's poses of cameras, SE(3), are left out: text and patches have none.
        2. On grids the base is 100, as for ``rope`` here; the authors' code for images has 10000.
        3. Channel c is paired with channel c + K/2, there with its neighbour: the same up to their order.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=False)
        >>> encoding = GeometricTransformEncoding(spec)
        >>> state, v = encoding.prepare(torch.tensor([[1.0], [3.0]])), torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])
        >>> turned = encoding.value(v, v, state, layer=0)  # by 1 and by 3 radians
        >>> last = turned[:, :, 1:].expand(-1, -1, 2, -1)  # both tokens look at the second alone
        >>> encoding.output(last, turned, v, state, layer=0)  # by 3 - 1 and by 3 - 3 radians
        tensor([[[[-0.4161,  0.9093],
                  [ 1.0000,  0.0000]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad o_i = R_{p_i}^\top \sum_j a_{ij} "
        r"R_{p_j} v_j, \quad a_{ij} = \mathrm{softmax}_j(\ell_{ij})"
    )
    cite = ("miyato2024gta",)
    aliases = ("geometrictransform", "geometrictransformattention", "valuerotation")
    paper = ("relative",)
    paper_size = 0

    def __init__(self, spec: EncodingSpec, *, theta: float | None = None) -> None:
        super().__init__(spec, theta=theta)

    def value(self, v: Tensor, x: Tensor, state: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Rotate values as queries and keys are."""
        return rotate(v, *state)

    def output(self, o: Tensor, v: Tensor, x: Tensor, state: tuple[Tensor, Tensor], layer: int) -> Tensor:
        """Rotate what heads made of values back, by the position of the query."""
        cos, sin = state
        return rotate(o, cos, -sin)
