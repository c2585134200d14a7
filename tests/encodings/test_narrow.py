"""Encodings serve devices without 64-bit numbers: tables are computed where there are some."""

import pytest
import torch
from torch import Tensor

from pebench.conformance import SETTINGS, Bench, Subject
from pebench.conformance.comparisons import require_same
from pebench.encodings.registry import encoding_cards
from tests.sampling import sampled

from .narrow import DEVICE, NarrowDevice, NarrowTensor


def there(x: Tensor) -> NarrowTensor:
    return NarrowTensor(x.detach().clone())


@pytest.mark.parametrize("name", sampled([pytest.param(name, id=name) for name in encoding_cards()], 0.25))
def test_an_encoding_serves_a_device_without_64_bit_numbers(name: str):
    for setting in SETTINGS:
        if not Subject(name).serves(setting):
            continue
        bench = Bench(Subject(name), setting)
        expected = bench.trunk()(bench.content)
        with NarrowDevice(), torch.no_grad():
            moved = bench.trunk().to(DEVICE)
            output = moved(there(bench.content), there(bench.positions))
            assert isinstance(output, NarrowTensor)
            require_same(output.held, expected, "the same on the device")
            moved.train()(there(bench.content))


def test_the_device_of_these_tests_has_no_64_bit_numbers():
    with NarrowDevice():
        made = torch.arange(3, device=DEVICE, dtype=torch.float32)
        assert made.device == DEVICE
        assert (made + 1).tolist() == [1.0, 2.0, 3.0]
        with pytest.raises(TypeError, match="float64"):
            made.double()
        with pytest.raises(TypeError, match="float64"):
            torch.zeros(3, device=DEVICE, dtype=torch.float64)
        with pytest.raises(RuntimeError, match="same device"):
            made + torch.ones(3)
