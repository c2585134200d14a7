"""The contract of tasks: every registered task keeps it, and it notices tasks that are broken on purpose."""

import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pebench.cli import main
from pebench.conformance.comparisons import BrokenError
from pebench.conformance.tasks import TASK_PROPERTIES, TaskBench, check_task
from pebench.data.base import Prepared, TensorDataModule
from pebench.data.images import Digits
from pebench.data.text import Order
from pebench.models import TextClassifier
from pebench.tasks import TASKS, TEXT_CLASSIFICATION, Budget, Task, TaskKind, find_task, registry, sources
from tests.data.copies import WRITERS
from tests.data.own_data import book, numbers, paired, tagged, texts, write_csv, write_images, write_jsonl

EMBEDDED = [name for name, task in TASKS.items() if task.embedded]
SMALL_COPY = [
    name for name in TASK_PROPERTIES if name not in ("chance", "labels")
]  # whose labels are not those of the data set


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A bench for each task, on a small copy of its data where it is not embedded; prepared once for this file."""
    folder, made = tmp_path_factory.mktemp("contract"), dict[str, TaskBench]()

    def bench(name: str) -> TaskBench:
        if name not in made:
            if name in WRITERS:
                WRITERS[name](folder / "data")
            made[name] = TaskBench(name, folder / "data" if name in WRITERS else None)
        return made[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PEBENCH_CACHE_DIR", str(folder / "cache"))
        patch.setenv("PEBENCH_OFFLINE", "1")
        patch.setattr("torchvision.datasets.cifar.check_integrity", lambda path, md5=None: os.path.isfile(path))
        patch.setattr(sources, "check_contents", lambda *_: None)  # small copies are not what was published
        yield bench


CASES = [
    # Sequence tasks share their data module, but for what they draw.
    pytest.param(
        task, name, id=f"{task}-{name}",
        marks=[pytest.mark.slow] * (task.startswith("seq-") and task != "seq-recall" and name != "declares"),
    )
    for task in EMBEDDED for name in TASK_PROPERTIES
]  # fmt: skip


@pytest.mark.parametrize(("task", "name"), CASES)
def test_every_embedded_task_keeps_the_contract(task: str, name: str, benches: Any) -> None:
    check_task(TASK_PROPERTIES[name], benches(task))


@pytest.mark.parametrize("task", [task for task in TASKS if task not in EMBEDDED])
def test_every_other_task_keeps_it_on_a_small_copy(task: str, benches: Any) -> None:
    bench = benches(task)
    lengths = {"lm-wikitext2": 32, "lm-imdb": 32, "lm-shakespeare": 4}  # the copies are short
    data, length = bench.config.data, lengths.get(task)
    bench.config = replace(
        bench.config,
        data=replace(data, max_len=length) if length else data,
        train=replace(bench.config.train, batch_size=8),
    )
    for name in SMALL_COPY:
        if (task, name) == ("text-imdb", "splits"):
            continue  # one of the two reviews of the copy's test split is, cleaned, one of its training split
        check_task(TASK_PROPERTIES[name], bench)


OWN = {
    "class": ("texts(path={!r})", lambda folder: write_csv(folder / "a.csv", texts())),
    "number": ("texts(path={!r}, target=number)", lambda folder: write_csv(folder / "n.csv", numbers())),
    "tags": ("texts(path={!r})", lambda folder: write_jsonl(folder / "t.jsonl", tagged(), ("tokens", "tags"))),
    "pairs": ("texts(path={!r}, pair=b)", lambda folder: write_csv(folder / "p.csv", paired(), ("text", "b", "y"))),
    "images": ("images(path={!r})", lambda folder: write_images(folder / "images")),
    "text": ("corpus(path={!r})", lambda folder: write_book(folder / "b.txt")),
    "masked": ("corpus(path={!r}, masked=True)", lambda folder: write_book(folder / "b.txt")),
}


def write_book(path: Path) -> Path:
    path.write_text(book())
    return path


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind in ("text", "masked"))) for kind in OWN]
)
def test_tasks_on_data_of_a_user_keep_it(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    name, write = OWN[kind]
    bench = TaskBench(find_task(name.format(str(write(tmp_path)))).name)
    assert bench.task.chance is None
    assert math.isfinite(bench.chance)
    for item in TASK_PROPERTIES.values():
        check_task(item, bench)


# Tasks that are broken on purpose


class Overlapping(Order):
    """Tests on texts that train."""

    def read(self) -> Prepared:
        found = super().read()
        parts = {f"test_{part}": found.tensors[f"train_{part}"] for part in ("tokens", "lengths", "labels")}
        return Prepared({**found.tensors, **parts}, found.meta)


class Drifting(Order):
    """Draws other texts each time."""

    def read(self) -> Prepared:
        found = super().read()
        labels = found.tensors["train_labels"]
        return Prepared({**found.tensors, "train_labels": labels[torch.randperm(len(labels))]}, found.meta)


class Unseeded(Digits):
    """Shuffles by the global generator."""

    def train_dataloader(self) -> Any:
        self.seed = int(torch.randint(1000, ()))
        return super().train_dataloader()


class SameOrder(Digits):
    """Ignores the seed."""

    def train_dataloader(self) -> Any:
        self.seed = 0
        return super().train_dataloader()


class Unpadded(TextClassifier):
    """Reads padding as text."""

    def forward(self, tokens: Tensor, lengths: Tensor, positions: Tensor | None = None) -> Tensor:
        return super().forward(tokens, torch.full_like(lengths, tokens.shape[1]), positions)


class BatchMean(TextClassifier):
    """Counts every batch alike, however many texts it has."""

    def update(self, batch: tuple[Tensor, ...], stage: str) -> None:
        *inputs, labels = batch
        best = self(*inputs).argmax(1)[:1].expand_as(labels)  # the first answer of the batch is that of all
        self.metric(f"{stage}/accuracy").update(best, labels)


class Lengthless(Digits):
    """Does not enlarge the images that it says are larger."""

    def beyond(self, factors: Any) -> Any:
        yield "1.5x", self.test_dataloader()


class Sizeless(Digits):
    """Leaves out the sizes that the task declares."""

    def beyond(self, factors: Any) -> Any:
        yield "shuffled", self.test_dataloader()


class Undeclared(Digits):
    """Measures a size that the task does not declare."""

    def beyond(self, factors: Any) -> Any:
        yield from super().beyond([*factors, 3])


class Silent(Digits):
    """Does not say what the best constant prediction reaches."""

    chance = TensorDataModule.chance


class Boastful(Order):
    """Says that the best constant prediction reaches more than it does."""

    def chance(self) -> dict[str, float]:
        return {"accuracy": 0.5}


class Fewer(Order):
    """Has two of the three labels that it describes."""

    def read(self) -> Prepared:
        found = super().read()
        parts = {name: part.clamp(max=1) for name, part in found.tensors.items() if "labels" in name}
        return Prepared({**found.tensors, **parts}, found.meta)


class Outside(Order):
    """Does not check its labels, of which one is no class."""

    check = TensorDataModule.check

    def read(self) -> Prepared:
        found = super().read()
        return Prepared({**found.tensors, "val_labels": found.tensors["val_labels"] + 1}, found.meta)


class Failing(Order):
    """Cannot be read, nor tell its chance level."""

    def read(self) -> Prepared:
        raise KeyError("gone")


def _kind(module: type) -> TaskKind:
    return replace(TEXT_CLASSIFICATION, module=module)


ORDER, DIGITS = TASKS["text-order"], TASKS["vit-digits"]
NO_LINES = {"summary": "two\nlines"}
MUTANTS: dict[str, tuple[str, Task, str]] = {
    "overlapping splits": ("splits", replace(ORDER, data=Overlapping), "of test in train too, got 100.0%"),
    "other classes declared": ("labels", replace(ORDER, num_classes=1), "its data describe num_classes=3"),
    "too many classes": ("labels", replace(ORDER, data=Fewer), "num_classes=2, as labels in the splits go to 1"),
    "a label outside": ("labels", replace(ORDER, data=Outside), "labels from 0 to 2, as num_classes=3"),
    "unstable fingerprint": ("fingerprint", replace(ORDER, data=Drifting), "the fingerprint"),
    "order by chance": ("order", replace(DIGITS, data=Unseeded), "the same batches for the same seed"),
    "order without seed": ("order", replace(DIGITS, data=SameOrder), "other batches for another seed"),
    "padding counts": ("metric", replace(ORDER, kind=_kind(Unpadded)), "accuracy of"),
    "batches count": ("metric", replace(ORDER, kind=_kind(BatchMean)), "as in batches of 64"),
    "wrong chance": ("chance", replace(ORDER, chance=0.5), "accuracy of 0.5 ± 0.02"),
    "wrong chance in bits": ("chance", replace(TASKS["lm-grammar"], chance=1.1), "bits_per_byte of 1.1 ± 0.022"),
    "no chance": ("declares", replace(DIGITS, data=Silent, chance=None), "a chance level"),
    "wrong chance of data": ("chance", replace(ORDER, data=Boastful, chance=None), "accuracy of 0.5 ± 0.02"),
    "chance in percent": ("declares", replace(ORDER, chance=33.0), "from 0 to 1"),
    "shorter than trained": ("declares", replace(DIGITS, beyond=(0.5, 2)), "beyond the trained one"),
    "not larger": ("extrapolation", replace(DIGITS, data=Lengthless, beyond=(1.5,)), "examples 1.5x as large, got 1x"),
    "undeclared size": ("extrapolation", replace(DIGITS, data=Undeclared), r"one of the declared sizes"),
    "no size": ("extrapolation", replace(DIGITS, data=Sizeless), "some of the declared sizes"),
    "two lines": ("declares", replace(ORDER, **NO_LINES), "a line of text as its summary"),
    "no data module": ("declares", replace(ORDER, data=dict), "data as a TensorDataModule"),
}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))
    return lambda task: monkeypatch.setitem(TASKS, task.name, replace(task, name=task.name))


@pytest.mark.parametrize(("name", "task", "reason"), MUTANTS.values(), ids=list(MUTANTS))
def test_the_contract_notices_a_broken_task(name: str, task: Task, reason: str, broken: Any) -> None:
    broken(task)
    with pytest.raises(BrokenError, match=re.escape(reason)) as caught:
        check_task(TASK_PROPERTIES[name], TaskBench(task.name))
    assert (caught.value.property, caught.value.setting) == (name, task.name)


# pebench verify


def test_a_sound_task_passes_with_what_it_declares(capsys: pytest.CaptureFixture[str], benches: Any) -> None:
    assert main(["verify", "vit-digits"]) == 0
    text = capsys.readouterr().out
    assert all(f"ok      {name} " in text for name in TASK_PROPERTIES)
    assert "chance level   5.85 %" in text
    assert "extrapolation  1.25x, 1.5x, 2x" in text
    assert "Every property holds." in text


def test_a_broken_task_is_reported_with_exit_code_1(broken: Any, capsys: pytest.CaptureFixture[str]) -> None:
    broken(replace(DIGITS, chance=math.nan))
    assert main(["verify", "vit-digits"]) == 1
    text = capsys.readouterr().out
    assert "broken  declares " in text
    assert "Broken properties: 2." in text


def test_data_that_fail_are_broken_with_a_line_of_their_file(broken: Any, capsys: pytest.CaptureFixture[str]) -> None:
    broken(replace(ORDER, data=Failing, chance=None))
    assert main(["verify", "text-order"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"got KeyError: 'gone' \(\S+test_task_contract\.py:\d+\)", text)
    assert "chance level of the data" in text


def test_without_data_the_rest_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PEBENCH_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert main(["verify", "text-imdb"]) == 0
    text = capsys.readouterr().out
    assert "ok      declares " in text
    assert "-       splits " in text
    assert "The rest needs the data. imdb is not on this machine" in text
    assert "Every property that could be checked holds." in text


def test_a_misspelt_task_is_answered_with_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "vit-digit"]) == 2
    assert "unknown task 'vit-digit'. Did you mean 'vit-digits'?" in capsys.readouterr().err


def test_kinds_that_pebench_has_no_module_for_can_be_declared() -> None:
    tagging = TaskKind(
        name="tagging",
        module=TextClassifier,
        metric="f1",
        higher_is_better=True,
        unit="texts",
        causal=False,
        percent=True,
    )
    masked = replace(tagging, name="masked language modelling", metric="bits_per_token", higher_is_better=False)
    budget: dict[str, Budget] = dict(ORDER.budgets)
    task = Task(name="tags", summary="Tags", kind=tagging, data=Order, splits="by index", budgets=budget)
    other = replace(task, kind=replace(masked, percent=False))
    assert (task.scale, task.digits, task.monitored("metric")) == (100, 2, ("val/f1", "max"))
    assert (other.scale, other.digits, other.monitored("metric")) == (1, 4, ("val/bits_per_token", "min"))
    assert (task.causal, other.causal, task.embedded) == (False, False, True)
    assert registry.find_task("text-order") is TASKS["text-order"]
