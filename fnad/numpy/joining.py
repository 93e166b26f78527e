"""Joining arrays, taking them apart, and differences of neighbours."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements
from fnad.errors import UnsupportedError
from fnad.numpy.indexing import as_array, known
from fnad.numpy.metadata import normalise_axis
from fnad.numpy.reductions import refuse_out
from fnad.primitives import shape as prims


def _cast(arrays: list[Any], dtype: Any, casting: Any) -> list[Any]:
    if dtype is None:
        return arrays
    for a in arrays:
        if not np.can_cast(a.dtype, dtype, casting):
            raise TypeError(f"Cannot cast array data from {a.dtype!r} to {np.dtype(dtype)!r} according to the rule {casting!r}")
    return [np.astype(a, dtype) for a in arrays]


@implements(np.concatenate)
def concatenate(arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    refuse_out(out, "np.concatenate")
    parts = _cast(list(map(as_array, arrays)), dtype, casting)
    if axis is None:
        parts, axis = [np.ravel(p) for p in parts], 0
    ndim = len(shape_of(parts[0]))
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    axis = normalise_axis(axis, ndim)
    for i, p in enumerate(parts):
        shape = shape_of(p)
        if len(shape) != ndim:
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly, "
                f"but the array at index 0 has {ndim} dimension(s) and the array at index {i} has {len(shape)} dimension(s)"
            )
        if shape[:axis] + shape[axis + 1 :] != shape_of(parts[0])[:axis] + shape_of(parts[0])[axis + 1 :]:
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly: "
                f"along axis {axis}, the array at index 0 has shape {shape_of(parts[0])} and the array at index {i} has shape {shape}"
            )
    return prims.concatenate(*parts, axis=axis)


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    refuse_out(out, "np.stack")
    parts = _cast(list(map(as_array, arrays)), dtype, casting)
    if len({shape_of(p) for p in parts}) != 1:
        raise ValueError("all input arrays must have the same shape")
    return prims.stack(*parts, axis=normalise_axis(axis, len(shape_of(parts[0])) + 1))


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    return np.concatenate([np.atleast_2d(a) for a in map(as_array, tup)], 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [np.atleast_1d(a) for a in map(as_array, tup)]
    axis = 0 if parts and len(shape_of(parts[0])) == 1 else 1
    return np.concatenate(parts, axis, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(a) for a in map(as_array, tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    parts = list(map(as_array, tup))
    return np.concatenate([np.reshape(a, (-1, 1)) if len(shape_of(a)) < 2 else a for a in parts], 1)


@implements(np.block)
def block(arrays: Any) -> Any:
    depth = _block_depth(arrays)
    leaves = list(map(as_array, _block_leaves(arrays)))
    ndim = max([depth, *(len(shape_of(a)) for a in leaves)])

    def join(node: Any, level: int) -> Any:
        if level == depth:
            a = as_array(node)
            return np.reshape(a, (1,) * (ndim - len(shape_of(a))) + shape_of(a))
        return np.concatenate([join(n, level + 1) for n in node], axis=level - depth)

    return join(arrays, 0)


def _block_leaves(node: Any) -> list[Any]:
    return [leaf for n in node for leaf in _block_leaves(n)] if isinstance(node, list) else [node]


def _block_depth(node: Any) -> int:
    if isinstance(node, tuple):
        raise TypeError("np.block: only lists can be used to arrange blocks, and np.block does not allow implicit conversion from tuple")
    if not isinstance(node, list):
        return 0
    if not node:
        raise ValueError("np.block: lists cannot be empty")
    depths = {_block_depth(n) for n in node}
    if len(depths) > 1:
        raise ValueError("np.block: list depths are mismatched")
    return 1 + depths.pop()


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        return np.concatenate([np.ravel(arr), np.ravel(values)])
    return np.concatenate([arr, values], axis=axis)


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    shape = shape_of(ary)
    axis = normalise_axis(axis, len(shape))
    n = shape[axis]
    if np.ndim(indices_or_sections):
        cuts = [0, *(operator.index(i) for i in indices_or_sections), n]
    else:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extra = divmod(n, sections)
        cuts = [i * each + min(i, extra) for i in range(sections)] + [n]
    lead = (slice(None),) * axis
    return [ary[(*lead, slice(i, j))] for i, j in itertools.pairwise(cuts)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    if not np.ndim(indices_or_sections):
        n = shape_of(ary)[normalise_axis(axis, len(shape_of(ary)))]
        if n % operator.index(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    if not shape_of(ary):
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return np.split(ary, indices_or_sections, 1 if len(shape_of(ary)) > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    if len(shape_of(ary)) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return np.split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    if len(shape_of(ary)) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return np.split(ary, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    if not shape_of(x):
        raise ValueError("Input array must be at least 1-d.")
    return tuple(np.moveaxis(x, axis, 0))


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = normalise_axis(axis, len(shape_of(arr)))
    return np.take(arr, np.delete(np.arange(shape_of(arr)[axis]), _plain_positions(obj, "np.delete")), axis=axis)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    where = _plain_positions(obj, "np.insert")
    if axis is None:
        arr, axis = np.ravel(arr), 0
    arr, values = as_array(arr), as_array(values)
    if not np.can_cast(values.dtype, arr.dtype, "same_kind"):
        raise TypeError(f"np.insert: values of dtype {values.dtype} do not fit into an array of dtype {arr.dtype}")
    shape = shape_of(arr)
    axis = normalise_axis(axis, len(shape))
    n = shape[axis]
    if isinstance(where, slice):
        where = np.arange(n)[where]
    elif np.asarray(where).dtype == bool:
        where = np.flatnonzero(where)
    values = np.astype(values, arr.dtype)
    values = np.reshape(values, (1,) * (len(shape) - len(shape_of(values))) + shape_of(values))
    while len(shape_of(values)) > len(shape) and shape_of(values)[0] == 1:
        values = values[0]  # as in an assignment, where leading axes of size 1 do not count
    if np.ndim(where) == 0:  # as NumPy: at a single position the first axis of the values is inserted along
        values = np.moveaxis(values, 0, axis)
    many = shape_of(values)[axis] if np.size(where) == 1 else np.size(where)
    values = np.broadcast_to(values, (*shape[:axis], many, *shape[axis + 1 :]))
    at = np.repeat(where, many) if np.size(where) == 1 else where
    order = np.insert(np.arange(n), at, np.arange(n, n + many))
    return np.take(np.concatenate([arr, values], axis=axis), order, axis=axis)


def _plain_positions(obj: Any, name: str) -> Any:
    if isinstance(obj, slice):
        return obj
    value = known(obj)
    if value is None:
        raise UnsupportedError(
            f"{name}: the positions must be plain integers", got={"obj": repr(obj)}, fix="select with np.where or np.take"
        )
    return value


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if not shape_of(a):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalise_axis(axis, len(shape_of(a)))
    parts = [_border(prepend, a, axis), a, _border(append, a, axis)]
    parts = [p for p in parts if p is not None]
    if len(parts) > 1:
        a = np.concatenate(parts, axis)
    lead = (slice(None),) * axis
    for _ in range(n):
        upper, lower = a[(*lead, slice(1, None))], a[(*lead, slice(None, -1))]
        a = upper != lower if a.dtype == bool else upper - lower
    return a


def _border(value: Any, a: Any, axis: int) -> Any:
    """What np.diff puts before or after an array: a scalar counts as one entry along the axis."""
    if value is np._NoValue:
        return None
    value = as_array(value)
    shape = list(shape_of(a))
    shape[axis] = 1
    return np.broadcast_to(value, tuple(shape)) if not shape_of(value) else value


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat = np.ravel(ary)
    inner = flat[1:] - flat[:-1]
    for name, border in (("to_end", to_end), ("to_begin", to_begin)):
        if border is not None and not np.can_cast(as_array(border).dtype, inner.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
    parts = [None if to_begin is None else np.ravel(to_begin), inner, None if to_end is None else np.ravel(to_end)]
    return np.concatenate([p for p in parts if p is not None], dtype=inner.dtype)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    axes = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        axes[0], axes[1] = 1, 0
    grids = [np.reshape(x, (1,) * a + (-1,) + (1,) * (ndim - a - 1)) for x, a in zip(map(as_array, xi), axes, strict=True)]
    if sparse and not copy:
        return grids  # NumPy gives a list here
    return tuple(grids if sparse else np.broadcast_arrays(*grids))
