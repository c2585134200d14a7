"""Names of encodings: ours, registered ones, those of installed packages, and classes in modules.

Ours are classes decorated with ``@register("name")`` in a file of `pebench.encodings`. Listing, checking
a name and checking an option happen here, in milliseconds, from source files alone (see `pebench.encodings.cards`);
`load_encoding` imports the one file.
"""

import ast
import contextlib
import functools
import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pebench.config import RunConfig
from pebench.encodings import calls, plugins
from pebench.encodings.cards import EncodingCard, card_of, find_source, parsed, read_card
from pebench.encodings.origins import digest, source_of
from pebench.encodings.plugins import Plugin
from pebench.errors import UserError, unknown_name

T = TypeVar("T", bound=type)
_registered: dict[str, type] = {}
_plugins: dict[Plugin, type] = {}
_origins: dict[type, dict[str, str]] = {}

OTHER_NAMES = {
    "add": ("sinusoidal", "sinusoid", "sincos", "sincos2d", "absolute", "vanilla"),
    "axial-learned": ("axial", "factorized", "learnedaxial"),
    "concat": ("concatenate", "concatenated", "concatenation"),
    "cpe": ("cpvt", "peg"),
    "fox": ("forgetting", "forgettingtransformer"),
    "interpolated": ("linearscaling", "positioninterpolation"),
    "kerple-log": ("kerple",),
    "learnable-fourier": ("fourier", "fourierfeatures"),
    "learned": ("ape", "learnable", "learnedabsolute"),
    "log-cpb": ("continuouspositionbias", "cpb", "swinv2"),
    "none": ("nope",),
    "ntk-rope": ("dynamicntk", "ntk", "ntkaware"),
    "rope": ("axialrope", "roformer", "rope2d", "rotary", "rotation"),
    "shaw": ("relative", "rpr"),
    "some-layers": ("irope", "rnope"),
    "swin-bias": ("relativepositionbias", "rpb", "swin"),
    "t5-bias": ("relativebias", "t5"),
    "transformer-xl": ("txl",),
}
"""What others call our encodings, in small letters and digits alone; ``docs/encodings.md`` has more, with options."""


def register(name: str) -> Callable[[T], T]:
    """Class decorator that makes an encoding known as `name` in this process.

    Processes of runs find the class in its module, or by importing the script again that asked for them.

    Args:
        name: Of letters, digits and ``. _ -``.

    Raises:
        UserError: If it cannot be a name, or is that of another encoding.
    """

    def decorate(cls: T) -> T:
        if not _is_ours(cls):
            _check_name(name, cls)
        _registered[name] = cls
        cls.name = name  # type: ignore[attr-defined]
        return cls

    return decorate


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("pebench.encodings.")


def _check_name(name: str, cls: type) -> None:
    known = _registered.get(name, cls)
    same = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)  # defined anew, in a notebook
    place = None if same else f"{known.__module__}:{known.__qualname__}"
    plugins.check_name(name, cls.__name__, encoding_cards(), place)


