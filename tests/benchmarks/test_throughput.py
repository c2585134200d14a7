"""The study of throughput: its two models are one, every arm is timed, and its tables are written."""

import contextlib
import functools
import json
from dataclasses import replace

import pytest
import torch

from pebench.benchmarks.studies import arms, memory, plain, throughput, timing
from pebench.benchmarks.studies.limits import Limits, measure_limits, product
from pebench.benchmarks.studies.peers import PEERS, TorchEncoder
from pebench.benchmarks.studies.throughput_tables import ARMS, BEST, page, tuned_rows
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
    (line,) = [line for line in text.splitlines() if line.startswith("| W2c | 2 |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert all(float(cell) > 0 for cell in cells[2:5])
    for cell in cells[5:]:
        middle, least, _, most = cell.replace("(", "").replace(")", "").split()
        assert float(least) <= float(middle) <= float(most)
    figures = json.loads(output.with_suffix(".json").read_text())
    assert figures["complete"]
    assert {arm: len(found) for arm, found in figures["workloads"]["W2c"]["seconds"].items()} == dict.fromkeys(ARMS, 2)
    assert figures["limits"]["flops_32_bit"] > 0


def ticking(monkeypatch, names):
    """Give each workload arms that take no time, and note their turns."""
    turns = []

    def arms_of(work, options):
        def run(arm):
            turns.append(work.name)
            return 1.0

        return {arm: functools.partial(run, arm) for arm in ARMS}

    monkeypatch.setattr(throughput, "arms", arms_of)
    works = [work for work in WORKLOADS if work.name in names]
    return works, turns


def test_every_workload_has_a_round_before_any_has_a_second(monkeypatch):
    works, turns = ticking(monkeypatch, ["W2", "W3"])
    *_, measured = throughput.measure(works, throughput.parse(["--rounds", "2"]))
    assert turns == [*["W2"] * 3, *["W3"] * 3] * 2
    assert [len(seconds["pebench"]) for seconds in measured.values()] == [2, 2]


def test_what_fails_is_left_out_and_told(monkeypatch, capsys):
    works, turns = ticking(monkeypatch, ["W2"])
    usual = throughput.arms

    def with_failing(work, options):
        return {**usual(work, options), "pebench, compiled": lambda: [1.0][len(turns) // 6]}  # in the second round

    monkeypatch.setattr(throughput, "arms", with_failing)
    first, *_ = ({arm: [*each] for arm, each in found[works[0]].items()} for found in throughput.measure(works, two()))
    assert first["pebench, compiled"] == [1.0]
    turns.clear()
    *_, measured = throughput.measure(works, two())
    assert {arm: len(seconds) for arm, seconds in measured[works[0]].items()} == dict.fromkeys(ARMS, 2)
    assert "W2, pebench, compiled: left out, IndexError: list index out of range" in capsys.readouterr().err
    monkeypatch.setattr(throughput, "arms", lambda work, options: {"pebench": lambda: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        next(throughput.measure(works, two()))


def two():
    return throughput.parse(["--rounds", "2"])


def test_no_round_begins_once_the_time_is_over(monkeypatch, capsys):
    works, _ = ticking(monkeypatch, ["W2", "W3"])
    now = iter([0.0, 0.0, 59.0, 61.0])
    monkeypatch.setattr(throughput.time, "monotonic", lambda: next(now))
    *_, measured = throughput.measure(works, throughput.parse(["--rounds", "3", "--minutes", "1"]))
    assert [len(seconds["pebench"]) for seconds in measured.values()] == [1, 1]
    assert "1 minutes are over: ended before round 2 of W2" in capsys.readouterr().err


def test_an_interruption_keeps_the_rounds_of_before(monkeypatch, tmp_path):
    def measure(works, options):
        yield {works[0]: {arm: [1.0] for arm in ARMS}}
        raise KeyboardInterrupt

    monkeypatch.setattr(throughput, "measure", measure)
    output = tmp_path / "throughput.md"
    asked = ["--workloads", "W2", "W2c", "--quick", "--device", "cpu", "--output", str(output)]
    assert throughput.main(asked) == 130
    assert "| W2 | 1 |" in output.read_text()
    assert "not complete" in output.read_text()
    figures = json.loads(output.with_suffix(".json").read_text())
    assert not figures["complete"]
    assert list(figures["workloads"]) == ["W2"]


def test_the_page_says_how_much_of_the_device_is_used():
    seconds = {arm: [0.5] for arm in ARMS}
    text = page("", 1, {WORKLOADS[0]: seconds}, Limits(20e9, 80e9, 5e9), {"W1": 2_000_000_000})
    assert "20 GFLOP/s in products of large 32-bit matrices, 80 in 16 bit, 5 GB/s" in text
    assert "| W1 | 2.00 | 4 | 20 % | 20 % |" in text


def test_operations_of_a_step_are_those_of_its_matrix_products():
    work = replace(WORKLOADS[2], depth=1, width=16, heads=2, batch=4, size=8)
    weights, attention = 12 * 16 * 16 + 16 * work.outputs, 2 * 8 * 16  # multiply-adds of a token, forward
    assert throughput.step_flops(work) == 3 * 2 * 4 * 8 * (weights + attention)


def test_limits_are_rates(monkeypatch):
    monkeypatch.setattr("pebench.benchmarks.studies.limits._fastest", lambda work, device: work() is None or 0.5)
    assert product(torch.float32, 10, torch.device("cpu")) == 4000
    assert measure_limits(torch.device("cpu"), 8).bandwidth == 4 * 2**26


def test_an_interruption_that_lightning_makes_an_exit_of_is_one_again(monkeypatch):
    class Interrupted:
        def fit(self, *_: object) -> None:
            raise SystemExit(1)

    monkeypatch.setattr(timing, "make_trainer", lambda *_: Interrupted())
    work = replace(WORKLOADS[3], depth=1, width=16, heads=2, batch=4, size=8)
    run_block = arms.make_arm(work, "pebench", torch.device("cpu"))
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
    rows = tuned_rows(
        WORKLOADS[0],
        {"pebench": [1.0], "pebench, bf16": [0.5], "timm VisionTransformer": [1.5], "x-transformers": [1.25]},
    )
    cells = "0.5000 | 2.000 (2.000 to 2.000) | x-transformers | 2.500 (2.500 to 2.500)"
    assert rows == [f"| W1 | pebench, bf16 | {cells} |"]


@pytest.mark.slow
def test_a_process_measures_the_memory_of_an_arm(monkeypatch):
    monkeypatch.setattr(memory, "arms", lambda *_: ARMS[:1])
    arguments = ["--quick", "--device", "cpu"]
    *_, text = memory.memory_pages(WORKLOADS[3:4], throughput.parse(arguments), arguments)
    (line,) = [line for line in text.splitlines() if line.startswith("| W2c")]
    assert line.split(" | ")[1] == "hand-written"
    assert 0 <= float(line.split(" | ")[2].rstrip(" |")) < 2


@pytest.mark.parametrize("arm", ARMS[1:])
def test_the_memory_of_an_arm_is_its_one_figure(arm, capsys):
    asked = ["--quick", "--device", "cpu", "--arm", arm, "--workloads", "W2c"]  # as `memory_of` starts it
    assert throughput.main(asked) == 0
    assert 0 <= float(capsys.readouterr().out) < 2


@pytest.mark.gpu
@pytest.mark.parametrize("arm", BEST)
def test_the_best_hand_written_loops_run_on_a_gpu(arm):
    work = replace(WORKLOADS[3], depth=1, width=16, heads=2, batch=4, size=8)
    assert arms.make_arm(work, arm, torch.device("cuda"))() > 0


@pytest.mark.slow
def test_a_compiled_hand_written_loop_runs():
    work = replace(WORKLOADS[3], depth=1, width=16, heads=2, batch=4, size=8, steps=2)
    assert arms.make_arm(work, "hand-written, compiled", torch.device("cpu"))() > 0
