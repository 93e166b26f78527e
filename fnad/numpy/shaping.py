"""Shape and layout: reshape, transpose, broadcasting, and their many spellings."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError, UnsupportedError
from fnad.numpy.indexing import as_array
from fnad.numpy.metadata import normalise_axes, normalise_axis
from fnad.primitives import shape as prims


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    wanted = _sizes(shape)
    before = shape_of(a)
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        total = math.prod(before)
        if wanted.count(-1) > 1:
            raise ValueError("can only specify one unknown dimension")
        if known == 0 or total % known:
            raise ValueError(f"cannot reshape array of size {total} into shape {wanted}")
        wanted = tuple(total // known if n == -1 else n for n in wanted)
    if min(wanted, default=0) < 0 or math.prod(wanted) != math.prod(before):
        raise ValueError(f"cannot reshape array of size {math.prod(before)} into shape {wanted}")
    if _fortran(order):
        return np.transpose(prims.reshape(np.transpose(a), shape=wanted[::-1]))
    return a if wanted == before else prims.reshape(a, shape=wanted)


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape or several axes as a tuple of ints; one int counts as a tuple of one."""
    many = isinstance(shape, tuple | list) or np.ndim(shape)
    return tuple(map(operator.index, shape)) if many else (operator.index(shape),)


def _fortran(order: str) -> bool:
    if order not in ("C", "F"):
        raise UnsupportedError(
            "the order of a traced array's entries is 'C' or 'F': its layout in memory is not defined",
            got={"order": repr(order)},
            fix="leave order= out",
        )
    return order == "F"


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    return np.reshape(a, (-1,) if math.prod(shape_of(a)) else (0,), order="F" if _fortran(order) else "C")


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    n = len(shape_of(a))
    order = tuple(range(n))[::-1] if axes is None else tuple(normalise_axis(x, n) for x in axes)
    if sorted(order) != list(range(n)):
        raise ValueError("axes don't match array")
    return prims.transpose(a, axes=order)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    n = len(shape_of(a))
    order = list(range(n))
    i, j = normalise_axis(axis1, n), normalise_axis(axis2, n)
    order[i], order[j] = j, i
    return prims.transpose(a, axes=tuple(order))


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    return np.swapaxes(x, -1, -2)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    n = len(shape_of(a))
    src = [normalise_axis(s, n) for s in (source if isinstance(source, tuple | list) else (source,))]
    dst = [normalise_axis(d, n) for d in (destination if isinstance(destination, tuple | list) else (destination,))]
    if len(src) != len(dst):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [i for i in range(n) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return prims.transpose(a, axes=tuple(order))


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = len(shape_of(a))
    axis = normalise_axis(axis, n)
    start += n if start < 0 else 0
    if not 0 <= start <= n:
        raise np.exceptions.AxisError(f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in")
    return np.moveaxis(a, axis, start - (axis < start))


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    wanted = _sizes(shape)
    before = shape_of(array)
    if np.broadcast_shapes(before, wanted) != wanted:
        raise ValueError(f"cannot broadcast shape {before} to {wanted}")
    return array if before == wanted else prims.broadcast_to(array, shape=wanted)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    shape = np.broadcast_shapes(*map(shape_of, args))
    return tuple(np.broadcast_to(a, shape) for a in args)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    axes = _sizes(axis)
    shape = list(shape_of(a))
    for x in normalise_axes(axes, len(shape) + len(axes)):
        shape.insert(x, 1)
    return np.reshape(a, tuple(shape))


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    if not shape and axis.__class__ is int and axis in (0, -1):
        return a  # as NumPy
    axes = tuple(i for i, n in enumerate(shape) if n == 1) if axis is None else normalise_axes(_sizes(axis), len(shape))
    if any(shape[x] != 1 for x in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return np.reshape(a, tuple(n for i, n in enumerate(shape) if i not in axes))


def _at_least(arrays: tuple[Any, ...], change: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    out = tuple(change(a, shape_of(a)) for a in map(as_array, arrays))
    return out[0] if len(out) == 1 else out


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    return _at_least(arys, lambda a, shape: np.reshape(a, shape or (1,)))


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    return _at_least(arys, lambda a, shape: np.reshape(a, (1,) * (2 - len(shape)) + shape))


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    return _at_least(arys, lambda a, shape: np.reshape(a, ((1, 1, 1), (1, *shape, 1), (*shape, 1), shape)[min(len(shape), 3)]))


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    n = len(shape_of(m))
    axes = range(n) if axis is None else normalise_axes(_sizes(axis), n)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(n))]


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    if len(shape_of(m)) < 2:
        raise ValueError("Input must be >= 2-d.")
    return m[:, ::-1]


@implements(np.flipud)
def flipud(m: Any) -> Any:
    if not shape_of(m):
        raise ValueError("Input must be >= 1-d.")
    return m[::-1]


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    n = len(shape_of(m))
    axes = tuple(axes)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = (normalise_axis(a, n) for a in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    k %= 4
    if k == 0:
        return m[...]
    if k == 2:
        return np.flip(m, (first, second))
    return np.flip(np.swapaxes(m, first, second), first) if k == 1 else np.swapaxes(np.flip(m, first), first, second)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    if axis is None:
        return np.reshape(np.roll(np.ravel(a), np.sum(shift), 0), shape)
    if np.ndim(shift) > 1 or np.ndim(axis) > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    shifts, axes = np.broadcast_arrays(_sizes(shift), _sizes(axis))
    for s, x in zip(shifts.tolist(), axes.tolist(), strict=True):
        x = normalise_axis(x, len(shape))
        cut = -s % shape[x] if shape[x] else 0
        if cut:
            lead = (slice(None),) * x
            a = np.concatenate([a[(*lead, slice(cut, None))], a[(*lead, slice(None, cut))]], axis=x)
    return a


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    if axis is None or not shape_of(a):  # to NumPy a 0-d array has one axis here
        a, axis = np.ravel(a), axis or 0
    shape = shape_of(a)
    axis = normalise_axis(axis, len(shape))
    counts = np.asarray(_sizes(repeats)) if isinstance(repeats, Tracer) else np.asarray(repeats)
    if counts.size == 1:
        n = operator.index(counts.ravel()[0])
        if n < 0:
            raise ValueError("repeats may not contain negative values.")
        wide = np.broadcast_to(np.expand_dims(a, axis + 1), (*shape[: axis + 1], n, *shape[axis + 1 :]))
        return np.reshape(wide, (*shape[:axis], shape[axis] * n, *shape[axis + 1 :]))
    return np.take(a, np.repeat(np.arange(shape[axis]), counts), axis=axis)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    counts = _sizes(reps)
    shape = shape_of(A)
    n = max(len(counts), len(shape))
    counts = (1,) * (n - len(counts)) + counts
    shape = (1,) * (n - len(shape)) + shape
    pairs = tuple(size for s in shape for size in (1, s))
    wide = tuple(size for c, s in zip(counts, shape, strict=True) for size in (c, s))
    return np.reshape(np.broadcast_to(np.reshape(A, pairs), wide), tuple(c * s for c, s in zip(counts, shape, strict=True)))


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind not in "biufc":
        raise DTypeError("a traced value has a numeric dtype", got={"astype": dtype}, fix="fnad.stop_gradient(x) gives the plain value")
    return x if x.dtype == dtype and not x.aval.weak else prims.cast(x, dtype=dtype)
