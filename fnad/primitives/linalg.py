"""Linear algebra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.errors import ShapeError
from fnad.primitives._families import Bilinear, Pullback, align, unbroadcast
from fnad.typing import Shape


class Matmul(Bilinear):
    """Matrix product of the last two axes; leading axes broadcast.

    (..., n, k) @ (..., k, m) -> (..., n, m)

    Vectors are promoted by `fnad.numpy.algebra`, so both operands have at least two axes here.
    """

    def infer(self, a: Aval, b: Aval) -> Aval:
        if a.shape[-1] != b.shape[-2]:
            raise ShapeError(
                "matmul: columns of the first operand must equal rows of the second",
                got={"first": a, "second": b},
                fix="transpose one operand, or check the order of the product",
            )
        try:
            lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            raise ShapeError(
                "matmul: leading axes (all but the last two) must broadcast together",
                got={"first": a, "second": b},
                fix="give the axes that should line up equal sizes, or size 1",
            ) from None
        return Aval((*lead, a.shape[-2], b.shape[-1]), result_dtype(a, b))

    def impl(self, a: Any, b: Any) -> Any:
        if a.shape[-1] == 1 == b.shape[-2]:  # an outer product: BLAS gains nothing here and takes twice the time
            return a * b
        try:
            return np.matmul(a, b)
        except ValueError:
            self.infer(aval_of(a), aval_of(b))
            raise

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Sequence[Pullback]]:
        a, b = args
        plain = a.__class__ is np.ndarray and b.__class__ is np.ndarray  # the hot path: no second look for tracers
        out = self.impl(a, b) if plain else self(a, b)
        return out, self.vjp(out, a, b)

    def vjp(self, out: Any, a: Any, b: Any) -> Sequence[Pullback]:
        shape_a, shape_b = shape_of(a), shape_of(b)  # taken here, so each closure keeps one operand, not two
        return (lambda g: _pull_left(g, b, shape_a), lambda g: _pull_right(g, a, shape_b))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        a, b = args
        if not batched[1] and len(shape_of(b)) == 2:  # one tall product instead of many small ones
            *lead, n, k = shape_of(a)
            return np.reshape(self(np.reshape(a, (math.prod(lead) * n, k)), b), (*lead, n, shape_of(b)[1]))
        if not batched[0] and len(shape_of(a)) == 2 and shape_of(b)[-1] == 1:
            *lead, k, _ = shape_of(b)
            rows = self(np.reshape(b, (math.prod(lead), k)), a.T)
            return np.reshape(rows, (*lead, shape_of(a)[0], 1))
        return self(*align(args, batched))


def _pull_left(g: Any, b: Any, shape: Shape) -> Any:
    """The cotangent of `a` (of the given shape) in `a @ b`: g b^T, summed over the axes along which `a` was broadcast."""
    lead = shape_of(g)[:-2]
    if not lead:
        return matmul(g, b.T)
    if lead == shape[:-2] or not _one_matrix(shape) or len(shape_of(b)) - 2 != len(lead):
        return unbroadcast(matmul(g, np.swapaxes(b, -1, -2)), shape)
    # One product over (lead, m) at once: no stack of products that is then summed away.
    n, k, columns = shape[-2], shape[-1], math.prod(lead) * shape_of(g)[-1]
    flat_g = np.reshape(np.moveaxis(g, -2, 0), (n, columns))
    flat_b = np.reshape(np.moveaxis(b, -2, 0), (k, columns))
    return np.reshape(matmul(flat_g, flat_b.T), shape)


def _pull_right(g: Any, a: Any, shape: Shape) -> Any:
    """The cotangent of `b` (of the given shape) in `a @ b`: a^T g, summed over the axes along which `b` was broadcast."""
    lead = shape_of(g)[:-2]
    if not lead:
        return matmul(a.T, g)
    if lead == shape[:-2] or not _one_matrix(shape) or len(shape_of(a)) - 2 != len(lead):
        return unbroadcast(matmul(np.swapaxes(a, -1, -2), g), shape)
    k, m, rows = shape[-2], shape[-1], math.prod(lead) * shape_of(g)[-2]
    return np.reshape(matmul(np.reshape(a, (rows, k)).T, np.reshape(g, (rows, m))), shape)


def _one_matrix(shape: Shape) -> bool:
    return math.prod(shape[:-2]) == 1


matmul = Matmul("matmul")
