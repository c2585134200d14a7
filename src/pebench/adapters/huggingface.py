"""GPT-2 and Llama of Hugging Face's transformers: what they ship with is turned off, hooks stand in its place.

The hooks are functions of PyTorch's own kind on the model, its blocks and their attention. One forward pass travels
through the keyword arguments that transformers passes on to every block, so that recomputed activations find theirs.
"""

import copy
import inspect
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from pebench.adapters.placed import Given, Placed
from pebench.encodings.base import EncodingSpec
from pebench.encodings.pairs import whole
from pebench.errors import UserError
from pebench.models.attention import attend

NAME = "pebench"
"""Name of our attention function among those of transformers, and of the argument that carries a forward pass."""


class NoTable(nn.Module):
    """Stands where GPT-2 has its table of positions, and adds nothing."""

    def forward(self, positions: Tensor) -> Tensor:
        """Return zero, of no dimension."""
        return torch.zeros((), dtype=torch.float32, device=positions.device)


class NoRotation(nn.Module):
    """Stands where Llama makes cosines and sines, and turns nothing."""

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return a cosine of 1 and a sine of 0: (1, 1, 1) each."""
        return x.new_ones(1, 1, 1), x.new_zeros(1, 1, 1)


@dataclass
class TextTrunk:
    """A GPT2Model or a LlamaModel, inside of any other model.

    Args:
        model: The whole model.
        trunk: The GPT2Model or LlamaModel in it.

    Raises:
        UserError: If it has something that hooks cannot be placed in.
    """

    model: nn.Module
    trunk: Any

    def __post_init__(self) -> None:
        config = self.trunk.config
        width, heads = config.hidden_size, config.num_attention_heads
        if getattr(config, "add_cross_attention", False):
            raise UserError("expected a model without cross-attention, got config.add_cross_attention = True")
        if not getattr(config, "is_causal", True):
            raise UserError("expected a causal model, got config.is_causal = False")
        if (getattr(config, "head_dim", None) or width // heads) * heads != width:
            raise UserError(
                f"expected heads that share out the model's width of {width}, got {heads} heads of {config.head_dim}: "
                "encodings are made for heads of hidden_size / num_attention_heads channels"
            )

    def spec(self, max_len: int | None) -> EncodingSpec:
        """Return the sizes of the model; ``max_len`` is by default its longest text."""
        config = self.trunk.config
        extent = (config.max_position_embeddings if max_len is None else max_len,)
        layers, heads = config.num_hidden_layers, config.num_attention_heads
        return EncodingSpec(config.hidden_size, heads, layers, extent, causal=True)

    def unit(self) -> float:
        """Return the root mean square of the model's content, that of its table of tokens."""
        table: Tensor = self.trunk.get_input_embeddings().weight
        return float(table.detach().float().square().mean().sqrt())

    def table(self) -> Tensor | None:
        """Return the model's own table of positions (L, D); None where it has none."""
        table = getattr(getattr(self.trunk, "wpe", None), "weight", None)
        return None if table is None else table.detach()

    def rotation(self) -> dict[str, Any] | None:
        """Return the options of `ModelRotation` that rotate as the model itself does; None if it does not rotate.

        Raises:
            UserError: If the model's frequencies depend on the text.
        """
        own: Any = getattr(self.trunk, "rotary_emb", None)
        if not hasattr(own, "inv_freq"):
            return None
        if own.rope_type in ("dynamic", "longrope"):
            raise UserError(
                f"expected rotations that are the same in texts of any length, got rope_type = {own.rope_type!r}: "
                "give a base, as in rope(theta=10000.0), or an encoding such as yarn"
            )
        return {"own": own.inv_freq, "growth": own.attention_scaling}

    def install(self, placed: Placed) -> None:
        """Turn off what the model ships with, and put an encoding in its place."""
        already = isinstance(getattr(self.trunk, "position", None), Placed)
        self.trunk.position = placed
        if already:
            return
        if hasattr(self.trunk, "wpe"):
            self.trunk.wpe = NoTable()
        else:
            self.trunk.rotary_emb = NoRotation()
        self._use_our_attention()
        self.trunk.register_forward_pre_hook(begin, with_kwargs=True)
        for block in self.trunk.h if hasattr(self.trunk, "h") else self.trunk.layers:
            block.register_forward_pre_hook(before_block, with_kwargs=True)
            attention = block.attn if hasattr(block, "attn") else block.self_attn
            attention.register_forward_pre_hook(before_attention, with_kwargs=True)

    def _use_our_attention(self) -> None:
        """Name our attention function in a configuration of the model's own: others may share the one that it has."""
        shared, own = self.trunk.config, copy.deepcopy(self.trunk.config)
        own._attn_implementation, own.use_cache = NAME, False
        module: Any
        for module in self.model.modules():
            if vars(module).get("config") is shared:
                module.config = own
            if "generation_config" in vars(module) and module.generation_config is not None:
                module.generation_config.use_cache = False


