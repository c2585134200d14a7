"""The encoding in a model."""

import torch
from pebench_binary import BinaryEncoding

from pebench import ViT


def test_a_vision_transformer_sees_where_its_patches_are() -> None:
    model = ViT(BinaryEncoding, {"bits": 3}, image_size=8, patch_size=2, channels=1, d_model=16, num_heads=2)
    torch.nn.init.normal_(model.head.weight)
    image = torch.randn(1, 1, 8, 8)
    model(image).sum().backward()
    assert not torch.allclose(model(image), model(image.flip(-1)), atol=1e-4)
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_positions_beyond_the_digits_begin_again() -> None:
    model = ViT(BinaryEncoding, {"bits": 3}, image_size=8, patch_size=2, channels=1, d_model=16, num_heads=2)
    encoding = model.trunk.encoding
    positions = torch.tensor([[1.0, 2.0]])
    assert torch.equal(encoding.prepare(positions), encoding.prepare(positions + 8))
