"""What an encoding does, measured through its hooks, and the picture of it."""

import math
import subprocess
import sys

import numpy as np
import pytest

from pebench.cli import main
from pebench.encodings.alibi import slopes
from pebench.encodings.base import EncodingSpec
from pebench.encodings.build import build_encoding
from pebench.encodings.effects import effects
from pebench.encodings.registry import encoding_cards
from pebench.errors import UserError
from pebench.results.figures.encoding import draw, draw_together

TEXT, GRID = (12,), (4, 4)


def measured(name, extent=TEXT, causal=False, **options):
    spec = EncodingSpec(d_model=32, num_heads=4, num_layers=4, extent=extent, causal=causal)
    return effects(build_encoding(name, spec, options), seed=0)


DRAWN = [
    (name, TEXT if axes == 1 else GRID) for name, card in encoding_cards().items() for axes in card.declared["axes"]
]


@pytest.mark.parametrize(("name", "extent"), [pair for pair in DRAWN if pair[0] != "none"])
def test_every_encoding_can_be_drawn(name, extent):
    found = measured(name, extent, encoding_cards()[name].declared["causal_only"])
    length = math.prod(extent)
    for effect in found:
        assert effect.values.shape[0] == length
        assert effect.similarity.shape == (length, length)
        assert np.nanmax(effect.values) > np.nanmin(effect.values)
    figure = draw(found, name)
    figure.canvas.draw()
    assert len([axes for axes in figure.axes if axes.get_title()]) == 2 * len(found)


def test_an_encoding_without_effect_has_no_picture():
    with pytest.raises(UserError, match="'none' has no effect that depends on position"):
        measured("none")


def test_a_sinusoid_is_itself_at_distance_0_and_alike_on_both_sides():
    (effect,) = measured("add")
    distances, (lowest, mean, highest) = effect.by_distance()
    assert mean[distances == 0] == pytest.approx(1)
    assert mean == pytest.approx(mean[::-1], abs=1e-6)
    assert highest == pytest.approx(lowest, abs=1e-5)  # the same for all pairs
    frequencies = 10000.0 ** (-np.arange(16) / 16)
    assert mean[distances == 5] == pytest.approx(np.cos(5 * frequencies).mean(), abs=1e-5)


def test_alibi_falls_with_the_mean_slope_of_its_heads():
    (effect,) = measured("alibi")
    distances, (_, mean, _) = effect.by_distance()
    assert mean == pytest.approx(-np.mean(slopes(4)) * abs(distances), abs=1e-6)


def test_rope_oscillates_as_the_sum_of_its_rotations():
    (effect,) = measured("rope")
    distances, (_, mean, _) = effect.by_distance()
    frequencies = 10000.0 ** (-np.arange(4) / 4)
    assert effect.probe == "equal content"
    assert mean == pytest.approx(np.cos(distances[:, None] * frequencies).mean(axis=1), abs=1e-5)


def test_a_causal_model_has_no_future_in_its_picture():
    (effect,) = measured("alibi", causal=True)
    assert np.isnan(effect.values[0, 1:]).all()
    assert not np.isnan(effect.values[-1]).any()
    assert effect.by_distance()[0].max() == 0


def test_a_patch_is_most_like_itself():
    (effect,) = measured("add", GRID)
    assert effect.around_centre().shape == GRID
    assert np.unravel_index(effect.around_centre().argmax(), GRID) == (2, 2)


@pytest.mark.parametrize("name", ["cope", "fox"])
def test_an_encoding_of_context_is_shown_random_content(name):
    (effect,) = measured(name, causal=True)
    assert effect.probe == "random content"
    assert "random content" in draw([effect], name).axes[0].get_title()


def test_parameters_that_start_at_zero_are_drawn_and_the_picture_has_a_note(tmp_path):
    assert measured("cope", causal=True)[0].redrawn
    assert not measured("learned")[0].redrawn
    assert main(["plot-encoding", "cope", "--length", "9", "--output", str(tmp_path / "cope.svg")]) == 0
    assert "as initialised it tells nothing" in (tmp_path / "cope.svg").read_text(encoding="utf-8")


def test_a_residual_encoding_names_its_block():
    (effect,) = measured("cpe")
    assert (effect.target, effect.layer) == ("residual stream", 1)
    assert "block 2" in draw([effect], "cpe").axes[0].get_title()


