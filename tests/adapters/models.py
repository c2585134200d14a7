"""Small models of other libraries, with random weights and no dropout unless asked for."""

from typing import Any

import pytest
import torch

from pebench.compat import import_torchvision

LENGTH, TOKENS = 12, 23


def _seeded(make: Any) -> Any:
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():  # far from the initial values, at which attention is nearly even
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def gpt2(**changes: Any) -> Any:
    """A GPT2LMHeadModel."""
    pytest.importorskip("transformers", reason="needs transformers: pip install '.[oracle]'")
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": TOKENS, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": None, "eos_token_id": None}
    return _seeded(lambda: GPT2LMHeadModel(GPT2Config(**sizes | still | changes)))


def llama(**changes: Any) -> Any:
    """A LlamaForCausalLM whose heads share keys by twos."""
    pytest.importorskip("transformers", reason="needs transformers: pip install '.[oracle]'")
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": TOKENS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 16}
    rotations = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}
    tokens = {"bos_token_id": None, "eos_token_id": None}
    return _seeded(lambda: LlamaForCausalLM(LlamaConfig(**sizes | heads | rotations | tokens | changes)))


def vit(**changes: Any) -> Any:
    """A VisionTransformer of timm with 3x4 patches, a class token and a register."""
    import_torchvision()
    module = pytest.importorskip("timm.models.vision_transformer", reason="needs timm: pip install '.[oracle]'")
    sizes = {"img_size": (12, 16), "patch_size": 4, "embed_dim": 32, "depth": 2, "num_heads": 4, "num_classes": 5}
    return _seeded(lambda: module.VisionTransformer(**sizes | {"reg_tokens": 1} | changes))


def tokens(rows: int = 3, length: int = LENGTH) -> torch.Tensor:
    """Random tokens (rows, length), the same in every call."""
    return torch.randint(TOKENS, (rows, length), generator=torch.Generator().manual_seed(1))


def images(rows: int = 3) -> torch.Tensor:
    """Random images (rows, 3, 12, 16), the same in every call."""
    return torch.randn(rows, 3, 12, 16, generator=torch.Generator().manual_seed(1))
