"""The modules of plug-ins: imported when they are used, and the class or the task that a plug-in names in one."""

import functools
import importlib
from types import ModuleType
from typing import Any

from pebench.encodings.cards import EncodingCard, card_of, read_card
from pebench.encodings.origins import digest
from pebench.encodings.plugin_processes import note_folder
from pebench.encodings.plugins import Plugin, candidates, hint_of_file, it_has
from pebench.encodings.sources import UnreadableError, bound_names, find_source, hidden_file
from pebench.errors import UserError, nearest, with_place
from pebench.exits import without_exits
from pebench.formatting import MOST, first_line


@functools.cache
def card(plugin: Plugin) -> EncodingCard:
    """Return the card of a plug-in encoding; its module is imported only if its source does not suffice.

    Raises:
        UserError: If there is no such module or class, or it is no encoding.
    """
    note_folder(plugin)
    try:
        return read_card(plugin.name, plugin.module, plugin.cls)
    except UnreadableError:
        return card_of(plugin.name, load(plugin))


def load(plugin: Plugin) -> type:
    """Return the class of a plug-in encoding.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    found = load_object(plugin)
    card_of(plugin.name, found)  # refuses what is no encoding
    # its own: an inherited name is another encoding's
    if "name" not in vars(found):
        found.name = plugin.name
    return found  # type: ignore[no-any-return]


def load_object(plugin: Plugin) -> Any:
    """Import the module of a plug-in and return the object that it names there.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    if (names := bound_names(plugin.module)) is not None and plugin.cls not in names:  # before torch is imported
        raise _missing(plugin, str(find_source(plugin.module)))
    module = import_module(plugin.module, str(plugin))
    if not hasattr(module, plugin.cls):
        raise _missing(plugin, module.__file__ or plugin.module)
    return getattr(module, plugin.cls)


def _missing(plugin: Plugin, place: str) -> UserError:
    near = nearest(plugin.cls, candidates(plugin.module, plugin.group))
    hint = f" Did you mean {plugin.module}:{near}?" if near else it_has(plugin.module, plugin.group)
    return UserError(f"{plugin}: {place} has no {plugin.cls!r}.{hidden_file(plugin.module, place) or hint}")


def import_module(module: str, what: str) -> ModuleType:
    """Import a module.

    Args:
        module: Its dotted name.
        what: Purpose of the module, for the message.

    Raises:
        UserError: If there is none, or importing it fails.
    """
    try:
        with without_exits():
            return importlib.import_module(module)
    # a script without a main guard may exit when it is imported
    except (Exception, SystemExit) as error:
        # the module or a package around it is missing; a missing dependency of it is another failure, told below
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(
                f"{what}: no module {error.name!r} is installed or in this folder.{hint_of_file(module)}"
            ) from error
        text = first_line(str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}", MOST)
        if not isinstance(error, SyntaxError | UserError):  # which name the line themselves
            text = with_place(text, error, own=True)
        raise UserError(f"{what}: importing {module} failed with {text}") from error


def origin(plugin: Plugin) -> dict[str, str]:
    """Return what a record holds of a plug-in: place, package, version, and the SHA-256 of its module's source now."""
    facts = {"place": plugin.place, "distribution": plugin.distribution, "version": plugin.version}
    return {name: text for name, text in facts.items() if text} | {"sha256": digest(find_source(plugin.module))}
