"""Golden values: the output of every encoding, recomputed in plain Python from the papers."""
