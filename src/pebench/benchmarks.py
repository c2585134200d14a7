"""Makes `benchmarks/`, at the top of a checkout, the package `pebench.benchmarks`, which it is in an installed wheel.

There the folder itself lies beside this file, and Python imports it instead.
"""

from pathlib import Path

__path__ = [str(Path(__file__).parents[2] / "benchmarks")]
