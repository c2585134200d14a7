"""Suites of runs, what they share, and the scripts that measure pebench itself."""
