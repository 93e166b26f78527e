"""Linear algebra: what LAPACK computes. The matrix product stands in `products`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError, ShapeError
from fnad.primitives._families import Joint, Primitive, Pullback, add_tangents, align, guarded, unbroadcast
from fnad.primitives.products import matmul as matmul
from fnad.primitives.products import times, times_left

# -- inverse, solution, determinant --------------------------------------------------------------------------------


def check_square(name: str, x: Aval, kinds: str = "fc") -> Aval:
    """Check that `x` is a stack of square matrices of a dtype LAPACK computes in."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: the last two axes must be square", got={"matrix": x})
    if x.dtype.kind not in kinds or x.dtype.itemsize < 4:
        raise DTypeError(
            f"{name}: entries must be {'real' if kinds == 'f' else 'real or complex'} floating-point numbers of single or double precision",
            got={"matrix": x},
            fix="convert with .astype(float)"
            if x.dtype.kind != "c"
            else "treat the real and the imaginary part as one real matrix of twice the size",
        )
    return x


def transposed(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _symmetric(x: Any) -> Any:
    return 0.5 * (x + transposed(x))


class Inv(Primitive):
    """Inverse of square matrices: (..., n, n) -> (..., n, n)."""

    reads = frozenset()

    def infer(self, x: Aval) -> Aval:
        return check_square("inv", x)

    def impl(self, x: Any) -> Any:
        return np.linalg.inv(x)

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: -times(times_left(transposed(out), g), transposed(out)),)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return None if tangents[0] is None else -times(times_left(out, tangents[0]), out)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class RegularInv(Inv):
    """Inverse of matrices that are far from singular, for formulas in which its powers cancel; others are refused."""

    def impl(self, x: Any) -> Any:
        try:
            y = np.linalg.inv(x)
        except np.linalg.LinAlgError:
            y = np.full_like(x, np.inf)
        condition = np.linalg.norm(x, 1, axis=(-2, -1)) * np.linalg.norm(y, 1, axis=(-2, -1))
        if np.any(condition > np.finfo(x.dtype).eps ** -0.25):
            raise np.linalg.LinAlgError(
                "third derivatives of det are had at well-conditioned matrices only (differentiate slogdet instead)"
            )
        return y


class Solve(Primitive):
    """The x with `a @ x = b`: (..., n, n), (..., n, m) -> (..., n, m); leading axes broadcast."""

    reads = frozenset({0})

    def infer(self, a: Aval, b: Aval) -> Aval:
        n = check_square("solve", a).shape[-1]
        if b.ndim < 2 or b.shape[-2] != n:
            raise ShapeError("solve: the right-hand side must have as many rows as the matrix", got={"matrix": a, "right-hand side": b})
        return matmul.infer(a, b)

    def impl(self, a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b)

    def vjp(self, out: Any, a: Any, b: Any) -> Joint:
        shape_a, shape_b = shape_of(a), shape_of(b)

        def pull(g: Any) -> tuple[Any, Any]:
            pulled = solve(transposed(a), g)
            return unbroadcast(-matmul(pulled, transposed(out)), shape_a), unbroadcast(pulled, shape_b)

        return Joint(pull)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        ta, tb = tangents
        moved = add_tangents(None if ta is None else -matmul(ta, out), tb, shape_of(out))
        return None if moved is None else solve(args[0], moved)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        a, b = args
        if batched[0] or len(shape_of(a)) > 2:
            return self(*align(args, batched))
        *lead, n, m = shape_of(b)  # one factorisation for all right-hand sides
        columns = self(a, np.reshape(np.moveaxis(b, -2, 0), (n, math.prod(lead) * m)))
        return np.moveaxis(np.reshape(columns, (n, *lead, m)), 0, -2)


