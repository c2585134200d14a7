"""The configuration of a run: typed, frozen settings, and their names on the command line. Torch-free."""

from pebench.config.augmentation import Augmentation
from pebench.config.checks import check_run, check_seed, size_factors
from pebench.config.options import Options
from pebench.config.overrides import (
    assignments,
    literal,
    override,
    parse_settings,
    python_value,
    setting_names,
    sort_key,
    typed,
)
from pebench.config.protocol import (
    AUTO,
    CORE_ENCODINGS,
    MONITORS,
    PRECISIONS,
    PROTOCOL_VERSION,
    REFERENCE_ENCODING,
    REGIMES,
    SEGMENTS,
    SELECTION_SEED,
    STAGES,
    TIERS,
    TOKEN_TABLES,
)
from pebench.config.run import (
    LATER,
    SECTIONS,
    DataConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
    dotted_settings,
    section_values,
)

__all__ = [
    "AUTO", "CORE_ENCODINGS", "LATER", "MONITORS", "PRECISIONS", "PROTOCOL_VERSION", "REFERENCE_ENCODING", "REGIMES",
    "SECTIONS", "SEGMENTS", "SELECTION_SEED", "STAGES", "TIERS", "TOKEN_TABLES", "Augmentation", "DataConfig",
    "ModelConfig", "Options", "RunConfig", "TrainConfig", "assignments", "check_run", "check_seed", "dotted_settings",
    "literal", "override", "parse_settings", "python_value", "section_values", "setting_names", "size_factors",
    "sort_key", "typed",
]  # fmt: skip
