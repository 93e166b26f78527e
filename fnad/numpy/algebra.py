"""Products of vectors, matrices and tensors, all on one primitive: the batched matrix product."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import ShapeError
from fnad.numpy.metadata import normalise_axis
from fnad.numpy.reductions import refuse_out
from fnad.primitives import linalg as prims
from fnad.primitives import shape as shapes
from fnad.typing import Shape


def operand(x: Any) -> Any:
    """An array or tracer. Python scalars decide the dtype here, as in NumPy's products (`np.dot(2.0, x)` is float64)."""
    if x.__class__ is np.ndarray:
        return x
    if isinstance(x, Tracer):
        return shapes.cast(x, dtype=x.dtype) if not x.shape and x.aval.weak else x
    return np.asarray(x)


def reshaped(x: Any, shape: Shape) -> Any:
    return x if shape_of(x) == shape else shapes.reshape(x, shape=shape)


def transposed(x: Any, axes: Sequence[int]) -> Any:
    return x if list(axes) == list(range(len(axes))) else shapes.transpose(x, axes=tuple(axes))


def conjugated(x: Any) -> Any:
    return np.conjugate(x) if x.dtype.kind == "c" else x


def avals(*arrays: Any) -> tuple[Aval, ...]:
    return tuple(map(aval_of, arrays))


# -- matrix products -----------------------------------------------------------------------------------------------


@implements(np.matmul)
def matmul(a: Any, b: Any) -> Any:
    """(..., n, k) @ (..., k, m) -> (..., n, m); a vector on the left is a row, on the right a column, and its axis goes again."""
    try:
        na, nb = len(a.shape), len(b.shape)
    except AttributeError:
        return matmul(operand(a), operand(b))
    if na >= 2 and nb >= 2:
        return prims.matmul(a, b)
    if na == 0 or nb == 0:
        _need_axes("np.matmul", (a, 1), (b, 1))
    return _vector_product(a, b)


def _vector_product(a: Any, b: Any) -> Any:
    """A product in which `a` or `b` is a vector."""
    sa, sb = shape_of(a), shape_of(b)
    if len(sa) <= 2 >= len(sb):
        return prims.matmul(a, b)
    left = shapes.reshape(a, shape=(1, *sa)) if len(sa) == 1 else a
    right = shapes.reshape(b, shape=(*sb, 1)) if len(sb) == 1 else b
    product = prims.matmul(left, right)
    *lead, n, m = shape_of(product)
    return shapes.reshape(product, shape=(*lead, *(() if len(sa) == 1 else (n,)), *(() if len(sb) == 1 else (m,))))


