"""Every encoding, trained for minutes."""

from pebench import Suite

SUITE = Suite(
    name="encodings",
    question="Does every encoding train wherever it serves, and what does each learn in minutes?",
    tasks=["text-order", "lm-grammar", "vit-digits"],
    encodings=[
        "add", "add-every-layer", "add-proj", "add-qk", "alibi", "attention-scale", "axial-learned", "concat",
        "concat-proj", "concat-qk", "concat-wide", "cope", "cpe", "deberta", "dynamic-bias", "embed-scale",
        "fire", "fox", "gated-add", "hope", "interpolated", "kerple-log", "learnable-fourier", "learned", "lie-re",
        "log-cpb", "multiply", "none", "ntk-rope", "p-rope", "partial-rope", "pope", "position-matrix",
        "random", "randomized", "raster", "rope", "rope-mixed", "sandwich", "shaw", "shifted", "some-heads",
        "some-layers", "stack", "swin-bias", "t5-bias", "transformer-xl", "tupe", "widened", "xpos", "yarn",
    ],
    where_served=True,
    seeds=3,
    tier="quick",
    declared="2026-11-21 16:27",
    cost="423 runs, about an hour on 2 cores that did other work too, two at a time",
    shared_machine=True,
    expect=(
        "No run fails. At one learning rate and the embedded tasks' budgets the order of the rows is that of what tiny "
        "models learn first, not a ranking of encodings."
    ),
    remarks=(
        "Since its runs the gate of gated-add moves at the pace of tables; here it hardly moved.",
        "embed-scale, which doubles the power of add's input, came into being on 2026-11-23 and into this then.",
        "widened came into being on 2026-11-25, and into this then.",
    ),
)  # fmt: skip
