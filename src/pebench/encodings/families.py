"""Families of encodings: the part of the model that each acts on, which its card decides."""

from pebench.encodings.cards import EncodingCard
from pebench.encodings.ours import encoding_cards

GROUPS = {
    "Nothing": "no positional information",
    "Input": "a term, a factor or channels of their own, once or in every block",
    "Queries and keys": "a rotation, a term, or channels of their own, in every layer",
    "Attention logits": "a term that depends on two positions or their offset, in every layer",
    "Content": "tokens are counted or weighted by what they are; their positions are not used",
    "Other encodings": "restricts where another one acts, changes its positions, scale or width, or combines two",
}
"""Groups by what encodings act on, with descriptions; `group_of` returns the group of a card."""

NOT_OURS = "Not part of pebench"
"""Family of encodings of other packages and of one's own."""

FAMILIES = (*GROUPS, NOT_OURS)
"""All families, in the order of pages."""


def group_of(card: EncodingCard) -> str:
    """Return the group of an encoding, which its hooks and declarations decide.

    Example:
        >>> group_of(encoding_cards()["rope"]), group_of(encoding_cards()["stack"])
        ('Queries and keys', 'Other encodings')
    """
    if not card.hooks:
        return "Nothing"
    if card.declared["wraps"]:
        return "Other encodings"
    # Before the hooks: what depends on content says so, whichever hook it uses for that.
    if card.declared["contextual"]:
        return "Content"
    if {"query_key", "value", "output"} & set(card.hooks):
        return "Queries and keys"
    return "Attention logits" if "bias" in card.hooks else "Input"


def family_of(label: str) -> str:
    """Return the family of a row by its label.

    Args:
        label: An encoding with its options: ``concat (d_p=16)``.

    Example:
        >>> family_of("concat (d_p=16)"), family_of("my_module:MyEncoding")
        ('Input', 'Not part of pebench')
    """
    card = encoding_cards().get(label.partition(" (")[0])
    return group_of(card) if card else NOT_OURS
