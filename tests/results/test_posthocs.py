"""Ranks that are told apart, against scikit-posthocs."""

import numpy as np
import pytest

from pebench.results.across import _test_ranks
from tests.encodings.oracles.helpers import oracle

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("tasks", "encodings"), [(5, 3), (8, 5), (20, 10)])
def test_the_same_ranks_are_told_apart(tasks, encodings, seed):
    posthocs = oracle("scikit_posthocs")
    noise = np.random.default_rng(seed)
    means = noise.normal(size=(tasks, encodings)) + np.linspace(0, 2.5, encodings)
    labels = [f"e{number}" for number in range(encodings)]
    p, _, groups = _test_ranks(labels, means)
    theirs = posthocs.posthoc_nemenyi_friedman(-means).to_numpy()
    together = {pair for group in groups for one in group for other in group if (pair := (one, other))}
    for i, one in enumerate(labels):
        for j, other in enumerate(labels[:i]):
            assert ((one, other) in together) == (p >= 0.05 or theirs[i, j] >= 0.05)
