"""A data set as tensors, as `read` returns it, and the check that it is one."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pebench.errors import UserError
from pebench.formatting import quoted


@dataclass(frozen=True)
class Prepared:
    """A data set as tensors.

    Args:
        tensors: By name.
        meta: Plain JSON values that belong to them.
    """

    tensors: Mapping[str, Tensor]
    meta: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything in it, in 64 hex digits."""
        digest = hashlib.sha256(json.dumps(self.meta, sort_keys=True).encode())
        for name, tensor in sorted(self.tensors.items()):
            # Bytes alone do not tell type and shape: (2, 3) and (3, 2) have the same.
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.contiguous().numpy().data)
        return digest.hexdigest()


def check_prepared(title: str, found: Any) -> Prepared:
    """Return what a ``read`` has returned, if it is a `pebench.data.base.Prepared` of tensors and plain values.

    Args:
        title: Name of the data in messages.
        found: The value that it returned.

    Raises:
        UserError: If it is not, with what it is.
    """
    start = f"{title}: read() must return a pebench.data.base.Prepared(tensors, meta)"
    if not isinstance(found, Prepared):
        raise UserError(f"{start}, got {'nothing' if found is None else f'a {type(found).__name__}'}.")
    for what, value in (("tensors", found.tensors), ("meta", found.meta)):
        if not isinstance(value, Mapping):
            raise UserError(f"{start} whose {what} are a dict, got a {type(value).__name__}.")
    for name, tensor in found.tensors.items():
        if not isinstance(tensor, Tensor):
            raise UserError(f"{start} of tensors, but its {name!r} is a {type(tensor).__name__}.")
    try:
        json.dumps(found.meta)
    except (TypeError, ValueError) as error:
        raise UserError(f"{start} whose meta are plain JSON values, got {quoted(found.meta)}: {error}.") from error
    return found
