"""Tables of all encodings, made from their cards: for the terminal, README.md and docs/encodings.md."""

import re
import textwrap
from collections.abc import Mapping

from pebench.encodings.cards import HOOKS, EncodingCard
from pebench.encodings.families import GROUPS, group_of
from pebench.encodings.registry import encoding_cards, find_plugin, plugin_cards
from pebench.formatting import format_options
from pebench.results.citations import OWN, link
from pebench.results.writers.markdown import inline

WIDTH = 120

SYMBOLS = {
    "d_model": "D", "num_heads": "H", "head_dim": "K", "num_layers": "N", "num_axes": "P", "max_len": "L",
    " ** ": "^", " // ": "/", " * ": "·",
}  # fmt: skip
LEGEND = (
    "D width, H heads, K head width, N layers, P axes, L tokens, extent: tokens per axis. Relative: a shift of all "
    "positions changes nothing. Beyond: what it does with positions outside the trained extent, not how well. KV "
    "cache: during generation, a cache of keys and values works; needs more beside it of each token; or goes "
    "stale, as they change. –: as of the encodings that it changes; for images alone, no causal text."
)


def listing() -> str:
    """Return a table of all encodings, those of installed packages included, for a terminal of `WIDTH` columns."""
    cards, problems = plugin_cards()
    groups = grouped(encoding_cards()) | ({"Plug-ins": list(cards.values())} if cards else {})
    width = max(len(card.name) for group in groups.values() for card in group)
    lines = [_line(width, ["Encoding", "Acts on", "Positions", "Models", "Shift", "Beyond", "KV cache"]), ""]
    for title, group in groups.items():
        lines.append(title + (f": {GROUPS[title]}" if title in GROUPS else ""))
        for card in group:
            lines.append(_line(width, list(cells(card).values())))
            lines += _wrapped(card.summary.replace("``", "")) + _wrapped(_details(card))
        lines.append("")
    lines += textwrap.wrap(LEGEND, WIDTH)
    if problems:
        lines += ["", "Cannot be used", *(f"  {problem}" for problem in problems)]
    return "\n".join(lines) + "\n"


def _line(width: int, cells: list[str]) -> str:
    name, tells, positions, models, shift, beyond, kv_cache = cells[:7]
    return f"  {name:{width}}  {tells:21}  {positions:12}  {models:6}  {shift:8}  {beyond:8}  {kv_cache}"


def _wrapped(text: str) -> list[str]:
    # Names such as add-proj are not broken, so that they can be searched for and copied.
    return textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6, break_on_hyphens=False)


def _details(card: EncodingCard) -> str:
    """Return parameters, options and origin of an encoding as text."""
    parts = [f"parameters: {parameters(card)}"]
    if card.options:
        parts.append(f"options: {format_options(card.options)}")
    plugin = find_plugin(card.name)
    if plugin and plugin.distribution:
        parts.append(f"from {plugin.distribution} {plugin.version}, {plugin.place}")
    return "; ".join(parts)


def markdown() -> str:
    """Return pebench's own encodings as Markdown tables, one for each group, with descriptions of all options."""
    parts = [f"{LEGEND}\n"]
    for title, group in grouped(encoding_cards()).items():
        rows = [{**cells(card), "Encoding": f"`{card.name}`", "Papers": papers(card)} for card in group]
        parts.append(f"### {title}: {GROUPS[title]}\n\n{_pipe(rows)}\n")
        items = [f"- **{card.name}**: {card.describe_options(card.options)}\n" for card in group if card.options]
        if items:
            parts.append(f"Options:\n\n{''.join(items)}")
    return "\n".join(parts)


def papers(card: EncodingCard) -> str:
    """Return the papers of an encoding as links in Markdown."""
    return ", ".join(inline((link(key),)) for key in card.declared["cite"] if key != OWN)


def overview() -> str:
    """Return the names of pebench's own encodings as a Markdown table, a row for each group."""
    rows = []
    for title, group in grouped(encoding_cards()).items():
        names = ", ".join(f"`{card.name}`" for card in group)
        rows.append({"Acts on": title, "How": GROUPS[title], "Encodings": names})
    return _pipe(rows) + "\n"


def _pipe(rows: list[dict[str, str]]) -> str:
    """Return a Markdown table without padding, so that a change of one row changes one line."""
    table = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(
        # chr(92) is a backslash, which an expression in an f-string may not have before Python 3.12.
        f"| {' | '.join(cell.replace('|', chr(92) + '|').replace('``', '`') for cell in line)} |"
        for line in table
    )


def grouped(cards: Mapping[str, EncodingCard]) -> dict[str, list[EncodingCard]]:
    """Return cards by the title of their group, in the order of `GROUPS`."""
    found: dict[str, list[EncodingCard]] = {group: [] for group in GROUPS}
    for card in cards.values():
        found[group_of(card)].append(card)
    return found


def cells(card: EncodingCard) -> dict[str, str]:
    """Return the cells of an encoding's row, by column."""
    declared = card.declared
    own = not declared["wraps"]
    return {
        "Encoding": card.name,
        "Acts on": (", ".join(HOOKS[hook] for hook in card.hooks) or "nothing") if own else "–",
        "Positions": {(1,): "text", (2,): "images"}.get(declared["axes"], "text, images"),
        "Models": "causal" if declared["causal_only"] else "any",
        "Shift": ("relative" if declared["relative"] else "absolute") if own else "–",
        "Beyond": card.beyond or "–",
        "KV cache": card.kv_cache or "–",
        "Parameters": parameters(card),
        "Options": format_options(card.options),
        "What it is": card.summary,
    }


def parameters(card: EncodingCard) -> str:
    """Return the number of an encoding's parameters as a formula in letters.

    Example:
        >>> parameters(encoding_cards()["cpe"])
        '(3^P + 1)·D'
    """
    if card.declared["wraps"]:
        return "–"
    return re.sub("|".join(map(re.escape, SYMBOLS)), lambda match: SYMBOLS[match[0]], card.declared["size"])
