"""A compiled trunk: one graph for texts of all lengths, nothing that runs without it in silence."""

import copy
import pickle
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from pebench.conformance.bench import perturbed
from pebench.encodings import PositionalEncoding
from pebench.encodings.registry import encoding_cards, load_encoding
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.base import SequenceModule
from tests.sampling import sampled

SIZES = {"d_model": 32, "num_layers": 2, "num_heads": 4}
TEXTS = [3, 16, 7, 5, 9, 12, 11, 13, 4, 8, 14]  # more than PyTorch's limit of eight graphs
BEYOND = [17, 40, 25]
IMAGES = [(8, 8), (8, 4), (4, 8), (8, 6)]


@pytest.fixture
def graphs() -> Iterator[list[Any]]:
    torch._dynamo.reset()
    yield []
    torch._dynamo.reset()


def counting(graphs: list[Any]) -> Callable[..., Any]:
    """Return a backend that needs no C++ compiler and keeps every graph."""

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    return backend


def model_and_batches(name: str) -> tuple[SequenceModule, list[Tensor]]:
    draw = torch.Generator().manual_seed(0)
    if 1 in load_encoding(name).axes:
        model: SequenceModule = perturbed(LanguageModel(name, vocab_size=11, max_len=16, **SIZES)).eval()
        lengths = TEXTS if model.trunk.encoding.beyond == "refuses" else TEXTS + BEYOND
        return model, [torch.randint(11, (2 + n % 3, n), generator=draw) for n in lengths]
    model = perturbed(ViT(name, image_size=8, patch_size=2, **SIZES)).eval()
    return model, [torch.randn(2 + row % 3, 3, *size, generator=draw) for row, size in enumerate(IMAGES)]


@pytest.mark.filterwarnings("ignore")  # torch._dynamo looks at tensors, and suppresses what it causes otherwise
@pytest.mark.parametrize("name", sampled((pytest.param(name, id=name) for name in encoding_cards()), 0.1))
def test_one_graph_serves_all_lengths(name, graphs):
    model, batches = model_and_batches(name)
    with torch.no_grad():
        expected = [model(batch) for batch in batches]
        model.trunk.compile(backend=counting(graphs))
        for batch, logits in zip(batches, expected, strict=True):
            torch.testing.assert_close(model(batch), logits, atol=1e-5, rtol=1e-4)
    # Two where a length is taken for another size that happens to be equal.
    assert 1 <= len(graphs) <= 2
    assert model.trunk.uncompiled == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_training_and_validation_have_a_graph_each(graphs):
    model = TextClassifier("alibi", vocab_size=11, max_len=16, **SIZES, dropout=0.1)
    model.trunk.compile(backend=counting(graphs))
    for epoch in range(2):
        for training in (True, False):
            model.train(training)
            for n in TEXTS:
                lengths = torch.tensor([n, 1 + n // 2, n - epoch])
                with torch.inference_mode(not training):
                    loss = model.loss((torch.randint(11, (3, n)), lengths, torch.tensor([0, 1, 1])))
                if training:
                    loss.backward()
    assert 2 <= len(graphs) <= 4  # as above
    assert model.trunk.uncompiled == 0


class Looking(PositionalEncoding):
    """Looks at numbers, which a graph does not have."""

    def embed(self, x: Tensor, state: Tensor) -> Tensor:
        return x * 2 if float(x.detach().sum()) > 0 else x


@pytest.mark.filterwarnings("ignore")
def test_a_hook_that_cannot_be_traced_is_an_error(graphs):
    model = LanguageModel(Looking, vocab_size=11, max_len=16, **SIZES)
    model.trunk.compile(backend=counting(graphs))
    with pytest.raises(Exception, match=r"(?s)embed"):
        model(torch.zeros(2, 8, dtype=torch.long))


@pytest.mark.filterwarnings("ignore")
def test_more_graphs_than_the_limit_are_an_error(graphs):
    model, batches = model_and_batches("add")
    model.trunk.compile(backend=counting(graphs), dynamic=False)  # as it was before
    with torch._dynamo.config.patch(recompile_limit=3), torch.no_grad():
        for batch in batches[:3]:
            model(batch)
        with pytest.raises(Exception, match=r"limit|fullgraph"):
            model(batches[3])


def test_models_of_one_process_have_a_limit_each(graphs):
    """Runs may share a process, and PyTorch counts the graphs of a piece of code."""
    with torch._dynamo.config.patch(recompile_limit=2), torch.no_grad():
        for number in range(5):
            model, (tokens, *_) = model_and_batches("rope")
            expected = model(tokens)
            model.trunk.compile(backend=counting(graphs))
            torch.testing.assert_close(model(tokens), expected)
            assert len(graphs) == number + 1


def test_passes_without_a_graph_are_counted(graphs):
    model, (tokens, *_) = model_and_batches("rope")
    model(tokens)
    assert model.trunk.uncompiled == 0  # not one that was asked to be compiled
    model.trunk.compile(backend=counting(graphs))
    model(tokens, valid=torch.ones_like(tokens))
    assert model.trunk.uncompiled == 1
    assert not graphs


@pytest.mark.parametrize("way", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_copy_is_not_compiled(way, graphs):
    model, (tokens, *_) = model_and_batches("rope")
    expected = model(tokens)
    model.trunk.compile(backend=counting(graphs))
    assert torch.equal(way(model)(tokens), expected)
    assert not graphs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_whole_model_may_be_compiled_too(graphs):
    model, batches = model_and_batches("t5-bias")
    compiled = torch.compile(model, backend=counting(graphs), dynamic=True)
    with torch.no_grad():
        for batch in batches[:4]:
            torch.testing.assert_close(compiled(batch), model(batch), atol=1e-5, rtol=1e-4)
    assert graphs


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["rope", "t5-bias"])
def test_compiled_code_gives_the_same_at_all_lengths(name, graphs):
    model, batches = model_and_batches(name)
    expected = [model(batch) for batch in batches]
    model.trunk.compile()
    for batch, logits in zip(batches, expected, strict=True):
        torch.testing.assert_close(model(batch), logits, atol=1e-4, rtol=1e-4)
    assert model.trunk.uncompiled == 0
