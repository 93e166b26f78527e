"""Padding, and the diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError, UnsupportedError
from fnad.numpy.indexing import as_array
from fnad.numpy.metadata import normalise_axis
from fnad.primitives import indexing as prims
from fnad.typing import Shape

_BY_INDEX = {"edge": (), "wrap": (), "reflect": ("reflect_type",), "symmetric": ("reflect_type",)}


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    shape = shape_of(array)
    widths = _pairs(pad_width, len(shape))
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    allowed = ("constant_values",) if mode == "constant" else _BY_INDEX.get(mode, ()) if isinstance(mode, str) else ()
    if mode != "constant" and mode != "empty" and not (isinstance(mode, str) and mode in _BY_INDEX):
        raise UnsupportedError(
            f"np.pad of a traced array has no mode {mode!r}",
            got={"modes": "constant, empty, edge, reflect, symmetric, wrap"},
            fix="join the borders with np.concatenate",
        )
    unknown = set(kwargs) - set(allowed)
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode in _BY_INDEX:
        if kwargs.get("reflect_type", "even") != "even":
            raise UnsupportedError("np.pad of a traced array reflects evenly only", got=kwargs, fix="leave reflect_type out")
        for axis, pair in enumerate(widths):
            if any(pair):
                array = np.take(array, np.pad(np.arange(shape[axis]), pair, mode), axis=axis)
        return array
    values = kwargs.get("constant_values", 0)
    if not isinstance(values, Tracer) and not _has_tracer(values) and not np.any(values):
        wanted = tuple(before + n + after for n, (before, after) in zip(shape, widths, strict=True))
        inside = tuple((before, before + n, 1) for n, (before, _) in zip(shape, widths, strict=True))
        return prims.static_spread(array, shape=wanted, index=inside)
    for axis, (pair, fill) in enumerate(zip(widths, _pairs(values, len(shape)), strict=True)):
        array = _pad_axis(array, axis, pair, fill)
    return array


def _pad_axis(array: Any, axis: int, pair: Any, fill: Any) -> Any:
    shape, dtype = list(shape_of(array)), aval_of(array).dtype
    parts = [array]
    for n, value, place in ((pair[0], fill[0], 0), (pair[1], fill[1], 2)):
        if n:
            shape[axis] = n
            value = as_array(value)
            if isinstance(value, Tracer) and not np.can_cast(value.dtype, dtype, "same_kind"):
                raise DTypeError("np.pad: a traced fill value must not lose its kind", got={"value": value.aval, "array": dtype})
            value = np.astype(value, dtype)
            parts.insert(place, np.broadcast_to(value, tuple(shape)))
    return np.concatenate(parts, axis=axis)


def _has_tracer(values: Any) -> bool:
    return isinstance(values, Tracer) or (isinstance(values, tuple | list) and any(map(_has_tracer, values)))


def _pairs(widths: Any, ndim: int) -> list[tuple[Any, Any]]:
    """A (before, after) pair per axis from what np.pad takes: one value, a pair, a list of values or pairs, or a dict by axis."""
    if isinstance(widths, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in widths.items():
            pairs[normalise_axis(axis, ndim)] = _pair(width)
        return pairs
    if isinstance(widths, np.ndarray):
        widths = widths.tolist()
    if not isinstance(widths, tuple | list):
        return [(widths, widths)] * ndim
    rows = list(widths)
    if not any(isinstance(r, tuple | list | np.ndarray) for r in rows):
        rows = [rows] if len(rows) <= 2 else [[r] for r in rows]
    if len(rows) == 1:
        rows = rows * ndim
    if len(rows) != ndim:
        raise ValueError(f"operands could not be broadcast together: np.pad needs one entry per axis ({ndim})")
    return [_pair(r) for r in rows]


def _pair(width: Any) -> tuple[Any, Any]:
    if not isinstance(width, tuple | list | np.ndarray):
        return width, width
    before, after = width if len(width) == 2 else (width[0], width[0])
    return before, after


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    ndim = len(shape_of(a))
    if ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = normalise_axis(axis1, ndim), normalise_axis(axis2, ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    a = np.moveaxis(a, (first, second), (-2, -1))
    *lead, rows, columns = shape_of(a)
    length, start = _diagonal(rows, columns, offset)
    flat = np.reshape(a, (*lead, rows * columns))
    return flat[..., start : start + length * (columns + 1) : columns + 1] if length else flat[..., :0]


def _diagonal(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """Length of a diagonal and where it starts in the flattened matrix."""
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return max(length, 0), offset if offset >= 0 else -offset * columns


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    shape = shape_of(v)
    if len(shape) == 2:
        return np.diagonal(v, k)
    if len(shape) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = shape[0] + abs(k)
    _, start = _diagonal(n, n, k)
    index = ((start, min(start + shape[0] * (n + 1), n * n), n + 1),) if shape[0] else ((0, 0, 1),)
    return np.reshape(prims.static_spread(v, shape=(n * n,), index=index), (n, n))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    return np.diag(np.ravel(v), k)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    return np.where(_below(shape_of(m), k), m, np.zeros((), m.dtype))


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    return np.where(_below(shape_of(m), k - 1), np.zeros((), m.dtype), m)


def _below(shape: Shape, k: int) -> Any:
    """Where an array's last two axes are on or below the k-th diagonal."""
    if not shape:
        raise TypeError("np.tril and np.triu take arrays of at least one axis")
    return np.tri(shape[-2] if len(shape) > 1 else shape[-1], shape[-1], k, dtype=bool)
