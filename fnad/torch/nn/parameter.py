"""Tensors that modules hold: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.torch import _dtypes
from fnad.torch._tensor import Tensor


class Parameter(Tensor):
    """A leaf that a module finds among its attributes, and an optimizer changes.

    Args:
        data: A tensor, whose memory it shares.
        requires_grad: Whether it is trained.
    """

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        self._data = np.empty(0, _dtypes.DEFAULT.floating) if data is None else data._data if isinstance(data, Tensor) else np.asarray(data)
        self._counter = data._counter if isinstance(data, Tensor) else [0]
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it becomes an attribute.

    Args:
        data: A tensor, whose memory it shares.
        persistent: Whether it is part of `state_dict`.
    """

    def __init__(self, data: Any, *, persistent: bool = True) -> None:
        self._data, self._counter, self.persistent = data._data, data._counter, persistent
