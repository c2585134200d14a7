"""The study of growth counts a step's operations, marks what is worse than arithmetic, and keeps what it has."""

import json
from dataclasses import replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from pebench.benchmarks.studies import growth
from pebench.benchmarks.studies.pages import INCOMPLETE
from pebench.models import LanguageModel


def test_it_counts_the_operations_that_a_step_takes():
    work = replace(growth.SMALL, depth=1, width=16, heads=2, batch=3, size=8)
    module = LanguageModel("rope", vocab_size=work.outputs, max_len=8, d_model=16, num_layers=1, num_heads=2)
    tokens = torch.zeros(3, 8, dtype=torch.long)
    with module.trunk.using_kernel("matmul"), FlopCounterMode(display=False) as counter:  # the fused one hides products
        module.loss((tokens, tokens)).backward()
    assert growth.flops("rope", work) == counter.get_total_flops()


def test_it_marks_a_point_that_is_worse_than_arithmetic():
    row = [{"seconds": s, "flops": f, "gib": 0.5} for s, f in ((1.0, 1), (1.0, 2), (3.0, 3))]
    assert growth.slowdowns(row) == [1.0, 1.0, 2.0]
    assert growth.grid({"add": row[1:]}, [64, 128], "encoding").endswith(
        "| 1.000 s, 0.50 GiB | 3.000 s, 0.50 GiB (x2.00) |"
    )


def test_it_measures_a_point(capsys):
    assert growth.main(["--point", json.dumps(["alibi", 8, 16, 2, None])]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["seconds"] > 0
    assert 0 <= measured["gib"] < 1


def test_interrupted_it_keeps_its_points_and_their_picture(monkeypatch, tmp_path):
    points = iter([{"seconds": 1.0, "flops": 5, "gib": 0.1}, {"seconds": 2.0, "flops": 11, "gib": 0.2}])

    def measure(*_):
        for point in points:
            return point
        raise KeyboardInterrupt

    monkeypatch.setattr(growth, "measure_elsewhere", measure)
    output = tmp_path / "growth.md"
    assert growth.main(["--quick", "--output", str(output)]) == 130
    page = output.read_text()
    assert page.endswith(
        f"| none       | 1.000 s, 0.10 GiB | 2.000 s, 0.20 GiB |\n\n![Time and memory against length]"
        f"(growth.svg)\n{INCOMPLETE}"
    )
    assert (tmp_path / "growth.svg").read_text().startswith("<?xml")