class Det(Primitive):
    """Determinant: (..., n, n) -> (...). Its slope, the cofactor matrix, is made without division: it holds at singular matrices."""

    reads = frozenset({0})

    def infer(self, x: Aval) -> Aval:
        return Aval(check_square("det", x).shape[:-2], x.dtype)

    def impl(self, x: Any) -> Any:
        return np.linalg.det(x)

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: guarded(np.reshape(g, (*shape_of(g), 1, 1)), cofactors(x)),)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return None if tangents[0] is None else np.sum(guarded(tangents[0], cofactors(args[0])), axis=(-2, -1))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class Cofactors(Primitive):
    """The matrix of cofactors, det(x) inv(x)^T where x is regular: (..., n, n) -> (..., n, n).

    With x = u s v: the cofactors of a product are the product of the cofactors, those of s are products of all other
    singular values, and those of a unitary matrix are its conjugate times its determinant.
    """

    reads = frozenset({0})

    def infer(self, x: Aval) -> Aval:
        return check_square("cofactors", x)

    def impl(self, x: Any) -> Any:
        u, s, v, factor = _singular_values(x)
        return factor * (np.conjugate(u) * _products_of_others(s)[..., None, :]) @ np.conjugate(v)

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: cofactors_slope(x, g),)  # a second derivative, hence its own transpose

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return None if tangents[0] is None else cofactors_slope(args[0], tangents[0])

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class CofactorsSlope(Primitive):
    """The derivative of the cofactors of x in the direction e, right at singular matrices too: (..., n, n), (..., n, n) -> (..., n, n).

    Its own derivative in x, the third of the determinant, goes through the inverse.
    """

    def infer(self, x: Aval, e: Aval) -> Aval:
        check_square("cofactors_slope", x)
        return Aval(np.broadcast_shapes(x.shape, e.shape), result_dtype(x, e))

    def impl(self, x: Any, e: Any) -> Any:
        u, s, v, factor = _singular_values(x)
        e = np.conjugate(transposed(u)) @ e @ np.conjugate(transposed(v))
        n = s.shape[-1]
        same = np.eye(n, dtype=bool)
        pairs = np.where(same, 0, _products_of_others(np.where(same, 1, s[..., None, :])))  # products of all but two
        moved = -pairs * transposed(e)
        diagonal = (pairs @ np.diagonal(e, 0, -2, -1)[..., None])[..., 0]
        moved = np.where(same, diagonal[..., None, :], moved)
        return (factor * np.conjugate(u) @ moved @ np.conjugate(v)).astype(np.result_type(x, e), copy=False)

    def vjp(self, out: Any, x: Any, e: Any) -> Sequence[Pullback]:
        shape_x, shape_e = shape_of(x), shape_of(e)
        return (lambda g: unbroadcast(_third(x, e, g), shape_x), lambda g: unbroadcast(cofactors_slope(x, g), shape_e))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x, e), (tx, te) = args, tangents
        return add_tangents(None if tx is None else _third(x, e, tx), None if te is None else cofactors_slope(x, te), shape_of(out))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(*align(args, batched))


def _singular_values(x: Any) -> tuple[Any, Any, Any, Any]:
    """u, s, v with x = u s v, and det(u) det(v)."""
    finite = np.all(np.isfinite(x), axis=(-2, -1), keepdims=True)
    u, s, v = np.linalg.svd(np.where(finite, x, np.zeros((), x.dtype)))
    s = np.where(finite[..., 0], s, s.dtype.type(np.nan))  # of these LAPACK finds none
    return u, s, v, (np.linalg.det(u) * np.linalg.det(v))[..., None, None]


