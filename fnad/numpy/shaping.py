"""Shape and layout: reshape, transpose, broadcasting, and their many spellings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements
from fnad.numpy.metadata import normalise_axes, normalise_axis
from fnad.primitives import shape as prims


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    wanted = (shape.__index__(),) if hasattr(shape, "__index__") else tuple(int(n) for n in shape)
    before = shape_of(a)
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        total = math.prod(before)
        if wanted.count(-1) > 1 or known == 0 or total % known:
            raise ValueError(f"cannot reshape array of size {total} into shape {wanted}")
        wanted = tuple(total // known if n == -1 else n for n in wanted)
    if math.prod(wanted) != math.prod(before):
        raise ValueError(f"cannot reshape array of size {math.prod(before)} into shape {wanted}")
    if order == "F":
        return np.transpose(prims.reshape(np.transpose(a), shape=wanted[::-1]))
    return a if wanted == before else prims.reshape(a, shape=wanted)


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


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    before = shape_of(array)
    if np.broadcast_shapes(before, wanted) != wanted:
        raise ValueError(f"cannot broadcast shape {before} to {wanted}")
    return array if before == wanted else prims.broadcast_to(array, shape=wanted)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shape = list(shape_of(a))
    for x in normalise_axes(axes, len(shape) + len(axes)):
        shape.insert(x, 1)
    return np.reshape(a, tuple(shape))


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    dtype = np.dtype(dtype)
    return x if x.dtype == dtype and not x.aval.weak else prims.cast(x, dtype=dtype)

