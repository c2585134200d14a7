"""What is shown of the library in Python runs: the notebook and the page of the documentation."""

import re
import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import pebench

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
CODE_LINES = 12


@pytest.mark.slow
def test_the_notebook_runs_a_suite_and_plots_from_its_frame(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown: list[dict[str, Any]] = []
    for cell in notebook.cells:
        shown += [output.get("data", {}) for output in cell.get("outputs", ())]
    assert any("<progress" in data.get("text/html", "") and "6 of 6 runs" in data["text/html"] for data in shown)
    assert any("<caption>text-order" in data.get("text/html", "") for data in shown)
    assert any("image/png" in data for data in shown)
    assert (tmp_path / "order.html").is_file()


def test_the_notebook_is_short_and_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in cells)
    lines = [line for cell in cells for line in cell.source.splitlines() if line.strip()]
    assert len(lines) <= CODE_LINES


@pytest.mark.slow
def test_the_python_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        quick = re.sub(r"seeds=\d", 'seeds=1, tier="smoke"', snippet)
        quick = quick.replace('out="runs/depth"', 'out="runs/depth", executor="sequential"')
        exec(compile(quick, "docs/python.md", "exec"), names)
    assert (tmp_path / "depth.html").is_file()
    assert len(names["published"]) == 4
    assert len(names["accuracies"].found) == 1


@pytest.mark.slow
def test_kept_weights_predict_new_data(tmp_path: Path) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "predict.py"))
    usual, moved = example["main"](tmp_path, max_steps=40)
    (run,) = [path.parent for path in tmp_path.rglob("record.json")]
    data = pebench.datamodule("vit-digits")
    data.model_arguments()
    images, labels = data.prepared.tensors["test_images"], data.prepared.tensors["test_labels"]
    found = example["predict"](run, images)
    assert float((found == labels).float().mean()) == pytest.approx(usual)  # as the run was tested
    assert moved != usual
    assert usual > 0.2  # twice chance
