"""Parameters and floating-point operations, counted on a model rather than computed from its sizes."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode


def count_parameters(module: nn.Module) -> int:
    """Return the number of trained parameters."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def count_flops(loss: Callable[[], Tensor]) -> int:
    """Return the floating-point operations of a forward and a backward pass.

    PyTorch's counter counts matrix products, which is nearly all. It cannot look into a fused attention kernel: have
    the trunk take ``"matmul"`` (`pebench.models.transformer.Transformer.using_kernel`).

    Args:
        loss: Runs the forward pass.
    """
    with FlopCounterMode(display=False) as counter:
        loss().backward()  # type: ignore[no-untyped-call]
    return int(counter.get_total_flops())
