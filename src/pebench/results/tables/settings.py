"""Settings of the runs of a table: those that all rows share, and those that may differ between rows."""

from collections.abc import Mapping
from typing import Any

from pebench.config import RunConfig, dotted_settings
from pebench.tasks import Budget


def row_settings(config: RunConfig) -> tuple[str, ...]:
    """Return the names of the settings that may differ between the rows of a table."""
    # The width of the feed-forward layers is what makes rows equally costly.
    matched = () if config.regime == "width" else ("model.d_ff",)
    return (*matched, *config.selected)


def shared_settings(config: RunConfig, free: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of a run without those that may differ between rows.

    Args:
        config: The run's configuration.
        free: Names of the settings that may differ, as `row_settings` returns them.
    """
    return {name: value for name, value in config.settings().items() if name not in free}


def changed_settings(config: RunConfig, budgets: Mapping[str, Budget]) -> dict[str, Any]:
    """Return the shared settings of a run that are not those of its tier's budget.

    Args:
        config: The run's configuration.
        budgets: The task's budgets by tier; all settings count as changed where the tier has none.
    """
    budget = budgets.get(config.tier)
    usual = dotted_settings(budget) if budget else {}
    shared = shared_settings(config, row_settings(config))
    return {name: value for name, value in shared.items() if value != usual.get(name)}
