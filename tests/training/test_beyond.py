"""Lengths and sides of one's own, tested without further training: `train.beyond`, on the command line `--beyond`."""

from pathlib import Path

import pytest
import torch

from pebench.cli import main
from pebench.config import RunConfig, size_factors
from pebench.data import datamodule_of
from pebench.data.batches import Texts
from pebench.engine.run import run_suite
from pebench.errors import UserError
from pebench.models import TextClassifier
from pebench.runs.records import Record, read_records
from pebench.tasks import configure
from pebench.training.runner import train
from tests.training.helpers import options

SMOKE = {"train.max_steps": 4, "train.evaluations": 1}


def config_of(task: str, beyond: str | None, encoding: str = "rope", **data: int) -> RunConfig:
    settings = {**SMOKE, "train.beyond": beyond, **{f"data.{name}": value for name, value in data.items()}}
    return configure(task, encoding, 0, "smoke", settings)


def sizes(record: Record) -> set[str]:
    return {name.partition("@")[2] for name in record.metrics if "@" in name}


def test_a_run_that_asks_for_none_is_the_run_that_it_was() -> None:
    config = configure("lm-grammar", "rope", 0, "smoke")
    assert config_of("lm-grammar", None).key == configure("lm-grammar", "rope", 0, "smoke", SMOKE).key
    assert "beyond" not in config.to_dict()["train"]
    assert config_of("lm-grammar", "2,8").key != config_of("lm-grammar", "2,4").key


@pytest.mark.parametrize(
    "text", ["", "2, 4", "4,2", "1,2", "0.5", "2,2", "nan", "2,inf", "65", "two", "2.0", "-2", "2,"]
)
def test_other_factors_than_rising_ones_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"expects rising factors .* as in 2,4,8"):
        size_factors(text)


@pytest.mark.parametrize(
    ("task", "beyond", "expected"),
    [
        ("lm-grammar", "1.5,8", {"sliding", "1.5x", "8x"}),
        ("vit-digits", "1.5,3", {"shuffled", "1.5x", "3x"}),
        ("vit-digits", "1.3,2", {"shuffled", "2x"}),  # a part of a patch has no position
        ("text-order", "2,4", {"shuffled", "2x", "4x"}),
    ],
)
def test_the_sizes_asked_for_are_those_measured(task, beyond, expected, tmp_path) -> None:
    assert sizes(train(config_of(task, beyond), options(tmp_path))) == expected


def write_table(path: Path, words: int) -> None:
    """Texts of which every other one is longer, up to so many words."""
    lines = ["text,label"]
    for number in range(120):
        count = words if number % 2 else 3
        lines.append(f"{' '.join(f'w{(number * 7 + place) % 50}' for place in range(count))} t{number},{number % 3}")
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    write_table(tmp_path / "mine.csv", 30)
    return str(tmp_path / "mine.csv")


def test_longer_texts_are_the_same_texts_with_more_of_their_tokens(table) -> None:
    from pebench.tasks.own.guess import task_of_path

    config = config_of(task_of_path(table), "2,4", max_len=8)
    data = datamodule_of(config)
    data.prepare_data()
    data.setup()
    texts, _ = data.split("test")
    assert isinstance(texts, Texts)
    assert int(texts.lengths.max()) == 8
    found = {label: loader.dataset for label, loader in data.beyond((2, 3))}
    assert [*found] == ["shuffled", "2x", "3x"]
    for label, length in (("2x", 16), ("3x", 24)):
        longer = found[label]
        assert torch.equal(longer.labels, texts.labels)
        assert int(longer.lengths.max()) == length
        for index in range(len(texts)):
            (short, count, _), (long, more, _) = texts[torch.tensor([index])], longer[torch.tensor([index])]
            assert torch.equal(short[0, :count], long[0, : min(count, more)])
            assert (int(more) == int(count)) == (int(count) < 8)  # the short ones are whole


def test_a_size_that_no_text_has_is_told_and_left_out(table, tmp_path, capsys) -> None:
    words = ["run", "--data", table, "--pe", "rope", "--seeds", "1", "--tier", "smoke", "--executor", "sequential"]
    words += ["--set", "data.max_len=8", "--beyond", "2, 16", "--out", str(tmp_path / "out"), "--device", "cpu"]
    assert main(words) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "nothing is measured at 16x, as no test text has 128 tokens; the longest has 31" in told
    assert "measured at 2x" not in told
    (record,) = read_records(tmp_path / "out")
    assert record.config.train.beyond == "2,16"
    assert sizes(record) == {"shuffled", "2x"}


def test_longer_texts_are_measured_as_a_model_sees_them(table, tmp_path, monkeypatch) -> None:
    seen: list[int] = []
    real = TextClassifier.forward

    def forward(self, tokens, lengths, positions=None):
        seen.append(tokens.shape[1])
        return real(self, tokens, lengths, positions)

    monkeypatch.setattr(TextClassifier, "forward", forward)
    from pebench.tasks.own.guess import task_of_path

    record = train(config_of(task_of_path(table), "2", max_len=8), options(tmp_path / "out"))
    assert max(seen) == 16
    assert record.metrics["test/loss@2x"] != record.metrics["test/loss"]


def test_pairs_have_no_other_lengths(monkeypatch) -> None:
    from pebench.data.pairs import WikiText2Pairs

    with pytest.raises(UserError, match="no other lengths can be tested"):
        WikiText2Pairs()._longer((2,))


def test_a_wrong_size_is_told_before_training(tmp_path, capsys) -> None:
    words = ["run", "--task", "vit-digits", "--pe", "rope", "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main([*words, "--beyond", "1,2"]) == 2
    error = capsys.readouterr().err
    assert "train.beyond expects rising factors" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_suite_may_set_sizes(tmp_path) -> None:
    from pebench import Suite

    suite = Suite("mine", "", ["vit-digits"], ["rope"], 1, tier="smoke", settings={"train.beyond": "3"})
    results = run_suite(suite, tmp_path, executor="sequential", device="cpu", threads=1)
    assert "test accuracy at 3x" in results.to_frame()
