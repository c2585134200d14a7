"""Three modalities, five encodings, no download: the suite that a newcomer runs first."""

from pebench import Suite

SUITE = Suite(
    name="quickstart",
    question="Does pebench work here, and what do its tables look like?",
    tasks=["vit-digits", "text-order", "lm-grammar"],
    seeds=3,
    tier="minute",
    cost="45 runs, about 3 minutes on 2 slow cores",
    expect="none is at chance (33 %) on text-order, solved by the rest",
)
