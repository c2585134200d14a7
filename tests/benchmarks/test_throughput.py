"""The study of throughput: its two models are one, every arm is timed, and its tables are written."""

import contextlib
from dataclasses import replace

import pytest
import torch

from pebench.benchmarks.studies import plain, throughput, timing
from pebench.benchmarks.studies.peers import PEERS, TorchEncoder
from pebench.benchmarks.studies.workloads import WORKLOADS, make_tensors, random_batch

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # Lightning 2.6.6 with torch 2.15


@pytest.mark.parametrize("number", range(5))
def test_the_hand_written_model_is_the_same_model(number):
    work = replace(WORKLOADS[number], depth=2, batch=2)
    assert plain.disagreement(work) < 1e-4


def test_a_different_model_is_noticed(monkeypatch):
    work = replace(WORKLOADS[0], depth=1, batch=2)
    sinusoid = plain.sinusoid
    monkeypatch.setattr(plain, "sinusoid", lambda *where: -sinusoid(*where))
    assert plain.disagreement(work) > 1e-2


def test_both_loops_train_and_the_table_is_written(tmp_path, capsys):
    output = tmp_path / "throughput.md"
    threads = torch.get_num_threads()
    asked = ["--workloads", "W2c", "--rounds", "2", "--quick", "--device", "cpu", "--output", str(output)]
    assert throughput.main(asked) == 0
    assert torch.get_num_threads() == threads
    text = output.read_text()
    printed = capsys.readouterr()
    assert text == printed.out
    assert printed.err.count(" s a step\n") == 6  # two rounds of three arms
    head, rule, line = text.strip().splitlines()[-3:]
    assert head.count("|") == rule.count("|") == line.count("|")
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:2] == ["W2c", "2"]
    assert all(float(cell) > 0 for cell in cells[2:5])
    for cell in cells[5:]:
        middle, least, _, most = cell.replace("(", "").replace(")", "").split()
        assert float(least) <= float(middle) <= float(most)


def test_an_interruption_keeps_the_rounds_of_before(monkeypatch, tmp_path):
    def measure(work, options):
        yield {arm: [1.0] for arm in throughput.ARMS}
        if work.name == "W2c":
            raise KeyboardInterrupt

    monkeypatch.setattr(throughput, "measure", measure)
    output = tmp_path / "throughput.md"
    asked = ["--workloads", "W2", "W2c", "W3", "--quick", "--device", "cpu", "--output", str(output)]
    assert throughput.main(asked) == 130
    assert [line[:7] for line in output.read_text().splitlines() if line.startswith("| W")] == ["| W2 | ", "| W2c |"]


def test_an_interruption_that_lightning_makes_an_exit_of_is_one_again(monkeypatch):
    class Interrupted:
        def fit(self, *_: object) -> None:
            raise SystemExit(1)

    monkeypatch.setattr(timing, "make_trainer", lambda *_: Interrupted())
    work = replace(WORKLOADS[3], depth=1, width=16, heads=2, batch=4, size=8)
    run_block = throughput.make_arm(work, "pebench", torch.device("cpu"))
    with pytest.raises(KeyboardInterrupt):
        run_block()


@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize("number", [0, 2, 4], ids=["image", "lm", "text"])
def test_peers_train_on_the_same_batches(number):
    """Those that are installed; PyTorch's own always is."""
    work = replace(WORKLOADS[number], depth=1, width=16, heads=2, batch=4, size=8, words=50 * (number == 4))
    batch = random_batch(work, make_tensors(work, 8), torch.device("cpu"))
    for make in PEERS[work.kind].values():
        with contextlib.suppress(ModuleNotFoundError):
            model = make(work)
            assert model.loss(batch).isfinite()
            model.loss(batch).backward()
    assert isinstance(model.model, TorchEncoder)  # the last of each


def test_tuned_arms_are_compared_with_the_fastest_peer():
    rows = throughput.tuned_rows(
        WORKLOADS[0],
        {"pebench": [1.0], "pebench, bf16": [0.5], "timm VisionTransformer": [1.5], "x-transformers": [1.25]},
    )
    cells = "0.5000 | 2.000 (2.000 to 2.000) | x-transformers | 2.500 (2.500 to 2.500)"
    assert rows == [f"| W1 | pebench, bf16 | {cells} |"]


def test_a_process_measures_the_memory_of_an_arm(monkeypatch):
    monkeypatch.setattr(throughput, "arms", lambda *_: throughput.ARMS[:1])
    arguments = ["--quick", "--device", "cpu"]
    *_, (lines,) = throughput.memory_tables(WORKLOADS[3], throughput.parse(arguments), arguments)
    assert [line.split(" | ")[1] for line in lines] == ["hand-written"]
    assert all(0 <= float(line.split(" | ")[2].rstrip(" |")) < 2 for line in lines)


@pytest.mark.parametrize("arm", throughput.ARMS[1:])
def test_the_memory_of_an_arm_is_its_one_figure(arm, capsys):
    asked = ["--quick", "--device", "cpu", "--arm", arm, "--workloads", "W2c"]  # as `memory_tables` starts it
    assert throughput.main(asked) == 0
    assert 0 <= float(capsys.readouterr().out) < 2