@functools.cache
def encoding_cards() -> dict[str, EncodingCard]:
    """Every encoding of this package by name, in alphabetical order."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        for node in parsed(path):
            if isinstance(node, ast.ClassDef) and (name := _registered_name(node)):
                found[name] = read_card(name, f"pebench.encodings.{path.stem}", node.name)
    return dict(sorted(found.items()))


def _registered_name(node: ast.ClassDef) -> str | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) == "register":
            return str(ast.literal_eval(decorator.args[0]))
    return None


def plugin_cards() -> tuple[dict[str, EncodingCard], list[str]]:
    """Encodings that are registered here or offered by installed packages, and what is wrong with others of those."""
    names = [name for name, cls in _registered.items() if not _is_ours(cls)]
    found, problems = {name: card_of(name, _registered[name]) for name in names}, list(plugins.offered()[1].values())
    for name in plugins.offered()[0]:
        try:
            found[name] = encoding_card(name)
            if name in encoding_cards():
                raise UserError(clash(name))
        except UserError as error:
            problems.append(str(error))
    return {name: card for name, card in sorted(found.items()) if name not in encoding_cards()}, problems


def clash(name: str) -> str:
    """That an installed package offers an encoding by the name of one of ours; nothing if none does."""
    return plugins.clash(name, encoding_cards())


def find_plugin(name: str) -> Plugin | None:
    """Where the encoding called `name` is, unless it is one of ours or was registered in this process.

    Raises:
        UserError: If a package offers it, but not as it should.
    """
    cls = _registered.get(name)
    return plugins.by_name(name, encoding_cards(), cls.__module__ if cls else None)


def hint_of_name(name: str) -> str:
    """What to say of a name that others have for one of ours, or of several in one; nothing of another.

    Args:
        name: Without options.

    Example:
        >>> hint_of_name("RoPE-2D")
        "'rope' is what it is called here; see: pebench list encodings"
    """
    if "," in name:
        return f"Expected one name each: {' '.join(f'--pe {part.strip()}' for part in name.split(','))}"
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    ours = next((ours for ours, others in OTHER_NAMES.items() if plain in others), None)
    return f"{ours!r} is what it is called here; see: pebench list encodings" if ours else ""


def unknown_encoding(kind: str, name: str, known: Iterable[str]) -> UserError:
    """As `unknown_name`, but that a name which others have for one of ours is answered with ours."""
    hint = hint_of_name(name.partition("(")[0])
    return UserError(f"unknown {kind} {name!r}. {hint}") if hint else unknown_name(kind, name, known)


def encoding_card(name: str) -> EncodingCard:
    """The card of the encoding called `name`.

    Raises:
        UserError: Where there is none, with the nearest name.
    """
    if name in encoding_cards():
        return encoding_cards()[name]
    if plugin := find_plugin(name):
        return plugins.card(plugin)
    if name in _registered:
        return card_of(name, _registered[name])
    if hint := plugins.hint_of_file(name):
        raise UserError(f"unknown encoding {name!r}.{hint}")
    raise unknown_encoding("encoding", name, [*encoding_cards(), *_registered, *plugins.offered()[0], "module:Class"])


def load_encoding(name: str) -> type:
    """The class of the encoding called `name`; imports its file.

    Raises:
        UserError: Where there is none, or importing it fails.
    """
    if name in encoding_cards() and name not in _registered:
        importlib.import_module(encoding_cards()[name].module)
    if plugin := find_plugin(name):
        if plugin not in _plugins:
            facts = plugins.origin(plugin)  # before the import: the source may change later
            _plugins[plugin] = plugins.load(plugin)
            _origins[_plugins[plugin]] = facts
        return _plugins[plugin]
    encoding_card(name)
    cls = _registered[name]
    if not _is_ours(cls) and cls not in _origins:
        place = f"{cls.__module__}:{cls.__qualname__}"
        _origins[cls] = {"place": place, "sha256": digest(source_of(cls.__module__))}
    return cls


def source_now(name: str) -> str | None:
    """The SHA-256 of the source of the plug-in called `name`, as it is now; None if it is not here."""
    try:
        plugin = find_plugin(name)
    except UserError:
        return None
    cls = _registered.get(name)
    source = find_source(plugin.module) if plugin else source_of(cls.__module__) if cls else None
    return digest(source) if source else None


def _modules() -> dict[str, str]:
    """The names that others than pebench have registered in this process, each with its module."""
    return {name: cls.__module__ for name, cls in _registered.items() if not _is_ours(cls)}


def needs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What another process needs to know the encodings that this one does: folders, and modules to import."""
    return plugins.needs(_modules().values())


def adopt(folders: Iterable[str], modules: Iterable[str]) -> None:
    """Know the encodings that another process does; see `needs`.

    Raises:
        UserError: If a module cannot be imported.
    """
    plugins.add_paths(folders)
    for module in modules:
        plugins.import_module(module, f"what registers encodings, {module}")


