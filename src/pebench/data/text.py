"""Texts with a label: IMDB, SST-2 and AG News of the hub, and rhyme schemes made here."""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pebench.data.base import SPLITS, Prepared, commonest_share, every_tenth
from pebench.data.batches import Batches, Texts
from pebench.data.checks import check_numbers, check_parts
from pebench.data.hub import load_hub
from pebench.data.lengths import OtherLengths
from pebench.data.tables import Columns, Rows
from pebench.data.words import SPECIAL, encode, train_words
from pebench.errors import UserError
from pebench.tasks import sources


class LabelledTexts(OtherLengths):
    """Labelled texts as token ids, batched by length.

    Args:
        batch_size: Texts in a training batch.
        seed: Decides the order.
        max_len: Longest text in tokens; longer ones keep their beginning.
        vocab_size: Vocabulary, special tokens included; rows of it stay unused where there are fewer words.
        data_dir: Local folder with a copy of the source.
    """

    num_classes: ClassVar[int] = 2
    special: ClassVar[Sequence[str]] = SPECIAL
    """Tokens that the vocabulary begins with."""

    def __init__(
        self,
        batch_size: int = 64,
        seed: int = 0,
        max_len: int = 128,
        vocab_size: int = 16_384,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(batch_size, seed, data_dir, max_len=max_len, vocab_size=vocab_size)
        self.max_len, self.vocab_size = max_len, vocab_size

    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return the texts of a split and their lengths."""
        tensors = self.prepared.tensors
        texts = Texts(*(tensors[f"{name}_{part}"] for part in ("tokens", "lengths", "labels")))
        return texts, texts.lengths

    def check(self) -> None:
        """Refuse splits without texts, texts without tokens, and tokens or labels that a model does not have."""
        parts = ("tokens", "lengths", "labels")
        check_parts(self.title, self.prepared.tensors, (f"{name}_{part}" for name in SPLITS for part in parts))
        super().check()
        given = self.describe()
        for name in SPLITS:
            tensors = {part: self.prepared.tensors[f"{name}_{part}"] for part in parts}
            check_numbers(tensors["tokens"], given.get("vocab_size"), f"{self.title}: tokens of the split {name}")
            check_numbers(tensors["labels"], given.get("num_classes"), f"{self.title}: labels of the split {name}")
            if int(tensors["lengths"].min()) < 1:
                raise UserError(f"{self.title}: the split {name} has a text without tokens, expected one at least.")

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield a control, the same texts with their tokens in random order, and the texts cut at other lengths."""
        texts, lengths = self.split("test")
        assert isinstance(texts, Texts)
        yield "shuffled", self._all_of(texts.shuffled(), lengths)
        for label, factor, longer in self.at_lengths(factors):
            yield label, self._all_of(longer, longer.lengths, size=factor)

    def chance(self) -> dict[str, float]:
        """Return the accuracy on the test split of the class that is the most frequent one in training."""
        return commonest_share(self.prepared.tensors)

    def describe(self) -> dict[str, Any]:
        """Return the sizes of vocabulary, text and label set."""
        return {"vocab_size": self.vocab_size, "max_len": self.max_len, "num_classes": self.num_classes}

    def encoded(self, rows: dict[str, Rows]) -> Prepared:
        """Return the splits in words of a vocabulary made from the training split; takes the rows out of the mapping.

        Raises:
            UserError: If the vocabulary has no room for the special tokens.
        """
        self.check_room()
        tokenizer = self.vocabulary(rows["train"].texts)
        tensors: dict[str, Tensor] = {}
        for name in SPLITS:
            part = rows.pop(name)  # so that strings are freed once they are token ids
            tokens, lengths = self.numbered(tokenizer, part.texts)
            labels = torch.tensor(part.labels)
            tensors |= {f"{name}_tokens": tokens, f"{name}_lengths": lengths, f"{name}_labels": labels}
        return Prepared(tensors, {"vocab_size": tokenizer.get_vocab_size()})

    def check_room(self) -> None:
        """Refuse a vocabulary without room for the special tokens.

        Raises:
            UserError: With the size that it needs.
        """
        if self.vocab_size < len(self.special):
            raise UserError(f"data.vocab_size must be at least {len(self.special)} here, got {self.vocab_size}.")

    def vocabulary(self, texts: Sequence[str]) -> Any:
        """Return a `tokenizers.Tokenizer` with a vocabulary made from the training texts."""
        return train_words(texts, self.vocab_size, self.special)

    def numbered(self, tokenizer: Any, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the tokens of texts, end to end, and the length of each."""
        return encode(tokenizer, texts, self.max_len)

    def padding(self) -> float:
        """Return the share of padding among the tokens of the first training epoch."""
        texts, lengths = self.split("train")
        assert isinstance(texts, Texts)
        return texts.padding(Batches(len(texts), self.batch_size, self.seed, lengths))


class HubTexts(LabelledTexts):
    """Labelled texts of the Hugging Face hub, in lower-case words of a vocabulary made from the training split."""

    source: ClassVar[sources.Source]
    text_column: ClassVar[str] = "text"
    test_split: ClassVar[str] = "test"
    blank: ClassVar[bool] = False
    """True if the data set has texts without a word, each of which is one unknown token."""

    def load(self) -> Mapping[str, Rows]:
        """Return the splits of the source."""
        columns = Columns(self.text_column, self.num_classes, self.blank)
        folder = self.data_dir if self.source.hub else sources.files_folder(self.data_dir)
        return load_hub(self.source, folder, {"train", self.test_split}, columns)

    def clean(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without markup."""
        return list(texts)

    def split_train(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return indices of the source's training texts: of those that train, and of those that validate."""
        return every_tenth(len(texts))

    def read(self) -> Prepared:
        """Load, split, make the vocabulary and look every word up."""
        data = self.load()
        train, test = data["train"], data[self.test_split]
        kept, held_out = self.split_train(train.texts)
        rows = {"train": train.select(kept), "val": train.select(held_out), "test": test}
        return self.encoded({name: Rows(self.clean(part.texts), part.labels) for name, part in rows.items()})


class IMDB(HubTexts):
    """IMDB reviews: 22,500 training, 2,500 validation and 25,000 test documents."""

    title, source = "imdb", sources.IMDB

    def clean(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without the line breaks of HTML."""
        return [text.replace("<br />", " ") for text in texts]


class SST2(HubTexts):
    """SST-2: phrases of film reviews; the published validation split is the test set."""

    title, source = "sst2", sources.SST2
    text_column, test_split = "sentence", "validation"

    def split_train(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Every tenth sentence validates, with its phrases: the source has both, and what is in one is in the other.

        A text belongs to the longest one that contains it. Sentences are dealt out from the longest on, so that
        both splits have as long ones.
        """
        sentence_of: dict[str, int] = {}
        sentences, found = 0, [0] * len(texts)
        # Longest first: a sentence must be seen before its phrases.
        for index in sorted(range(len(texts)), key=lambda index: (-len(texts[index].split()), index)):
            words = texts[index].split()
            text = " ".join(words)
            if text not in sentence_of:
                # Every run of words, of which a sentence has about n²/2; it belongs to the first, longest sentence.
                for start, end in itertools.combinations(range(len(words) + 1), 2):
                    sentence_of.setdefault(" ".join(words[start:end]), sentences)
                sentence_of.setdefault(text, sentences)  # which may be empty
                sentences += 1
            found[index] = sentence_of[text]
        held_out = torch.tensor(found) % 10 == 9
        return (~held_out).nonzero().flatten(), held_out.nonzero().flatten()


class AGNews(HubTexts):
    """AG News: headlines and first sentences in four topics."""

    title, source = "ag_news", sources.AG_NEWS
    num_classes = 4


class Newsgroups(HubTexts):
    """20 Newsgroups, split by date: posts without headers, footers and quotes, in twenty topics.

    Not of the hub but of scikit-learn, which downloads and strips them; they are kept as tables like the hub's.
    """

    title, source = "20_newsgroups", sources.NEWSGROUPS
    num_classes, blank = 20, True  # of some posts headers and quotes are all

    def load(self) -> Mapping[str, Rows]:
        """Return the local copy, or the download of scikit-learn."""
        if self.data_dir is None and not sources.downloaded(self.source):
            sources.check_available(self.source, None)
            home = sources.files_folder(None)
            with sources.writing(home):
                self._download(home)
        return super().load()

    def _download(self, home: Path) -> None:
        """Make a table of each split; they come into their place together."""
        import pyarrow.parquet
        from sklearn.datasets import fetch_20newsgroups

        home.mkdir(parents=True, exist_ok=True)
        # Within `home`: a folder is renamed in one step on one file system only.
        with tempfile.TemporaryDirectory(dir=home) as temporary:
            folder = Path(temporary) / self.source.folder
            folder.mkdir()
            for split in ("test", "train"):
                try:
                    with sources.writing(home):
                        posts = fetch_20newsgroups(
                            data_home=str(home), subset=split, remove=("headers", "footers", "quotes"), shuffle=False
                        )
                except OSError as error:
                    raise UserError(f"20 Newsgroups cannot be downloaded: {error}") from error
                table = pyarrow.table({"text": posts.data, "label": posts.target.tolist()})
                with (folder / f"{split}.parquet").open("wb") as file:
                    pyarrow.parquet.write_table(table, file)
            with contextlib.suppress(OSError):  # another process was first
                folder.rename(home / folder.name)


class Order(LabelledTexts):
    """Rhyme schemes: texts whose label depends on the order of their tokens alone.

    A text fills between a half and the whole of `max_len` with stanzas of four tokens. A stanza takes two
    different tokens A and B, each twice, and orders them as the label says: 0 AABB, 1 ABAB, 2 ABBA. As a
    bag of tokens a text says nothing of its label. Read backwards it keeps its label, so that blindness
    to direction alone does not rule an encoding out.
    """

    title = "order"
    num_classes = 3
    SCHEMES = ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0))
    SIZES: ClassVar[Mapping[str, int]] = {"train": 8000, "val": 1000, "test": 2000}

    def read(self) -> Prepared:
        """Generate texts, all different, and deal them out to the three splits."""
        if self.max_len < 4 or self.vocab_size < len(SPECIAL) + 2:
            raise UserError(
                "text-order needs room for a stanza of two words: data.max_len of at least 4 and data.vocab_size of "
                f"at least {len(SPECIAL) + 2}, got {self.max_len} and {self.vocab_size}."
            )
        # Twice as many as needed, since equal ones are dropped: no test text was trained on.
        rows = self.generate(2 * sum(self.SIZES.values()), torch.Generator().manual_seed(0))
        if len(rows) < sum(self.SIZES.values()):
            raise UserError(f"text-order has only {len(rows)} different texts at this size; enlarge data.max_len.")
        tensors: dict[str, Tensor] = {}
        parts = rows[: sum(self.SIZES.values())].split(list(self.SIZES.values()))
        for name, part in zip(self.SIZES, parts, strict=True):
            labels, texts = part[:, 0], part[:, 1:]
            written = texts > 0  # 0 is padding; words begin after the special tokens
            tensors |= {
                f"{name}_tokens": texts[written].to(torch.int32),
                f"{name}_lengths": written.sum(1).to(torch.int32),
                f"{name}_labels": labels.clone(),
            }
        return Prepared(tensors, {"vocab_size": self.vocab_size})

    def generate(self, count: int, noise: torch.Generator) -> Tensor:
        """Return at most `count` different texts in random order: label, then tokens padded with 0."""
        most = self.max_len // 4
        words = self.vocab_size - len(SPECIAL)
        labels = torch.randint(0, 3, (count, 1), generator=noise)
        stanzas = torch.randint(max(1, most // 2), most + 1, (count, 1), generator=noise)
        first = torch.randint(0, words, (count, most), generator=noise)
        second = (first + torch.randint(1, words, (count, most), generator=noise)) % words  # never the first
        pair = torch.stack((first, second), dim=-1) + len(SPECIAL)
        scheme = torch.tensor(self.SCHEMES)[labels]  # (count, 1, 4)
        texts = pair.gather(2, scheme.expand(-1, most, -1))  # (count, most, 4)
        texts[torch.arange(most) >= stanzas] = 0
        # unique() sorts, by label first: the order is drawn anew, or splits would have labels of their own.
        rows = torch.cat((labels, texts.flatten(1)), dim=1).unique(dim=0)
        return rows[torch.randperm(len(rows), generator=noise)]
