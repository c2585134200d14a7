"""The card of a submission: what its encoding is called, where it is described, by whom, and under which licence."""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from pebench.atomic import write_text
from pebench.config.names import LONGEST, NAME, is_text
from pebench.errors import UserError
from pebench.formatting import quoted

CARD = "card.json"
"""Name of the file of a card in a submission's folder."""


@dataclass(frozen=True)
class Card:
    """A submission's description of itself.

    Args:
        name: Name of the encoding.
        paper: Source that describes it: a citation in a line, a DOI or an address.
        by: People who submit it.
        code: Address of its code on the web.
        licence: Licence of that code, such as ``MIT``.

    Raises:
        UserError: For a field that is empty or of several lines, or an address that is none.
    """

    name: str
    paper: str
    by: str
    code: str
    licence: str

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (is_text(value) and value.strip() and len(value) <= LONGEST):
                raise UserError(
                    f"the card's {field.name} expects a text on one line, at most {LONGEST} characters, "
                    f"got {quoted(value)}."
                )
        if not re.fullmatch(r"https?://[^\s()<>\[\]]+", self.code):
            raise UserError(f"the card's code expects an address as in https://example.org/code, got {self.code!r}.")


def check_name(name: str) -> None:
    """Refuse a name of a submission that cannot name its folder.

    Raises:
        UserError: With the given name.
    """
    if not (NAME.fullmatch(name) and len(name) <= LONGEST):
        raise UserError(f"--name expects letters, digits and . _ -, as it names a folder, got {quoted(name)}.")


def write_card(card: Card, folder: Path) -> None:
    """Write a card to a submission's folder."""
    write_text(folder / CARD, json.dumps(asdict(card), indent=1, ensure_ascii=False) + "\n")


def read_card(folder: Path) -> Card:
    """Return the card in a submission's folder.

    Raises:
        UserError: If there is none, or it is not as `Card` has it.
    """
    path, known = folder / CARD, [field.name for field in fields(Card)]
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.keys() != {*known}:
            raise UserError(f"expected the fields {', '.join(known)} and no others.")
        return Card(**values)
    except (OSError, ValueError, UserError) as error:
        raise UserError(f"{path}: {error}") from error