def _products_of_others(s: Any) -> Any:
    """For each entry along the last axis, the product of all others."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before * after


def _third(x: Any, e: Any, f: Any) -> Any:
    """The third derivative of det at x in the directions e and f, as a matrix, from det(x) (tr ye tr yf - tr yeyf) with y = inv(x)."""
    y = regular_inv(x)
    ye, yf = matmul(y, e), matmul(y, f)
    yey, yfy = matmul(ye, y), matmul(yf, y)
    te, tf, tef = (np.trace(m, 0, -2, -1)[..., None, None] for m in (ye, yf, matmul(ye, yf)))
    total = (te * tf - tef) * y - tf * yey - te * yfy + matmul(ye, yfy) + matmul(yf, yey)
    return det(x)[..., None, None] * transposed(total)


class Slogdet(Primitive):
    """Sign and logarithm of the absolute value of a real determinant: (..., n, n) -> (...), (...). The sign is locally constant."""

    multiple = True
    reads = frozenset({0})

    def infer(self, x: Aval) -> tuple[Aval, Aval]:
        out = Aval(check_square("slogdet", x, "f").shape[:-2], x.dtype)
        return out, out

    def impl(self, x: Any) -> tuple[Any, Any]:
        sign, log = np.linalg.slogdet(x)
        return sign, log

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        def pull(g: Any) -> Any:
            log: Any = np.reshape(g[1], (*shape_of(g[1]), 1, 1))
            matrix = x
            if not isinstance(log, Tracer) and np.any(log == 0):  # what does not count may be singular
                matrix = np.where(log == 0, np.eye(shape_of(x)[-1], dtype=aval_of(x).dtype), x)
            return guarded(log, transposed(inv(matrix)))

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return None if tangents[0] is None else (None, np.sum(guarded(tangents[0], transposed(inv(args[0]))), axis=(-2, -1)))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


# -- symmetric matrices: the argument is taken for symmetric, and its cotangent is -----------------------------------


class Cholesky(Primitive):
    """The lower triangular l with l l^T = x, for real x: (..., n, n) -> (..., n, n). Only the lower triangle of x is read.

    Murray, Differentiation of the Cholesky decomposition, 2016.
    """

    reads = frozenset()

    def infer(self, x: Aval) -> Aval:
        return check_square("cholesky", x, "f")

    def impl(self, x: Any) -> Any:
        return np.linalg.cholesky(x)

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        def pull(g: Any) -> Any:
            up = transposed(out)
            half = solve(up, _half_lower(matmul(up, g)))
            return _symmetric(solve(up, transposed(half)))

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if tangents[0] is None:
            return None
        half = solve(out, _symmetric(tangents[0]))
        return matmul(out, _half_lower(solve(out, transposed(half))))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


def _half_lower(x: Any) -> Any:
    """The lower triangle, with half of the diagonal."""
    n = shape_of(x)[-1]
    return x * (np.tril(np.ones((n, n), x.dtype)) - 0.5 * np.eye(n, dtype=x.dtype))


class Eigh(Primitive):
    """Eigenvalues (ascending) and eigenvectors (columns) of real symmetric matrices: (..., n, n) -> (..., n), (..., n, n).

    Only the lower triangle is read. Equal eigenvalues do not mix in the derivative of the eigenvectors.
    """

    multiple = True
    reads = frozenset()

    def infer(self, x: Aval) -> tuple[Aval, Aval]:
        check_square("eigh", x, "f")
        return Aval(x.shape[:-1], x.dtype), x

    def impl(self, x: Any) -> tuple[Any, Any]:
        w, v = np.linalg.eigh(x)
        return w, v

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        w, v = out

        def pull(g: Any) -> Any:
            gw, gv = g
            inner = inverse_gaps(w) * matmul(transposed(v), gv)
            return _symmetric(matmul(v * gw[..., None, :] + matmul(v, inner), transposed(v)))

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if tangents[0] is None:
            return None
        w, v = out
        moved = matmul(matmul(transposed(v), _symmetric(tangents[0])), v)
        return np.diagonal(moved, 0, -2, -1), matmul(v, inverse_gaps(w) * moved)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


def inverse_gaps(w: Any) -> Any:
    """1 / (w_j - w_i), and 0 where they are equal."""
    gaps = w[..., None, :] - w[..., :, None]
    equal = np.abs(gaps) <= np.finfo(w.dtype).tiny
    return np.where(equal, 0, 1 / np.where(equal, 1, gaps))


inv = Inv("inv")
regular_inv = RegularInv("regular_inv")
solve = Solve("solve")
det = Det("det")
cofactors = Cofactors("cofactors")
cofactors_slope = CofactorsSlope("cofactors_slope")
slogdet = Slogdet("slogdet")
cholesky = Cholesky("cholesky")
eigh = Eigh("eigh")
