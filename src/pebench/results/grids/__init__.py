"""Grids: the cells of every kind of table that pages show, for all writers."""

from pebench.results.cells import NOTHING, p_text, plus_minus
from pebench.results.grids.comparison import changes, differences, front_page, side_by_side
from pebench.results.grids.inside import inside
from pebench.results.grids.measurements import beside_control, by_position, extrapolation, position_shares, size_factor
from pebench.results.grids.quality import epochs_text, quality
from pebench.results.grids.reading import by_family, verdict_first
from pebench.results.grids.speedup import speedup
from pebench.results.grids.standings import standings
from pebench.results.grids.table import contrasts, costs, pairs, results, sweep
from pebench.results.titles import difference_unit

__all__ = [
    "NOTHING", "beside_control", "by_family", "by_position", "changes", "contrasts", "costs",
    "difference_unit", "differences", "epochs_text", "extrapolation", "front_page", "inside", "p_text", "pairs",
    "plus_minus", "position_shares", "quality", "results", "side_by_side", "size_factor", "speedup", "standings",
    "sweep", "verdict_first",
]  # fmt: skip
