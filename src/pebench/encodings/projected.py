"""Addition and concatenation after trained projections: the same function, but for a matrix on the content."""

from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec
from pebench.encodings.registry import register
from pebench.encodings.table import TableEncoding


@register("add-proj")
class AddProjEncoding(TableEncoding):
    """Fixed sinusoid of d_p channels, projected to the model's width and added: x + P p.

    The control of ``concat-proj``, whose matrix on the content an embedding table can absorb.

    Args:
        spec: The model.
        d_p: Channels of a vector, of a sinusoid a multiple of 2P; ``None`` takes ``d_model``.
        base: Base of the wavelengths, dimensionless.
        ratio: Root mean square of the projected vectors relative to the content's at initialisation.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none beyond the extent.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_p`` is not a multiple of 2P, ``base`` is not positive, ``ratio`` is negative, or there is no
            such ``table``.

    Source:
        Hallam and Tseng 2026, https://arxiv.org/abs/2601.05807, for the comparison.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=4, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = AddProjEncoding(spec, d_p=2)
        >>> _ = nn.init.ones_(encoding.position)  # sqrt(2) times sin 0 + cos 0
        >>> encoding.embed(torch.zeros(1, 1, 4), encoding(encoding.prepare(torch.tensor([[0.0]])))).detach()
        tensor([[[1.4142, 1.4142, 1.4142, 1.4142]]])
    """

    formula = r"x + \mathrm{ratio} \cdot P s(p), \quad P \in \mathbb{R}^{D \times d_p}"
    cite = ("hallam2026fusion",)
    mark = 5
    size = "d_model * d_model"
    paper = ()
    paper_size = 1024  # 32 x 32

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        d_p: int | None = None,
        base: float = 10000.0,
        ratio: float = 1.0,
        table: str = "sinusoid",
    ) -> None:
        super().__init__(spec)
        self.d_p = spec.d_model if d_p is None else d_p
        self.make_table(table, self.d_p, base, ratio)
        self.position = nn.Parameter(Tensor(spec.d_model, self.d_p))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrix from N(0, 1/d_p), which keeps the vectors' scale."""
        nn.init.normal_(self.position, std=self.d_p**-0.5)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return content plus projected position."""
        return x + nn.functional.linear(state.to(self.position.dtype), self.position).to(x.dtype)


@register("concat-proj")
class ConcatProjEncoding(AddProjEncoding):
    """Content and a fixed sinusoid side by side, projected to the model's width: W [x; p].

    Args:
        spec: The model.
        d_p: Channels of a vector, of a sinusoid a multiple of 2P; ``None`` takes ``d_model``.
        base: Base of the wavelengths, dimensionless.
        ratio: Root mean square of the projected vectors relative to the projected content's at initialisation.
        table: ``sinusoid``, or ``learned``: a trained vector per position, and none beyond the extent.
        start: First value of the matrix on the content: ``random``, after which a random table's directions are far
            from equally large, or ``identity``, with which it begins as ``add-proj`` does.

    Shape:
        embed: (B, L, D) to (B, L, D).

    Raises:
        ValueError: If ``d_p`` is not a multiple of 2P, ``base`` is not positive, ``ratio`` is negative, or there is no
            such ``start`` or ``table``.

    Source:
        Hallam and Tseng 2026, https://arxiv.org/abs/2601.05807: "concatenation with projection", after its abstract.

    Differs from the paper:
        1. W is kept as two blocks, each drawn so that it keeps the scale of its input. Weight decay leaves them out, as
           all parameters of encodings.

    Example:
        >>> import torch
        >>> spec = EncodingSpec(d_model=2, num_heads=1, num_layers=1, extent=(8,), causal=True)
        >>> encoding = ConcatProjEncoding(spec)
        >>> _ = nn.init.ones_(encoding.position), nn.init.ones_(encoding.content)
        >>> encoding.embed(torch.ones(1, 1, 2), encoding(encoding.prepare(torch.tensor([[0.0]])))).detach()  # 2 + 2^0.5
        tensor([[[3.4142, 3.4142]]])
    """

    formula = r"W\,[\,x\,;\,\mathrm{ratio} \cdot s(p)\,], \quad W \in \mathbb{R}^{D \times (D + d_p)}"
    cite = ("hallam2026fusion",)
    mark = 8
    size = "2 * d_model * d_model"
    paper = ()
    paper_size = 2048  # 2 matrices of 32 x 32

    def __init__(
        self,
        spec: EncodingSpec,
        *,
        d_p: int | None = None,
        base: float = 10000.0,
        ratio: float = 1.0,
        table: str = "sinusoid",
        start: str = "random",
    ) -> None:
        if start not in ("random", "identity"):
            raise ValueError(f"start must be random or identity, got {start!r}")
        super().__init__(spec, d_p=d_p, base=base, ratio=ratio, table=table)
        self.start = start
        self.content = nn.Parameter(Tensor(spec.d_model, spec.d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both blocks so that they keep scales, from N(0, 1/d_p) and N(0, 1/D), or set content's to identity."""
        super().reset_parameters()
        if not hasattr(self, "content"):  # called by the constructor of the base class
            return
        if self.start == "identity":
            nn.init.eye_(self.content)
        else:
            nn.init.normal_(self.content, std=self.spec.d_model**-0.5)

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        """Return projected content plus projected position."""
        return super().embed(nn.functional.linear(x, self.content), state)
