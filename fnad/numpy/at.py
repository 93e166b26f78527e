"""Functional updates: `fnad.at(x)[index].set(v)` in place of `x[index] = v`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ConcretizationError, DTypeError, ShapeError, UnknownNameError, UnsupportedError, user_line
from fnad.kernels.scatter import flat_index
from fnad.numpy import indexing
from fnad.primitives import indexing as prims
from fnad.primitives import shape as shape_prims
from fnad.typing import Array, ArrayLike, Shape

Update = Callable[[Any, Any], Any] | None
"""What becomes of old entries and values; None replaces the entries."""


def at(x: ArrayLike) -> At:
    """The entries of an array at an index, to be read or replaced in a new array; the array itself never changes.

    Args:
        x: An array, plain or traced.

    Returns:
        An object to be indexed as NumPy arrays are (ints, slices, integer arrays, boolean masks, mixtures), giving an
        `Updater` with the methods `set`, `add`, `multiply`, `divide`, `power`, `max`, `min` and `get`.

    Example:
        >>> import numpy as np, fnad
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> fnad.at(x)[1:].set(0.0)
        array([1., 0., 0.])
        >>> fnad.at(x)[[0, 0, 2]].add(np.array([10.0, 20.0, 30.0]))
        array([31.,  2., 33.])
        >>> fnad.grad(lambda v: np.sum(fnad.at(x)[[0, 0]].set(v) ** 2))(np.array([5.0, 7.0]))
        array([ 0., 14.])
    """
    return At(indexing.as_array(x))


class At:
    """What `fnad.at(x)` gives: index it."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Updater:
        return Updater(self._x, index)

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(Updater, name):
            raise UnknownNameError(
                f"fnad.at(x) needs an index before .{name}",
                got={"at": user_line()},
                fix=f"fnad.at(x)[i].{name}(...), or fnad.at(x)[...].{name}(...) for all entries",
            )
        raise AttributeError(f"fnad.at(x) has no attribute {name!r}")


class Updater:
    """What `fnad.at(x)[index]` gives.

    Each method but `get` takes values that broadcast to the shape of `x[index]` and returns a new array of the shape
    and dtype of `x`. Values are cast as NumPy's assignment does, but only within their kind: a float into an integer
    array is an error. Positions that the index names more than once: `add`, `multiply`, `divide`, `power`, `max` and
    `min` apply all their values, as `np.ufunc.at`; `set` keeps the last, which alone has a derivative.

    With a boolean mask whose entries are unknown (under `vmap`, or while recording) values must be a scalar, of the
    shape of `x`, or broadcast to the axes that the mask leaves over.

    Raises:
        IndexError: as NumPy.
        DTypeError: the values are of another kind than the array.
        ShapeError: the values do not broadcast to what is selected.
        ConcretizationError: a mask of unknown entries, and values that need them.
        UnsupportedError: `multiply`, `divide` or `power` with several unknown indices, which might repeat.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Any, index: Any) -> None:
        self._x, self._index = x, index

    def get(self) -> Array:
        """`x[index]`, as a new array."""
        out = indexing.getitem(self._x, self._index)
        return np.array(out) if isinstance(out, np.ndarray) else out

    def set(self, values: ArrayLike) -> Array:
        """A copy of x with `x[index] = values`; the last value wins where the index repeats."""
        return self._update(values, None, prims.set_at)

    def add(self, values: ArrayLike) -> Array:
        """A copy of x with `x[index] += values`; values add up where the index repeats."""
        return self._update(values, np.add, prims.add_at)

    def multiply(self, values: ArrayLike) -> Array:
        """A copy of x with `x[index] *= values`; values multiply where the index repeats."""
        return self._update(values, np.multiply, None)

    def divide(self, values: ArrayLike) -> Array:
        """A copy of x with `x[index] /= values`, one division after the other where the index repeats."""
        return self._update(values, np.divide, None)

    def power(self, values: ArrayLike) -> Array:
        """A copy of x with `x[index] **= values`, one power after the other where the index repeats."""
        return self._update(values, np.power, None)

    def max(self, values: ArrayLike) -> Array:
        """A copy of x with the maximum of x[index] and the values; ties share the derivative evenly."""
        return self._update(values, np.maximum, lambda *args, axis: prims.extreme_at(*args, axis=axis, larger=True))

    def min(self, values: ArrayLike) -> Array:
        """A copy of x with the minimum of x[index] and the values; ties share the derivative evenly."""
        return self._update(values, np.minimum, lambda *args, axis: prims.extreme_at(*args, axis=axis, larger=False))

    def _update(self, values: Any, change: Update, at_indices: Callable[..., Any] | None) -> Any:
        """The new array, given what replaces entries that are named once, and the primitive that knows of repetitions."""
        x = self._x
        values = _cast(values, x)
        mask = self._index
        if isinstance(mask, list):
            mask = np.asarray(mask)
        if isinstance(mask, Tracer | np.ndarray) and mask.dtype.kind == "b":
            if indexing.known(mask) is None:
                return _masked(x, mask, values, change)
            if mask.ndim and shape_of(values) == shape_of(x) == mask.shape:
                values = values[indexing.known(mask)]
        p = indexing.plan(self._index, shape_of(x))
        if not p.indices:
            return _at_static(x, p.static or (), values, change)
        inner = x if p.static is None else prims.static_index(x, index=p.static)
        inner = inner if p.order is None else shape_prims.transpose(inner, axes=p.order)
        many = np.broadcast_shapes(*map(shape_of, p.indices))
        shape = shape_of(inner)
        values = _broadcast(values, (*shape[: p.axis], *many, *shape[p.axis + len(p.indices) :]))
        if at_indices is not None:
            inner = at_indices(inner, values, *p.indices, axis=p.axis)
        elif change is not None:
            inner = _in_rounds(inner, values, p, many, change)
        if p.order is not None:
            inner = np.transpose(inner, np.argsort(p.order))
        return inner if p.static is None else prims.static_set(x, inner, index=p.static)


def _at_static(x: Any, static: prims.Static, values: Any, change: Update) -> Any:
    """Update at a static index, which names each entry once."""
    values = _broadcast(values, prims.selected_shape(shape_of(x), static))
    if change is not None:
        values = _cast(change(prims.static_index(x, index=static), values), x)
    return prims.static_set(x, values, index=static)


def _cast(values: Any, x: Any) -> Any:
    """Values in the dtype of an array."""
    dtype = aval_of(x).dtype
    if values.__class__ in PYTHON_SCALARS:
        kinds = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}
        if dtype.kind in kinds[values.__class__]:
            return np.array(values, dtype)[()]
    elif not isinstance(values, Tracer | np.ndarray):
        values = np.asarray(values)
    found = aval_of(values).dtype
    if found == dtype:
        return values
    if not np.can_cast(found, dtype, "same_kind"):
        raise DTypeError(
            "fnad.at: the values must be of the array's kind, since the result has the array's dtype",
            got={"values": found, "array": dtype},
            fix="cast the array first, as in fnad.at(x.astype(float))[i].set(v)",
        )
    return np.astype(indexing.as_array(values), dtype)


def _broadcast(values: Any, shape: Shape) -> Any:
    """Values in the shape of what is selected; as in NumPy's assignment, leading axes of size 1 may be too many."""
    found = shape_of(values)
    if found == shape:
        return values
    while len(found) > len(shape) and found[0] == 1:
        found = found[1:]
    try:
        fits = np.broadcast_shapes(found, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            "fnad.at: values must broadcast to the shape of what is selected", got={"values": shape_of(values), "selected": shape}
        )
    return np.broadcast_to(np.reshape(values, found), shape)


