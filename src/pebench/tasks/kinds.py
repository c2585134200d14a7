"""Kinds of tasks: which model a task trains, and by which metric it is judged. No torch here."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TaskKind:
    """The nature of a task, declared once for all tasks alike: its model, its metric and how people read that.

    Args:
        name: Name in the field's words: ``text classification``.
        module: The LightningModule, a subclass of `pebench.models.base.SequenceModule`: its dotted path
            (``my_module:MyModel``) or the class itself.
        metric: The headline metric, without its split: the module logs ``val/<metric>`` and ``test/<metric>``.
        higher_is_better: The direction of the headline metric.
        unit: The examples that throughput counts, in the plural: ``texts``.
        causal: True if a token sees only the tokens before it.
        per_token: True if the model predicts something for every token, not for the example as a whole.
        percent: True if the metric is a share of 1, which people read in percent, and its differences in points.

    Example:
        A kind that pebench has no module for is declared with a module of one's own:

        >>> tagging = TaskKind(
        ...     name="entity tagging", module="my_models:Tagger", metric="f1", higher_is_better=True, unit="texts",
        ...     causal=False, per_token=True, percent=True,
        ... )
        >>> (tagging.scale, tagging.digits), (REGRESSION.scale, REGRESSION.digits)
        ((100, 2), (1, 4))
    """

    name: str
    module: str | type
    metric: str
    higher_is_better: bool
    unit: str
    causal: bool
    per_token: bool = False
    percent: bool = False

    @property
    def scale(self) -> int:
        """The factor by which the headline metric is multiplied where people read it."""
        return 100 if self.percent else 1

    @property
    def digits(self) -> int:
        """The digits after the decimal point of the headline metric where people read it."""
        return 2 if self.percent else 4


# Modules are named by their paths, as importing one loads torch, which plans, records and tables do without.
TEXT_CLASSIFICATION = TaskKind(
    name="text classification", module="pebench.models.text_classifier:TextClassifier",
    metric="accuracy", higher_is_better=True, unit="texts", causal=False, percent=True,
)  # fmt: skip

IMAGE_CLASSIFICATION = TaskKind(
    name="image classification", module="pebench.models.vit:ViT",
    metric="accuracy", higher_is_better=True, unit="images", causal=False, percent=True,
)  # fmt: skip

# Bits per byte instead of perplexity per token: they do not depend on how a text is cut into tokens, so that
# characters, words and byte pairs compare.
LANGUAGE_MODELLING = TaskKind(
    name="language modelling", module="pebench.models.language_model:LanguageModel",
    metric="bits_per_byte", higher_is_better=False, unit="windows", causal=True, per_token=True,
)  # fmt: skip

SEQUENCE_TASK = TaskKind(
    name="sequence task", module="pebench.models.solver:SequenceSolver",
    metric="accuracy", higher_is_better=True, unit="sequences", causal=True, per_token=True, percent=True,
)  # fmt: skip

# In variances of the training targets: the mean predicts to about 1, and 1 less this is about R squared, which would
# divide by the variance of a test split that may be small.
REGRESSION = TaskKind(
    name="regression", module="pebench.models.text_regressor:TextRegressor",
    metric="squared_error", higher_is_better=False, unit="texts", causal=False,
)  # fmt: skip

# The share of right tokens, as for parts of speech. For names, where nearly all tokens are outside of any, compare it
# with the chance level: it is no F1 of entities.
TOKEN_TAGGING = TaskKind(
    name="token tagging", module="pebench.models.token_tagger:TokenTagger",
    metric="accuracy", higher_is_better=True, unit="texts", causal=False, per_token=True, percent=True,
)  # fmt: skip

# Bits instead of accuracy: they still change where the best guess stays the same. Not per byte: a masked token of many
# bytes is another question than as many masked bytes, so vocabularies do not compare anyway.
MASKED_LANGUAGE_MODELLING = TaskKind(
    name="masked language modelling", module="pebench.models.masked_language_model:MaskedLanguageModel",
    metric="bits_per_token", higher_is_better=False, unit="windows", causal=False, per_token=True,
)  # fmt: skip
