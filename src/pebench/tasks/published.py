"""Results that others have published on the data of our tasks, by which a reader places ours. No torch here."""

from dataclasses import dataclass
from math import log


@dataclass(frozen=True, kw_only=True)
class Published:
    """A result on a task's data by a model that was trained on nothing else.

    Args:
        model: The model, in a few words.
        cite: The source: a key of `references.bib`, or the words to name it by.
        value: The task's headline metric, in the unit of records; ``None`` where `word_perplexity` is published.
        word_perplexity: Word perplexity on the test split.
        parameters: Number of parameters; ``None`` where the source does not say.
        epochs: Passes over the training split; ``None`` where the source does not say.
        remark: Words on what differs from our tests.
    """

    model: str
    cite: str
    value: float | None = None
    word_perplexity: float | None = None
    parameters: int | None = None
    epochs: float | None = None
    remark: str = ""


@dataclass(frozen=True)
class TextSize:
    """The size of a test split, by which bits per byte become word perplexity.

    Args:
        bytes: Bytes of UTF-8.
        words: Parts between blanks, and one more for each end of a line.
    """

    bytes: int
    words: int

    def word_perplexity(self, bits_per_byte: float) -> float:
        """Return the word perplexity of a model that needs this many bits for each byte.

        Example:
            >>> TextSize(bytes=40, words=10).word_perplexity(1.5)  # 60 bits for 10 words
            64.0
        """
        return 2.0 ** (bits_per_byte * self.bytes / self.words)


# The literature counts 245,569 words. 1,467 of them are ends of blank lines, which the hub's copy does not have: our
# models do not predict them, and so they do not count.
WIKITEXT2_TEST = TextSize(bytes=1_253_515, words=244_102)

ON_VALIDATION = "validation, on the last tenth of the text"
ONE_RUN = "one run, best epoch on test"

SHAKESPEARE = (
    Published(
        model="nanoGPT on a CPU, 4 layers", cite="karpathy2022nanogpt", value=1.88 / log(2), remark=ON_VALIDATION
    ),
    Published(
        model="nanoGPT on a GPU, 6 layers", cite="karpathy2022nanogpt", value=1.4697 / log(2), remark=ON_VALIDATION
    ),
)
WIKITEXT2 = (
    Published(model="LSTM", cite="grave2017improving", word_perplexity=99.3),
    Published(model="AWD-LSTM", cite="merity2018regularizing", word_perplexity=65.8, parameters=33_000_000, epochs=750),
)
CIFAR10 = (
    Published(
        model="ViT without position", cite="schh2024positional",
        value=0.7963, parameters=820_000, epochs=200, remark=ONE_RUN,
    ),
    Published(
        model="ViT, RoPE", cite="schh2024positional",
        value=0.8849, parameters=820_000, epochs=200, remark=ONE_RUN,
    ),
    Published(model="ViT-Lite-7/4", cite="hassani2021escaping", value=0.9138, parameters=3_717_000, epochs=200),
    Published(
        model="CCT-2/3x2, patches by convolutions", cite="hassani2021escaping",
        value=0.8917, parameters=284_000, epochs=200,
    ),
)  # fmt: skip
SST2 = (
    Published(
        model="CNN, random word vectors", cite="kim2014convolutional", value=0.827, remark="published test split"
    ),
    Published(model="RNTN, on parse trees", cite="socher2013recursive", value=0.854, remark="published test split"),
)
IMDB = (
    Published(
        model="Transformer of one block, first 20,000 words", cite="nandan2020text", value=0.8745, epochs=2,
        remark="best epoch on test",
    ),
    Published(model="Linear, unigrams (SVM)", cite="wang2012baselines", value=0.8695),
    Published(model="Linear, bigrams (NBSVM)", cite="wang2012baselines", value=0.9122),
)  # fmt: skip
AG_NEWS = (Published(model="fastText, bigrams", cite="joulin2017bag", value=0.925),)
