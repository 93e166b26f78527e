"""Hypothesis strategies for shapes and indices of every kind into them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

STATIC = ("int", "np.int64", "0-d", "slice", "None", "...")
ADVANCED = ("array", "list", "mask", "True")


def _array(draw: Any, shape: tuple[int, ...], entries: Any, dtype: Any) -> np.ndarray:
    n = math.prod(shape)
    return np.array(draw(st.lists(entries, min_size=n, max_size=n)), dtype).reshape(shape)


@st.composite
def indexed(draw: Any, kinds: tuple[str, ...] = STATIC + ADVANCED, min_dims: int = 0) -> tuple[tuple[int, ...], Any]:
    """A shape, and an index that fits it (but for masks after an ellipsis, which may not)."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=min_dims, max_size=4)))
    many = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    items: list[Any] = []
    axis = 0
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(kinds))
        n = shape[axis] if axis < len(shape) else 0
        if kind == "None":
            items.append(None)
        elif kind == "True":
            items.append(draw(st.sampled_from([True, False, np.True_, np.array(True)])))
        elif kind == "..." and Ellipsis not in [i for i in items if not isinstance(i, np.ndarray)]:
            items.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
        elif kind == "slice" and axis < len(shape):
            ends = st.none() | st.integers(-6, 6)
            items.append(slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3, -1, -2]))))
            axis += 1
        elif kind == "mask" and axis < len(shape):
            size = shape[axis : axis + draw(st.integers(1, 2))]
            items.append(_array(draw, size, st.booleans(), bool))
            axis += len(size)
        elif n and kind in ("int", "np.int64", "0-d"):
            items.append({"int": int, "np.int64": np.int64, "0-d": np.array}[kind](draw(st.integers(-n, n - 1))))
            axis += 1
        elif n and kind in ("array", "list"):
            size = tuple(draw(st.sampled_from([1, m])) for m in many[draw(st.integers(0, len(many))) :])
            array = _array(draw, size, st.integers(-n, n - 1), int)
            items.append(array.tolist() if kind == "list" and size else array)
            axis += 1
    return shape, items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)
