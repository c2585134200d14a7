"""Golden values: what every encoding says, recomputed in plain Python from the papers."""
