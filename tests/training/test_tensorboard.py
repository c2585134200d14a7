"""TensorBoard over a real short suite, asked as a browser asks it: what it shows is what the records say."""

import io
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from pebench.cli import main
from pebench.data import datamodule_of
from pebench.encodings.base import EncodingSpec
from pebench.encodings.build import build_encoding
from pebench.encodings.effects import effects
from pebench.results.bands import FOLDER, write_bands
from pebench.results.figures.encoding import draw
from pebench.runs.records import Record, read_records
from pebench.training.resume import clear
from pebench.training.runner import build
from pebench.training.tensorboard import FAILED, _picture

WHAT = ["--task", "vit-digits", "--pe", "add", "--pe", "learned", "--seeds", "2", "--tier", "smoke"]
SETTINGS = ["--set", "train.max_steps=8", "--set", "train.evaluations=2"]
HOW = ["--executor", "sequential", "--device", "cpu"]
TITLE = "vit-digits smoke, train.max_steps=8, train.evaluations=2"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    assert main(["run", *WHAT, *SETTINGS, *HOW, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def records(out: Path) -> dict[str, Record]:
    return {record.config.directory: record for record in read_records(out)}


class Server:
    def __init__(self, out: Path) -> None:
        words = [sys.executable, "-m", "pebench", "tensorboard", str(out), "--port", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.url = re.search(r"http://\S+/", line)[0]

    def get(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self.url}data/{path}?{urllib.parse.urlencode(query)}", timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            f"{self.url}data/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def pixels(self, query: str) -> Image.Image:
        with urllib.request.urlopen(f"{self.url}data/plugin/images/individualImage?{query}", timeout=60) as answer:
            return Image.open(io.BytesIO(answer.read())).convert("RGB")

    def end(self, by: signal.Signals) -> str:
        self.process.send_signal(by)
        return self.process.communicate(timeout=60)[1]

    def wait_for(self, runs: int) -> None:
        end = time.monotonic() + 60
        while len(self.get("runs")) < runs and time.monotonic() < end:
            time.sleep(0.2)

    def scalars(self, run: str, tag: str) -> dict[int, float]:
        points = self.get("plugin/scalars/scalars", run=run, tag=tag)
        assert len({step for _, step, _ in points}) == len(points)
        return {step: value for _, step, value in points}


# Every process of a test run that needs it makes it anew, for most of a minute: tests that ask it are slow ones.
@pytest.fixture(scope="module")
def server(out: Path) -> Iterator[Server]:
    server = Server(out)
    server.wait_for(6)
    yield server
    server.end(signal.SIGTERM)


@pytest.mark.slow
def test_every_run_and_a_band_for_every_encoding_are_there(server, records):
    assert set(server.get("runs")) == {*records, *(f"{FOLDER}/{TITLE}, {name}" for name in ("add", "learned"))}


@pytest.mark.slow
def test_the_tabs_are_there_that_have_something_to_show(server):
    found = server.get("plugins_listing")
    assert {name for name in ("scalars", "custom_scalars", "images", "hparams") if found[name]["enabled"]} == {
        "scalars", "custom_scalars", "images", "hparams",
    }  # fmt: skip


def outcome_tag(name: str) -> str:
    return "with_chosen_weights/" + re.sub("[/@]", "_", name)


def row_name(record: Record) -> str:
    config = record.config
    return f"{config.label}, {config.task}, seed {config.seed} ({config.key[:8]})"


@pytest.mark.slow
def test_every_number_is_that_of_the_record(server, records):
    tags = server.get("plugin/scalars/tags")
    for run, record in records.items():
        step, best = record.curve[-1]["step"], record.metrics["best_step"]
        metrics = {name: value for name, value in record.metrics.items() if name != "best_step"}
        assert set(tags[run]) == {*map(outcome_tag, metrics), "train/loss", "val/loss", "val/accuracy"}
        for name, value in metrics.items():
            tested = name.startswith("test/") and "@" not in name
            assert server.scalars(run, outcome_tag(name)) == {step if tested else best: pytest.approx(value)}
        for name in ("train/loss", "val/loss", "val/accuracy"):
            found = server.scalars(run, name)
            assert {p["step"]: found[p["step"]] for p in record.curve} == pytest.approx(
                {p["step"]: p[name] for p in record.curve}
            )


@pytest.mark.slow
def test_every_run_is_a_row_of_hyperparameters_with_its_outcome(server, records):
    answer = server.post("plugin/hparams/session_groups", {
        "experimentName": "", "allowedStatuses": ["STATUS_SUCCESS"], "colParams": [], "startIndex": 0, "sliceSize": 99,
    })  # fmt: skip
    rows = {row["name"]: row for row in answer["sessionGroups"]}
    names = {run: row_name(record) for run, record in records.items()}
    assert set(rows) == {*names.values()}
    for run, record in records.items():
        values = rows[names[run]]["hparams"]
        assert values["encoding"] == record.config.encoding
        assert values["seed"] == str(record.config.seed)
        assert values["train.learning_rate"] == record.config.train.learning_rate
        assert values["data.patch_size"] == record.config.data.patch_size
        metrics = {value["name"]["tag"]: value["value"] for value in rows[names[run]]["metricValues"]}
        shown = {name for name in record.metrics if name != "best_step" and "@" not in name}
        assert metrics == pytest.approx({outcome_tag(name): record.metrics[name] for name in shown})


@pytest.mark.slow
def test_the_encoding_and_the_test_metric_are_the_first_columns(server):
    found = server.post("plugin/hparams/experiment", {"experimentName": "", "includeMetrics": True})
    assert [info["name"] for info in found["hparamInfos"]][:3] == ["encoding", "seed", "task"]
    assert found["metricInfos"][0]["name"]["tag"] == "with_chosen_weights/test_accuracy"


@pytest.mark.slow
def test_curves_come_before_single_points(server, records):
    """TensorBoard shows groups of tags, the part before the slash, in the order of their names."""
    groups = {tag.partition("/")[0] for tags in server.get("plugin/scalars/tags").values() for tag in tags}
    assert sorted(groups)[-1] == "with_chosen_weights"
    single = {
        tag for run in records for tag in server.get("plugin/scalars/tags")[run] if len(server.scalars(run, tag)) == 1
    }
    assert {tag.partition("/")[0] for tag in single} == {"with_chosen_weights"}


def test_a_run_that_failed_is_a_row_too_until_it_is_run_again(tmp_path, capsys):
    words = ["run", *WHAT[:4], "--seeds", "1", *WHAT[-2:], *SETTINGS, *HOW, "--out", str(tmp_path)]
    assert main([*words, "--set", "train.learning_rate=1e30", "--set", "train.clip=1e30"]) == 1
    server = Server(tmp_path)
    try:
        server.wait_for(1)
        asked = {"experimentName": "", "colParams": [], "startIndex": 0, "sliceSize": 9}
        failed, finished = (
            server.post("plugin/hparams/session_groups", asked | {"allowedStatuses": [status]})["sessionGroups"]
            for status in ("STATUS_FAILURE", "STATUS_SUCCESS")
        )
    finally:
        server.end(signal.SIGINT)
    (row,) = failed
    assert row["hparams"]["train.learning_rate"] == 1e30
    assert not finished
    (told,) = tmp_path.rglob(f"*{FAILED}")
    clear(told.parent, step=4)
    assert not told.exists()


@pytest.mark.slow
def test_a_band_is_the_mean_and_the_extremes_over_seeds(server, records):
    (category,) = server.get("plugin/custom_scalars/layout")["category"]
    assert category["title"] == TITLE
    assert {chart["title"] for chart in category["chart"]} == {"train/loss", "val/loss", "val/accuracy"}
    for chart in category["chart"]:
        (series,) = chart["margin"]["series"]
        for encoding in ("add", "learned"):
            curves = [record.curve for record in records.values() if record.config.encoding == encoding]
            seeds = [[point[chart["title"]] for point in points] for points in zip(*curves, strict=True)]
            for tag, part in (("value", fmean), ("lower", min), ("upper", max)):
                found = server.scalars(f"{FOLDER}/{TITLE}, {encoding}", series[tag])
                assert [*found] == [point["step"] for point in curves[0]]
                assert [*found.values()] == pytest.approx([part(values) for values in seeds])


def test_records_alone_have_bands(out, tmp_path):
    for path in out.rglob("record.json"):
        copy = tmp_path / path.relative_to(out)
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
    server = Server(tmp_path)
    try:
        server.wait_for(1)
        assert all(run.startswith(FOLDER) for run in server.get("runs"))
    finally:
        server.end(signal.SIGINT)


@pytest.mark.slow
def test_an_encoding_has_one_picture_and_one_for_each_seed_if_it_is_learnt(server, records):
    tags = server.get("plugin/images/tags")
    assert {run: found["encoding"]["samples"] for run, found in tags.items()} == {
        run: 1
        for run, record in records.items()
        if record.config.encoding == "learned" or (record.config.encoding != "none" and record.config.seed == 0)
    }
    assert len({records[run].config.encoding for run in tags}) > 1
    for run in tags:
        (picture,) = server.get("plugin/images/images", run=run, tag="encoding", sample=0)
        assert picture["step"] == records[run].metrics["best_step"]
        assert len(server.pixels(picture["query"]).getcolors(1 << 20)) > 50  # a blank one has a single colour


def test_an_encoding_of_16_bit_is_drawn_too():
    spec = EncodingSpec(d_model=16, num_heads=2, num_layers=1, extent=(4,), causal=False)
    assert _picture(build_encoding("concat-proj", spec).bfloat16(), "concat-proj", "").shape[-1] == 3


@pytest.mark.slow
def test_an_encoding_of_texts_is_drawn_with_its_similarity_by_distance(tmp_path):
    words = ["run", "--task", "text-order", "--pe", "add", "--seeds", "1", "--tier", "smoke", *SETTINGS, *HOW]
    assert main([*words, "--out", str(tmp_path)]) == 0
    (record,) = read_records(tmp_path)
    encoding = build(record.config, datamodule_of(record.config, None)).trunk.encoding
    figure = draw(effects(encoding), "add", "nothing in it is trained")
    assert any("distance" in axes.get_xlabel() for axes in figure.axes)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    server = Server(tmp_path)
    try:
        server.wait_for(1)
        run = record.config.directory
        (picture,) = server.get("plugin/images/images", run=run, tag="encoding", sample=0)
        shown = np.asarray(server.pixels(picture["query"]))
    finally:
        server.end(signal.SIGINT)
    assert np.array_equal(shown, np.asarray(canvas.buffer_rgba())[..., :3])


TEXT = """(function text(node) {
    const inner = node.shadowRoot ? text(node.shadowRoot) : "";
    return inner + (node.nodeType === 3 ? node.data + " " : [...node.childNodes].map(text).join(""));
})(document.body)"""


def text_of(driver: Any, url: str, words: list[str]) -> str:
    """What a page says once it says these words, or after a minute; also what is behind shadow roots."""
    driver.get("about:blank")  # a page that differs by its fragment alone would not be loaded again
    driver.get(url)
    text, end = "", time.monotonic() + 60
    while time.monotonic() < end and not all(word in text for word in words):
        time.sleep(0.5)
        text = driver.execute_script(f"return {TEXT}")
    return text


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize(
    ("tab", "words"),
    [
        ("hparams", ["learned, vit-digits, seed 1", "model.d_model", "with_chosen_weights/val_loss"]),
        ("custom_scalars", [TITLE, "val/accuracy", "Matches (2)"]),
        ("images", ["vit-digits/learned/seed0", "encoding"]),
    ],
)
def test_a_browser_shows_it(server, driver, tab, words):
    text = text_of(driver, f"{server.url}#{tab}", words)
    assert [word for word in words if word not in text] == []


def test_bands_made_twice_are_there_once(out, records, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    write_bands(copy, records.values())
    first = {path.parent for path in (copy / FOLDER).rglob("events.*")}
    write_bands(copy, records.values())
    files = list((copy / FOLDER).rglob("events.*"))
    assert {path.parent for path in files} == first
    assert len(files) == len(first) == 2


@pytest.mark.slow
def test_what_is_written_for_tensorboard_is_no_run(server, out, records, capsys):
    assert main(["status", str(out)]) == 0
    assert "4 runs: 4 done" in capsys.readouterr().out
    assert len(read_records(out)) == len(records)


def test_ctrl_c_ends_it_without_a_traceback(out):
    server = Server(out)
    assert "Traceback" not in server.end(signal.SIGINT)
    assert server.process.returncode == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", ""])
def test_a_host_that_lets_others_in_must_be_meant(out, capsys, host):
    assert main(["tensorboard", str(out), "--host", host]) == 2
    assert "--public" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_folder_without_runs_is_refused(tmp_path, capsys, name):
    assert main(["tensorboard", str(tmp_path / name)]) == 2
    assert "expected an output folder with runs" in capsys.readouterr().err


def test_a_port_that_is_taken_or_is_none_is_told(out, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["tensorboard", str(out), "--port", str(taken.getsockname()[1])]) == 2
    assert "Another --port may be free" in capsys.readouterr().err
    assert main(["tensorboard", str(out), "--port", "70000"]) == 2
    assert "from 0" in capsys.readouterr().err
