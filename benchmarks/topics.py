"""A control: topics hardly need order, so no encoding should win, not even against a bag of words."""

from pebench.suites import Suite

SUITE = Suite(
    name="topics",
    question="Does any encoding win where order hardly matters?",
    tasks=["text-20newsgroups"],
    seeds=8,
    tier="core",
    vary={"model.num_layers": [0, 2]},
    margin={"accuracy": 0.005},
    declared="2026-11-21 21:53",
    shared_machine=True,
    cost="80 runs, about an hour on 2 cores, two at a time (estimated)",
    expect="No encoding differs from add by more than half a point or the noise; the bag (no layers) is as good.",
)
