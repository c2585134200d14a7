"""A guard for a torchvision that was built for another torch."""

import importlib
import sys

import torch

from pebench.errors import UserError


def import_torchvision() -> None:
    """Import torchvision even if its compiled operators do not load.

    A CUDA build of torchvision beside a CPU build of torch cannot load its operators, and importing it
    fails where it describes them; importing lightning fails with it, because torchmetrics imports
    torchvision. pebench needs none of these operators, so declaring the two that torchvision insists on is enough.

    Raises:
        UserError: If torchvision cannot be imported all the same.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise _mismatch(error) from error
        for name in [m for m in sys.modules if m.startswith("torchvision")]:
            del sys.modules[name]
        _operators.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _operators.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        try:
            importlib.import_module("torchvision")
        except (RuntimeError, ImportError) as second:
            raise _mismatch(second) from second
    except (OSError, ImportError) as error:
        raise _mismatch(error) from error


def _mismatch(error: Exception) -> UserError:
    return UserError(
        f"torchvision does not fit torch {torch.__version__} ({str(error).splitlines()[0]}); "
        "install a matching pair: pip install --upgrade torch torchvision"
    )


_operators = torch.library.Library("torchvision", "FRAGMENT")  # kept: its operators die with it
