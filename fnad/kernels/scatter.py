"""Scatter: add rows into an array at positions that may repeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def flat_index(indices: tuple[Any, ...], sizes: tuple[int, ...]) -> Array:
    """Index arrays for axes of the given sizes as one non-negative index into those axes flattened, in C order.

    Raises:
        IndexError: an index is out of bounds.
    """
    total: Any = None
    for index, n in zip(indices, sizes, strict=True):
        i = np.asarray(index, np.intp)
        if i.size:
            low, high = i.min(), i.max()
            if low < -n or high >= n:
                raise IndexError(f"index {high if high >= n else low} is out of bounds for an axis of size {n}")
            if low < 0:
                i = np.where(i < 0, i + n, i)
        total = i if total is None else total * n + i
    return np.ravel(total)


def add_at(out: Array, indices: tuple[Any, ...], axis: int, values: Any) -> None:
    """`out[(:,) * axis + indices] += values`, where repeated positions add up, in order.

    Args:
        out: (*lead, *indexed, *rest), changed in place.
        indices: Integer arrays that broadcast together to shape `many`, one per indexed axis.
        axis: The first indexed axis.
        values: (*lead, *many, *rest).
    """
    np.add.at(out, (slice(None),) * axis + indices, values)


def set_at(out: Array, indices: tuple[Any, ...], axis: int, values: Any) -> None:
    """`out[(:,) * axis + indices] = values`, where the last value (in C order) wins at repeated positions; see `add_at`."""
    last = axis + len(indices)
    index = flat_index(indices, out.shape[axis:last])
    lead, row = math.prod(out.shape[:axis]), math.prod(out.shape[last:])
    flat = out.reshape(lead, math.prod(out.shape[axis:last]), row)
    flat[:, index] = np.reshape(values, (lead, index.size, row))


def extreme_at(out: Array, indices: tuple[Any, ...], axis: int, values: Any, larger: bool) -> None:
    """Like `add_at`, but with the larger or the smaller of the entry and its values."""
    (np.maximum if larger else np.minimum).at(out, (slice(None),) * axis + indices, values)
