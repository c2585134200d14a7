"""Pairs of texts, of which a model says whether the second follows the first: BERT's task, on WikiText-2."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pebench.data.base import Prepared
from pebench.data.hub import load_hub
from pebench.data.tables import Columns
from pebench.data.text import LabelledTexts
from pebench.data.words import SPECIAL, token_ids, train_words
from pebench.errors import UserError
from pebench.tasks import sources

SEPARATOR = "[sep]"
"""The token between the two texts of a pair; its number follows those of `SPECIAL`."""

SHORTEST = 10
"""Words of the shortest line that counts: shorter ones are cells of tables and items of lists."""

TITLE = re.compile(r" = [^=].* = \n?")
"""A line that begins an article; headings of its sections have more than one sign on each side."""


class WikiText2Pairs(LabelledTexts):
    """Lines of WikiText-2, which are paragraphs: label 1 where the second follows the first, else 0.

    Every line that has a successor in its article is the first of two pairs: with that successor, and with the
    successor of a random line of another article of the same split. So labels are balanced, and neither text alone says
    anything of them. Of the first text the end is kept, of the second the beginning, and the separator stands between
    them. The first has at most a random part of `max_len`, from a quarter to three quarters, and the second the rest:
    otherwise a token's position would nearly always say which of the two it is of.
    """

    title, source, keeps_beginning = "wikitext2-pairs", sources.WIKITEXT2_PAIRS, False

    def describe(self) -> dict[str, Any]:
        """Return the sizes of vocabulary, text and label set, and the token that separates the two texts."""
        return {**super().describe(), "separator": len(SPECIAL)}

    def read(self) -> Prepared:
        """Load, make the vocabulary of the training lines, and pair the lines of each split."""
        special = (*SPECIAL, SEPARATOR)
        if self.max_len < 3 or self.vocab_size < len(special):
            raise UserError(
                f"text-pairs needs data.max_len of at least 3 and data.vocab_size of at least {len(special)}, "
                f"got {self.max_len} and {self.vocab_size}."
            )
        data = load_hub(self.source, self.data_dir, {"train", "validation", "test"}, Columns(blank=True))
        tokenizer, tensors = None, dict[str, Tensor]()
        for seed, (name, key) in enumerate((("train", "train"), ("val", "validation"), ("test", "test"))):
            lines, articles = lines_of_articles(data[key].texts)
            tokenizer = tokenizer or train_words(lines, self.vocab_size, special)
            first, second, labels = paired(articles, seed)
            ids = [*itertools.chain.from_iterable(token_ids(tokenizer, lines))]
            texts = self._joined(ids, first, second, seed)
            tensors |= {
                f"{name}_tokens": torch.from_numpy(np.concatenate(texts)),
                f"{name}_lengths": torch.tensor([len(text) for text in texts], dtype=torch.int32),
                f"{name}_labels": labels,
            }
        return Prepared(tensors, {"vocab_size": tokenizer.get_vocab_size() if tokenizer else 0})

    def _joined(self, lines: Sequence[Any], first: Tensor, second: Tensor, seed: int) -> list[Any]:
        """Return the tokens of each pair, cut to the length; the seed decides how much of it is the first text's."""
        room = self.max_len - 1
        least = max(1, room // 4)
        noise = torch.Generator().manual_seed(seed)
        cuts = torch.randint(least, room - least + 1, first.shape, generator=noise)
        between = np.asarray([len(SPECIAL)], dtype=np.int32)
        pairs = zip(first.tolist(), second.tolist(), cuts.tolist(), strict=True)
        return [np.concatenate((lines[a][-cut:], between, lines[b][: room - cut])) for a, b, cut in pairs]


def joined_pairs(first: Sequence[Any], second: Sequence[Any], max_len: int) -> list[Any]:
    """Return the tokens of each pair with the separator between them; of the longer text the end is cut, as BERT does.

    Args:
        first: Token ids of each first text.
        second: Token ids of each second text.
        max_len: Largest number of tokens of a pair.
    """
    room, between, found = max_len - 1, np.asarray([len(SPECIAL)], dtype=np.int32), []
    for one, other in zip(first, second, strict=True):
        most = max(room - len(other), room - room // 2)  # what the other leaves, or half
        head = one[:most]
        found.append(np.concatenate((head, between, other[: room - len(head)])))
    return found


def lines_of_articles(lines: Sequence[str]) -> tuple[list[str], Tensor]:
    """Return the lines of text in their order, without headings and short ones, and the number of each one's article.

    Args:
        lines: A split of WikiText: titles, headings, empty lines and text.
    """
    kept, articles, article = [], [], 0
    for index, line in enumerate(lines):
        # Some tables have lines of the same form; those stand among others.
        alone = not "".join((*lines[max(0, index - 1) : index], *lines[index + 1 : index + 2])).strip()
        if alone and TITLE.fullmatch(line):
            article += 1
        elif not line.startswith(" = ") and len(line.split()) >= SHORTEST:
            # "mid @-@ level" is how the source writes "mid-level", and <unk> a word that it leaves out.
            kept.append(re.sub(r" @(.)@ ", r"\1", line).replace("<unk>", "unk"))
            articles.append(article)
    return kept, torch.tensor(articles)


def paired(articles: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the indices of the first and of the second line of each pair, and its label.

    Args:
        articles: (lines,) The number of each line's article; lines of an article stand together.
        seed: Decides which lines are paired that do not follow each other.

    Raises:
        UserError: If an article has half of all pairs or more, so that there are too few lines of others.
    """
    first = (articles[1:] == articles[:-1]).nonzero()[:, 0]
    owners, count = articles[first], len(first)
    if not count or 2 * int(owners.unique(return_counts=True)[1].max()) > count:
        raise UserError("text-pairs needs texts of several articles, none of which has more lines than all others.")
    noise = torch.Generator().manual_seed(seed)
    other = torch.randperm(count, generator=noise)
    # Each line stays the second of exactly two pairs: those drawn from their own article swap with others at random.
    while len(same := (owners[other] == owners).nonzero()[:, 0]):
        for place in same.tolist():
            partner = int(torch.randint(count, (1,), generator=noise))
            other[[place, partner]] = other[[partner, place]]
    labels = torch.tensor([1, 0]).repeat_interleave(count)
    return first.repeat(2), torch.cat((first, first[other])) + 1, labels
