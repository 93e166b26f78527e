"""Reductions and running results of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.loops import arrays, operators
from fnad.loops.arrays import array_of, dtype_of_any, made, materialise
from fnad.loops.builder import Builder, const, is_tuple
from fnad.loops.ir import Operand
from fnad.loops.tables import Handler, Table, axis_of, count, is_none

HANDLERS = Table()


def _running(kind: str) -> Handler:
    def handler(b: Builder, x: Any, axis: Any = None) -> Any:
        return _winner(b, x, kind, axis, "value")

    return handler


def _winner(b: Builder, x: Any, kind: str, axis: Any, what: str) -> Any:
    """The largest or smallest element, or its index: the first of equal ones, kept by a running comparison."""
    x = array_of(b, materialise(b, x))
    which = axis_of(b, x, axis)
    size = count(b, x.sizes) if which is None else x.sizes[which]
    text = "raise ValueError('the largest or smallest element of an empty array')"
    b.when(b.scalar("eq", size, const(0)), lambda: b.emit("raise", (), text=text))

    def inits(first: Sequence[Operand]) -> list[Operand]:
        return [x.element(first)] if what == "value" else [x.element(first), const(0)]

    def step(at: Sequence[Operand], carried: list[Operand]) -> list[Operand]:
        value = x.element(at)
        better = b.scalar(kind, value, carried[0])
        if x.dtype.kind == "f":
            better = b.scalar("or", better, b.all(b.scalar("ne", value, value), b.scalar("eq", carried[0], carried[0])))
        kept = b.scalar("select", better, value, carried[0], dtype=x.dtype)
        if what == "value":
            return [kept]
        number = at[0] if which is None else at[which]
        for index, length in zip(at[1:], x.sizes[1:], strict=True) if which is None else ():
            number = b.scalar("add", b.scalar("mul", number, length, dtype=np.int64), index, dtype=np.int64)
        return [kept, b.scalar("select", better, number, carried[1], dtype=np.int64)]

    return arrays.reduce(b, x, step, inits, which)[-1]


HANDLERS[np.max] = HANDLERS[np.amax] = _running("gt")
HANDLERS[np.min] = HANDLERS[np.amin] = _running("lt")
HANDLERS[np.argmax] = lambda b, x, axis=None: _winner(b, x, "gt", axis, "index")
HANDLERS[np.argmin] = lambda b, x, axis=None: _winner(b, x, "lt", axis, "index")


def _accumulate(b: Builder, kind: str, x: Any, axis: Any, start: Any, dtype: Any) -> Any:
    x = array_of(b, x)

    def step(at: Sequence[Operand], carried: list[Operand]) -> list[Operand]:
        return [b.scalar(kind, carried[0], b.cast(x.element(at), dtype), dtype=dtype)]

    return arrays.reduce(b, x, step, lambda first: [const(start, dtype)], axis_of(b, x, axis))[0]


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int64) if dtype.kind in "bi" else dtype


@HANDLERS.of(np.sum)
def total(b: Builder, x: Any, axis: Any = None) -> Any:
    """`np.sum(x, axis)`."""
    return _accumulate(b, "add", x, axis, 0, _sum_dtype(dtype_of_any(x)))


@HANDLERS.of(np.prod)
def _prod(b: Builder, x: Any, axis: Any = None) -> Any:
    return _accumulate(b, "mul", x, axis, 1, _sum_dtype(dtype_of_any(x)))


@HANDLERS.of(np.mean)
def _mean(b: Builder, x: Any, axis: Any = None) -> Any:
    x = array_of(b, x)
    which = axis_of(b, x, axis)
    number = count(b, x.sizes) if which is None else x.sizes[which]
    dtype = operators.floating(x.dtype)
    total = _accumulate(b, "add", x, axis, 0, dtype)
    return operators.binary(b, "div", total, b.cast(number, dtype))


@HANDLERS.of(np.var)
def _var(b: Builder, x: Any) -> Any:
    x = array_of(b, materialise(b, x))
    centred = operators.binary(b, "sub", x, _mean(b, x))
    return _mean(b, operators.binary(b, "mul", centred, centred))


@HANDLERS.of(np.std)
def _std(b: Builder, x: Any) -> Any:
    return operators.function(b, "sqrt", _var(b, x))


def _all_or_any(kind: str, start: bool) -> Handler:
    def handler(b: Builder, x: Any) -> Any:
        x = array_of(b, x)

        def step(at: Sequence[Operand], carried: list[Operand]) -> list[Operand]:
            return [b.scalar(kind, carried[0], b.truth(x.element(at)))]

        return arrays.reduce(b, x, step, lambda first: [const(start)])[0]

    return handler


HANDLERS[np.all] = _all_or_any("and", True)
HANDLERS[np.any] = _all_or_any("or", False)


@HANDLERS.of(sum)
def _sum(b: Builder, x: Any, start: Any = None) -> Any:
    found: Any = const(0) if start is None else start
    if not is_tuple(x):
        return operators.binary(b, "add", total(b, x), found)
    for value in x:
        found = operators.binary(b, "add", found, value)
    return found


def _running_total(kind: str, start: int) -> Handler:
    def handler(b: Builder, x: Any, axis: Any = None) -> Any:
        x = array_of(b, x)
        if not is_none(axis) and x.type.ndim > 1:
            b.fail("cumsum and cumprod along an axis of a matrix", fix="loop over the rows")
        dtype = _sum_dtype(x.dtype)
        sizes = x.sizes
        out = b.alloc([count(b, sizes)], dtype)

        def step(at: list[Operand], carried: list[Operand]) -> list[Operand]:
            number, so_far = carried
            so_far = b.scalar(kind, so_far, b.cast(x.element(at), dtype), dtype=dtype)
            b.store(out, [number], so_far)
            return [b.scalar("add", number, const(1), dtype=np.int64), so_far]

        b.nest(sizes, step, [const(0), const(start, dtype)])
        return out

    return handler


HANDLERS[np.cumsum] = _running_total("add", 0)
HANDLERS[np.cumprod] = _running_total("mul", 1)


@HANDLERS.of(np.diff)
def _diff(b: Builder, x: Any) -> Any:
    x = array_of(b, materialise(b, x))
    axis = x.type.ndim - 1
    last = b.scalar("sub", x.sizes[axis], const(1), dtype=np.int64)
    size = b.scalar("select", b.scalar("gt", last, const(0)), last, const(0), dtype=np.int64)

    def element(at: Sequence[Operand]) -> Operand:
        after = b.scalar("add", at[axis], const(1), dtype=np.int64)
        return b.scalar("sub", x.element([*at[:axis], after]), x.element(at), dtype=x.dtype)

    return made(b, x.dtype, [*x.sizes[:axis], size], element, [leaf for leaf, _ in x.leaves])
