"""np.linalg: solutions and decompositions, norms, powers and chains of matrices, and its own spellings of NumPy's products."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ShapeError, UnsupportedError
from fnad.numpy import algebra
from fnad.numpy.algebra import operand
from fnad.numpy.metadata import normalise_axes, normalise_axis
from fnad.numpy.reductions import refuse_out
from fnad.primitives import elementary, reduction
from fnad.primitives import linalg as prims
from fnad.primitives._families import expand

_FROBENIUS = ("fro", "f")


# -- norms ---------------------------------------------------------------------------------------------------------


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """Vector and matrix norms of every order. At the origin the gradient is 0."""
    x, ndim = inexact(x), len(x.shape)
    _check_order(ord)
    if axis is None:
        axes = tuple(range(ndim))
        if ord is None or (ord in _FROBENIUS and ndim == 2):
            return _euclidean(x, axes, bool(keepdims))
    elif isinstance(axis, tuple):
        axes = axis
    else:
        try:
            axes = (operator.index(axis),)
        except TypeError:
            raise TypeError("'axis' must be None, an integer or a tuple of integers") from None
    if len(axes) == 1:
        return _vector_norm(x, ord, normalise_axes(axes, ndim), bool(keepdims))
    if len(axes) == 2:
        row, column = (normalise_axis(a, ndim) for a in axes)
        if row == column:
            raise ValueError("Duplicate axes given.")
        return _matrix_norm(x, ord, row, column, bool(keepdims))
    raise ValueError("Improper number of dimensions to norm.")


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """A vector norm over all entries, or over one or several axes."""
    x = inexact(x)
    _check_order(ord)
    return _vector_norm(x, ord, normalise_axes(axis, len(x.shape)), bool(keepdims))


def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """A matrix norm over the last two axes."""
    return norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


def inexact(x: Any) -> Any:
    x = operand(x)
    return x if x.dtype.kind in "fc" else np.astype(x, np.float64)


def _check_order(ord: Any) -> None:
    if isinstance(ord, Tracer):
        raise ArgumentError(
            "np.linalg.norm: the order must be a plain number", got={"ord": repr(ord)}, fix="write np.sum(np.abs(x) ** p) ** (1 / p)"
        )


def _euclidean(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    squares = np.square(x) if x.dtype.kind != "c" else np.square(np.real(x)) + np.square(np.imag(x))
    total = elementary.root(reduction.sum(squares, axis=tuple(sorted(axes))))
    return expand(total, tuple(sorted(axes))) if keepdims else total


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return _euclidean(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    if ord == 0:
        return np.sum(np.astype(x != 0, np.zeros(0, x.dtype).real.dtype), axis=axes, keepdims=keepdims)
    size = np.abs(x)
    if ord == math.inf and math.prod(x.shape[a] for a in axes):
        return np.max(size, axis=axes, keepdims=keepdims)
    if ord == -math.inf:
        return np.min(size, axis=axes, keepdims=keepdims)
    if ord in (1, math.inf):
        return np.sum(size, axis=axes, keepdims=keepdims)
    p = float(ord)
    # Where a slope would be infinite at 0 (that of |x|^p for p < 1, that of the root), a constant stands instead: the gradient is 0 there.
    powers = size**p if p >= 1 else np.where(x == 0, 0.0 if p > 0 else math.inf, np.where(x == 0, 1, size) ** p)
    total = np.sum(powers, axis=axes, keepdims=keepdims)
    zero = total == 0
    return np.where(zero, np.asarray(0.0 if p > 0 else math.inf, total.dtype), np.where(zero, 1, total) ** (1 / p))


def _matrix_norm(x: Any, ord: Any, row: int, column: int, keepdims: bool) -> Any:
    if ord is None or ord in _FROBENIUS:
        return _euclidean(x, (row, column), keepdims)
    if ord in (2, -2, "nuc"):
        values = np.linalg.svdvals(np.moveaxis(x, (row, column), (-2, -1)))
        found = np.sum(values, axis=-1) if ord == "nuc" else values[..., 0 if ord == 2 else -1]
        return expand(found, tuple(sorted((row, column)))) if keepdims else found
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError("Invalid norm order for matrices.")
    summed, searched = (row, column) if abs(ord) == 1 else (column, row)
    sums = np.sum(np.abs(x), axis=summed, keepdims=True)
    if ord > 0 and not x.shape[searched]:
        found = np.sum(sums, axis=searched, keepdims=True)
    else:
        found = (np.max if ord > 0 else np.min)(sums, axis=searched, keepdims=True)
    return found if keepdims else np.reshape(found, tuple(n for i, n in enumerate(x.shape) if i not in (row, column)))


# -- chains and powers ---------------------------------------------------------------------------------------------


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of a chain of matrices in the order that multiplies least; the first and last may be vectors."""
    refuse_out(out, "np.linalg.multi_dot")
    chain = [operand(a) for a in arrays]
    if len(chain) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(chain) == 2:
        return algebra.dot(*chain)
    for i, a in enumerate(chain):
        if len(a.shape) != 2 and not (len(a.shape) == 1 and i in (0, len(chain) - 1)):
            raise np.linalg.LinAlgError(f"{len(a.shape)}-dimensional array given. Array must be two-dimensional")
    first, last = chain[0].shape, chain[-1].shape
    rows = [first[0] if len(first) == 2 else 1, *(a.shape[0] for a in chain[1:]), last[1] if len(last) == 2 else 1]
    splits = _cheapest_splits(rows)

    def product(i: int, j: int) -> Any:
        if i == j:
            return chain[i]
        k = splits[i, j]
        return algebra.matmul(product(i, k), product(k + 1, j))

    return product(0, len(chain) - 1)


