"""Tables that are not trained: the controls of what training a table does."""

import pytest
import torch

from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.base import grid_positions
from pebench.layers import initialise
from pebench.models import ViT
from pebench.models.counting import count_parameters

SPECS = [EncodingSpec(32, 4, 2, extent, causal=False) for extent in ((8,), (3, 5))]


@pytest.mark.parametrize("spec", SPECS, ids=["text", "grid"])
def test_a_learned_table_may_start_as_the_sinusoid(spec: EncodingSpec) -> None:
    learned, add = build_encoding("learned(start='sinusoid', ratio=0.5)", spec), build_encoding("add(ratio=0.5)", spec)
    initialise(learned, seed=3)
    positions, content = grid_positions(spec.extent), torch.zeros(1, spec.max_len, 32)
    encoded = [encoding.embed(content, encoding.state(positions)) for encoding in (learned, add)]
    torch.testing.assert_close(encoded[0], encoded[1], atol=1e-6, rtol=0)


def test_a_frozen_table_is_drawn_and_never_trained() -> None:
    shape = {"image_size": 8, "patch_size": 2, "d_model": 32, "num_layers": 2, "num_heads": 4}
    model, other = (ViT("learned", {"frozen": True}, seed=seed, **shape) for seed in (0, 1))
    table = model.trunk.encoding.table
    assert not torch.equal(table, other.trunk.encoding.table)
    assert torch.equal(table, ViT("learned", seed=0, **shape).trunk.encoding.table)
    assert count_parameters(model) == count_parameters(ViT("add", **shape))
    before = table.clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model.loss((torch.randn(2, 3, 8, 8), torch.tensor([0, 1]))).backward()
    optimizer.step()
    assert torch.equal(table, before)


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(ValueError, match="start of encoding 'learned' must be normal or sinusoid, got 'zero'"):
        build_encoding("learned(start='zero')", SPECS[0])