def _masked(x: Any, mask: Any, values: Any, change: Update) -> Any:
    """Update at a mask of unknown entries: all entries are computed, those under the mask are chosen."""
    shape, over = shape_of(x), shape_of(mask)
    if shape[: len(over)] != over:
        raise IndexError(f"boolean index did not match indexed array: the array has shape {shape}, the mask {over}")
    if shape_of(values) != shape and len(shape_of(values)) > len(shape) - len(over):
        raise ConcretizationError(
            "fnad.at: values for a boolean mask of unknown entries must be a scalar, or of the array's shape",
            got={"values": aval_of(values), "mask": repr(mask), "at": user_line()},
            fix="use np.where(mask, v, x) with v of the shape of x",
        )
    wide = np.reshape(mask, (*over, *(1,) * (len(shape) - len(over))))
    values = _broadcast(values, shape)
    return np.where(wide, values if change is None else _cast(change(x, values), x), x)


def _in_rounds(x: Any, values: Any, p: indexing.Plan, many: Shape, change: Callable[[Any, Any], Any]) -> Any:
    """Update entries at index arrays with one value per entry at a time, so that each round names no entry twice."""
    last = p.axis + len(p.indices)
    shape, size = shape_of(x), math.prod(many)
    if size <= 1:
        return prims.set_at(x, _cast(change(prims.gather(x, *p.indices, axis=p.axis), values), x), *p.indices, axis=p.axis)
    if any(indexing.known(i) is None for i in p.indices):
        raise UnsupportedError(
            "fnad.at: this update needs to know whether its indices repeat, but their entries are not known",
            got={"indices": [repr(i) for i in p.indices], "at": user_line()},
            fix="use one index per update, add, set, max or min, or plain indices",
        )
    index = flat_index(tuple(indexing.known(i) for i in p.indices), shape[p.axis : last])
    x = np.reshape(x, (*shape[: p.axis], math.prod(shape[p.axis : last]), *shape[last:]))
    values = np.reshape(values, (*shape[: p.axis], size, *shape[last:]))
    for entries in _rounds(index):
        where = index[entries]
        new = change(prims.gather(x, where, axis=p.axis), prims.gather(values, entries, axis=p.axis))
        x = prims.set_at(x, _cast(new, x), where, axis=p.axis)
    return np.reshape(x, shape)


def _rounds(index: Any) -> list[Any]:
    """Positions in an index vector, in groups: the first occurrences of each index, the second ones, and so on."""
    order = np.argsort(index, kind="stable")
    ranked = index[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    occurrence = np.empty_like(order)
    occurrence[order] = np.arange(len(index)) - np.repeat(starts, np.diff(np.r_[starts, len(index)]))
    return [np.flatnonzero(occurrence == r) for r in range(int(occurrence.max()) + 1)]