def test_an_encoding_that_acts_on_two_parts_has_two_rows():
    assert [effect.target for effect in measured("stack")] == ["input", "attention logits"]


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_command_writes_the_same_file_twice(tmp_path, capsys, suffix):
    files = [tmp_path / f"{number}{suffix}" for number in (1, 2)]
    for file in files:
        assert main(["plot-encoding", "rope", "--set", "theta=100", "--length", "20", "--output", str(file)]) == 0
    assert capsys.readouterr().out.split() == [str(file) for file in files]
    assert files[0].stat().st_size > 5000
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none"], "has no effect that depends on position"),
        (["roep"], "Did you mean 'rope'?"),
        (["rope", "--set", "tehta=1"], "theta"),
        (["rope(theta=-1.0)"], "theta of encoding 'rope' must be positive and finite, got -1.0"),
        (["rope", "--output", "rope.gif"], r"--output must end in .svg"),
        (["rope", "--length", "1"], "--length must be from 2"),
        (["rope-mixed", "--length", "90"], "must be a square, such as 81"),
        (["rope", "--d-model", "0"], "d_model must be 1 or more, got 0"),
        (["rope", "--heads", "0"], "num_heads must be 1 or more, got 0"),
        (["rope", "--heads", "-2"], "num_heads must be 1 or more, got -2"),
        (["rope", "--d-model", "100", "--heads", "3"], "multiple of num_heads"),
        (["rope", "--d-model", "12", "--heads", "4"], "multiple of 2"),
        (["alibi", "--grid", "--length", "99"], "must be a square"),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_written(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["plot-encoding", *words]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_encoding_of_ones_own_that_raises_is_reported_by_its_line(tmp_path, monkeypatch, capsys):
    lines = ["from pebench import PositionalEncoding", "class Broken(PositionalEncoding):", '    "Breaks."']
    lines += ["    def embed(self, x, state):", "        raise RuntimeError('no such thing')"]
    (tmp_path / "broken_one.py").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["plot-encoding", "broken_one:Broken"]) == 2
    assert "(broken_one.py:5): embed raised RuntimeError: no such thing" in capsys.readouterr().err


def test_an_encoding_that_returns_no_numbers_is_not_called_one_without_effect(tmp_path, monkeypatch, capsys):
    (tmp_path / "wrong_one.py").write_text(
        "from pebench import PositionalEncoding\n"
        "class Wrong(PositionalEncoding):\n"
        "    def embed(self, x, state): return x * float('nan')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["plot-encoding", "wrong_one:Wrong"]) == 2
    assert "'wrong_one:Wrong' (wrong_one.py:3) returned from embed NaN" in capsys.readouterr().err


def test_a_small_grid_has_ticks_at_whole_numbers():
    effects = measured("add", extent=(4, 4)) + measured("rope", extent=(4, 4))
    figure = draw(effects, "grid")
    figure.draw_without_rendering()
    images = [axes for axes in figure.axes if axes.images]
    assert len(images) >= 4
    for axes in images:
        assert all(float(tick).is_integer() for tick in (*axes.get_xticks(), *axes.get_yticks()))


def test_several_encodings_are_drawn_on_one_scale(tmp_path, capsys):
    found = {name: measured(name) for name in ("rope", "alibi")}
    figure = draw_together(found, "both")
    images = [axes.images[0].get_clim() for axes in figure.axes if axes.images]
    curves = [axes.get_ylim() for axes in figure.axes if axes.get_title() == "Mean logit by distance"]
    assert len(set(images)) == len(set(curves)) == 1
    assert (len(images), len(curves)) == (2, 2)
    alone = [draw(effects, name).axes[0].images[0].get_clim() for name, effects in found.items()]
    assert alone[0] != alone[1]
    low, high = images[0]
    assert low <= min(low for low, _ in alone)
    assert high >= max(high for _, high in alone)
    output = str(tmp_path / "both.svg")
    assert main(["plot-encoding", "rope", "alibi", "--length", "9", "--output", output]) == 0
    assert capsys.readouterr().out == f"{output}\n"


def test_texts_and_grids_are_not_drawn_together(tmp_path, capsys):
    words = ["plot-encoding", "rope", "rope-mixed", "--length", "9", "--output", str(tmp_path / "both.svg")]
    assert main(words) == 2
    assert "--grid draws all of them" in capsys.readouterr().err
    assert main([*words, "--grid"]) == 0


def test_a_picture_of_measured_effects_needs_no_torch():
    code = "import sys, pebench.results.figures.encoding; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
