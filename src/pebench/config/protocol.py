"""The protocol's version and vocabulary: the values that a configuration's named settings may take."""

PROTOCOL_VERSION = "0.2"
"""Version of the rules under which records are comparable. A changed default, split, metric or trunk raises it."""

CORE_ENCODINGS = ("add", "concat", "learned", "none", "rope")
"""Encodings that a comparison runs when none are named."""

REFERENCE_ENCODING = "add"
"""Encoding that the others are compared to unless another is named."""

# bf16-true and 64-true also hold the weights in that precision; the mixed ones keep them in 32 bits.
AUTO = "auto"
"""The precision of runs that leave it to the machine on which they are planned; no run is made with this name."""

PRECISIONS = ("32-true", "bf16-mixed", "bf16-true", "16-mixed", "64-true", AUTO)
"""Lightning's names of the precisions that a run may compute in, and `AUTO`."""

REGIMES = ("width", "parameters", "FLOPs")
"""Quantity that is equal between the rows of a table: the trunk's width, the number of parameters, or the operations
of a training step."""

SELECTION_SEED = 1_000_000
"""First seed of the runs that select settings. Tested runs have lower ones, so no seed both selects and is tested."""

MONITORS = ("loss", "metric")
"""Validation quantity that chooses weights and settings: the lowest loss, or the best headline metric."""

SEGMENTS = ("sum", "concat")
"""Ways in which a model may be given the segment of each token, by `pebench.layers.SegmentedEmbedding`."""

TOKEN_TABLES = ("frozen", "trained")
"""Ways in which a run may use the token table of another run: as it is, or as a start that training changes."""

INTERPOLATIONS = ("linear", "bicubic")
"""Ways in which tables of positions and of biases may be interpolated for sizes that their encoding refuses."""

STAGES = ("test", "select")
"""Purpose of a run: to be tested, or to choose a setting by its validation metrics. The latter is never tested."""

TIERS = ("smoke", "minute", "quick", "core", "full")
"""Training budgets, from two steps to what needs a modern GPU."""
