"""The engine: makes the runs of a suite, here or elsewhere, and reports how far they are."""
