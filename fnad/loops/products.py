"""Products of arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.loops import operators, reductions
from fnad.loops.arrays import array_of, dtype_of_any, made, materialise, select_if
from fnad.loops.builder import Builder, const, is_scalar, same
from fnad.loops.ir import Array, Operand, Scalar
from fnad.loops.tables import Table

HANDLERS = Table()


@HANDLERS.of(np.dot, np.matmul, operator.matmul)
def dot(b: Builder, x: Any, y: Any) -> Any:
    """`x @ y` of arrays of rank 1 or 2."""
    if is_scalar(x) or is_scalar(y):
        return operators.binary(b, "mul", x, y)
    for v in (x, y):
        array_of(b, v)
    dtype = operators.common(dtype_of_any(x), dtype_of_any(y))
    x, y = (materialise(b, v if dtype_of_any(v) == dtype else operators.convert(b, v, dtype)) for v in (x, y))
    ranks = x.type.ndim, y.type.ndim
    if not set(ranks) <= {1, 2}:
        b.fail(f"Products of arrays of ranks {ranks[0]} and {ranks[1]}", fix="loop over the leading axes")
    rank = sum(ranks) - 2
    if not rank:
        return b.emit("dot", (x, y), Scalar(dtype))
    out = b.emit("dot", (x, y), Array(dtype, rank))
    b.roots[out] = b.new_root()
    b.shapes[out] = [*b.shape(x)[:-1], *(b.shape(y)[1:] if ranks[1] == 2 else ())]
    return out


@HANDLERS.of(np.vdot)
def _vdot(b: Builder, x: Any, y: Any) -> Any:
    return dot(b, operators.function(b, "conj", x) if dtype_of_any(x).kind == "c" else x, y)


@HANDLERS.of(np.outer)
def _outer(b: Builder, x: Any, y: Any) -> Any:
    x, y = (array_of(b, materialise(b, v), 1) for v in (x, y))
    dtype = operators.common(x.dtype, y.dtype)
    sizes = [x.sizes[0], y.sizes[0]]

    def element(at: Sequence[Operand]) -> Operand:
        return b.cast(operators.binary(b, "mul", x.element(at[:1]), y.element(at[1:])), dtype)

    return made(b, dtype, sizes, element, [leaf for part in (x, y) for leaf, _ in part.leaves])


@HANDLERS.of(np.linalg.norm)
def _norm(b: Builder, x: Any) -> Any:
    x = array_of(b, materialise(b, operators.convert(b, x, operators.floating(dtype_of_any(x)))))
    return operators.function(b, "sqrt", reductions.total(b, operators.binary(b, "mul", x, x)))


@HANDLERS.of(np.trace)
def _trace(b: Builder, x: Any) -> Any:
    return reductions.total(b, _diagonal(b, x))


@HANDLERS.of(np.diagonal)
def _diagonal(b: Builder, x: Any) -> Any:
    x = array_of(b, x, 2)
    rows, columns = x.sizes
    size = rows if same(rows, columns) else operators.pick(b, "lt", rows, columns)
    return made(b, x.dtype, [size], lambda at: x.element([at[0], at[0]]), [leaf for leaf, _ in x.leaves], plain=x.plain)


@HANDLERS.of(np.diag)
def _diag(b: Builder, x: Any) -> Any:
    x = array_of(b, materialise(b, x))
    if x.type.ndim == 2:
        return _diagonal(b, x)
    sizes, zero = [x.sizes[0], x.sizes[0]], const(0, x.dtype)

    def element(at: Sequence[Operand]) -> Operand:
        return select_if(b, b.scalar("eq", at[0], at[1]), lambda: x.element(at[:1]), lambda: zero, x.dtype)

    return made(b, x.dtype, sizes, element, [leaf for leaf, _ in x.leaves])


@HANDLERS.of(np.cross)
def _cross(b: Builder, x: Any, y: Any) -> Any:
    x, y = (array_of(b, materialise(b, v), 1) for v in (x, y))
    for size in (x.sizes[0], y.sizes[0]):
        wrong = b.scalar("ne", size, const(3))
        b.when(wrong, lambda: b.emit("raise", (), text="raise ValueError('np.cross needs vectors of three elements')"))
    dtype = operators.common(x.dtype, y.dtype)
    first, second = ([b.cast(v.element([const(k)]), dtype) for k in range(3)] for v in (x, y))
    out = b.alloc([const(3)], dtype)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        left, right = b.scalar("mul", first[i], second[j], dtype=dtype), b.scalar("mul", first[j], second[i], dtype=dtype)
        b.store(out, [const(k)], b.scalar("sub", left, right, dtype=dtype))
    return out
