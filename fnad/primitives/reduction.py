"""Reductions over axes, and scans along one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, shape_of
from fnad.primitives._families import Linear, Pullback, Reduction, expand


def _sum_dtype(x: Aval) -> np.dtype[Any]:
    return np.add.reduce(np.zeros(1, x.dtype)).dtype  # type: ignore[no-any-return]


class Sum(Linear, Reduction):
    """Sum over axes; integers widen as in NumPy."""

    def result(self, x: Aval) -> np.dtype[Any]:
        return _sum_dtype(x)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        shape = shape_of(x)
        return (lambda g: np.broadcast_to(expand(g, axis), shape),)


sum = Sum("sum", np.add.reduce)
