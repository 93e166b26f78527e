"""Sorting: the order is found on plain values, the entries are gathered, so derivatives follow the entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import ConcretizationError, UnsupportedError, user_line
from fnad.numpy.indexing import as_array, known, take, take_along_axis
from fnad.numpy.metadata import normalise_axis
from fnad.primitives import sorting as prims


def _refuse_fields(order: Any, name: str) -> None:
    if order is not None:
        raise UnsupportedError(f"{name}: order= names fields of structured arrays, which cannot be traced", fix="leave it out")


def _flat(a: Any, axis: int | None) -> tuple[Any, int]:
    """An array and a non-negative axis of it; axis None is the flattened array."""
    if axis is None:
        return np.ravel(a), 0
    return a, normalise_axis(axis, len(shape_of(a)))


@implements(np.argsort)
def argsort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _refuse_fields(order, "np.argsort")
    if not shape_of(a):
        a = np.reshape(a, (1,))
    a, axis = _flat(a, axis)
    return prims.argsort(a, axis=axis)


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    _refuse_fields(order, "np.sort")
    a, axis = _flat(a, axis)
    return np.take_along_axis(a, prims.argsort(a, axis=axis), axis)


def ranked(rows: Any, positions: Any) -> Any:
    """Entries of sorted rows, without gathering the others: (..., n), and (k,) or (..., k) positions -> (..., k)."""
    order = prims.argsort(rows, axis=len(shape_of(rows)) - 1)
    chosen = (take if len(shape_of(positions)) == 1 else take_along_axis)(order, positions, axis=-1)
    return take_along_axis(rows, chosen, axis=-1)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    _refuse_fields(order, "np.argpartition")
    if not shape_of(a):
        a = np.reshape(a, (1,))
    a, axis = _flat(a, axis)
    return prims.argpartition(a, kth=_positions(kth, shape_of(a)[axis]), axis=axis)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    _refuse_fields(order, "np.partition")
    a, axis = _flat(a, axis)
    return np.take_along_axis(a, prims.argpartition(a, kth=_positions(kth, shape_of(a)[axis]), axis=axis), axis)


def _positions(kth: Any, n: int) -> tuple[int, ...]:
    positions = [k.__index__() for k in (kth if isinstance(kth, tuple | list | np.ndarray) and np.ndim(kth) else (kth,))]
    if n == 0:
        return ()  # NumPy takes any position there
    for k in positions:
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")
    return tuple(k % n for k in positions)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    rows = [as_array(k) for k in keys]
    if len({shape_of(k) for k in rows}) > 1:
        raise ValueError("all keys need to be the same shape")
    return prims.lexsort(*rows, axis=normalise_axis(axis, len(shape_of(rows[0]))))


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    if len(shape_of(a)) != 1:
        raise ValueError("object of too small depth for desired array")
    if sorter is not None:
        a = np.take(a, sorter) if isinstance(a, Tracer) else np.asarray(a)[sorter]
    return prims.searchsorted(as_array(a), as_array(v), side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges = known(bins)
    if edges is None:
        raise ConcretizationError(
            "np.digitize needs the bins' entries to see whether they rise or fall",
            got={"bins": repr(bins), "at": user_line()},
            fix="use np.searchsorted(bins, x, side='right'), which takes rising bins",
        )
    edges = np.asarray(edges)
    side: Any = "left" if right else "right"
    if np.all(edges[:-1] <= edges[1:]):
        return np.searchsorted(edges, x, side)
    if np.all(edges[:-1] >= edges[1:]):
        return len(edges) - np.searchsorted(edges[::-1], x, side)
    raise ValueError("bins must be monotonically increasing or decreasing")


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Of equal entries the first one is the one that is kept, so it alone has a derivative."""
    plain = known(ar)
    if plain is None:
        raise ConcretizationError(
            "np.unique needs the entries: they decide the shape of the result",
            got={"value": repr(ar), "at": user_line()},
            fix="call it outside, on plain data, and pass the result in",
        )
    find: Any = np.unique
    _, first, *others = find(plain, True, return_inverse, return_counts, axis, equal_nan=equal_nan, sorted=sorted)
    kept = np.take(ar, first, axis)
    answers = ([first] if return_index else []) + others
    return (kept, *answers) if answers else kept
