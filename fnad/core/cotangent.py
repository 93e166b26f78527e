"""Cotangents that are mostly zero, summed without ever making the zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Scattered:
    """A cotangent of the given shape that is zero but where `add_into(buffer)` adds to it.

    A loop over `x[i]` would otherwise allocate and add a full array per iteration.
    """

    __slots__ = ("add_into", "dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], add_into: Callable[[np.ndarray[Any, Any]], None]) -> None:
        self.shape, self.dtype, self.add_into = shape, dtype, add_into

    def dense(self) -> np.ndarray[Any, Any]:
        buffer = np.zeros(self.shape, self.dtype)
        self.add_into(buffer)
        return buffer
