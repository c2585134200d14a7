"""The headline comparison as it was first made: one learning rate for all, three seeds, protocol 0.1."""

from pebench.suites import Suite

SUITE = Suite(
    name="untuned",
    question="Should position be added, concatenated, learned, rotated in, or left out?",
    tasks=["vit-cifar10", "text-sst2", "text-imdb", "lm-wikitext2"],
    seeds=3,
    tier="core",
    cost="60 runs, about 1.5 hours on 2 cores, two at a time",
    expect="none clearly below the rest on CIFAR-10; short text separates little",
)
