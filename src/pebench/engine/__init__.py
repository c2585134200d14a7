"""The engine: has the runs of a suite done, here or elsewhere, and tells how far they are."""