def stays_here(words: Iterable[str], script: bool, modules: bool = True) -> str:
    """The encoding, if any, that other processes will not know, since they do not import what registered it.

    Args:
        words: Names of encodings, and options that may name others.
        script: Whether those processes import the script again that started this one, as multiprocessing's do.
        modules: Whether they import the modules that this one has.
    """
    return plugins.stays_here(_modules(), words, script, modules)


def origins(classes: Iterable[type]) -> dict[str, dict[str, str]]:
    """What those of some classes are that are not ours, and where from, by name: what a record says of them."""
    found = {cls.name: cls for cls in classes if cls in _origins}  # type: ignore[attr-defined]
    return {name: _origins[cls] | {"summary": card_of(name, cls).summary} for name, cls in found.items()}


def parse_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """Take apart a name with options, as one encoding's option names another.

    Args:
        text: ``"rope"``, ``"rope(theta=500.0)"``, or as tables name it: ``"concat (table=learned)"``.

    Returns:
        The name, and options in their normal form.

    Raises:
        UserError: If it cannot be read, or names what does not exist.

    Example:
        >>> parse_encoding("rope(theta=500)")
        ('rope', {'theta': 500.0})
    """
    name, options = read_encoding(text)
    return name, normal_options(name, options)


def read_encoding(text: str) -> tuple[str, dict[str, Any]]:
    """What `parse_encoding` returns, but options as they are given, those that have their defaults too."""
    name, options = calls.read_call(text, "an encoding as in rope, rope(theta=500.0) or concat(table=learned)")
    if not options:
        encoding_card(name)
    return name, options


def parts_of(name: str, options: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """An encoding, and those that it changes or joins, each with the options that it is given.

    Args:
        name: Of the encoding.
        options: Those that differ from their defaults.

    Example:
        >>> list(parts_of("stack", {"second": "alibi"}))
        [('stack', {'second': 'alibi'}), ('add', {}), ('alibi', {})]
    """
    yield name, options
    card = encoding_card(name)
    for value in {**card.options, **options}.values() if card.declared["wraps"] else ():
        if isinstance(value, str):
            with contextlib.suppress(UserError):  # an option that names no encoding
                yield from parts_of(*parse_encoding(value))


def our_parts(configs: Iterable[RunConfig]) -> dict[str, set[str]]:
    """Our own encodings that runs consist of, by name, each with the options that some of the runs set.

    Those of others are left out: a page must not depend on which packages its reader has.

    Args:
        configs: Of the runs.
    """
    ours, found = encoding_cards(), dict[str, set[str]]()
    for config in configs:
        for name, options in parts_of(config.encoding, config.encoding_args) if config.encoding in ours else ():
            if name in ours:
                found.setdefault(name, set()).update(options)
    return found


def normal_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an encoding in one form, so that the same run has the same name.

    Args:
        name: Of the encoding.
        options: Keyword options of its constructor.

    Returns:
        The options that differ from their defaults, whole numbers made floats where floats are meant.

    Raises:
        UserError: For an option that it does not have, of the wrong type, or not finite.

    Example:
        >>> normal_options("rope", {"theta": 10}), normal_options("add", {"ratio": 1})
        ({'theta': 10.0}, {})
    """
    card, normal = encoding_card(name), {}
    for option, value in options.items():
        if option not in card.options:
            raise unknown_name(f"option of encoding {name!r}:", option, card.options or ["(it has none)"])
        kind, default = card.types[option], card.options[option]
        if kind is float and type(value) is int:
            value = float(value) if abs(value) <= sys.float_info.max else math.inf
        if value == default:
            continue
        if type(value) is not kind:
            raise UserError(f"option {option!r} of encoding {name!r} expects {kind.__name__}, got {value!r}.")
        if isinstance(value, float) and not math.isfinite(value):  # which no record can hold
            raise UserError(f"option {option!r} of encoding {name!r} must be finite, got {value!r}.")
        normal[option] = value
    return normal
