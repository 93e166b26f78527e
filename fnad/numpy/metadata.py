"""Questions about shape and dtype: answered from the abstract value, never recorded."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.core.dispatch import implements


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return a.shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return len(a.shape)


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    if axis is None:
        return math.prod(a.shape)
    axes = (axis,) if isinstance(axis, int) else axis
    return math.prod(a.shape[i] for i in axes)


@implements(np.result_type)
def result_type(*operands: Any) -> np.dtype[Any]:
    return result_dtype(*[Aval((), np.dtype(o)) if isinstance(o, np.dtype | type | str) else aval_of(o) for o in operands])


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return x.dtype.kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return x.dtype.kind != "c"


def normalise_axis(axis: int, ndim: int) -> int:
    """A non-negative axis; NumPy's AxisError if it is out of range."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def normalise_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Sorted non-negative axes; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = [normalise_axis(a, ndim) for a in (axis if isinstance(axis, tuple | list) else (axis,))]
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(axes))


__all__ = ["ndim", "normalise_axes", "normalise_axis", "shape", "shape_of", "size"]
