"""Options of a function that makes a task: keywords with plain defaults, in one form. No torch here."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pebench.encodings.options import normalise
from pebench.errors import UserError

TYPES = (bool, int, float, str)
"""Types that an option of a task may have."""


def normal_options(name: str, maker: Callable[..., object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in one form, so that the same run has the same name: those that differ from their defaults.

    Args:
        name: Name or place of the task.
        maker: The function or class that makes it.
        options: Options as they were given.

    Raises:
        UserError: For an option that it does not have, of another type than its default, or not finite.
    """
    defaults = _defaults(name, maker)
    types = {option: type(default) for option, default in defaults.items()}
    return normalise(f"task {name!r}", defaults, types, options)


def _defaults(name: str, maker: Callable[..., object]) -> dict[str, Any]:
    """Return the keyword options of a function that makes a task, with their defaults.

    Raises:
        UserError: For one without a default of a type that a command line can give.
    """
    defaults = {}
    for option in inspect.signature(maker).parameters.values():
        if option.kind is not option.KEYWORD_ONLY or type(option.default) not in TYPES:
            raise UserError(
                f"option {option.name!r} of task {name!r} must be keyword-only, with a bool, int, float or str as its "
                "default."
            )
        defaults[option.name] = option.default
    return defaults
