"""A concatenated position in very few channels, equally loud in total."""

from pebench import Suite
from pebench.benchmarks.grids import BITS_MARGIN, WIKITEXT2_RATES
from pebench.benchmarks.rules import EDGE_OF_GRID

SUITE = Suite(
    name="few-channels",
    question="How few channels are enough for a concatenated position that is as loud altogether?",
    tasks=["lm-wikitext2"],
    encodings=[
        *("add", "concat"),
        *(("concat", {"d_p": channels, "ratio": ratio}) for channels, ratio in ((8, 1.7), (4, 2.5), (2, 3.5))),
    ],
    contrasts=[
        ("concat (d_p=8, ratio=1.7)", "concat"),
        ("concat (d_p=4, ratio=2.5)", "concat"),
        ("concat (d_p=2, ratio=3.5)", "concat"),
        ("concat (d_p=2, ratio=3.5)", "concat (d_p=4, ratio=2.5)"),
    ],
    seeds=8,
    tier="core",
    select={"train.learning_rate": WIKITEXT2_RATES},
    margin=BITS_MARGIN,
    declared="2026-11-25 21:24",
    shared_machine=True,
    cost=(
        "60 runs, about 3 hours on 2 cores, two at a time; 36 of them are those of `split`"
    ),
    expect=(
        "8 channels do as well as 24, as they do at a ratio of one in `split`, and so do 4. 2 fall behind: a sine and "
        "a cosine of one wavelength, of six tokens, are the same again six tokens on."
    ),
    decision=(
        "By the contrasts, at the margin: enough is equivalent to `concat`, or better; too few is worse. `split` says "
        "that the numbers go on to 2 on WikiText-2 where 4 have the lowest mean validation loss of tested runs, and 4 "
        "at a ratio of 2.5 have; on images 2 do not serve. At these ratios the channels together are 0.9 times as loud "
        "beside the content as those of `concat` (d_p / (96 - d_p) times the ratio's square is 0.26 to 0.27, for "
        "0.33), so that rows differ in numbers of channels and of wavelengths, not in loudness. When this was declared "
        "all of `split` was known: 4 at 2.5 are -0.0025 ± 0.0038 from `concat`, not separable, and 8 at one -0.0003 ± "
        "0.0041. So the second contrast is not new, and the seeds are not fresh; of the two rows that run for this "
        "nothing is known. By the spread of those differences (0.005) eight seeds see 0.01 bits per byte nearly always "
        "and 0.006 half of the time, and show rows that do not differ to be equivalent one time of four, corrected for "
        f"four contrasts: not separable does not mean enough. {EDGE_OF_GRID}"
    ),
)  # fmt: skip
