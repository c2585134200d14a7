"""Properties of what a token can see: the past, the future and padding."""

import copy

import torch
from torch import Tensor

from pebench.conformance.bench import Bench
from pebench.conformance.comparisons import SAME, require, require_same
from pebench.conformance.properties.base import encoding_property, has_one_axis, is_causal
from pebench.conformance.properties.order import one_layer_attends
from pebench.models.transformer import Transformer


@encoding_property("future", when=is_causal)
def _future(bench: Bench) -> None:
    """In a causal model nothing is seen of the future, in 32 bit or 16."""
    cuts, content = torch.arange(1, bench.length), bench.noise(1)
    past = (torch.arange(bench.length) < cuts[:, None]).unsqueeze(-1)  # (cuts, L, 1): a sample for each cut
    before = content.expand(len(cuts), -1, -1)
    # ten times as loud, so that a small leak is above rounding
    after = torch.where(past, before, 10 * bench.noise(len(cuts), seed=7))
    for model in (bench.model, copy.deepcopy(bench.model).bfloat16()):
        dtype = next(model.blocks.parameters()).dtype
        # only the past is compared: outputs of the future differ with its content
        one, other = (torch.where(past, model(x.to(dtype)), 0.0) for x in (after, before))
        require_same(one, other, f"another future to change nothing in {dtype}")


@encoding_property("reach")
def _reach(bench: Bench) -> None:
    """The last token sees all others, without a block in between; in a bidirectional model so does the first."""
    for token in (-1,) if bench.causal else (-1, 0):
        unseen = [_unseen(model, bench.content, token) for model in one_layer_attends(bench.model)]
        require(not all(unseen), f"token {token} to see every token in some block", f"nothing of tokens {unseen}")


def _unseen(model: Transformer, content: Tensor, token: int) -> list[int]:
    """Return the tokens whose content has no influence on a token's output, found by its gradient."""
    content = content.clone().requires_grad_()
    # cubes, as after the last norm the sum of outputs, and of their squares, hardly depends on the content
    model(content)[:, token].pow(3).sum().backward()
    assert content.grad is not None
    influence = content.grad.abs().amax(dim=(0, 2))  # (L,): exactly 0 where masked
    return (influence <= 1e-7).nonzero().flatten().tolist()


@encoding_property("prefix", when=is_causal)
def _prefix(bench: Bench) -> None:
    """In a causal model a prefix gives the prefix of the output."""
    output = bench.model(bench.content)
    for n in range(1, bench.length):
        alone = bench.model(bench.content[:, :n], bench.positions[:n])
        require_same(alone, output[:, :n], f"{n} tokens alone to give the same")


@encoding_property("padding", when=has_one_axis)
def _padding(bench: Bench) -> None:
    """Padding has no influence, after a text or before it, in 32 bit or 16."""
    # the longest text fits into `short`, so that cutting there takes padding alone
    lengths, short = torch.tensor([5, 3, 1]), 5
    after = torch.arange(bench.length) < lengths[:, None]
    before = torch.arange(bench.length) >= bench.length - lengths[:, None]
    for autocast, tolerance in ((False, SAME), (True, 0.1)):  # 16 bit rounds; what leaks is louder than both
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            for valid in (after, before) if bench.causal else (after,):
                _check_padding_content(bench, valid, tolerance)
            cut = after[:, :short]
            one, other = bench.model(bench.content[:, :short], None, cut), bench.model(bench.content, None, after)
            require_same(one[cut], other[:, :short][cut], "less padding to change nothing", tolerance)
            alone = bench.model(bench.content[2:, :1], None, after[2:, :1])
            require_same(alone, other[2:, :1], "a text without its padding to give the same", tolerance)


def _check_padding_content(bench: Bench, valid: Tensor, tolerance: float) -> None:
    """Raise `BrokenError` if loud content at padding changes the output of other tokens."""
    # loud and not zero: a zero would hide an encoding that adds padding up
    garbage = torch.where(valid.unsqueeze(-1), bench.content, 30 * bench.noise(3, seed=7))
    one, other = bench.model(garbage, None, valid)[valid], bench.model(bench.content, None, valid)[valid]
    require(bool(one.isfinite().all()), "finite numbers beside padding", "infinities or none")
    require_same(one, other, "what stands at padding to change nothing", tolerance)
