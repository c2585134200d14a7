"""Encodings by name: pebench's own, registered ones, those of installed packages, and classes in modules.

Pebench's own are classes decorated with ``@register("name")`` in a file of `pebench.encodings`. Listing them, checking
a name and checking an option take milliseconds, as they read source files alone (see `pebench.encodings.cards`);
`load_encoding` imports the one file.

Calls go one way: from here to `options`, `registered`, `plugins` and `ours`, from these to `cards`, and from there to
`sources`.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pebench.config import RunConfig
from pebench.encodings import plugin_modules, plugins, registered
from pebench.encodings.cards import EncodingCard, card_of
from pebench.encodings.options import normalise, split_options
from pebench.encodings.origins import digest, source_of
from pebench.encodings.ours import encoding_cards, unknown_encoding
from pebench.encodings.plugins import Plugin
from pebench.encodings.registered import adopt, needs, origins, stays_here
from pebench.errors import UserError

__all__ = [
    "adopt", "clash", "encoding_card", "encoding_cards", "find_plugin", "load_encoding", "needs",
    "normal_options", "origins", "our_parts", "parse_encoding", "parts_of", "plugin_cards", "read_encoding", "register",
    "source_now", "stays_here", "unknown_encoding",
]  # fmt: skip

T = TypeVar("T", bound=type)
_loaded: dict[Plugin, type] = {}


def register(name: str) -> Callable[[T], T]:
    """Class decorator that makes an encoding known by a name in this process.

    Processes of runs find the class in its module, or by importing the script that they were started from.

    Args:
        name: A name of letters, digits and ``. _ -``.

    Raises:
        UserError: If it cannot be a name, or is the name of another encoding.
    """

    def decorate(cls: T) -> T:
        # the check refuses names that pebench has, which its own classes must have
        if not registered.is_ours(cls):
            _check_name(name, cls)
        registered.classes[name] = cls
        cls.name = name  # type: ignore[attr-defined]
        return cls

    return decorate


def _check_name(name: str, cls: type) -> None:
    known = registered.classes.get(name, cls)
    same = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)  # as a cell is run again
    place = None if same else f"{known.__module__}:{known.__qualname__}"
    plugins.check_name(name, cls.__name__, encoding_cards(), place)


# Cards and classes by name


def plugin_cards() -> tuple[dict[str, EncodingCard], list[str]]:
    """Return the cards of registered and installed encodings of others, and the problems of those that have any."""
    offered, broken = plugins.offered()
    found = {name: card_of(name, cls) for name, cls in registered.of_others().items()}
    problems = list(broken.values())
    for name in offered:
        try:
            found[name] = encoding_card(name)
            # raised to be caught below: a clash is a problem like any other
            if name in encoding_cards():
                raise UserError(clash(name))
        except UserError as error:
            problems.append(str(error))
    return {name: card for name, card in sorted(found.items()) if name not in encoding_cards()}, problems


def clash(name: str) -> str:
    """Return a warning if an installed package offers an encoding by a name of pebench's own; else nothing."""
    return plugins.clash(name, encoding_cards())


def find_plugin(name: str) -> Plugin | None:
    """Return the plug-in of a name; None for pebench's own encodings and those registered in this process.

    Raises:
        UserError: If an installed package offers the name in a way that cannot be used.
    """
    cls = registered.classes.get(name)
    return plugins.by_name(name, encoding_cards(), cls.__module__ if cls else None)


def encoding_card(name: str) -> EncodingCard:
    """Return the card of an encoding.

    Raises:
        UserError: If there is no encoding of that name; the message has the nearest one.
    """
    if name in encoding_cards():
        return encoding_cards()[name]
    if plugin := find_plugin(name):
        return plugin_modules.card(plugin)
    if name in registered.classes:
        return card_of(name, registered.classes[name])
    if hint := plugins.hint_of_file(name):
        raise UserError(f"unknown encoding {name!r}.{hint}")
    known = [*encoding_cards(), *registered.classes, *plugins.offered()[0], "module:Class"]
    raise unknown_encoding("encoding", name, known)


