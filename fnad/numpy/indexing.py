"""Indexing with NumPy's rules: ints, slices, None, Ellipsis, integer arrays, boolean masks, and mixtures of them."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, shape_of
from fnad.core.dispatch import implements, refuse
from fnad.core.tracer import Tracer, ValueTracer
from fnad.errors import ConcretizationError, UnsupportedError, user_line
from fnad.numpy.metadata import normalise_axis
from fnad.numpy.reductions import refuse_out
from fnad.primitives import indexing as prims
from fnad.primitives import shape as shape_prims
from fnad.typing import Shape


class Plan(NamedTuple):
    """An index in canonical form: take `static`, put the axes in `order`, then index axes from `axis` on with `indices`."""

    static: prims.Static | None
    order: tuple[int, ...] | None
    indices: tuple[Any, ...]
    axis: int


class _Mask(NamedTuple):
    """What is left of a boolean index inside of a tuple: index arrays, and the sizes they were made for (none for a 0-d mask)."""

    indices: tuple[Any, ...]
    sizes: Shape


class _Rows:
    """A 0-d boolean index: a new axis that is taken once or not at all."""

    def __init__(self, taken: bool) -> None:
        self.index = np.zeros(int(taken), np.intp)


_MARKS = (type(None), type(Ellipsis), slice)
_STATIC = (int, *_MARKS)


@implements(operator.getitem)
def getitem(x: Any, index: Any) -> Any:
    shape = shape_of(x)
    if index.__class__ is int:
        if shape and -shape[0] <= index < shape[0]:
            return prims.static_index(x, index=(index % shape[0],))
    elif index.__class__ is np.ndarray and index.dtype.kind == "i" and index.ndim and shape:
        return select(x, Plan(None, None, (index,), 0))
    return select(x, plan(index, shape))


def _static(items: list[Any], shape: Shape) -> prims.Static | None:
    """The static index for plain ints, slices, None and Ellipsis; None for everything else, mistakes too."""
    out: list[Any] = []
    axis, end, seen = 0, len(shape), False
    for i in items:
        cls = i.__class__
        if i is None:
            out.append(None)
        elif i is Ellipsis:
            named = sum(1 for j in items if j is not None and j is not Ellipsis)
            if named > end or seen:
                return None
            seen = True
            out += [(0, n, 1) for n in shape[axis : axis + end - named]]
            axis += end - named
        elif axis == end:
            return None
        elif cls is int:
            if not -shape[axis] <= i < shape[axis]:
                return None
            out.append(i % shape[axis])
            axis += 1
        elif cls is slice:
            out.append(_range(i, shape[axis]))
            axis += 1
        else:
            return None
    return tuple(out)


def select(x: Any, p: Plan) -> Any:
    """The entries that a plan names."""
    if p.static is not None:
        x = prims.static_index(x, index=p.static)
    if p.order is not None:
        x = shape_prims.transpose(x, axes=p.order)
    if not p.indices:
        return x
    if known(x) is None:
        _check_bounds(p.indices, shape_of(x)[p.axis :])
    return prims.gather(x, *p.indices, axis=p.axis)


def known(x: Any) -> Any:
    """The plain value of an eager tracer (or of a plain value), None where only shape and dtype are known."""
    while isinstance(x, ValueTracer):
        x = x.value
    return None if isinstance(x, Tracer) else x


def as_array(x: Any) -> Any:
    """An array or a tracer from an array, a tracer, or what NumPy makes an array of."""
    return x if isinstance(x, Tracer | np.ndarray) else np.asarray(x)


def plan(index: Any, shape: Shape) -> Plan:
    """The canonical form of an index into an array of the given shape.

    Raises:
        IndexError: as NumPy: too many indices, out of range, not of integer or boolean type.
        ConcretizationError: a boolean mask of unknown entries.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    plain = _static(items, shape)
    if plain is not None:
        return Plan(plain, None, (), 0)
    items = [_item(i) for i in items]
    _fill(items, len(shape))
    advanced = any(isinstance(i, _Mask | _Rows) or (not isinstance(i, _STATIC) and shape_of(i)) for i in items)
    static: list[Any] = []
    indices: list[Any] = []
    places: list[int] = []  # where in the statically indexed array the axes to index are
    groups = 0  # of items with index arrays that stand side by side
    trivial, dims, axis, before = True, 0, 0, False
    for item in items:
        dynamic = not isinstance(item, _MARKS) and (advanced or not isinstance(item, int))
        groups += dynamic and not before
        before = dynamic
        if item is None or isinstance(item, _Rows):
            static.append(None)
            trivial = False
            if isinstance(item, _Rows):
                indices.append(item.index)
                places.append(dims)
            dims += 1
        elif isinstance(item, int) and not advanced:
            static.append(_in_range(item, axis, shape))
            trivial = False
            axis += 1
        elif isinstance(item, slice):
            entry = _range(item, shape[axis])
            trivial = trivial and entry == (0, shape[axis], 1)
            static.append(entry)
            dims, axis = dims + 1, axis + 1
        elif item is not Ellipsis:
            arrays = item.indices if isinstance(item, _Mask) else (_in_range(item, axis, shape) if isinstance(item, int) else item,)
            if isinstance(item, _Mask):
                _check_mask(item.sizes, axis, shape)
            for array in arrays:
                static.append((0, shape[axis], 1))
                indices.append(array)
                places.append(dims)
                dims, axis = dims + 1, axis + 1
    rest = tuple(d for d in range(dims) if d not in places)
    order = (*places, *rest) if groups > 1 else None
    return Plan(None if trivial else tuple(static), order, tuple(indices), 0 if groups > 1 or not places else places[0])


