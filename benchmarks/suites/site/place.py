"""A sinusoid added to queries and keys of every layer against one added to the input, on images, equally loud."""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN, CIFAR10_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="place",
    question="On images, is a sum in every layer's queries and keys better than one at the input that is as loud?",
    tasks=["vit-cifar10"],
    encodings=["add", ("add", {"preserve_variance": True}), "add-qk", ("embed-scale", {"of": "add-qk"})],
    contrasts=[
        ("add-qk", "add (preserve_variance=True)"),
        ("embed-scale (of=add-qk)", "add-qk"),
    ],
    seeds=range(12, 20),
    tier="core",
    select={"train.learning_rate": CIFAR10_RATES},
    margin=ACCURACY_MARGIN,
    declared="2026-11-24 17:40",
    shared_machine=True,
    cost=(
        "48 runs, about 20 minutes on 2 cores, two at a time, since 28 are those of other suites"
    ),
    expect="At equal loudness, quiet or loud, the sum in queries and keys is about a point and a half better.",
    decision=(
        "`site` did not tell add-qk from add, whose input is 1.3 times as loud; on seeds 0 to 11 it is 1.58 points "
        "above the sum divided by sqrt 2, as quiet as its own (1.02 to 2.13), which nobody had declared to compare. "
        "These are fresh seeds for add-qk, and for it multiplied by 1.4142; addition's, either way, were known. The "
        "place, with the layers and matrices that come with it, gains on images if add-qk is better at both "
        "loudnesses: as it is than add (preserve_variance=True), and multiplied than add. Which of the three gains it "
        "does not show; the matrices are 16 % more parameters. If it is better at one of them alone, that is left "
        "open. By the spread of the twelve, 0.87 points, eight seeds see a difference of 1.6 points nearly always and "
        f"one of 1 two times of three. {EDGE_OF_GRID}"
    ),
    remarks=(
        "As quiet, and as loud, are about so: on training's crops the input starts at 1.08 with add "
        "(preserve_variance=True) and at 1.15 with add-qk, at 1.52 with add and at 1.63 with add-qk multiplied. So of "
        "either pair add-qk is the louder one, by 7 %, which helps it if anything. Written while this ran, before its "
        "rows were compared.",
    ),
)  # fmt: skip