def _need_axes(name: str, *operands: tuple[Any, int]) -> None:
    for i, (x, n) in enumerate(operands):
        if len(shape_of(x)) < n:
            raise ShapeError(
                f"{name}: operand {i} needs at least {n} {'axis' if n == 1 else 'axes'}",
                got={f"operand {i}": aval_of(x)},
                fix="multiply by scalars with *, or give the vector or matrix its axes back with x[None]",
            )


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Contract the last axis of `a` with the last but one of `b` (its only one if it is a vector); scalars multiply."""
    refuse_out(out, "np.dot")
    a, b = operand(a), operand(b)
    na, nb = len(a.shape), len(b.shape)
    if 1 <= na <= 2 and 1 <= nb <= 2:
        return prims.matmul(a, b)
    if na == 0 or nb == 0:
        return np.multiply(a, b)
    return contract(a, b, (na - 1,), (max(nb - 2, 0),), "np.dot")


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """The sum of conj(a) * b over all entries."""
    a, b = operand(a), operand(b)
    n = math.prod(a.shape)
    if math.prod(b.shape) != n:
        raise ShapeError("np.vdot: both operands must have the same number of entries", got=dict(zip("ab", avals(a, b), strict=True)))
    return prims.matmul(conjugated(reshaped(a, (n,))), reshaped(b, (n,)))


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Contract the last axes of both; scalars multiply."""
    a, b = operand(a), operand(b)
    if not a.shape or not b.shape:
        return np.multiply(a, b)
    return contract(a, b, (len(a.shape) - 1,), (len(b.shape) - 1,), "np.inner")


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """All products of an entry of `a` and one of `b`, both flattened: -> (a.size, b.size)."""
    refuse_out(out, "np.outer")
    a, b = operand(a), operand(b)
    return prims.matmul(reshaped(a, (math.prod(a.shape), 1)), reshaped(b, (1, math.prod(b.shape))))


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Contract `axes[0]` of `a` with `axes[1]` of `b`; an int n means the last n of `a` with the first n of `b`."""
    a, b = operand(a), operand(b)
    if np.iterable(axes):
        given_a, given_b = axes
    else:
        given_a, given_b = range(-axes, 0), range(axes)
    axes_a = _axes(given_a, len(a.shape))
    axes_b = _axes(given_b, len(b.shape))
    if len(axes_a) != len(axes_b):
        raise ShapeError("np.tensordot: contracted axes come in pairs", got={"axes": axes})
    return contract(a, b, axes_a, axes_b, "np.tensordot")


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    found = tuple(normalise_axis(x, ndim) for x in (axes if np.iterable(axes) else (axes,)))
    if len(set(found)) != len(found):
        raise ValueError("duplicate axes are not allowed in tensordot")
    return found


def contract(a: Any, b: Any, axes_a: tuple[int, ...], axes_b: tuple[int, ...], name: str) -> Any:
    """Sum over pairs of axes: what remains of `a`, then what remains of `b`. One matrix product."""
    sa, sb = a.shape, b.shape
    summed = tuple(sa[i] for i in axes_a)
    if summed != tuple(sb[i] for i in axes_b):
        raise ShapeError(
            f"{name}: contracted axes must have equal sizes",
            got={"first": aval_of(a), "second": aval_of(b), "axes": (axes_a, axes_b)},
            fix="transpose one operand, or choose other axes",
        )
    free_a = [i for i in range(len(sa)) if i not in axes_a]
    free_b = [i for i in range(len(sb)) if i not in axes_b]
    rest_a, rest_b = tuple(sa[i] for i in free_a), tuple(sb[i] for i in free_b)
    k = math.prod(summed)
    left = reshaped(transposed(a, (*free_a, *axes_a)), (math.prod(rest_a), k))
    right = reshaped(transposed(b, (*axes_b, *free_b)), (k, math.prod(rest_b)))
    return reshaped(prims.matmul(left, right), (*rest_a, *rest_b))


# -- products of stacks of vectors ---------------------------------------------------------------------------------


@implements(np.vecdot)
def vecdot(x1: Any, x2: Any) -> Any:
    """The sum of conj(x1) * x2 over the last axis; leading axes broadcast."""
    x1, x2 = operand(x1), operand(x2)
    _need_axes("np.vecdot", (x1, 1), (x2, 1))
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError("np.vecdot: last axes must have equal sizes", got={"first": aval_of(x1), "second": aval_of(x2)})
    row = reshaped(conjugated(x1), (*x1.shape[:-1], 1, x1.shape[-1]))
    product = prims.matmul(row, reshaped(x2, (*x2.shape, 1)))
    return reshaped(product, product.shape[:-2])


def matvec(x1: Any, x2: Any) -> Any:
    """(..., m, n), (..., n) -> (..., m)."""
    x1, x2 = operand(x1), operand(x2)
    _need_axes("np.matvec", (x1, 2), (x2, 1))
    product = prims.matmul(x1, reshaped(x2, (*x2.shape, 1)))
    return reshaped(product, product.shape[:-1])


def vecmat(x1: Any, x2: Any) -> Any:
    """(..., n), (..., n, m) -> (..., m), with x1 conjugated."""
    x1, x2 = operand(x1), operand(x2)
    _need_axes("np.vecmat", (x1, 1), (x2, 2))
    product = prims.matmul(reshaped(conjugated(x1), (*x1.shape[:-1], 1, x1.shape[-1])), x2)
    return reshaped(product, (*product.shape[:-2], product.shape[-1]))


if hasattr(np, "matvec"):  # NumPy 2.2
    implements(np.matvec)(matvec)
    implements(np.vecmat)(vecmat)


# -- products without a sum, and sums of few -----------------------------------------------------------------------


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Kronecker product: every entry of `a` times all of `b`; the smaller rank is padded with leading axes of size 1."""
    a, b = operand(a), operand(b)
    if not a.shape or not b.shape:
        return np.multiply(a, b)
    n = max(len(a.shape), len(b.shape))
    sa = (1,) * (n - len(a.shape)) + a.shape
    sb = (1,) * (n - len(b.shape)) + b.shape
    spread_a = reshaped(a, tuple(s for size in sa for s in (size, 1)))
    spread_b = reshaped(b, tuple(s for size in sb for s in (1, size)))
    return reshaped(np.multiply(spread_a, spread_b), tuple(x * y for x, y in zip(sa, sb, strict=True)))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Cross product of (stacks of) vectors of 3 entries; one of 2 entries lies in the plane, two of them give the third component."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = operand(a), operand(b)
    if not a.shape or not b.shape:
        raise ValueError("At least one array has zero dimension")
    a = np.moveaxis(a, normalise_axis(axisa, len(a.shape)), -1)
    b = np.moveaxis(b, normalise_axis(axisb, len(b.shape)), -1)
    na, nb = a.shape[-1], b.shape[-1]
    if na not in (2, 3) or nb not in (2, 3):
        raise ShapeError("np.cross: vectors must have 3 entries (or 2)", got={"first": aval_of(a), "second": aval_of(b)})
    if na == 2 or nb == 2:
        message = "Arrays of 2-dimensional vectors are deprecated. Use arrays of 3-dimensional vectors instead."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    a0, a1, b0, b1 = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    third = a0 * b1 - a1 * b0
    if na == 2 == nb:
        return third
    if na == 2:
        b2 = b[..., 2]
        parts = (a1 * b2, -(a0 * b2), third)
    elif nb == 2:
        a2 = a[..., 2]
        parts = (-(a2 * b1), a2 * b0, third)
    else:
        a2, b2 = a[..., 2], b[..., 2]
        parts = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, third)
    return np.stack(parts, axis=normalise_axis(axisc, len(shape_of(third)) + 1))


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal; integers widen as in a sum."""
    refuse_out(out, "np.trace")
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)
