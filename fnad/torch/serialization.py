"""`torch.save` and `torch.load`, by `fnad.save` and `fnad.load`: no pickle."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fnad import checkpoints
from fnad.torch._tensor import Tensor, make


def _map(x: Any, leaf: Any) -> Any:
    """Apply a function to the leaves of dicts, lists and tuples."""
    if isinstance(x, dict):
        return {k: _map(v, leaf) for k, v in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[_map(v, leaf) for v in x])
    if isinstance(x, list | tuple):
        return type(x)([_map(v, leaf) for v in x])
    return leaf(x)


def save(obj: Any, f: str | os.PathLike[str]) -> None:
    """Write tensors, arrays and numbers in dicts, lists and tuples, such as a `state_dict()`, to a file: see `fnad.save`.

    Args:
        obj: What to write; modules and optimizers themselves cannot be written, their `state_dict()`s can.
        f: The file. `name.safetensors` is written as such (a dict of tensors), any other name as `.npz` is.
    """
    path = os.fspath(f)
    tree = _map(obj, lambda x: x._data if isinstance(x, Tensor) else x)
    if path.endswith(".safetensors"):
        checkpoints.save(path, tree)
    else:
        checkpoints.save_npz(path, tree)


def load(f: str | os.PathLike[str], map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote, or a `.safetensors` file of any library: arrays come as tensors. See `fnad.load`.

    Raises:
        ArgumentError: it is damaged, or a file of another kind, such as a pickle of `torch.save` of PyTorch.
    """
    return _map(checkpoints.load(os.fspath(f)), lambda x: make(x) if isinstance(x, np.ndarray) else x)
