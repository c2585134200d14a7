"""Suites of runs, the grids and rules that they share, and studies that measure pebench itself."""
