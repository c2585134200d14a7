"""The sinusoid with its vectors permuted: does their order matter, or only that they differ?"""

from pebench import Suite
from pebench.benchmarks.grids import MARGIN

SUITE = Suite(
    name="shift",
    question="Does a sinusoid serve because near positions have near vectors, or are different vectors enough?",
    tasks=["lm-wikitext2", "vit-cifar10"],
    encodings=["add", "permuted", "random", "learned", "none"],
    contrasts=[("permuted", "random"), ("permuted", "none")],
    seeds=5,
    tier="core",
    settings={"train.learning_rate": {"lm-wikitext2": 5.6e-3, "vit-cifar10": 2e-3}},
    margin=MARGIN,
    declared="2026-11-28 05:21",
    shared_machine=True,
    cost="50 runs, of which 40 are those of `inside`; the others take 50 minutes on 2 cores, two at a time",
    expect=(
        "permuted is behind add on both tasks, and nearer to random than to add: what a sinusoid offers is that a "
        "model can look a few tokens back by one map, which a permutation takes away. It is ahead of none."
    ),
    decision=(
        "permuted has the same vectors as add, the same distances between them and the same part that is constant; "
        "only which position has which vector is another. That order matters is decided by a clear paired t-test of "
        "permuted to add, that different vectors are enough by equivalence to add. If permuted is equivalent to "
        "random, or not separable from it, the geometry of a sinusoid serves only with its order. The linear shift "
        "and the nearness of neighbours go together here, and are not told apart: two tables of equal inner "
        "products differ by a rotation alone, and any table whose inner products depend on the distance has a "
        "linear shift. Rates are those of `inside`, one for all rows. Of `inside`, runs of add, learned, random and "
        "none on WikiText-2 were known when this was declared, with random far behind add."
    ),
)
