"""A page for each encoding, and the tables of all, from their classes and the published records."""

import contextlib
import functools
import io
import re
import tempfile
from pathlib import Path

from generate.markdown import code, formula, front_matter, table, ticks
from generate.published import ROOT, Standing, setting, standings_by_encoding
from pebench.cli import main
from pebench.cli.catalogue import LEGEND, cells, grouped, papers
from pebench.encodings.cards import EncodingCard
from pebench.encodings.families import GROUPS, group_of
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.results.citations import bibtex
from pebench.results.scorecard.costs import Cost, read_costs
from pebench.results.titles import headline

SECTION = re.compile(r"^(Args|Shape|Raises|Source|Differs from the paper|Example|Returns):\n((?:(?: {4}.*)?\n)*)", re.M)
NOTATION = {
    "Nothing": "ℓ is the attention logit of query i and key j in a head of K channels.",
    "Input": "x is the content of a token and p its position; s is the sinusoid of [`add`](add.md).",
    "Queries and keys": "ℓ is the attention logit of query i and key j in a head of K channels, p a position.",
    "Attention logits": "ℓ is the attention logit of query i and key j, tokens at positions i and j, in head h.",
    "Content": "ℓ is the attention logit of query i and key j in a head of K channels; σ is the logistic function.",
    "Other encodings": "A prime marks what the other encoding gives, or is given.",
}
"""Letters of formulas, by the group of the encoding."""

CARD = ("Acts on", "Positions", "Models", "Shift", "Beyond", "KV cache", "Parameters")
"""Rows of a card."""

PARTS = {
    r"R_{p_i}": "R is the rotation of [`rope`](rope.md): pair c of n pairs of channels turns by p ω.",
    r"\theta": "θ is the option `theta`.",
    r"\sigma": "σ is the logistic function.",
    r"\mathrm{": "Upright words are options or functions.",
}
"""More notes on letters, by a part of the formula that has them."""


def pages() -> dict[str, str]:
    """Return the page of every encoding, by its address."""
    return {f"encodings/{name}.md": _page(card) for name, card in encoding_cards().items()}


def menu() -> list[dict[str, str | list[dict[str, str]]]]:
    """Return the pages' part of the menu, by what encodings act on."""
    found: list[dict[str, str | list[dict[str, str]]]] = [{"All encodings": "encodings.md"}]
    for title, group in grouped(encoding_cards()).items():
        found.append({title: [{card.name: f"encodings/{card.name}.md"} for card in group]})
    return found


def overview() -> str:
    """Return a short table of the encodings of each group, with links to their pages."""
    parts = []
    for title, group in grouped(encoding_cards()).items():
        rows = [
            {"Encoding": f"[`{card.name}`](encodings/{card.name}.md)", "What it is": ticks(card.summary)}
            | {head: cells(card)[head] for head in ("Positions", "Shift", "Beyond", "Parameters")}
            for card in group
        ]
        parts.append(f"### {title}: {GROUPS[title]}\n\n{table(rows)}")
    return f"{LEGEND}\n\n" + "\n".join(parts)


@functools.cache
def pictures() -> dict[str, bytes]:
    """Return the picture of every encoding that has an effect to draw, by its address."""
    import torch

    torch.set_num_threads(1)  # threads of small products wait for each other, on a busy machine for long
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in encoding_cards():
            path = Path(folder) / f"{name}.svg"
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                code_of_exit = main(["plot-encoding", name, "--output", str(path)])
            if code_of_exit == 0:
                found[f"encodings/{name}.svg"] = path.read_bytes()
    return found


def _page(card: EncodingCard) -> str:
    body, sections = _docstring(card)
    parts = [
        # a name that others contain comes before them
        front_matter(card.name, f"boost: {4 if '-' in card.name else 8}"),
        f"# {card.name}\n\n{ticks(card.summary)}.\n",
        _formula(card),
        ticks(body),
        _picture(card),
        f"## Card\n\n{_card(card)}",
        _options(card),
        _costs(card),
        _results(card),
        f"## Source\n\n{_paragraph(sections.get('Source', ''))}\n",
        _differences(sections.get("Differs from the paper", "")),
        f"Papers: {papers(card)}.\n" if papers(card) else "",
        code(bibtex([card.name]), "bibtex"),
        _names(card),
    ]
    return "\n".join(part for part in parts if part)


def _docstring(card: EncodingCard) -> tuple[str, dict[str, str]]:
    """Return the class's docstring below its first line, and its sections by name."""
    import inspect

    text = f"{inspect.getdoc(load_encoding(card.name)) or ''}\n"
    _, _, rest = text.partition("\n")
    return SECTION.sub("", rest).strip() + "\n", dict(SECTION.findall(rest))


