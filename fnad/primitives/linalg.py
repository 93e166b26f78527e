"""Linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, result_dtype, shape_of
from fnad.errors import ShapeError
from fnad.primitives._families import Bilinear, Pullback, align, unbroadcast


class Matmul(Bilinear):
    """Matrix product of the last two axes; leading axes broadcast.

    (..., n, k) @ (..., k, m) -> (..., n, m)

    Vectors are promoted by `fnad.numpy.algebra`, so both operands have at least two axes here.
    """

    def infer(self, a: Aval, b: Aval) -> Aval:
        if a.shape[-1] != b.shape[-2]:
            raise ShapeError(
                "matmul: columns of a must equal rows of b", got={"a": a, "b": b}, fix="transpose one operand, or check the order of the product"
            )
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return Aval((*lead, a.shape[-2], b.shape[-1]), result_dtype(a, b))

    def impl(self, a: Any, b: Any) -> Any:
        return np.matmul(a, b)

    def vjp(self, out: Any, a: Any, b: Any) -> Sequence[Pullback]:
        shape_a, shape_b = shape_of(a), shape_of(b)  # taken here, so each closure keeps one operand, not two
        return (
            lambda g: unbroadcast(matmul(g, np.swapaxes(b, -1, -2)), shape_a),
            lambda g: unbroadcast(matmul(np.swapaxes(a, -1, -2), g), shape_b),
        )

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(*align(args, batched))


matmul = Matmul("matmul")