def begin(trunk: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Compute one forward pass for the hooks, and change the input, before the model's own forward.

    Raises:
        UserError: For a cache, a mask that says more than which tokens are padding, or weights of attention to return.
    """
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attention)  # here and not at the swap: an unpickled model has to find it too
    names = list(inspect.signature(type(trunk).forward).parameters)[1:]
    call = dict(zip(names, args, strict=False)) | kwargs
    if call.get("use_cache") or any(call.get(name) is not None for name in ("cache", "past_key_values")):
        raise UserError("a swapped model keeps no KV cache: call it with use_cache=False")
    if call.get("output_attentions") or getattr(trunk.config, "output_attentions", False):
        raise UserError("expected output_attentions=False: fused attention has no weights to return")
    tokens, content = call.pop("input_ids", None), call.pop("inputs_embeds", None)
    content = trunk.get_input_embeddings()(tokens) if content is None else content
    if content.ndim != 3:
        raise UserError(f"expected input_ids of two dimensions (rows, tokens), got {tuple(content.shape[:-1])}")
    given = given_of(trunk.position, content, call.get("attention_mask"), call.get("position_ids"))
    return (), {**call, "inputs_embeds": given.embed(content), "use_cache": False, NAME: given}


def given_of(placed: Placed, content: Tensor, mask: Tensor | None, position_ids: Tensor | None) -> Given:
    """Return one forward pass, in which a row's text has the positions that it has alone, wherever padding is.

    Args:
        placed: The encoding.
        content: (B, L, D).
        mask: (B, L), 0 at padding.
        position_ids: (1, L) or (B, L); None numbers the tokens of each row that are no padding from 0. Without a mask
            a row may hold several texts, each with positions that grow by one, as transformers has it.

    Raises:
        UserError: For a mask of another shape.
    """
    shape, device = content.shape[:2], content.device
    if mask is not None and mask.shape != shape:
        raise UserError(f"expected an attention_mask of shape {tuple(shape)} (rows, tokens), got {tuple(mask.shape)}")
    counted = torch.arange(shape[1], device=device)
    if position_ids is not None and bool((position_ids == counted).all()):
        position_ids = None
    padded = mask is not None and not bool(mask.all())
    if not padded and position_ids is None:
        return placed.alike(placed.cache.grid((shape[1],), device))
    documents = torch.zeros(shape, dtype=torch.long, device=device)
    if position_ids is not None:
        position_ids = position_ids.expand(shape)
        if mask is None:
            documents = nn.functional.pad(position_ids.diff() != 1, (1, 0)).cumsum(dim=1)
    if mask is not None:
        documents = documents.masked_fill(mask == 0, -1)
    return placed.apart(documents, None if position_ids is None else position_ids[..., None].float())


def before_block(block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Change the residual stream before a block."""
    given = kwargs[NAME]
    layer = (block.attn if hasattr(block, "attn") else block.self_attn).layer_idx
    return (given.residual(args[0], layer), *args[1:]), kwargs


def before_attention(
    attention: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Hand the input of an attention layer on to our attention function, which is given its projections alone."""
    x = args[0] if args else kwargs["hidden_states"]
    return args, {**kwargs, NAME: replace(kwargs[NAME], x=x)}


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute attention with an encoding's hooks, as transformers calls it.

    Args:
        module: The attention layer.
        query: (B, H, L, K).
        key: (B, G, L, K); G divides H.
        value: (B, G, L, V).
        attention_mask: Unused: the masks of a pass are ours.
        dropout: Probability of dropping an attention weight.
        scaling: Factor of q·k.
        kwargs: Further arguments of transformers, and the pass.

    Returns:
        (B, L, H, V), and None for the weights.
    """
    given, layer = kwargs[NAME], module.layer_idx
    groups = query.shape[1] // key.shape[1]
    key, value = (heads.repeat_interleave(groups, dim=1) if groups > 1 else heads for heads in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling  # of the plain width, before hooks widen
    query, key = given.encoding.query_key(query, key, given.x, given.state, layer)
    mask = given.masks.fold(whole(given.encoding.bias(query, key, given.x, given.state, layer)))
    value = given.encoding.value(value, given.x, given.state, layer)
    mixed = attend(query, key, value, mask, mask is None, scale, dropout=dropout)
    mixed = given.encoding.output(mixed, value, given.x, given.state, layer)
    return mixed.transpose(1, 2).contiguous(), None
