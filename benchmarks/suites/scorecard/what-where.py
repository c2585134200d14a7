"""PoPE's diagnostic: which encodings let attention find a token by its content and go on from there by position?"""

from pebench import Suite
from pebench.benchmarks.grids import ACCURACY_MARGIN

SUITE = Suite(
    name="what-where",
    question="Which encoding learns to find a token by content and to go so many tokens on from there?",
    tasks=["seq-what-where"],
    encodings=[
        *["none", "add", "learned", "concat", "rope", "pope", "shaw", "t5-bias", "alibi", "path"],
        *["fox", "cpe", "partial-rope", "p-rope", "xpos", "transformer-xl", "fire", "kerple-log"],
        *["add-qk", "concat-qk", "add-proj", "concat-proj", "gated-add"],
    ],
    contrasts=[("pope", "rope")],
    seeds=5,
    tier="minute",
    select={"train.learning_rate": [1.5e-3, 3e-3, 6e-3, 1.2e-2]},
    select_beyond=1,
    margin=ACCURACY_MARGIN,
    declared="2026-11-29 08:46",
    shared_machine=True,
    cost="207 runs, about two hours on 2 cores, two at a time (a run of pope took 50 s of one)",
    expect=(
        "As in the paper pope is ahead of rope. shaw, whose offsets are separate from content too, is near pope; "
        "t5-bias, alibi and none, which cannot tell a left neighbour of the mark from others by layer one alone, stay "
        "below a third; what acts at the input stays below rope in 2,000 steps."
    ),
    decision=(
        "The ordering of the paper (Gopalakrishnan et al. 2025: pope far ahead of rope) counts as reproduced if the "
        "paired test of pope against rope at the trained length, at 5 % and each at the rate that its selecting run "
        "chose, finds pope ahead; as refuted if it finds rope ahead; else as undecided. All other rows are compared "
        "with add, as always. A row that chooses the first or the last rate is tried at one further, and that is said."
    ),
    remarks=(
        "Known when this was declared, with one seed each, fresh data in every step and rate 3e-3: after 2,000 steps "
        "pope 67 %, shaw 65, rope 46, add 26, t5-bias 26, none 21; at 5e-3 pope 62 and rope 24; pope 91 % after 4,000.",
        "The grid ended at 6e-3. By its rule it goes on to 1.2e-2 for all rows since 2026-11-29 09:13, when add, pope, "
        "rope and shaw had been tested: the first three chose 6e-3.",
        "The last two lines of rows were added on 2026-11-30 07:11, for the scorecard, when the first ten were "
        "published. The paired test of pope and rope stays as it was; it is declared as a contrast now, as pages of so "
        "many rows do not compare every pair. Comparisons with add are corrected for 22 rows, not for nine. "
        "Expected of the new rows: transformer-xl, which has offsets and contents of its own, is near pope; "
        "cpe, fire and kerple-log are above t5-bias; nobody is above pope.",
        "Since 2026-11-30 09:13 a row at an end of the grid is tried at one further rate by `select_beyond`, as the "
        "rule of decision says: xpos had chosen 1.5e-3 and had been tested. No row before it had chosen an end.",
    ),
)  # fmt: skip
