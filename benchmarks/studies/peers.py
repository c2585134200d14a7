"""Models of other libraries at the sizes of a workload, trained on the same batches."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pebench.benchmarks.studies.plain import input_layer, patches
from pebench.benchmarks.studies.workloads import CHANNELS, PATCH, Tensors, Workload, mean_over_tokens, valid_tokens

PACKAGES = ("timm", "transformers", "vit-pytorch", "x-transformers")


class Peer(nn.Module):
    """A model of another library, with the loss of ours.

    Args:
        model: The model.
        logits: Function of the model and a batch's inputs that returns logits.
    """

    def __init__(self, model: nn.Module, logits: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self.logits = model, logits

    def loss(self, batch: Tensors) -> Tensor:
        """Return the mean cross-entropy."""
        return F.cross_entropy(self.logits(self.model, *batch[:-1]).flatten(0, -2), batch[-1].flatten())


class TorchEncoder(nn.Module):
    """`torch.nn.TransformerEncoder` with an input and an output layer."""

    def __init__(self, work: Workload) -> None:
        super().__init__()
        self.work = work
        layer = nn.TransformerEncoderLayer(
            work.width, work.heads, 4 * work.width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, work.depth, nn.LayerNorm(work.width), enable_nested_tensor=False)
        self.input = input_layer(work)
        self.head = nn.Linear(work.width, work.outputs)
        self.position = nn.Parameter(torch.randn(work.positions, work.width))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Map inputs to logits as `PlainTransformer.forward` does."""
        valid, causal = None if lengths is None else valid_tokens(x, lengths), self.work.kind == "lm"
        x = self.input(patches(x) if self.work.kind == "image" else x)
        mask = nn.Transformer.generate_square_subsequent_mask(self.work.size, device=x.device) if causal else None
        hidden = None if valid is None else ~valid
        x = self.blocks(x + self.position, mask=mask, src_key_padding_mask=hidden, is_causal=causal)
        return self.head(x if causal else mean_over_tokens(x, valid))


def torch_encoder(work: Workload) -> Peer:
    """Build PyTorch's own encoder."""
    return Peer(TorchEncoder(work), lambda model, *inputs: model(*inputs))


def timm_vit(work: Workload) -> Peer:
    """Build timm's ViT, with mean pooling instead of a class token."""
    vit = importlib.import_module("timm.models.vision_transformer").VisionTransformer
    shape = {"img_size": work.size, "patch_size": PATCH, "in_chans": CHANNELS, "num_classes": work.outputs}
    sizes = {"embed_dim": work.width, "depth": work.depth, "num_heads": work.heads}
    return Peer(vit(**shape, **sizes, class_token=False, global_pool="avg"), lambda model, images: model(images))


def vit_pytorch(work: Workload) -> Peer:
    """Build vit-pytorch's SimpleViT, which has fixed sinusoids and mean pooling, as ours has."""
    vit = importlib.import_module("vit_pytorch").SimpleViT
    shape = {"image_size": work.size, "patch_size": PATCH, "channels": CHANNELS, "num_classes": work.outputs}
    sizes = {"dim": work.width, "depth": work.depth, "heads": work.heads, "mlp_dim": 4 * work.width}
    return Peer(vit(**shape, **sizes, dim_head=work.width // work.heads), lambda model, images: model(images))


def hf_vit(work: Workload) -> Peer:
    """Build transformers' ViT, with its class token."""
    hf = importlib.import_module("transformers")
    shape = {"image_size": work.size, "patch_size": PATCH, "num_channels": CHANNELS, "num_labels": work.outputs}
    model = hf.ViTForImageClassification(hf.ViTConfig(**shape, **hf_sizes(work)))
    return Peer(model, lambda model, images: model(pixel_values=images).logits)


def hf_sizes(work: Workload) -> dict[str, Any]:
    """Return a workload's sizes as transformers' encoders name them."""
    layers = {"num_hidden_layers": work.depth, "num_attention_heads": work.heads}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return {"hidden_size": work.width, "intermediate_size": 4 * work.width, **layers, **dropout}


def hf_gpt2(work: Workload) -> Peer:
    """Build transformers' GPT-2."""
    hf = importlib.import_module("transformers")
    sizes = {"n_embd": work.width, "n_layer": work.depth, "n_head": work.heads, "n_positions": work.size}
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    model = hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=work.outputs, **sizes, **dropout, use_cache=False))
    return Peer(model, lambda model, tokens: model(input_ids=tokens).logits)


def hf_bert(work: Workload) -> Peer:
    """Build transformers' BERT with its pooler."""
    hf = importlib.import_module("transformers")
    shape = {"vocab_size": work.words, "max_position_embeddings": work.size, "num_labels": work.outputs}
    model = hf.BertForSequenceClassification(hf.BertConfig(**shape, **hf_sizes(work)))

    def logits(model: nn.Module, tokens: Tensor, lengths: Tensor) -> Tensor:
        return model(input_ids=tokens, attention_mask=valid_tokens(tokens, lengths).long()).logits

    return Peer(model, logits)


def x_transformers(work: Workload, **options: Any) -> Peer:
    """Build x-transformers' decoder or encoder, with flash attention."""
    x = importlib.import_module("x_transformers")
    kind = x.Decoder if work.kind == "lm" else x.Encoder
    sizes = {"dim": work.width, "depth": work.depth, "heads": work.heads, "attn_dim_head": work.width // work.heads}
    layers = kind(**sizes, attn_flash=True, **options)
    if work.kind == "image":
        shape = {"image_size": work.size, "patch_size": PATCH, "channels": CHANNELS, "num_classes": work.outputs}
        return Peer(x.ViTransformerWrapper(**shape, attn_layers=layers), lambda model, images: model(images))
    model = x.TransformerWrapper(num_tokens=work.vocabulary, max_seq_len=work.size, attn_layers=layers)
    if work.kind == "lm":
        return Peer(model, lambda model, tokens: model(tokens))
    head = nn.Linear(work.width, work.outputs)

    def logits(both: nn.ModuleList, tokens: Tensor, lengths: Tensor) -> Tensor:
        valid = valid_tokens(tokens, lengths)
        return both[1](mean_over_tokens(both[0](tokens, mask=valid, return_embeddings=True), valid))

    return Peer(nn.ModuleList([model, head]), logits)


PEERS: dict[str, dict[str, Callable[[Workload], Peer]]] = {
    "image": {
        "timm VisionTransformer": timm_vit,
        "vit-pytorch SimpleViT": vit_pytorch,
        "transformers ViT": hf_vit,
        "x-transformers": x_transformers,
        "torch.nn.TransformerEncoder": torch_encoder,
    },
    "lm": {
        "transformers GPT-2": hf_gpt2,
        "x-transformers": x_transformers,
        "x-transformers, rotary": functools.partial(x_transformers, rotary_pos_emb=True),
        "torch.nn.TransformerEncoder": torch_encoder,
    },
    "text": {
        "transformers BERT": hf_bert,
        "x-transformers": x_transformers,
        "torch.nn.TransformerEncoder": torch_encoder,
    },
}
"""Peers by kind of workload."""
