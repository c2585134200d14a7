"""timm's vision transformer: its table of positions is turned off, hooks stand in its place.

Hooks see the patches alone. The class token and registers have no position, as in timm's own transformers with
rotations (`timm.models.eva`): they are not rotated, and the logits between them and any token have no bias.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pebench.adapters.placed import Given, Placed
from pebench.encodings.base import EncodingSpec
from pebench.encodings.pairs import whole
from pebench.errors import UserError
from pebench.models.attention import attend, split_heads

ATTENTION, PATCHES = "timm.layers.attention.Attention", "timm.layers.patch_embed.PatchEmbed"


def class_of(module: object) -> str:
    """Return the full name of a module's class."""
    return f"{type(module).__module__}.{type(module).__qualname__}"


class PatchAttention(nn.Module):
    """Attention of timm with an encoding's hooks; its layers are the original's, by the same names.

    Args:
        original: The attention that it stands for.
        vit: The model, which knows its encoding.
        layer: Index of the block.
    """

    qkv: Any
    q_norm: Any
    k_norm: Any
    norm: Any
    attn_drop: Any
    proj: Any
    proj_drop: Any

    def __init__(self, original: Any, vit: Any, layer: int) -> None:
        super().__init__()
        self.num_heads, self.scale, self.layer = original.num_heads, original.scale, layer
        self.gate = getattr(original, "gate", None)
        for name, child in original.named_children():
            setattr(self, name, child)
        self.owner = (vit,)  # in a tuple: it is no part of this module

    def forward(self, x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """Mix the tokens: (B, N, D) to the same shape, N = L patches after class token and registers.

        Raises:
            UserError: For a mask.
        """
        if attn_mask is not None or is_causal:
            raise UserError("expected no attention mask: with a swapped encoding all patches see each other")
        given = self.owner[0].position.given
        q, k, v = split_heads(self.qkv(x), self.num_heads)  # (B, H, N, K)
        q, k, mask = self._hooked(self.q_norm(q), self.k_norm(k), x, given)
        first, state = x.shape[1] - given.length, given.state
        v = _behind(v, given.encoding.value(v[:, :, first:], x[:, first:], state, self.layer))
        mixed = attend(q, k, v, mask, False, self.scale, dropout=self.attn_drop.p if self.training else 0.0)
        patches = mixed[:, :, first:], v[:, :, first:]
        mixed = _behind(mixed, given.encoding.output(*patches, x[:, first:], state, self.layer))
        mixed = self.norm(mixed.transpose(1, 2).flatten(2))  # (B, H, N, K) to (B, N, H, K) to (B, N, D)
        if self.gate is not None:
            mixed = mixed * self.gate(x).sigmoid()
        output: Tensor = self.proj_drop(self.proj(mixed))
        return output

    def _hooked(self, q: Tensor, k: Tensor, x: Tensor, given: Given) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return queries, keys and bias of all tokens, of which hooks were given the patches."""
        first, length = x.shape[1] - given.length, given.length
        patches = q[:, :, first:], k[:, :, first:]
        placed = given.encoding.query_key(*patches, x[:, first:], given.state, self.layer)
        bias = whole(given.encoding.bias(*placed, x[:, first:], given.state, self.layer))
        if bias is not None:
            bias = functional.pad(bias.expand(*bias.shape[:-2], length, length), (first, 0, first, 0))
            bias = bias[None] if bias.ndim == 3 else bias
        wider = placed[0].shape[-1] - q.shape[-1]
        q, k = (_behind(functional.pad(heads, (0, wider)), part) for heads, part in zip((q, k), placed, strict=True))
        return q, k, bias


def _behind(heads: Tensor, patches: Tensor) -> Tensor:
    """Return heads (B, H, N, K) with those of the patches, the last L tokens, in place: (B, H, L, K)."""
    return torch.cat((heads[:, :, : heads.shape[2] - patches.shape[2]], patches), dim=2)


@dataclass
class PatchTrunk:
    """A VisionTransformer of timm, inside of any other model.

    Args:
        model: The whole model.
        trunk: The VisionTransformer in it.

    Raises:
        UserError: If it has something that hooks cannot be placed in.
    """

    model: nn.Module
    trunk: Any

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise UserError(f"an encoding cannot be swapped here: expected {problem}")

    def _problem(self) -> str:
        """Return what hooks need and this model has not; empty if there is nothing."""
        vit = self.trunk
        layers: list[Any] = [getattr(block, "attn", None) for block in vit.blocks]
        for layer in layers:
            if not isinstance(layer, PatchAttention) and class_of(layer) != ATTENTION:
                return f"timm's class Attention in every block, got {class_of(layer)}"
        if class_of(vit.patch_embed) != PATCHES:
            return f"timm's class PatchEmbed, got {class_of(vit.patch_embed)}"
        adding = next(cls for cls in type(vit).__mro__ if "_pos_embed" in vars(cls))
        if not adding.__module__.endswith(".vision_transformer"):
            return f"timm's plain way of adding positions, got that of {adding.__name__}"
        if type(vit.patch_drop).__name__ == "PatchDropout":
            return "all patches of an image, got patch_drop_rate above 0: which ones are left is not told"
        if {layer.qkv.out_features for layer in layers} != {3 * vit.embed_dim}:
            return f"heads that share out the model's width of {vit.embed_dim}, got others"
        return ""

    def spec(self, max_len: int | None) -> EncodingSpec:
        """Return the sizes of the model, whose grid its image size gives.

        Raises:
            UserError: For a length.
        """
        if max_len is not None:
            raise UserError("max_len is for texts: a vision transformer has the grid of its own image size")
        vit = self.trunk
        grid = tuple(vit.patch_embed.grid_size)
        return EncodingSpec(vit.embed_dim, vit.blocks[0].attn.num_heads, len(vit.blocks), grid, causal=False)

    def unit(self) -> float:
        """Return the root mean square of embedded patches whose pixels are independent, of mean 0 and variance 1."""
        vit, pixels = self.trunk, torch.Generator().manual_seed(0)
        weight = next(vit.patch_embed.parameters())
        size = (4, vit.in_chans, *vit.patch_embed.img_size)
        images = torch.randn(size, generator=pixels, dtype=torch.float32).to(weight.device, weight.dtype)
        with torch.no_grad():
            embedded = vit.patch_embed.proj(images).flatten(2).mT  # (B, D, rows, columns) to (B, L, D)
            return float(vit.patch_embed.norm(embedded).float().square().mean().sqrt())

    def table(self) -> Tensor | None:
        """Return the model's own rows of its patches (L, D); None where it has none."""
        vit = self.trunk
        return None if vit.pos_embed is None else vit.pos_embed.detach()[0, -vit.patch_embed.num_patches :]

    def rotation(self) -> None:
        """Return None: there are no rotations."""

    def install(self, placed: Placed) -> None:
        """Turn off what the model ships with, and put an encoding in its place."""
        vit = self.trunk
        already = isinstance(getattr(vit, "position", None), Placed)
        vit.position = placed
        if already:
            return
        if vit.pos_embed is not None and not vit.no_embed_class:
            _keep_rows_of_others(vit)
        vit.pos_embed = None
        vit.patch_drop = vit.pos_drop  # stands right after, and timm skips the dropout where there is no table
        vit.no_weight_decay, vit.group_matcher = partial(without_decay, vit), partial(layers_of_names, vit)
        vit.patch_embed.register_forward_hook(Embedding(vit))
        for layer, block in enumerate(vit.blocks):
            block.attn = PatchAttention(block.attn, vit, layer)
            block.register_forward_pre_hook(before_block)


def _keep_rows_of_others(vit: Any) -> None:
    """Add the table's rows of class token and registers to these tokens, which are constant as their rows are."""
    rows, start = vit.pos_embed.detach()[:, : vit.num_prefix_tokens], 0
    for token in (vit.cls_token, vit.reg_token):
        if token is not None:
            with torch.no_grad():
                token += rows[:, start : start + token.shape[1]]
            start += token.shape[1]


def without_decay(vit: Any) -> set[str]:
    """Return the names of parameters without weight decay: those that the model has by itself, and the encoding's.

    timm's optimizers ask for them, and leave out the model's own table of positions as well.
    """
    own = {f"position.{name}" for name, _ in vit.position.named_parameters()}
    return set(type(vit).no_weight_decay(vit)) | own


def layers_of_names(vit: Any, coarse: bool = False) -> dict[str, Any]:
    """Return timm's patterns of names by layer, with the encoding where the model's own table of positions is."""
    groups: dict[str, Any] = dict(type(vit).group_matcher(vit, coarse))
    return {**groups, "stem": f"{groups['stem']}|^position"}


class Embedding:
    """Changes the output of a patch embedding, as PyTorch calls a hook.

    Args:
        vit: The model.
    """

    def __init__(self, vit: Any) -> None:
        self.vit = vit

    def __call__(self, patch_embed: Any, args: tuple[Any, ...], output: Tensor) -> Tensor:
        """Compute one forward pass for the hooks, and change the input: (B, L, D), or (B, rows, columns, D)."""
        grid = tuple(output.shape[1:3]) if output.ndim == 4 else tuple(patch_embed.grid_size)
        placed = self.vit.position
        placed.given = placed.alike(placed.cache.grid(grid, output.device))
        embedded: Tensor = placed.given.embed(output.flatten(1, -2))
        return embedded.contiguous().view(output.shape)


def before_block(block: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Change the patches of the residual stream before a block."""
    given, x = block.attn.owner[0].position.given, args[0]
    first = x.shape[1] - given.length
    return (torch.cat((x[:, :first], given.residual(x[:, first:], block.attn.layer)), dim=1), *args[1:])