def load_encoding(name: str) -> type:
    """Return the class of an encoding; imports its file.

    Raises:
        UserError: If there is no encoding of that name, or importing it fails.
    """
    if plugin := find_plugin(name):
        return _load_plugin(plugin)
    card = encoding_card(name)
    if name not in registered.classes:
        importlib.import_module(card.module)
    cls = registered.classes[name]
    if not registered.is_ours(cls):
        registered.remember_origin(cls)
    return cls


def _load_plugin(plugin: Plugin) -> type:
    if plugin not in _loaded:
        facts = plugin_modules.origin(plugin)  # before the import, as the source may change later
        _loaded[plugin] = plugin_modules.load(plugin)
        registered.remember_origin(_loaded[plugin], facts)
    return _loaded[plugin]


def source_now(name: str) -> str | None:
    """Return the SHA-256 of a plug-in's source as it is now; None if the plug-in is not here."""
    try:
        plugin = find_plugin(name)
    # offered in a way that cannot be used: not here
    except UserError:
        return None
    cls = registered.classes.get(name)
    module = plugin.module if plugin else cls.__module__ if cls else None
    source = source_of(module) if module else None
    return digest(source) if source else None


# Names with options


def parse_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a name with options, as one encoding's option may hold another.

    Args:
        text: ``"rope"``, ``"rope(theta=500.0)"``, or a table's label: ``"concat (table=learned)"``.

    Returns:
        The name, and the options that differ from their defaults.

    Raises:
        UserError: If the text has another form, or names what does not exist.

    Example:
        >>> parse_encoding("rope(theta=500)")
        ('rope', {'theta': 500.0})
    """
    name, options = read_encoding(text)
    return name, normal_options(name, options)


def read_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """Return what `parse_encoding` does, but all options, as they are written."""
    name, options = split_options(text)
    if "(" not in text:  # options are checked by who takes them, and the name with them
        encoding_card(name)
    return name, options


def normal_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults, whole numbers made floats where floats are meant.

    Args:
        name: The encoding's name.
        options: Keyword options of its constructor.

    Raises:
        UserError: For an option that the encoding does not have, of the wrong type, or not finite.

    Example:
        >>> normal_options("rope", {"theta": 10}), normal_options("add", {"ratio": 1})
        ({'theta': 10.0}, {})
    """
    card = encoding_card(name)
    return normalise(f"encoding {card.name!r}", card.options, card.types, options)


def parts_of(name: str, options: Mapping[str, Any], ours: bool = False) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield an encoding, and the encodings that it changes or combines, each with its options.

    Args:
        name: The encoding's name.
        options: Options that differ from their defaults.
        ours: Look at no parts but pebench's own: the module of another's would have to be imported.

    Example:
        >>> list(parts_of("stack", {"second": "alibi"}))
        [('stack', {'second': 'alibi'}), ('add', {}), ('alibi', {})]
    """
    yield name, options
    card = encoding_card(name)
    if not card.declared["wraps"]:
        return
    for value in {**card.options, **options}.values():
        if isinstance(value, str) and (not ours or value.partition("(")[0].rstrip() in encoding_cards()):
            with contextlib.suppress(UserError):  # an option that names no encoding
                yield from parts_of(*parse_encoding(value), ours)


def our_parts(configs: Iterable[RunConfig]) -> dict[str, set[str]]:
    """Return the encodings of pebench's own that runs consist of, by name, with the options that some run sets.

    Others' encodings are left out, as a page must not depend on the packages that its reader has.

    Args:
        configs: Configurations of the runs.
    """
    ours, found = encoding_cards(), dict[str, set[str]]()
    for config in configs:
        if config.encoding not in ours:
            continue
        for name, options in parts_of(config.encoding, config.encoding_args, ours=True):
            found.setdefault(name, set()).update(options)
    return found
