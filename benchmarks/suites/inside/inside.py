"""Models whose weights are kept, to measure what a transformer makes of a sum of content and position."""

from pebench import Suite

SUITE = Suite(
    name="inside",
    question="What does a trained model do with content and position that enter as one sum?",
    tasks=["lm-wikitext2", "vit-cifar10", "text-sst2"],
    encodings=[
        "add", "learned", "concat", ("concat", {"table": "learned"}), "none", "rope", "random", "concat-qk",
    ],
    seeds=5,
    tier="core",
    settings={
        "train.learning_rate": {"lm-wikitext2": 5.6e-3, "vit-cifar10": 2e-3, "text-sst2": 4e-3},
    },
    declared="2026-11-27 14:26",
    shared_machine=True,
    cost=(
        "120 runs, 2 to 3.5 hours on 2 cores, two at a time (estimated by `scale` and `core`); their weights are what "
        "is measured: `pebench run --suite inside --out runs/inside --keep-weights`"
    ),
    expect=(
        "add keeps content and position apart by training: the shared dimensions fall between the start and the end, "
        "and stay above concat's, which has none. Their directions stay as orthogonal as chance has them. Position can "
        "be read at every layer with add and concat, and behind the first block with none in the causal model alone. "
        "No pair of tokens and positions collides. On a random table no linear map finds the next position."
    ),
    decision=(
        "These runs rank nothing: each row has one rate per task, at most a factor of two from what `core` chose for "
        "it, and five seeds, paired. They are for measures on their weights, each against its control, as means over "
        "seeds with 95 % intervals. Does add become concat: the overlap of the energies of token and position table "
        "over dimensions, and in the best rotated basis, falls from start to end by more than that of random, whose "
        "table cannot move; 0 is concat. Orthogonal: the energy-weighted cosine of the two tables, times D, against 1, "
        "which random directions have. Which of the four terms: the shares of content-content, content-position, "
        "position-content and position-position in the variance of attention logits, against the untrained model and "
        "concat-qk, whose crossed terms are zero. The nearly constant dimensions: the loss with the sinusoid's "
        "dimensions of standard deviation below 0.05 set to zero, against as many at random. Separate again, and "
        "where: linear probes of token and position at every layer, on held-out sequences, against the untrained "
        "model, none and shuffled labels. Collisions: the margin of the nearest a + p1 to b + p2 over the trained "
        "tables, against untrained ones. The shift: held-out R2 of a linear map from p(t) to p(t + k), against random. "
        "Leaks: the probe of position by layer, causal against bidirectional. A measure answers its question where its "
        "interval leaves the control's out on all tasks that have it; where tasks disagree each is reported."
    ),
)  # fmt: skip