def _formula(card: EncodingCard) -> str:
    latex = card.declared["formula"]
    if not latex:
        return ""
    notes = [NOTATION[group_of(card)], *(note for part, note in PARTS.items() if part in latex)]
    text = " ".join(dict.fromkeys(notes)).replace(f" of [`{card.name}`]({card.name}.md)", " below")
    return f"{formula(latex)}\n\n{text}\n"


def _picture(card: EncodingCard) -> str:
    if f"encodings/{card.name}.svg" not in pictures():
        return "There is nothing to draw: no part of the model is changed by positions.\n"
    return f"![{card.name}: its effect, and how alike it makes positions by their distance]({card.name}.svg)\n"


def _card(card: EncodingCard) -> str:
    found = cells(card)
    rows = [{"Property": head, "Value": found[head] or "–"} for head in CARD]
    return f"{table(rows)}\nWords and letters: [legend](../encodings.md#by-what-they-act-on).\n"


def _options(card: EncodingCard) -> str:
    if not card.options:
        return ""
    rows = [
        {"Option": f"`{name}`", "Default": f"`{default}`", "Meaning": ticks(card.meanings.get(name, ""))}
        for name, default in card.options.items()
    ]
    setting = f"`--set encoding.{next(iter(card.options))}=VALUE`"
    return (
        f"## Options\n\n{table(rows)}\n`pebench run` takes them as {setting}, for a table of its own, or in a name: "
        + (f"`--pe '{card.name}({next(iter(card.options))}=VALUE)'`.\n")
    )


def _costs(card: EncodingCard) -> str:
    found = read_costs(ROOT / "results").of(card.name)
    rows = [
        {"Tokens": f"{tokens:,}"} | ({"Time": cost.why, "Memory": ""} if cost.why else _ratios(cost))
        for tokens, cost in found.items()
        if cost != Cost()
    ]
    if not rows:
        return ""
    return (
        "## What it costs\n\nA training step of a small model of causal text, over one with `none` ([measured]"
        f"(../results/studies/encoding_costs.md)):\n\n{table(rows)}"
    )


def _ratios(cost: Cost) -> dict[str, str]:
    return {"Time": f"{cost.time:.2f}", "Memory": f"{cost.memory:.2f}"}


def _results(card: EncodingCard) -> str:
    found = standings_by_encoding().get(card.name, [])
    if not found:
        return ""
    by_metric: dict[str, list[Standing]] = {}
    # as a reference it has no difference to show
    for standing in sorted(found, key=lambda standing: standing.row.label == standing.table.reference):
        by_metric.setdefault(headline(standing.task), []).append(standing)
    parts = [
        "## Where it stands\n\nIts row in every published table: mean over n seeds ± half a 95 % interval, the "
        "difference to the table's reference at equal seeds, and what a corrected paired test says of it ([words]"
        "(../guides/getting-started.md#the-first-run))."
    ]
    for metric, standings in sorted(by_metric.items()):
        parts.append(f"### {metric.capitalize()}\n\n{table([_result(one) for one in standings], True, len(found) > 9)}")
    return "\n\n".join(parts)


def _result(standing: Standing) -> dict[str, str]:
    config, reference = standing.row.config, standing.table.reference
    return {
        "Row": f"`{standing.row.label}`",
        "Task": f"[{standing.task.name}](../tasks/{standing.task.name}.md)",
        "Verdict": standing.verdict,
        "Difference": "–" if standing.row.label == reference else f"{standing.difference} to `{reference}`",
        "Score": standing.score,
        "Seeds": str(len(standing.row.values)),
        "Results": f"[{standing.suite}](../results/{standing.suite}.md)",
        "Setting": ", ".join(filter(None, [f"tier {config.tier}", setting(standing)])),
    }


def _paragraph(text: str) -> str:
    return ticks(" ".join(text.split()))


def _differences(text: str) -> str:
    if not text.strip():
        return ""
    items = re.split(r"^ {4}(?=\d+\. )", text, flags=re.MULTILINE)
    return "## Differs from the paper\n\n" + "\n".join(_paragraph(item) for item in items if item.strip()) + "\n"


def _names(card: EncodingCard) -> str:
    """Return the encoding's other names in the literature: those that docs/encodings.md explains, and its aliases."""
    text = (ROOT / "docs" / "encodings.md").read_text(encoding="utf-8").partition("## Other names")[2]
    known = [
        {"Name": name.strip(), "Here": here.strip()}
        for name, here in re.findall(r"^\| (.*?) \| (.*?) \|$", text.partition("\n## ")[0], re.MULTILINE)
        if f"`{card.name}`" in here
    ]
    aliases = ", ".join(card.declared["aliases"])
    if not (known or aliases):
        return ""
    hint = f"\n`pebench run --pe NAME` points here from: {aliases}.\n" if aliases else ""
    return f"## Other names\n\n{table(known) if known else ''}{hint}"
