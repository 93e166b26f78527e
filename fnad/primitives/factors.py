"""What `scipy.linalg` is made of: triangular systems, the LU factors, the matrix exponential."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.errors import ShapeError
from fnad.primitives._families import Joint, Primitive, Pullback, add_tangents, align, unbroadcast
from fnad.primitives.linalg import check_square, matmul, transposed

_PIVOT = np.dtype(np.int32)


def triangle(x: Any, lower: bool, unit: bool = False) -> Any:
    """One triangle of matrices, without the diagonal if that counts as ones."""
    return np.tril(x, -int(unit)) if lower else np.triu(x, int(unit))


class TriangularSolve(Primitive):
    """The x with `t @ x = b`, where t is one triangle of a: (..., n, n), (..., n, m) -> (..., n, m). The other is not read.

    With `unit`, the diagonal is not read either and counts as ones.
    """

    reads = frozenset({0})

    def infer(self, a: Aval, b: Aval, *, lower: bool, unit: bool) -> Aval:
        n = check_square("triangular_solve", a).shape[-1]
        if b.ndim < 2 or b.shape[-2] != n:
            raise ShapeError(
                "triangular_solve: the right-hand side must have as many rows as the matrix", got={"matrix": a, "right-hand side": b}
            )
        return matmul.infer(a, b)

    def impl(self, a: Any, b: Any, *, lower: bool, unit: bool) -> Any:
        if a.ndim == 2 == b.ndim and a.size and b.size:
            dtype = np.result_type(a, b)
            linalg = _scipy.linalg()
            return linalg.solve_triangular(a.astype(dtype), b.astype(dtype), lower=lower, unit_diagonal=unit, check_finite=False)
        full = triangle(a, lower, unit)
        return np.linalg.solve(full + np.eye(a.shape[-1], dtype=a.dtype) if unit else full, b)

    def vjp(self, out: Any, a: Any, b: Any, *, lower: bool, unit: bool) -> Joint:
        shape_a, shape_b = shape_of(a), shape_of(b)

        def pull(g: Any) -> tuple[Any, Any]:
            pulled = self(transposed(a), g, lower=not lower, unit=unit)
            on_a = triangle(-matmul(pulled, transposed(out)), lower, unit)
            return unbroadcast(on_a, shape_a), unbroadcast(pulled, shape_b)

        return Joint(pull)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, lower: bool, unit: bool) -> Any:
        ta, tb = tangents
        moved = add_tangents(None if ta is None else -matmul(triangle(ta, lower, unit), out), tb, shape_of(out))
        return None if moved is None else self(args[0], moved, lower=lower, unit=unit)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, lower: bool, unit: bool) -> Any:
        a, b = args
        if batched[0] or len(shape_of(a)) > 2:
            return self(*align(args, batched), lower=lower, unit=unit)
        *lead, n, m = shape_of(b)  # all right-hand sides at once
        columns = self(a, np.reshape(np.moveaxis(b, -2, 0), (n, math.prod(lead) * m)), lower=lower, unit=unit)
        return np.moveaxis(np.reshape(columns, (n, *lead, m)), 0, -2)


class Lu(Primitive):
    """The factors l and u in one matrix, and pivots, of square matrices with rows exchanged: (..., n, n) -> (..., n, n), (..., n)."""

    multiple = True
    reads = frozenset()

    def infer(self, x: Aval) -> tuple[Aval, Aval]:
        check_square("lu", x)
        return x, Aval(x.shape[:-1], _PIVOT)

    def impl(self, x: Any) -> tuple[Any, Any]:
        out, pivots = np.empty_like(x, order="C"), np.empty(x.shape[:-1], _PIVOT)
        if x.size:
            (factorise,) = _scipy.linalg().get_lapack_funcs(("getrf",), (x,))
            for where in np.ndindex(x.shape[:-2]):
                out[where], pivots[where], _ = factorise(x[where])
        return out, pivots

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        both, pivots = out

        def pull(g: Any) -> Any:
            left, right = _l(both), np.triu(both)
            inner = np.tril(matmul(transposed(left), np.tril(g[0], -1)), -1) + np.triu(matmul(np.triu(g[0]), transposed(right)))
            inner = triangular_solve(transposed(both), inner, lower=False, unit=True)
            moved = transposed(triangular_solve(both, transposed(inner), lower=False, unit=False))
            back = np.argsort(permutation(pivots), axis=-1)
            return np.take_along_axis(moved, back[..., None], axis=-2)

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if tangents[0] is None:
            return None
        both, pivots = out
        moved = np.take_along_axis(tangents[0], permutation(pivots)[..., None], axis=-2)
        inner = triangular_solve(both, moved, lower=True, unit=True)
        inner = transposed(triangular_solve(transposed(both), transposed(inner), lower=True, unit=False))
        return matmul(_l(both), np.tril(inner, -1)) + matmul(np.triu(inner), np.triu(both)), None

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


def _l(both: Any) -> Any:
    return np.tril(both, -1) + np.eye(shape_of(both)[-1], dtype=aval_of(both).dtype)


class Permutation(Primitive):
    """Which row comes where after the exchanges that pivots stand for: (..., n) -> (..., n)."""

    constant = True

    def infer(self, pivots: Aval) -> Aval:
        return Aval(pivots.shape, np.dtype(np.intp))

    def impl(self, pivots: Any) -> Any:
        n = pivots.shape[-1]
        order = np.broadcast_to(np.arange(n), pivots.shape).copy()
        for k in range(n):
            at = pivots[..., k, None]
            other = np.take_along_axis(order, at, axis=-1)
            np.put_along_axis(order, at, order[..., k, None], axis=-1)
            order[..., k] = other[..., 0]
        return order

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class Expm(Primitive):
    """The matrix exponential: (..., n, n) -> (..., n, n).

    Its derivative in the direction e is the upper right block of the exponential of [[x, e], [0, x]]; the transpose of that
    map is the derivative at the transposed matrix. Higham, Functions of matrices, 2008, sections 3.1 and 10.6.
    """

    def infer(self, x: Aval) -> Aval:
        return check_square("expm", x)

    def impl(self, x: Any) -> Any:
        return _scipy.linalg().expm(x).astype(x.dtype, copy=False) if x.size else np.zeros_like(x)

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: _derivative(transposed(x), g),)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return None if tangents[0] is None else _derivative(args[0], tangents[0])

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


def _derivative(x: Any, e: Any) -> Any:
    n = shape_of(x)[-1]
    zero = np.zeros(shape_of(x), aval_of(x).dtype)
    upper, lower = np.concatenate([x, e], axis=-1), np.concatenate([zero, x], axis=-1)
    return expm(np.concatenate([upper, lower], axis=-2))[..., :n, n:]


triangular_solve = TriangularSolve("triangular_solve")
lu = Lu("lu")
permutation = Permutation("permutation")
expm = Expm("expm")
