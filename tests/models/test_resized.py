"""Models of another size with the same weights: tables of positions and of biases are interpolated."""

import pytest
import torch

from pebench.conformance.bench import perturbed
from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.base import SequenceModule
from pebench.models.resize import resized_state
from tests.sampling import sampled

SIZES = {"d_model": 32, "num_layers": 2, "num_heads": 4}
UNRULED = {"deberta"}
"""Encodings whose parameters depend on the extent in another way."""


def model_of(name: str) -> tuple[SequenceModule, dict[str, object], torch.Tensor]:
    if 2 in load_encoding(name).axes:
        model: SequenceModule = ViT(name, image_size=8, patch_size=2, **SIZES)
        return perturbed(model).eval(), {"image_size": (8, 16)}, torch.zeros(1, 3, 8, 16)
    return (
        perturbed(LanguageModel(name, vocab_size=11, max_len=8, **SIZES)).eval(),
        {"max_len": 16},
        torch.zeros(1, 16, dtype=torch.long),
    )


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in encoding_cards()], 0.25))
def test_every_encoding_gives_a_model_of_another_size_or_is_refused_by_name(name):
    model, sizes, example = model_of(name)
    if name in UNRULED:
        with pytest.raises(ValueError, match=f"encoding '{name}' has no rule for another size of its parameter"):
            model.resized(**sizes)
        return
    large = model.resized(**sizes)
    assert large(example).isfinite().all()
    assert torch.equal(large.head.weight, model.head.weight)


@pytest.mark.parametrize("name", ["learned", "axial-learned", "position-matrix", "swin-bias", "concat(table=learned)"])
def test_there_and_back_is_the_same(name):
    model = perturbed(ViT(name, image_size=8, patch_size=2, **SIZES)).eval()
    images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    # 4 cells a side become 7, of which every other one is an old cell.
    back = model.resized(image_size=14).resized(image_size=8)
    torch.testing.assert_close(back(images), model(images), atol=1e-5, rtol=1e-4)


def test_cells_of_a_grid_are_bilinear():
    small, large = (build_encoding("learned", EncodingSpec(8, 2, 1, extent, False)) for extent in ((2, 2), (3, 2)))
    rows = resized_state(small, large)["table"]
    assert torch.equal(rows[[0, 1, 4, 5]], small.table.data)
    torch.testing.assert_close(rows[2:4], (small.table.data[:2] + small.table.data[2:]) / 2)


def test_a_bias_keeps_its_value_at_offset_zero_and_at_the_farthest():
    small, large = (build_encoding("swin-bias", EncodingSpec(8, 2, 1, (n,), False)) for n in (3, 5))
    before, after = small.table.data, resized_state(small, large)["table"]
    assert torch.equal(after[:, [0, 4, 8]], before[:, [0, 2, 4]])
    torch.testing.assert_close(after[:, 1], (before[:, 0] + before[:, 1]) / 2)


def test_biases_of_a_grid_that_is_wider_alone_keep_their_rows():
    small, large = (build_encoding("swin-bias", EncodingSpec(8, 2, 1, extent, False)) for extent in ((2, 3), (2, 5)))
    before, after = small.table.data.view(3, 5, 2), resized_state(small, large)["table"].view(3, 9, 2)
    assert torch.equal(after[:, ::2], before)
    torch.testing.assert_close(after[:, 1::2], (before[:, :-1] + before[:, 1:]) / 2)


def test_a_model_of_another_length_keeps_its_other_settings():
    model = TextClassifier("learned", vocab_size=11, max_len=8, num_classes=3, **SIZES, learning_rate=0.5)
    longer = model.resized(max_len=15)
    assert (longer.learning_rate, longer.hparams["max_len"], longer.trunk.encoding.spec.extent) == (0.5, 15, (15,))
    assert torch.equal(longer.trunk.encoding.table[::2], model.trunk.encoding.table)


@pytest.mark.parametrize(("shape", "size"), [((5,), (9,)), ((5, 1), (9, 1)), ((5, 3), (9, 1)), ((5, 1), (9, 3))])
def test_bicubic_rows_of_one_axis_are_those_of_a_grid_whose_columns_are_alike(shape, size):
    """Torch resamples images one pixel wide wrongly."""
    column = perturbed(build_encoding("learned", EncodingSpec(8, 2, 1, (5,), False))).table.data

    def table(old: tuple[int, ...], new: tuple[int, ...]) -> torch.Tensor:
        small, large = (build_encoding("learned", EncodingSpec(8, 2, 1, extent, False)) for extent in (old, new))
        small.table.data.copy_(column.repeat_interleave(len(small.table) // 5, dim=0))
        return resized_state(small, large, "bicubic")["table"].unflatten(0, (9, -1))

    expected = table((5, 4), (9, 4))[:, :1]
    torch.testing.assert_close(table(shape, size), expected.expand_as(table(shape, size)), atol=1e-5, rtol=1e-4)


def test_axes_with_tables_of_their_own_are_bicubic_each_alone():
    small, large = (
        build_encoding("axial-learned", EncodingSpec(8, 2, 1, extent, False)) for extent in ((3, 4), (3, 7))
    )
    rows = resized_state(small, large, "bicubic")["tables"]
    torch.testing.assert_close(rows[:3], small.tables[:3])
    line, long = (build_encoding("learned", EncodingSpec(8, 2, 1, (n,), False)) for n in (4, 7))
    line.table.data[:, : small.tables.shape[1]] = small.tables.data[3:]
    expected = resized_state(line, long, "bicubic")["table"][:, : small.tables.shape[1]]
    torch.testing.assert_close(rows[3:], expected)


def test_an_unknown_interpolation_is_refused():
    small, large = (build_encoding("learned", EncodingSpec(8, 2, 1, (n,), False)) for n in (2, 3))
    with pytest.raises(ValueError, match="interpolation must be one of linear, bicubic, got 'cubic'"):
        resized_state(small, large, "cubic")


def test_bicubic_is_the_cubic_of_images_antialiased_for_tables_and_plain_for_biases():
    """Keys 1981, equation 15, at a distance d below 1: torch has a = -0.5 where it is antialiased, else -0.75."""
    for name, n, m, a in (("learned", 5, 9, -0.5), ("swin-bias", 3, 5, -0.75)):
        small, large = (build_encoding(name, EncodingSpec(8, 2, 1, (size,), False)) for size in (n, m))
        rows = torch.zeros_like(small.table)  # of five rows the middle one is 1
        rows.select(-2, 2).fill_(1.0)
        small.table.data.copy_(rows)
        d = 5 / 9  # of the row after the middle of nine, in old rows
        made = resized_state(small, large, "bicubic")["table"].select(-2, 5)
        torch.testing.assert_close(made, torch.full_like(made, (a + 2) * d**3 - (a + 3) * d**2 + 1))


def test_a_model_of_another_size_keeps_its_type_and_what_is_frozen():
    model = ViT("learned", image_size=8, patch_size=2, **SIZES).bfloat16()
    model.trunk.blocks.requires_grad_(False)
    large = model.resized(image_size=16)
    assert {parameter.dtype for parameter in large.parameters()} == {torch.bfloat16}
    frozen = [[name for name, p in each.named_parameters() if not p.requires_grad] for each in (model, large)]
    assert frozen[0] == frozen[1] != []


@pytest.mark.parametrize("name", ["imagesize", "patch_size", "max_len"])
def test_another_argument_than_the_size_is_refused(name):
    with pytest.raises(ValueError, match=f"expected image_size alone to differ, got {name}"):
        ViT("rope", image_size=8, patch_size=2, **SIZES).resized(**{name: 4})
