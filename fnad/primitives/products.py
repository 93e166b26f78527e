"""The matrix product, on which all products of arrays are spelled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.core.lowering import Call, Scalar
from fnad.errors import ShapeError
from fnad.primitives._families import Bilinear, Pullback, add_tangents, align, guarded, has_nan, unbroadcast
from fnad.typing import Shape

_SMALL = 512  # multiplications up to which a product is cheaper written out than called


class Matmul(Bilinear):
    """Matrix product of the last two axes; leading axes broadcast.

    (..., n, k) @ (..., k, m) -> (..., n, m)

    One operand or both may be vectors when neither has more than two axes; with stacks of matrices, vectors are promoted
    by `fnad.numpy.algebra`.
    """

    def infer(self, a: Aval, b: Aval) -> Aval:
        left = a.shape if a.ndim > 1 else (1, *a.shape)
        right = b.shape if b.ndim > 1 else (*b.shape, 1)
        if left[-1] != right[-2]:
            raise ShapeError(
                "matmul: columns of the first operand must equal rows of the second",
                got={"first": a, "second": b},
                fix="transpose one operand, or check the order of the product",
            )
        try:
            lead = np.broadcast_shapes(left[:-2], right[:-2])
        except ValueError:
            raise ShapeError(
                "matmul: leading axes (all but the last two) must broadcast together",
                got={"first": a, "second": b},
                fix="give the axes that should line up equal sizes, or size 1",
            ) from None
        return Aval((*lead, *left[-2:-1][: a.ndim > 1], *right[-1:][: b.ndim > 1]), result_dtype(a, b))

    def impl(self, a: Any, b: Any) -> Any:
        if a.shape[-1] == 1 and a.ndim > 1 < b.ndim and b.shape[-2] == 1:
            return a * b  # an outer product: BLAS gains nothing here and takes twice the time
        try:
            return np.matmul(a, b)
        except ValueError:
            self.infer(aval_of(a), aval_of(b))
            raise

    guard = (False, False)

    def lower(self, a: Aval, b: Aval) -> Call | Scalar | None:
        out = self.infer(a, b)
        if out.dtype.kind == "b":
            return None
        if a.shape[-1] == 1 and a.ndim > 1 < b.ndim and self.guard == (False, False):  # an outer product
            return Scalar("multiply", (out.dtype, out.dtype))
        lead = a.shape[:-2] or b.shape[:-2]
        whole = all(x.ndim > 1 and x.shape[:-2] in ((), lead) for x in (a, b)) and a.dtype == b.dtype and a.dtype.char in "fd"
        small = math.prod(a.shape[-2:]) * b.shape[-1] <= _SMALL
        return Call("gemm" if whole and not small else "loops", self.guard)

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Sequence[Pullback]]:
        a, b = args
        plain = a.__class__ is np.ndarray and b.__class__ is np.ndarray  # the hot path: no second look for tracers
        out = self.impl(a, b) if plain else self(a, b)
        return out, self.vjp(out, a, b)

    def vjp(self, out: Any, a: Any, b: Any) -> Sequence[Pullback]:
        shape_a, shape_b = shape_of(a), shape_of(b)  # taken here, so each closure keeps one operand, not two
        if len(shape_a) > 1 and len(shape_b) > 1:
            return (lambda g: _pull_left(g, b, shape_a), lambda g: _pull_right(g, a, shape_b))
        if len(shape_a) > 1:
            return (lambda g: times(g[:, None], b[None]), lambda g: times(g, a))
        if len(shape_b) > 1:
            return (lambda g: times_left(b, g), lambda g: times_left(a[:, None], g[None]))
        return (lambda g: guarded(g, b), lambda g: guarded(g, a))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (a, b), (ta, tb) = args, tangents
        return add_tangents(None if ta is None else times(ta, b), None if tb is None else times_left(a, tb), shape_of(out))

    def mirrored(self) -> Matmul:
        """What multiplies the transposes, in the other order."""
        return self

    def transposed(self, a: Any, b: Any) -> Any:
        """The transpose of the product of two matrices."""
        return self.mirrored()(np.transpose(b), np.transpose(a))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        a, b = args
        vector_a, vector_b = (len(shape_of(x)) - many == 1 for x, many in zip(args, batched, strict=True))
        if vector_a or vector_b:
            out = self.batch((_as_row(a) if vector_a else a, _as_column(b) if vector_b else b), batched)
            *lead, n, m = shape_of(out)
            return np.reshape(out, (*lead, *(() if vector_a else (n,)), *(() if vector_b else (m,))))
        if not batched[1] and len(shape_of(b)) == 2:  # one tall product instead of many small ones
            *lead, n, k = shape_of(a)
            return np.reshape(self(np.reshape(a, (math.prod(lead) * n, k)), b), (*lead, n, shape_of(b)[1]))
        if not batched[0] and len(shape_of(a)) == 2 and shape_of(b)[-1] == 1:
            *lead, k, _ = shape_of(b)
            rows = self.mirrored()(np.reshape(b, (math.prod(lead), k)), a.T)
            return np.reshape(rows, (*lead, shape_of(a)[0], 1))
        return self(*align(args, batched))


class GuardedMatmul(Matmul):
    """The matrix product of a cotangent or a tangent with an operand that may not be finite: see `Guarded` of the families.

    Args:
        name: The primitive's name.
        first: Whether zeros of the first operand win.
        second: Whether zeros of the second operand win.
    """

    def __init__(self, name: str, first: bool, second: bool) -> None:
        super().__init__(name)
        self.guard = first, second

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (a, b), (ta, tb) = args, tangents
        first, second = self.guard
        moved_a = None if ta is None else (times if first else _times_both)(ta, b)
        moved_b = None if tb is None else (times_left if second else _times_both)(a, tb)
        return add_tangents(moved_a, moved_b, shape_of(out))

    def mirrored(self) -> Matmul:
        first, second = self.guard
        return self if first == second else times if second else times_left

    def impl(self, a: Any, b: Any) -> Any:
        out = super().impl(a, b)
        bad = has_nan(out) if out.__class__ is np.ndarray else out != out
        return self._without_zeros(a, b) if bad else out

    def _without_zeros(self, a: Any, b: Any) -> Any:
        """The product, with one term of the sums at a time where an operand is not finite."""
        first, second = self.guard
        left, right = (a if a.ndim > 1 else a[None]), (b if b.ndim > 1 else b[:, None])
        good_left, good_right = np.isfinite(left), np.isfinite(right)
        finite = np.all(good_left, axis=tuple(i for i in range(left.ndim) if i != left.ndim - 1))
        finite = finite & np.all(good_right, axis=tuple(i for i in range(right.ndim) if i != right.ndim - 2))
        out = np.matmul(left[..., finite], right[..., finite, :])
        for k in np.flatnonzero(~finite):
            x, y = left[..., k, None], right[..., None, k, :]
            won = (first & (x == 0) & ~good_right[..., None, k, :]) | (second & (y == 0) & ~good_left[..., k, None])
            out = out + np.where(won, np.zeros((), out.dtype), x * y)
        return _squeezed(out, a, b)


def _squeezed(out: Any, a: Any, b: Any) -> Any:
    """A product of matrices without the axes that stood in for those of vectors."""
    if b.ndim == 1:
        out = out[..., 0]
    return out[..., 0, :] if a.ndim == 1 < b.ndim else out[..., 0] if a.ndim == 1 else out


def _as_row(x: Any) -> Any:
    *lead, k = shape_of(x)
    return np.reshape(x, (*lead, 1, k))


def _as_column(x: Any) -> Any:
    return np.reshape(x, (*shape_of(x), 1))


def _pull_left(g: Any, b: Any, shape: Shape) -> Any:
    """The cotangent of `a` (of the given shape) in `a @ b`: g b^T, summed over the axes along which `a` was broadcast."""
    lead = shape_of(g)[:-2]
    if not lead:
        return times(g, b.T)
    if lead == shape[:-2] or not _one_matrix(shape) or len(shape_of(b)) - 2 != len(lead):
        return unbroadcast(times(g, np.swapaxes(b, -1, -2)), shape)
    # One product over (lead, m) at once: no stack of products that is then summed away.
    n, k, columns = shape[-2], shape[-1], math.prod(lead) * shape_of(g)[-1]
    flat_g = np.reshape(np.moveaxis(g, -2, 0), (n, columns))
    flat_b = np.reshape(np.moveaxis(b, -2, 0), (k, columns))
    return np.reshape(times(flat_g, flat_b.T), shape)


def _pull_right(g: Any, a: Any, shape: Shape) -> Any:
    """The cotangent of `b` (of the given shape) in `a @ b`: a^T g, summed over the axes along which `b` was broadcast."""
    lead = shape_of(g)[:-2]
    if not lead:
        return times_left(a.T, g)
    if lead == shape[:-2] or not _one_matrix(shape) or len(shape_of(a)) - 2 != len(lead):
        return unbroadcast(times_left(np.swapaxes(a, -1, -2), g), shape)
    k, m, rows = shape[-2], shape[-1], math.prod(lead) * shape_of(g)[-2]
    return np.reshape(times_left(np.reshape(a, (rows, k)).T, np.reshape(g, (rows, m))), shape)


def _one_matrix(shape: Shape) -> bool:
    return math.prod(shape[:-2]) == 1


matmul = Matmul("matmul")
times = GuardedMatmul("guarded_matmul", True, False)
times_left = GuardedMatmul("guarded_matmul_left", False, True)
_times_both = GuardedMatmul("guarded_matmul_both", True, True)
