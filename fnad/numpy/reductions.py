"""Sums, means, extremes, norms: reductions with NumPy's axis, keepdims, where and initial."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements, implements_method
from fnad.errors import InPlaceError
from fnad.numpy.metadata import normalise_axes
from fnad.primitives import reduction as prims
from fnad.primitives._families import expand


def refuse_out(out: Any, name: str) -> None:
    if out is not None:
        raise InPlaceError(f"{name} cannot write into out= while a traced value is involved", fix=f"use the value that {name} returns")


@implements(np.sum)
@implements_method(np.add, "reduce")
def sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = 0, where: Any = True) -> Any:
    refuse_out(out, "np.sum")
    if where is not True:
        a = np.where(where, a, np.zeros((), a.dtype))
    if dtype is not None:
        a = np.astype(a, dtype)
    axes = normalise_axes(axis, len(shape_of(a)))
    total = prims.sum(a, axis=axes)
    if keepdims is True:
        total = expand(total, axes)
    return total if initial is np._NoValue or (isinstance(initial, int) and initial == 0) else total + initial
