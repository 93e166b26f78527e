"""Decompositions of general matrices: singular values, QR, eigenvalues; and the pseudo-inverse.

Equal singular values or eigenvalues, and singular values of 0, do not mix in the derivatives of their vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.errors import DTypeError, ShapeError
from fnad.primitives._families import Primitive, Pullback
from fnad.primitives.linalg import check_square, inverse_gaps, matmul, solve, transposed


def _matrix(name: str, x: Aval) -> Aval:
    """Check that `x` is a stack of real matrices of a dtype LAPACK computes in."""
    if x.ndim < 2:
        raise ShapeError(f"{name}: the array needs at least two axes", got={"matrix": x})
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        raise DTypeError(f"{name}: entries must be real floating-point numbers of single or double precision", got={"matrix": x})
    return x


def _reciprocal(s: Any) -> Any:
    """1 / s, and 0 where s is 0."""
    zero = s <= np.finfo(s.dtype).tiny
    return np.where(zero, 0, 1 / np.where(zero, 1, s))


def _square_gaps(s: Any) -> Any:
    """1 / (s_j^2 - s_i^2), and 0 where they are equal."""
    return inverse_gaps(s) * _reciprocal(s[..., None, :] + s[..., :, None])


class Svd(Primitive):
    """The thin singular value decomposition u diag(s) vt: (..., m, n) -> (..., m, k), (..., k), (..., k, n), k = min(m, n).

    Townsend, Differentiating the singular value decomposition, 2016.
    """

    multiple = True
    reads = frozenset()

    def infer(self, x: Aval) -> tuple[Aval, Aval, Aval]:
        *lead, m, n = _matrix("svd", x).shape
        k = min(m, n)
        return Aval((*lead, m, k), x.dtype), Aval((*lead, k), x.dtype), Aval((*lead, k, n), x.dtype)

    def impl(self, x: Any) -> tuple[Any, Any, Any]:
        u, s, vt = np.linalg.svd(x, full_matrices=False)
        return u, s, vt

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        u, s, vt = out
        m, n = shape_of(x)[-2:]

        def pull(g: Any) -> Any:
            gu, gs, gvt = g
            on_u, on_v = matmul(transposed(u), gu), matmul(vt, transposed(gvt))
            gaps = _square_gaps(s)
            inner = gaps * (on_u - transposed(on_u)) * s[..., None, :] + s[..., :, None] * (gaps * (on_v - transposed(on_v)))
            rows = matmul(u, inner) + u * gs[..., None, :]
            if m > n:
                rows = rows + (gu - matmul(u, on_u)) * _reciprocal(s)[..., None, :]
            total = matmul(rows, vt)
            if n > m:
                total = total + matmul(u * _reciprocal(s)[..., None, :], gvt - matmul(transposed(on_v), vt))
            return total

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        t = tangents[0]
        if t is None:
            return None
        u, s, vt = out
        m, n = shape_of(t)[-2:]
        on_right, on_left = matmul(t, transposed(vt)), matmul(transposed(u), t)
        inner = matmul(transposed(u), on_right)
        gaps = _square_gaps(s)
        scaled, mirrored = inner * s[..., None, :], s[..., :, None] * inner
        tu = matmul(u, gaps * (scaled + transposed(scaled)))
        tvt = matmul(transposed(gaps * (mirrored + transposed(mirrored))), vt)
        if m > n:
            tu = tu + (on_right - matmul(u, inner)) * _reciprocal(s)[..., None, :]
        if n > m:
            tvt = tvt + _reciprocal(s)[..., :, None] * (on_left - matmul(inner, vt))
        return tu, np.diagonal(inner, 0, -2, -1), tvt

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class Qr(Primitive):
    """x = q r of matrices with at least as many rows as columns: (..., m, n) -> (..., m, n), (..., n, n); of full rank in derivatives.

    Seeger et al., Auto-differentiating linear algebra, 2017.
    """

    multiple = True
    reads = frozenset()

    def infer(self, x: Aval) -> tuple[Aval, Aval]:
        *lead, m, n = _matrix("qr", x).shape
        if m < n:
            raise ShapeError("qr: a matrix with at least as many rows as columns", got={"matrix": x})
        return x, Aval((*lead, n, n), x.dtype)

    def impl(self, x: Any) -> tuple[Any, Any]:
        q, r = np.linalg.qr(x)
        return q, r

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        q, r = out

        def pull(g: Any) -> Any:
            gq, gr = g
            lower = np.tril(matmul(r, transposed(gr)) - matmul(transposed(gq), q))
            symmetric = lower + transposed(np.tril(lower, -1))
            return transposed(solve(r, transposed(gq + matmul(q, symmetric))))

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        t = tangents[0]
        if t is None:
            return None
        q, r = out
        moved = transposed(solve(transposed(r), transposed(t)))
        inner = matmul(transposed(q), moved)
        lower = np.tril(inner, -1)
        turn = lower - transposed(lower)
        return matmul(q, turn - inner) + moved, matmul(inner - turn, r)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class Pinv(Primitive):
    """The Moore-Penrose inverse, where singular values up to `cutoff` times the largest count as 0: (..., m, n) -> (..., n, m), m >= n.

    Golub and Pereyra, The differentiation of pseudo-inverses, 1973: right wherever the rank does not change.
    """

    def infer(self, x: Aval, *, cutoff: float) -> Aval:
        *lead, m, n = _matrix("pinv", x).shape
        return Aval((*lead, n, m), x.dtype)

    def impl(self, x: Any, *, cutoff: float) -> Any:
        return np.linalg.pinv(x, rcond=cutoff)

    def vjp(self, out: Any, x: Any, *, cutoff: float) -> Sequence[Pullback]:
        # Products in an order in which nothing of shape (m, m) appears.
        def pull(g: Any) -> Any:
            gt, pt = transposed(g), transposed(out)
            first = matmul(pt, matmul(g, pt))
            second = matmul(gt, matmul(out, pt))
            second = second - matmul(x, matmul(out, second))
            inner = matmul(out, gt)
            third = matmul(pt, inner - matmul(inner, matmul(out, x)))
            return second + third - first

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, cutoff: float) -> Any:
        t, x = tangents[0], args[0]
        if t is None:
            return None
        tt, pt = transposed(t), transposed(out)
        first = matmul(matmul(out, t), out)
        second = matmul(matmul(out, pt), tt - matmul(matmul(tt, x), out))
        inner = matmul(tt, pt)
        third = matmul(inner - matmul(matmul(out, x), inner), out)
        return second + third - first

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, cutoff: float) -> Any:
        return self(args[0], cutoff=cutoff)


class Eig(Primitive):
    """Eigenvalues and eigenvectors (columns) of general matrices, always complex: (..., n, n) -> (..., n), (..., n, n).

    Of the eigenvectors LAPACK chooses those of length 1 whose largest entry is real; the derivative keeps to that.
    """

    multiple = True
    reads = frozenset()

    def infer(self, x: Aval) -> tuple[Aval, Aval]:
        check_square("eig", x)
        dtype = np.result_type(x.dtype, np.complex64)
        return Aval(x.shape[:-1], dtype), Aval(x.shape, dtype)

    def impl(self, x: Any) -> tuple[Any, Any]:
        w, v = np.linalg.eig(x)
        dtype = np.result_type(x.dtype, np.complex64)
        return w.astype(dtype, copy=False), v.astype(dtype, copy=False)

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        w, v = out

        def pull(g: Any) -> Any:
            gw, gv = map(np.conjugate, g)  # from here on with the inner product Re(a^H b)
            vh = np.conjugate(transposed(v))
            along = np.sum(np.conjugate(v) * gv, axis=-2, keepdims=True)
            largest, first = _largest(v)
            gv = gv - v * np.real(along) - np.where(first, 1j * np.imag(along) / largest, 0)
            inner = np.conjugate(inverse_gaps(w)) * matmul(vh, gv) + _diagonal(gw)
            return np.conjugate(matmul(solve(vh, inner), vh))

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if tangents[0] is None:
            return None
        w, v = out
        inner = solve(v, matmul(tangents[0], v))
        tv = matmul(v, inverse_gaps(w) * inner)
        largest, first = _largest(v)
        turn = np.sum(np.where(first, np.imag(tv), 0), axis=-2, keepdims=True) / largest
        length = np.real(np.sum(np.conjugate(v) * tv, axis=-2, keepdims=True))
        return np.diagonal(inner, 0, -2, -1), tv - v * (length + 1j * turn)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


def _largest(v: Any) -> tuple[Any, Any]:
    """The real value of the largest entry of each column, and where it is."""
    n = shape_of(v)[-1]
    if not n:
        return np.real(v), v != v
    first = np.equal(np.arange(n)[:, None], np.argmax(np.abs(v), axis=-2)[..., None, :])
    return np.sum(np.where(first, np.real(v), 0), axis=-2, keepdims=True), first


def _diagonal(x: Any) -> Any:
    """Diagonal matrices with these entries."""
    return x[..., None, :] * np.eye(shape_of(x)[-1], dtype=aval_of(x).dtype)


svd = Svd("svd")
qr = Qr("qr")
pinv = Pinv("pinv")
eig = Eig("eig")