def _item(i: Any) -> Any:
    """One entry of an index: None, Ellipsis, a slice, an int, a mask, or an integer array of known or unknown entries."""
    if isinstance(i, bool | np.bool_):
        return _Rows(bool(i))
    if isinstance(i, _STATIC):
        return i
    if isinstance(i, Tracer):
        value = known(i)
        if value is None and i.dtype.kind in "iu":
            return i.astype(np.intp) if i.dtype.kind == "u" else i
        if value is None and i.dtype.kind == "b":
            raise ConcretizationError(
                "a boolean mask as an index needs its entries: they decide the shape of the result",
                got={"mask": repr(i), "at": user_line()},
                fix="keep the shape with np.where(mask, x, 0), or fnad.at(x)[mask].set(v) with a scalar v",
            )
        i = i if value is None else value
    array = i if isinstance(i, np.ndarray | Tracer) else np.asarray(i)
    if array.dtype.kind == "b":
        return _Rows(bool(array)) if array.ndim == 0 else _Mask(np.nonzero(array), array.shape)
    if array.size == 0 and not isinstance(i, np.ndarray | np.generic | Tracer):
        array = array.astype(np.intp)  # an empty list
    if array.dtype.kind not in "iu":
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid indices"
        )
    return array.astype(np.intp, copy=False) if array.ndim else int(array)


def _fill(items: list[Any], ndim: int) -> None:
    """Replace the ellipsis (one at the end if there is none) by whole slices; it stays as a mark that separates index arrays."""
    used = 0
    for i in items:
        used += len(i.sizes) if isinstance(i, _Mask) else not (i is None or i is Ellipsis or isinstance(i, _Rows))
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    at = [n for n, i in enumerate(items) if i is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    end = at[0] + 1 if at else len(items)
    items[end:end] = [slice(None)] * (ndim - used)


def _range(s: slice, n: int) -> prims.Range:
    start, stop, step = s.indices(n)
    if not len(range(start, stop, step)):
        return 0, 0, 1
    return start, None if stop < 0 else stop, step


def _in_range(i: int, axis: int, shape: Shape) -> int:
    n = shape[axis]
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i % n


def _check_mask(sizes: Shape, axis: int, shape: Shape) -> None:
    for k, n in enumerate(sizes):
        if n != shape[axis + k]:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + k}; "
                f"size of axis is {shape[axis + k]} but size of corresponding boolean axis is {n}"
            )


def _check_bounds(indices: tuple[Any, ...], shape: Shape) -> None:
    """What evaluation would find only later."""
    for axis, i in enumerate(indices):
        if not isinstance(i, Tracer) and np.size(i) and not -shape[axis] <= np.min(i) <= np.max(i) < shape[axis]:
            raise IndexError(f"an index is out of bounds for an axis of size {shape[axis]}")


