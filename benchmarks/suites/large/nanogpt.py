"""Characters of Shakespeare at the sizes and budget of nanoGPT's recipe for a GPU, which has a published loss."""

from pebench import Suite

SUITE = Suite(
    name="nanogpt",
    question="Does our trunk reach the loss that nanoGPT publishes for its recipe on a GPU, and do others go below it?",
    tasks=["lm-shakespeare"],
    encodings=["learned", "add", "concat", "rope"],
    seeds=3,
    tier="full",
    margin={"bits_per_byte": 0.01},
    declared="2026-11-28 11:10",
    shared_machine=True,
    cost="12 runs, 41 minutes or more on one H100, one at a time (estimated)",
    expect="The learned table ends within 0.05 nats of 1.4697 on validation. Rope is below it, by 0.01 to 0.03 nats.",
    decision=(
        "By the gate on nanoGPT's loss, of the learned table at the sizes and budget of the recipe: six layers of 384 "
        "channels, windows of 256 characters, 64 in a batch, 5,000 steps, dropout of 0.2. Warm-up, the optimizer's "
        "second moment and where validation is measured are ours. Other rows are compared to add."
    ),
    remarks=(
        "On 2026-11-30, before any run, runs at a time went from six to one, so that a run ends within half a turn of "
        "the queue. The cost says so.",
    ),
)