def _cheapest_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of matrices i..j, matrix i of shape sizes[i:i + 2]: the dynamic program of Cormen et al., 15.2."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], splits[i, j] = min(options)
    return splits


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """The n-th power of square matrices, by repeated squaring."""
    a = operand(a)
    need_square(a)
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError("exponent must be an integer") from None
    if n == 0:
        return np.astype(np.broadcast_to(np.eye(a.shape[-1]), a.shape), a.dtype)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    power = None
    while n:
        if n % 2:
            power = a if power is None else algebra.matmul(power, a)
        n //= 2
        if n:
            a = algebra.matmul(a, a)
    return power


def need_square(a: Any) -> None:
    if len(a.shape) < 2:
        raise np.linalg.LinAlgError(f"{len(a.shape)}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


# -- solutions and decompositions ----------------------------------------------------------------------------------


def _matrix(a: Any, name: str, real: bool = False) -> Any:
    a = inexact(a)
    need_square(a)
    if real and a.dtype.kind == "c":
        raise UnsupportedError(
            f"{name} of a traced complex matrix has no rule", fix="use the real matrix [[re, -im], [im, re]] of twice the size"
        )
    return a


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse: (..., n, n) -> (..., n, n)."""
    return prims.inv(_matrix(a, "np.linalg.inv"))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """The x with `a @ x = b`; as in NumPy 2, `b` is a vector only if it has one axis, otherwise a stack of matrices."""
    a, b = _matrix(a, "np.linalg.solve"), inexact(b)
    if len(b.shape) == 1:
        x = prims.solve(a, np.reshape(b, (*b.shape, 1)))
        return np.reshape(x, x.shape[:-1])
    if not b.shape:
        raise ShapeError("np.linalg.solve: the right-hand side needs at least one axis", got={"b": aval_of(b)})
    return prims.solve(a, b)


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """The determinant: (..., n, n) -> (...). Its gradient is right at singular matrices too, up to second order."""
    return prims.det(_matrix(a, "np.linalg.det"))


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Sign and logarithm of the absolute value of the determinant of real matrices; where it is 0 there is no derivative."""
    return _SLOGDET_RESULT(*prims.slogdet(_matrix(a, "np.linalg.slogdet", real=True)))


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The Cholesky factor of real matrices, taken for symmetric: only one triangle is read, and the gradient is symmetric."""
    a = _matrix(a, "np.linalg.cholesky", real=True)
    return np.matrix_transpose(prims.cholesky(np.matrix_transpose(a))) if upper else prims.cholesky(a)


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of real matrices, taken for symmetric: only one triangle is read, and the gradient is symmetric."""
    a = _matrix(a, "np.linalg.eigh", real=True)
    triangle = UPLO.upper()
    if triangle not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return _EIGH_RESULT(*prims.eigh(a if triangle == "L" else np.matrix_transpose(a)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of real symmetric matrices; their gradient holds where some are equal."""
    return eigh(a, UPLO)[0]


_SLOGDET_RESULT = type(np.linalg.slogdet(np.eye(1)))
_EIGH_RESULT = type(np.linalg.eigh(np.eye(1)))


# -- np.linalg's own spellings -------------------------------------------------------------------------------------


def matmul(x1: Any, x2: Any, /) -> Any:
    return algebra.matmul(x1, x2)


def outer(x1: Any, x2: Any, /) -> Any:
    x1, x2 = operand(x1), operand(x2)
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ShapeError("np.linalg.outer: both operands must be vectors", got={"x1": aval_of(x1), "x2": aval_of(x2)}, fix="use np.outer")
    return algebra.outer(x1, x2)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return algebra.tensordot(x1, x2, axes)


def matrix_transpose(x: Any, /) -> Any:
    return np.matrix_transpose(x)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return algebra.trace(x, offset, -2, -1, dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = operand(x1), operand(x2)
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    return algebra.vecdot(x1, x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    x1, x2 = operand(x1), operand(x2)
    for x in (x1, x2):
        if x.shape[normalise_axis(axis, len(x.shape))] != 3:
            raise ShapeError("np.linalg.cross: vectors must have 3 entries", got={"x1": aval_of(x1), "x2": aval_of(x2), "axis": axis})
    return algebra.cross(x1, x2, axis=axis)


for _function in (vector_norm, matrix_norm, matmul, outer, tensordot, matrix_transpose, diagonal, trace, vecdot, cross):
    implements(getattr(np.linalg, _function.__name__))(_function)
