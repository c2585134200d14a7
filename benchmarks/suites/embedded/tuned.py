"""The embedded tasks with a tuned learning rate and ten seeds: minutes, and no download."""

from pebench import Suite

SUITE = Suite(
    name="tuned",
    question="Does what the quickstart shows survive a learning rate chosen for each encoding, and more seeds?",
    tasks=["vit-digits", "text-order", "lm-grammar"],
    seeds=10,
    tier="quick",
    select={"train.learning_rate": [2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2]},
    declared="2026-11-21 11:36",
    cost="225 runs, about 16 minutes on 2 cores",
    shared_machine=True,
    expect="the same order; differences to add smaller than at one learning rate for all",
    remarks=(
        "The margins are the default ones, which came when its runs had been made: what is called equivalent was not "
        "declared beforehand.",
        "On lm-grammar the reference's best rate is at the edge of the grid and no other's is, which favours them.",
    ),
)
