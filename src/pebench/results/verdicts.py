"""Verdicts on differences: what a paired test found, as data that every writer puts into words."""

from dataclasses import dataclass
from enum import Enum

from pebench.formatting import counted
from pebench.results.stats import ALPHA, Difference


class Outcome(Enum):
    """The outcome of the test of a difference, or of a change of one; its value is the word that pages print."""

    BETTER = "better"
    WORSE = "worse"
    NARROWER = "narrower"
    WIDER = "wider"
    TURNED = "turned"  # the difference has changed its sign
    CHANGED = "changed"  # neither known to be wider or narrower, nor that its sign is another
    NOT_SEPARABLE = "not separable"  # which does not mean equal
    NOT_TESTED = "no test"


BETTER_OR_WORSE = (Outcome.BETTER, Outcome.WORSE)
"""Outcomes by which a row differs from the one that it is compared to."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one test and the number of seeds that it is based on.

    Args:
        outcome: The finding.
        n: Number of seeds that both rows have.
    """

    outcome: Outcome
    n: int

    @property
    def significant(self) -> bool:
        """True if the test calls the difference one."""
        return self.outcome not in (Outcome.NOT_SEPARABLE, Outcome.NOT_TESTED)

    @property
    def text(self) -> str:
        """The verdict as pages print it.

        Example:
            >>> Verdict(Outcome.BETTER, 8).text, Verdict(Outcome.NOT_SEPARABLE, 8).text
            ('better', 'not separable at 8 seeds')
        """
        if self.outcome is Outcome.NOT_TESTED:
            return f"no test with {counted(self.n, 'seed')}"
        if self.outcome is Outcome.NOT_SEPARABLE:
            return f"not separable at {self.n} seeds"
        return self.outcome.value


def verdict(difference: Difference, p_adjusted: float | None, higher_is_better: bool) -> Verdict:
    """Return what may be claimed of a difference to the reference.

    Args:
        difference: Mean over seeds of the encoding minus the reference.
        p_adjusted: The p-value after `pebench.results.stats.holm`; ``None`` if nothing could be tested.
        higher_is_better: The direction of the metric.

    Example:
        >>> verdict(Difference(0.2, 0.1, 5, 0.01), 0.04, higher_is_better=False).outcome
        <Outcome.WORSE: 'worse'>
        >>> verdict(Difference(0.2, None, 1, None), None, higher_is_better=False).text
        'no test with 1 seed'
    """
    if p_adjusted is None:  # one seed has no standard error
        outcome = Outcome.NOT_TESTED
    elif p_adjusted >= ALPHA:
        outcome = Outcome.NOT_SEPARABLE
    else:
        outcome = Outcome.BETTER if (difference.mean > 0) == higher_is_better else Outcome.WORSE
    return Verdict(outcome, difference.n)
