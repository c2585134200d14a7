"""The picture of README and home page is drawn from published records."""

from pebench.benchmarks.picture import ENCODINGS, picture


def test_the_picture_has_a_row_for_each_encoding_and_a_bar_for_every_head() -> None:
    axes = picture().axes
    assert [each.get_ylabel() for each in axes[::3]] == list(ENCODINGS)
    layers = [label.get_text() for label in axes[4].get_xticklabels()]
    assert layers == ["layer 1", "layer 2", "layer 3", "layer 4"]
    for heads, probes in zip(axes[1::3], axes[2::3], strict=True):
        tops = {bar.get_x(): bar.get_y() + bar.get_height() for bar in heads.patches}
        assert len(tops) == 12
        assert all(90 < top < 110 for top in tops.values())  # the shares of a head make up all of its logits, nearly
        assert all(len(line.get_ydata()) == 5 for line in probes.lines)
