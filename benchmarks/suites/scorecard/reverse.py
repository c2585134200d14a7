"""Backwards: which encodings let a model read a sequence from its end, where every answer is at another distance?"""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN

SUITE = Suite(
    name="reverse",
    question="Which encoding learns to say a sequence backwards, and does so for longer ones too?",
    tasks=["seq-reverse"],
    encodings=["none", "add", "learned", "concat", "rope", "pope", "shaw", "t5-bias", "alibi", "cpe", "path"],
    contrasts=[("rope", "add")],
    seeds=5,
    tier="minute",
    margin=ACCURACY_MARGIN,
    declared="2026-11-30 03:45",
    shared_machine=True,
    cost="55 runs, about 15 minutes on 2 cores, two at a time (a run of seq-copy took 27 s of one)",
    expect=(
        "Copying needs one distance, saying backwards another one for every token. So add, learned and concat, which "
        "know each place, are ahead of rope, and rope of t5-bias, alibi and none, whose distances are coarse. shaw, "
        "which has a vector for every distance up to 16, is near rope. Nobody passes 50 % at twice the length."
    ),
    decision=(
        "Each row against add, as always, at the trained length, and the declared contrast of rope and add; both "
        "corrected for the rows of this suite. The published ordering (Kazemnejad et al. 2023: none ahead of t5-bias, "
        "alibi, rope and add) is read at twice the length, as for copying in scorecard-order: reproduced where a "
        "paired test at 5 %, corrected for these four, finds none ahead; refuted where it finds the other ahead; else "
        "undecided. Every row has the task's learning rate, which is not tuned, and 500 steps: what a row does not "
        "learn here, it may learn with more."
    ),
    remarks=("Known when this was declared: the runs of seq-copy in scorecard-order. Nothing of seq-reverse had run.",),
)  # fmt: skip
