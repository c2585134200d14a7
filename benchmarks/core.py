"""The headline comparison: five encodings on four real data sets, CPU-sized."""

from pebench.suites import Suite

SUITE = Suite(
    name="core",
    question="Should position be added, concatenated, learned, rotated in, or left out?",
    tasks=["vit-cifar10", "text-sst2", "text-imdb", "lm-wikitext2"],
    seeds=2,
    tier="core",
    cost="40 runs; see results/core.md for what they took",
    expect="none clearly below the rest on CIFAR-10; short text separates little",
)
