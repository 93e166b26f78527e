"""Scatter: put rows into an array, or add them, at positions that may repeat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad._numba import kernel

Array = np.ndarray[Any, Any]

_SMALL = 1024
"""Below this many entries `np.add.at` is fastest as it is (measured: it costs 13 ns per entry, setting up the others 4 us)."""

_REPAID = 2**25
"""Loading the kernel takes as long as adding some 10^8 entries without it, so it is loaded once this many have been added."""


class _Work:
    """How many entries this process has added without the kernel. Which way is taken changes no bit of a result."""

    done = 0


@kernel
def add_rows(out: Array, index: Array, values: Array) -> None:
    """out (lead, size, row) += values (lead, many, row) at index (many,), in order."""
    for a in range(out.shape[0]):
        for m in range(index.size):
            i = index[m]
            for r in range(out.shape[2]):
                out[a, i, r] += values[a, m, r]


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
    last = axis + len(indices)
    if np.size(values) < _SMALL or not out.flags.c_contiguous:
        np.add.at(out, (slice(None),) * axis + indices, values)
        return
    index = flat_index(indices, out.shape[axis:last])
    lead, size, row = math.prod(out.shape[:axis]), math.prod(out.shape[axis:last]), math.prod(out.shape[last:])
    if lead * row > 1:
        if _Work.done >= _REPAID and out.dtype.char in "fdFD" and out.dtype.isnative:
            # Read-only arrays would be another type, compiled anew.
            values = np.require(values, out.dtype, ["C", "W"]).reshape(lead, index.size, row)
            add_rows(out.reshape(lead, size, row), np.require(index, None, ["C", "W"]), values)
            return
        _Work.done += np.size(values)
        # NumPy is ten times faster with one index into one axis.
        index = np.ravel((np.arange(lead)[:, None, None] * size + index[:, None]) * row + np.arange(row))
    np.add.at(out.reshape(-1), index, np.ravel(values))


def set_at(out: Array, indices: tuple[Any, ...], axis: int, values: Any) -> None:
    """`out[(:,) * axis + indices] = values`, where the last value (in C order) wins at repeated positions; see `add_at`."""
    last = axis + len(indices)
    index = flat_index(indices, out.shape[axis:last])
    lead, row = math.prod(out.shape[:axis]), math.prod(out.shape[last:])
    flat = out.reshape(lead, math.prod(out.shape[axis:last]), row)
    flat[:, index] = np.reshape(values, (lead, index.size, row))


def extreme_at(out: Array, indices: tuple[Any, ...], axis: int, values: Any, larger: bool) -> None:
    """Like `add_at`, but with the larger or the smaller of the entry and its values."""
    with np.errstate(invalid="ignore"):  # of nan, ufunc.at warns where the ufunc itself does not
        (np.maximum if larger else np.minimum).at(out, (slice(None),) * axis + indices, values)
