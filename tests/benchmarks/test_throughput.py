"""The throughput benchmark: are its two models one, and does it write its table?"""

import contextlib
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # Lightning 2.6.6 with torch 2.15
FILE = Path(__file__).parents[2] / "benchmarks" / "studies" / "throughput.py"


@pytest.fixture(scope="module")
def throughput() -> dict:
    return runpy.run_path(str(FILE), run_name="throughput")


@pytest.mark.parametrize("number", range(5))
def test_the_hand_written_model_is_the_same_model(throughput, number):
    work = replace(throughput["WORKLOADS"][number], depth=2, batch=2)
    assert throughput["disagreement"](work) < 1e-4


def test_a_different_model_is_noticed(throughput, monkeypatch):
    work = replace(throughput["WORKLOADS"][0], depth=1, batch=2)
    sinusoid = throughput["sinusoid"]
    monkeypatch.setitem(throughput["disagreement"].__globals__, "sinusoid", lambda *where: -sinusoid(*where))
    assert throughput["disagreement"](work) > 1e-2


def test_both_loops_train_and_the_table_is_written(throughput, tmp_path, capsys):
    output = tmp_path / "throughput.md"
    threads = torch.get_num_threads()
    throughput["main"](["--workloads", "W2c", "--rounds", "2", "--quick", "--device", "cpu", "--output", str(output)])
    assert torch.get_num_threads() == threads
    text = output.read_text()
    assert text == capsys.readouterr().out
    head, rule, line = text.strip().splitlines()[-3:]
    assert head.count("|") == rule.count("|") == line.count("|")
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:2] == ["W2c", "2"]
    assert all(float(cell) > 0 for cell in cells[2:5])
    for cell in cells[5:]:
        middle, least, _, most = cell.replace("(", "").replace(")", "").split()
        assert float(least) <= float(middle) <= float(most)


@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize("number", [0, 2, 4], ids=["image", "lm", "text"])
def test_peers_train_on_the_same_batches(throughput, number):
    """Those that are installed; PyTorch's own always is."""
    work = replace(
        throughput["WORKLOADS"][number], depth=1, width=16, heads=2, batch=4, size=8, words=50 * (number == 4)
    )
    batch = throughput["take"](work, throughput["make_tensors"](work, 8), torch.device("cpu"))
    for make in throughput["PEERS"][work.kind].values():
        with contextlib.suppress(ModuleNotFoundError):
            model = make(work)
            assert model.loss(batch).isfinite()
            model.loss(batch).backward()
    assert isinstance(model.model, throughput["TorchEncoder"])  # the last of each


def test_tuned_arms_are_compared_with_the_fastest_peer(throughput):
    rows = throughput["tuned_rows"](
        throughput["WORKLOADS"][0],
        {"pebench": [1.0], "pebench, bf16": [0.5], "timm VisionTransformer": [1.5], "x-transformers": [1.25]},
    )
    cells = "0.5000 | 2.000 (2.000 to 2.000) | x-transformers | 2.500 (2.500 to 2.500)"
    assert rows == [f"| W1 | pebench, bf16 | {cells} |"]


def test_a_process_tells_the_memory_of_an_arm(throughput, monkeypatch):
    names = throughput["ARMS"][::2]
    monkeypatch.setitem(throughput["memory_rows"].__globals__, "arms", lambda *_: names)
    work = throughput["WORKLOADS"][3]
    arguments = ["--quick", "--device", "cpu"]
    told = throughput["memory_rows"](work, throughput["parse"](arguments), arguments)
    assert [line.split(" | ")[1] for line in told] == [*names]
    assert all(0 <= float(line.split(" | ")[2].rstrip(" |")) < 2 for line in told)