def integer_index(i: Any, what: str) -> Any:
    """An integer array (or tracer) from an argument that must be one."""
    i = as_array(i)
    if i.size == 0 and not isinstance(i, Tracer):
        i = i.astype(np.intp)
    if i.dtype.kind not in "iub":
        raise TypeError(f"{what}: indices must be integers, not {i.dtype}")
    return i if i.dtype == np.intp else np.astype(i, np.intp)  # sizes need not fit into a small dtype


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    refuse_out(out, "np.take")
    if axis is None or not shape_of(a):  # to NumPy a 0-d array has one axis here
        a, axis = np.ravel(a), axis or 0
    axis = normalise_axis(axis, len(shape_of(a)))
    n = shape_of(a)[axis]
    index = integer_index(indices, "np.take")
    if mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = np.clip(index, 0, n - 1)
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    elif known(a) is None:
        _check_bounds((index,), (n,))
    return prims.gather(a, index, axis=axis)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    index = as_array(indices)
    if index.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if len(index.shape) != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        return prims.gather(np.ravel(arr), index, axis=0)
    n = len(shape_of(arr))
    axis = normalise_axis(axis, n)
    if len(index.shape) != n:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return prims.gather(arr, *[index if k == axis else _along(m, k, n) for k, m in enumerate(shape_of(arr))], axis=0)


def _along(size: int, axis: int, ndim: int) -> Any:
    return np.reshape(np.arange(size), [-1 if k == axis else 1 for k in range(ndim)])


def _values(mask: Any, name: str) -> Any:
    """The entries of a mask or count that decides the result's shape; an error where they are not known."""
    value = known(mask)
    if value is None:
        raise ConcretizationError(
            f"{name} needs the entries of what selects: they decide the shape of the result",
            got={"value": repr(mask), "at": user_line()},
            fix="keep the shape with np.where(mask, x, 0)",
        )
    return np.asarray(value)


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    condition = _values(condition, "np.compress")
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return np.take(a, np.nonzero(condition)[0], axis=axis, out=out) if isinstance(a, Tracer) else np.compress(condition, a, axis, out)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    where = np.nonzero(np.ravel(_values(condition, "np.extract")))[0]
    return np.take(arr, where)


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    refuse_out(out, "np.choose")
    index = integer_index(a, "np.choose")
    n = len(choices)
    if mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = np.clip(index, 0, n - 1)
    elif known(index) is None:
        raise UnsupportedError(
            "np.choose(mode='raise') cannot check an index of unknown entries", fix="use mode='clip' or mode='wrap', or np.where"
        )
    elif not np.all((known(index) >= 0) & (known(index) < n)):
        raise ValueError("invalid entry in choice array")
    choices = [c if isinstance(c, PYTHON_SCALARS) else as_array(c) for c in choices]
    dtype = np.result_type(*choices)
    arrays = np.broadcast_arrays(index, *[np.astype(as_array(c), dtype) for c in choices])
    ndim = len(shape_of(arrays[0]))
    where = [_along(m, k, ndim) for k, m in enumerate(shape_of(arrays[0]))]
    return prims.gather(np.stack(arrays[1:]), arrays[0], *where, axis=0)


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Any, ...]:
    value = _values(a, "np.nonzero")
    if value.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return np.nonzero(value)


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    return np.argwhere(_values(a, "np.argwhere"))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    return np.flatnonzero(_values(a, "np.flatnonzero"))


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Of unknown indices it is not checked that they are in range."""
    plain = known(indices)
    if plain is not None:
        find: Any = np.unravel_index
        return find(plain, shape, order)
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    out: list[Any] = []
    rest = integer_index(indices, "np.unravel_index")
    for n in sizes[::-1] if order == "C" else sizes:
        out.append(rest % n)
        rest = rest // n
    return tuple(out[::-1] if order == "C" else out)


refuse(
    "use fnad.at(x)[index].set(v), which returns a new array",
    np.put, np.put_along_axis, np.place, np.putmask, np.fill_diagonal,
)  # fmt: skip
refuse("write np.broadcast_to(value, shape) for a new array, fnad.at(x)[index].set(value) for a changed one", np.copyto)
