"""The guide's attention of one's own computes what ours does, with every encoding; its other examples run."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from pebench.compat import import_torchvision
from pebench.encodings import EncodingSpec, build_encoding
from pebench.encodings.registry import encoding_cards
from pebench.models.attention import Masks
from pebench.models.transformer import SelfAttention

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own-model.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
SPEC = EncodingSpec(d_model=32, num_heads=4, num_layers=2, extent=(8,), causal=True)


def run(snippet: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(snippet, GUIDE.name, "exec"), names)
    return names


@pytest.fixture(scope="module")
def plain() -> Any:
    (snippet,) = (snippet for snippet in SNIPPETS if "class Attention" in snippet)
    forward = snippet.partition("def forward")[2].partition("\n\n")[0]
    assert len(forward.splitlines()) < 10
    return run(snippet)["Attention"]


@pytest.mark.parametrize("name", [name for name, card in encoding_cards().items() if 1 in card.declared["axes"]])
def test_attention_of_one_s_own_computes_what_ours_does(plain: Any, name: str) -> None:
    encoding = build_encoding(name, SPEC)
    width = encoding.model_width
    torch.manual_seed(0)
    ours, own, x = SelfAttention(width, 4, 1.0, 0), plain(width, 4), torch.randn(2, 8, width)
    own.qkv.load_state_dict(ours.qkv.state_dict())
    own.out.load_state_dict(ours.out.state_dict())
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.normal_()
        state = encoding.state(torch.arange(8.0)[:, None])
        expected = ours(x, encoding, state, Masks(True, 8, x.device, None))
        torch.testing.assert_close(own(x, encoding, state, 0), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("library", ["GPT2Config", "LlamaConfig", "timm"])
def test_a_model_of_another_library_is_swapped_as_the_guide_has_it(library: str) -> None:
    import_torchvision()
    pytest.importorskip("timm" if library == "timm" else "transformers", reason="needs pip install '.[oracle]'")
    (snippet,) = (snippet for snippet in SNIPPETS if f"import {library}" in snippet)
    names = run(snippet)
    (placed,) = [module for module in names["model"].modules() if type(module).__name__ == "Placed"]
    assert placed.encoding.name in snippet
    if library == "timm":
        assert names["logits"].isfinite().all()
