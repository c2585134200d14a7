"""The task `corpus`: language modelling, causal or masked, of a user's running text. No torch here."""

import hashlib
from pathlib import Path
from typing import Any

from pebench.config import DataConfig, ModelConfig, TrainConfig
from pebench.errors import UserError, unknown_name
from pebench.formatting import counted
from pebench.tasks.base import Budget, Task, with_smoke
from pebench.tasks.kinds import LANGUAGE_MODELLING, MASKED_LANGUAGE_MODELLING
from pebench.tasks.own.files import SPLITS, files_by_split, require_train, text_of
from pebench.tasks.own.places import Place, Survey, place_of
from pebench.tasks.own.sizes import batch_and_steps, power_of_two
from pebench.tasks.own.task import OwnTask, check_key, full_name, key_of

ENDINGS = (".txt", ".md", ".text", ".rst", ".tex")

TOKENS = {"bytes": "bytes", "chars": "characters", "bpe": "byte-pair tokens"}
"""Ways to cut a text into tokens, with their names for people."""

USUAL = {"tokens": "bytes", "masked": False, "max_len": 128, "vocab_size": 256, "steps": 1000, "batch_size": 16}
"""Options that a name leaves out where they have these values."""

LEAST = 20
"""Windows of the shortest text that is trained on without a remark."""

RULE = (
    "those of the data, where it has them; else of all files, in the order of their names and each text once, the "
    "first 90 % of the characters are train, the next 5 % validation, the last 5 % test"
)


def corpus(  # noqa: PLR0913 - options, which users know by name
    *,
    path: str = "",
    tokens: str = "bytes",
    masked: bool = False,
    name: str = "",
    data: str = "",
    max_len: int = 0,
    vocab_size: int = 0,
    steps: int = 0,
    batch_size: int = 0,
) -> Task:
    """Return the task on a running text.

    Args:
        path: File of the text, or folder of texts.
        tokens: One of `TOKENS`.
        masked: Predict tokens that are masked, from both sides, in place of the next token.
        name: Name of the data in tables; the file's by default.
        data: Name and checksum of data that are known, in place of a path.
        max_len: Tokens in a window.
        vocab_size: Vocabulary.
        steps: Optimizer steps.
        batch_size: Windows in a step.

    Raises:
        UserError: If the data cannot be read, or no model can be trained on them.
    """
    if tokens not in TOKENS:
        raise unknown_name("tokens of task 'corpus':", tokens, TOKENS)
    sizes = {"max_len": max_len, "vocab_size": vocab_size, "steps": steps, "batch_size": batch_size}
    given: dict[str, Any] = {option: value for option, value in sizes.items() if value}
    if path:
        # Only how it is read goes with the place; the survey depends on the tokens, too.
        kind = f"corpus {tokens}{' masked' * masked}"
        data, survey = key_of(kind, place_of(path), name, lambda place: _survey(place, tokens, masked), given)
        given = {**survey.options, **given}
    check_key("corpus", data)
    values = {**USUAL, **given, "tokens": tokens, "masked": masked, "data": data}
    train = TrainConfig(max_steps=values["steps"], batch_size=values["batch_size"], learning_rate=2e-3)
    settings = DataConfig(max_len=values["max_len"], vocab_size=values["vocab_size"])
    return OwnTask(
        name=full_name("corpus", values, USUAL),
        summary=f"Your text {data}, {TOKENS[tokens]}{', masked' * masked}",
        kind=MASKED_LANGUAGE_MODELLING if masked else LANGUAGE_MODELLING,
        data=f"pebench.data.own:{'OwnMaskedCorpus' if masked else 'OwnCorpus'}",
        data_args={"own": data, "tokens": tokens} | ({"masked": True} if masked else {}),
        prepared_by=("own", "tokens", "vocab_size") + ("masked",) * masked,
        beyond=(2, 4),
        splits=RULE,
        budgets=with_smoke(quick=Budget(ModelConfig(d_model=64, num_layers=2, num_heads=2), settings, train)),
    )


def load(place: Place) -> tuple[dict[str, str], str, list[str]]:
    """Return the text of each split at a place, their checksum, and remarks.

    Raises:
        UserError: If they cannot be read, or a split is empty.
    """
    path = Path(place.path)
    files = files_by_split(path, ENDINGS, "running text")
    require_train({*files}, str(path))
    kept: dict[str, list[str]] = {split: [] for split in sorted(files, key=[*SPLITS, ""].index)}
    seen, twice = dict[str, str](), list[str]()
    for split, parts in kept.items():
        for file in files[split]:
            text = text_of(file)
            if not text.strip():
                raise UserError(f"{file} has no text.")
            if text in seen:
                twice.append(file.name)
            # Once in a split, so that no part of it is on both sides of a cut; splits that are given are taken.
            if seen.get(text) != split:
                parts.append(text)
                seen[text] = split
    texts = {split: "\n".join(parts) for split, parts in kept.items()}
    remarks = [f"warning: texts that occur twice: {', '.join(twice[:5])} ({len(twice)} in all)"] if twice else []
    texts, rule = _cut(texts)
    for split, text in texts.items():
        if len(text) < 2:
            size = counted(len(text), "character")
            raise UserError(f"{path} is too short: the split {split} has {size}, expected two at least.")
    counts = ", ".join(f"{len(texts[split]):,} {split}" for split in SPLITS)
    digest = hashlib.sha256()
    for split in SPLITS:
        content = texts[split].encode()
        digest.update(f"{split} {len(content)} ".encode() + content)
    return texts, digest.hexdigest(), [f"characters: {counts} ({rule})", *remarks]


def _cut(texts: dict[str, str]) -> tuple[dict[str, str], str]:
    """Return the text of each split, those that are not given cut from the end of the training text, and the rule."""
    if "" in texts:
        texts = {"train": texts[""]}
    lacking = [split for split in ("val", "test") if split not in texts]
    whole, found = texts["train"], dict(texts)
    starts = [int((1 - 0.05 * (len(lacking) - turn)) * len(whole)) for turn in range(len(lacking))] + [len(whole)]
    found["train"] = whole[: starts[0]]
    for turn, split in enumerate(lacking):
        found[split] = whole[starts[turn] : starts[turn + 1]]
    rule = f"the last {5 * len(lacking)} % are {' and '.join(lacking)}" if lacking else "given"
    return {split: found[split] for split in SPLITS}, rule


def _survey(place: Place, tokens: str, masked: bool) -> Survey:
    texts, sha256, remarks = load(place)
    train = texts["train"]
    size = len(train.encode())
    vocabulary = {"bytes": 256, "chars": len(set(train)) + 1, "bpe": power_of_two(size / 500, 512, 8192)}[tokens]
    count = {"bytes": size, "chars": len(train), "bpe": size // 3}[tokens]  # tokens, about
    # Twenty windows and more in the shortest split, where it is long enough for that.
    shortest = min(len(text) for text in texts.values())
    longest = power_of_two(shortest / (2 * LEAST), 8, 128)
    batch_size, steps = batch_and_steps(count // longest, 16)
    options = {"max_len": longest, "vocab_size": vocabulary + masked, "batch_size": batch_size, "steps": steps}
    return Survey(sha256, options, [*remarks, f"tokens: {TOKENS[tokens]}{' and a mask' * masked}"])
