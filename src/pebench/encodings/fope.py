"""FoPE: rotations whose every pair is a mixture of frequencies, without those that training shows too little of."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.rope import RotaryEncoding, rotate


@register("fope")
class FourierEncoding(RotaryEncoding):
    """Fourier position embedding (FoPE): cosine and sine of each of ``rope``'s pairs are mixtures over all frequencies.

    Frequencies that do not turn once within the trained length are left out, and pairs without one stand still. The
    mixtures are drawn for every head, once, and not trained: mostly a pair's own frequency, a little of the others.
    With more than one frequency a logit depends on both positions, and nearly on their difference alone.

    Args:
        spec: Sizes of the model; ``head_dim`` must be a multiple of 2.
        theta: Base of the frequencies; ``None`` as for ``rope``.
        sigma: Size of the other frequencies' shares; 0 is ``rope`` without its slow pairs.
        table_seed: Seed of the mixtures, which is the same for all seeds of a run.

    Shape:
        query_key: q and k (B, H, L, K) to the same shapes.

    Raises:
        ValueError: If ``head_dim`` is odd, ``theta`` not positive or ``sigma`` negative or infinite; for a grid.

    Source:
        Hua et al. 2024, "Fourier Position Embedding", section 4, equations 11 to 13, https://arxiv.org/abs/2412.17739,
        with shares of the mixtures, and the sum that they are divided by, as in the listing of its appendix.

    Differs from the paper:
        1. A pair that stands still has cosine 1 and sine 0, as in equation 13; the listing and the authors' code pad
           both with 1, a turn by 45° that makes queries and keys louder.
        2. The listing turns the other way, the same to a model trained from the start. The authors' code
           (olmo/model.py) turns as here, but divides by no sum in any of its settings; its ``sigma`` is 0.3 to 0.6.
        3. All pairs with a frequency that is kept turn, as in equation 13. In the authors' code half of all do so at
           most, and where more are kept, some of these have no frequency that is mostly their own.
        4. The other frequencies are those of ``rope`` alone; the paper can sample more of them.
        5. All layers share one mixture; in the authors' code each block draws its own.

    Example:
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = FourierEncoding(spec)  # 1 turns within 8 tokens, 1/100 does not
        >>> ones = torch.ones(1, 1, 1, 4)
        >>> encoding.query_key(ones, ones, ones, encoding(encoding.prepare(torch.tensor([[1.0]]))), layer=0)[0]
        tensor([[[[-0.3012,  1.0000,  1.3818,  1.0000]]]])
    """

    formula = (
        r"\ell_{ij} = \frac{(R_{p_i} q_i) \cdot (R_{p_j} k_j)}{\sqrt{K}}, \quad R_p = "
        r"\mathrm{diag}\left(\begin{pmatrix} C_m & -S_m \\ S_m & C_m \end{pmatrix}\right), \quad C_m = \sum_c "
        r"a_{mc} \cos(p\,\omega_c), \quad S_m = \sum_c b_{mc} \sin(p\,\omega_c), \quad \omega_c > "
        r"\frac{2\pi}{L}"
    )
    cite = ("hua2024fourier",)
    aliases = ("fourierpositionembedding",)
    axes = (1,)
    relative = False  # the mixture of a pair depends on the position, unless one frequency is left
    paper = ("relative", "text")
    paper_size = 0
    shares: Tensor

    def __init__(
        self, spec: EncodingSpec, *, theta: float | None = None, sigma: float = 0.3, table_seed: int = 0
    ) -> None:
        super().__init__(spec, theta=theta)
        if not 0 <= sigma < math.inf:
            raise ValueError(f"sigma of encoding 'fope' must be zero or more and finite, got {sigma}")
        all_pairs = super().frequencies(0, 0)
        self.kept = max(1, int((all_pairs > 2 * math.pi / spec.max_len).sum()))
        # as xavier_normal_ of PyTorch draws a tensor (heads, from, to), with the gain sigma
        spread = sigma * (2 / (self.kept * (self.kept + spec.num_heads))) ** 0.5
        random = torch.Generator().manual_seed(table_seed)
        shape = (2, spec.num_heads, self.kept, self.kept)
        shares = spread * torch.randn(shape, generator=random, dtype=torch.float32)
        shares += torch.eye(self.kept, dtype=torch.float32)
        # a buffer: it moves with the model and is saved with it, but never trained
        self.register_buffer("shares", shares / shares.sum(dim=2, keepdim=True))
        self.relative = self.kept == 1 or sigma == 0

    def frequencies(self, axis: int, length: float) -> Tensor:
        """Return the frequencies of ``rope`` that turn once within the trained length, at least the first."""
        return super().frequencies(axis, length)[: self.kept]

    def forward(self, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the mixtures of cosines and sines for every pair: (H, L, K/2) each."""
        still = self.spec.head_dim // 2 - self.shares.shape[-1]
        with torch.autocast(state[0].device.type, enabled=False):  # 16 bit would blur the angles
            cos, sin = (wave @ share for wave, share in zip(state, self.shares.float(), strict=True))
        return F.pad(cos, (0, still), value=1.0), F.pad(sin, (0, still))

    def query_key(
        self, q: Tensor, k: Tensor, x: Tensor, state: tuple[Tensor, Tensor], layer: int
    ) -> tuple[Tensor, Tensor]:
        """Apply the mixtures to queries and keys alike."""
        return rotate(q, *state), rotate(k, *state)
