"""Tables of positions: vectors, fixed or trained, that encodings combine with content in different ways."""

from typing import Any

import torch
from torch import Tensor, nn

from pebench.encodings.base import EncodingSpec, PositionalEncoding
from pebench.encodings.positions import cell_indices, check_positive, check_ratio
from pebench.encodings.sinusoid import check_choice, check_width, sinusoid

KINDS = ("sinusoid", "learned")


class Table(nn.Module):
    """A vector per position, of root mean square `ratio` at initialisation.

    Args:
        kind: ``sinusoid``, or ``learned``: as in the encoding of that name, a row for each trained position, stored
            as N(0, ratio²/pace) and scaled by sqrt(pace) on use.
        spec: Sizes of the model.
        width: Channels of a vector.
        base: Base of the sinusoid's wavelengths, dimensionless.
        ratio: Root mean square of the vectors.
        owner: The encoding's name, for messages.
        pace: Width of content, whose token table, on text, is stored and scaled likewise, so that a channel of either
            moves at the same rate under Adam.
        centered: True to subtract a sinusoid's mean over the trained positions.
        slowest_of: Width of the sinusoid of which these are the slowest channels; ``None`` takes all of one.

    Raises:
        ValueError: For an unknown kind, a base that is not positive, or options that the kind does not have.
    """

    layouts = (("rows", "cells"),)

    def __init__(  # noqa: PLR0913 - the options of encodings
        self,
        kind: str,
        spec: EncodingSpec,
        width: int,
        base: float,
        ratio: float,
        owner: str,
        pace: int,
        centered: bool = False,
        slowest_of: int | None = None,
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"table of encoding {owner!r} must be sinusoid or learned, got {kind!r}")
        check_positive(owner, base=base)
        check_ratio(owner, ratio)
        if kind == "learned" and (centered or slowest_of is not None):
            raise ValueError(f"centered and slowest_of of encoding {owner!r} need table=sinusoid, got {kind!r}")
        check_choice(owner, width, spec.extent, slowest_of, centered)
        self.center, self.slowest_of = spec.extent if centered else None, slowest_of
        self.spec, self.width, self.base, self.ratio, self.owner, self.pace = spec, width, base, ratio, owner, pace
        self.rows = nn.Parameter(torch.empty(spec.max_len, width)) if kind == "learned" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows, if there are any, from N(0, ratio²/pace)."""
        if self.rows is not None:
            nn.init.normal_(self.rows, std=self.ratio * self.pace**-0.5)

    def prepare(self, positions: Tensor) -> Tensor:
        """Return the sinusoids (L, width) at positions (L, P), or the indices of their rows (L,)."""
        if self.rows is None:
            return sinusoid(positions, self.width, self.base, self.ratio, self.slowest_of, self.center)
        return cell_indices(positions, self.spec.extent, self.owner)

    def forward(self, prepared: Tensor) -> Tensor:
        """Return the vectors (L, width), given what `prepare` returned."""
        return prepared if self.rows is None else self.rows[prepared] * self.pace**0.5


class TableEncoding(PositionalEncoding):
    """Base of encodings whose state is one vector per position; subclasses define its use."""

    table: Table

    def make_table(
        self,
        kind: str,
        width: int,
        base: float = 10000.0,
        ratio: float = 1.0,
        width_name: str = "d_p",
        centered: bool = False,
        slowest_of: int | None = None,
    ) -> None:
        """Make the table; with a trained one the encoding has more parameters, and refuses positions without a row.

        Args:
            kind: One of `KINDS`.
            width: Channels of a vector.
            base: Base of a sinusoid's wavelengths, dimensionless.
            ratio: Root mean square of the vectors.
            width_name: Name of the option that gives the width, for messages.
            centered: True to subtract a sinusoid's mean over the trained positions.
            slowest_of: Width of the sinusoid of which these are the slowest channels; ``None`` takes all of one.

        Raises:
            ValueError: As `Table`, or for a width that cannot hold a sinusoid.
        """
        if kind != "learned":
            check_width(width, self.spec.num_axes, f"{width_name} of encoding {self.name!r}")
        elif width <= 0:
            raise ValueError(f"{width_name} of encoding {self.name!r} must be positive, got {width}")
        pace = self.content_width
        self.table = Table(kind, self.spec, width, base, ratio, self.name, pace, centered, slowest_of)
        if self.table.rows is not None:
            # on the instance, as the option decides; `size` is a formula, so a sum is joined as text
            own = "" if self.size == "0" else f"{self.size} + "
            self.beyond, self.size = "refuses", f"{own}max_len * {width}"  # type: ignore[misc]

    def prepare(self, positions: Tensor) -> Any:
        """Return the sinusoids, or the indices of rows, at `positions`."""
        return self.table.prepare(positions)

    def forward(self, state: Any) -> Tensor:
        """Return the vectors at the positions: (L, width)."""
        return self.table(state)
