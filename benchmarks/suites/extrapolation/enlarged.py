"""Images larger than those trained on, with positions beyond the trained grid or interpolated within it."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN

SUITE = Suite(
    name="enlarged",
    question="On enlarged images, is concatenation behind addition because positions go on beyond the trained grid?",
    tasks=["vit-cifar10"],
    encodings=[
        *("add", "concat", "rope"),
        *(("interpolated", {"of": inner}) for inner in ("add", "concat", "rope")),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": [2e-3]},
    margin=ACCURACY_MARGIN,
    declared="2026-11-26 00:16",
    shared_machine=True,
    cost=(
        "54 runs, about 45 minutes on 2 cores, two at a time (estimated); 27 of them are core's"
    ),
    expect=(
        "With positions interpolated concatenation loses about as much as addition by images 1.5 times as wide and "
        "high, which is less than it loses without; addition gains little by interpolation, as no encoding at all "
        "loses 12 points of the 15 that it loses."
    ),
    decision=(
        "Up to the trained size interpolated encodings are the others, so that at 32x32 a row must equal its inner "
        "encoding's at each seed, but for rounding: otherwise something is wrong. What is asked is of accuracy at 1.5 "
        "times the size, of paired differences and their 95 % intervals, corrected for nothing. Positions beyond the "
        "grid are why concat is behind add (7.60 points in `core`) if interpolation takes away more than half of that: "
        "if the interval of (interpolated concat - interpolated add) - (concat - add) lies above 3.80. They are not if "
        "it lies below 3.80; else it is open. That concat with 32 channels falls behind no further than add was known "
        "(`split`), and all of `core`. All rows have the rate that add, concat and rope chose in `core`, of "
        "six; rope and its interpolation are reported beside, and decide nothing."
    ),
)  # fmt: skip
