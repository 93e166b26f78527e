"""New arrays: allocation, literals, ranges, and arrays joined from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.errors import DTypeError, ShapeError
from fnad.loops import arrays, operators
from fnad.loops.arrays import Lazy, array_of, arrayish, dtype_of_any, lazy, made, materialise
from fnad.loops.builder import Builder, NotNumeric, const, dtype_of, is_tuple
from fnad.loops.ir import Const, Operand, Value
from fnad.loops.tables import Handler, Table, axis_of, dtype_from, sizes_of

HANDLERS = Table()


@dataclass(frozen=True)
class Listed:
    """A list comprehension of numbers, of which only an array can be made."""

    array: Value


def _creation(fill: Any) -> Handler:
    return lambda b, shape, dtype=None: b.alloc(sizes_of(b, shape), dtype_from(b, dtype, np.float64), fill)


def _creation_like(fill: Any) -> Handler:
    def handler(b: Builder, x: Any, dtype: Any = None) -> Any:
        x = array_of(b, x)
        return b.alloc(x.sizes, dtype_from(b, dtype, x.dtype), fill)

    return handler


for _names, _fill in (("empty", None), ("zeros", 0), ("ones", 1)):
    HANDLERS[getattr(np, _names)] = _creation(_fill)
    HANDLERS[getattr(np, _names + "_like")] = _creation_like(_fill)


@HANDLERS.of(np.full)
def _full(b: Builder, shape: Any, fill: Any, dtype: Any = None) -> Any:
    return _filled(b, sizes_of(b, shape), fill, dtype_from(b, dtype, dtype_of(fill)))


@HANDLERS.of(np.full_like)
def _full_like(b: Builder, x: Any, fill: Any, dtype: Any = None) -> Any:
    x = array_of(b, x)
    return _filled(b, x.sizes, fill, dtype_from(b, dtype, x.dtype))


def _filled(b: Builder, sizes: list[Operand], fill: Any, dtype: np.dtype[Any]) -> Value:
    if isinstance(fill, Const):
        return b.alloc(sizes, dtype, b.cast(fill, dtype).value)  # type: ignore[union-attr]
    out = b.alloc(sizes, dtype)
    arrays.store_into(b, out, fill)
    return out


@HANDLERS.of(np.array)
def _array(b: Builder, x: Any, dtype: Any = None) -> Any:
    if isinstance(x, Listed):
        x = x.array if dtype_from(b, dtype, dtype_of(x.array)) == dtype_of(x.array) else operators.convert(b, x.array, dtype.object)
        return materialise(b, x)
    if arrayish(x):
        x = operators.convert(b, x, dtype_from(b, dtype, dtype_of_any(x)))
        return materialise(b, x)
    if not is_tuple(x):
        raise NotNumeric(x, "an array, or a list or tuple of numbers")
    leaves: list[tuple[tuple[int, ...], Any]] = []
    shape = _nested(b, x, (), leaves)
    joint = np.result_type(*[dtype_of(v) for _, v in leaves]) if leaves else np.float64
    out = b.alloc([const(n) for n in shape], dtype_from(b, dtype, joint))
    for at, value in leaves:
        b.store(out, [const(i) for i in at], value)
    return out


def _nested(b: Builder, x: Any, at: tuple[int, ...], leaves: list[tuple[tuple[int, ...], Any]]) -> tuple[int, ...]:
    if not is_tuple(x):
        operators.check_numbers(b, x)
        if arrayish(x):
            b.fail("np.array of arrays", fix="allocate the result and assign its rows")
        leaves.append((at, x))
        return ()
    shapes = {_nested(b, item, (*at, k), leaves) for k, item in enumerate(x)}
    if len(shapes) > 1:
        b.fail("The rows of np.array differ in length")
    return (len(x), *(shapes.pop() if shapes else ()))


@HANDLERS.of(np.asarray, np.ascontiguousarray)
def _asarray(b: Builder, x: Any, dtype: Any = None) -> Any:
    if arrayish(x) and dtype_from(b, dtype, dtype_of_any(x)) == dtype_of_any(x):
        return x
    return _array(b, x, dtype)


@HANDLERS.of(np.copy)
def _copy(b: Builder, x: Any) -> Any:
    return materialise(b, x) if isinstance(x, Lazy) else b.copy(x)


@HANDLERS.of(np.arange)
def _arange(b: Builder, start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    if stop is None:
        start, stop = const(0), start
    step = const(1) if step is None else step
    joint = operators.common(*[dtype_of(v) for v in (start, stop, step)])
    span = operators.binary(b, "sub", stop, start)
    if joint.kind == "f":
        count = b.cast(operators.function(b, "ceil", operators.binary(b, "div", span, step)), np.int64)
    else:
        count = operators.negative(b, operators.binary(b, "floordiv", operators.negative(b, span), step))
    count = operators.pick(b, "gt", const(0), count)

    def element(at: Sequence[Operand]) -> Operand:
        return b.cast(operators.binary(b, "add", start, operators.binary(b, "mul", at[0], step)), dtype_from(b, dtype, joint))

    return made(b, dtype_from(b, dtype, joint), [count], element)


@HANDLERS.of(np.linspace)
def _linspace(b: Builder, start: Any, stop: Any, num: Any = None) -> Any:
    count: Operand = const(50) if num is None else b.cast(num, np.int64)
    start, stop = (operators.convert(b, v, np.float64) for v in (start, stop))
    gaps = b.cast(operators.pick(b, "gt", const(1), operators.binary(b, "sub", count, const(1))), np.float64)
    step = operators.binary(b, "div", operators.binary(b, "sub", stop, start), gaps)

    def element(at: Sequence[Operand]) -> Operand:
        last = b.scalar("and", b.scalar("eq", at[0], b.scalar("sub", count, const(1), dtype=np.int64)), b.scalar("gt", count, const(1)))
        inner = operators.binary(b, "add", start, operators.binary(b, "mul", b.cast(at[0], np.float64), step))
        return b.scalar("select", last, stop, inner, dtype=np.float64)

    return made(b, np.float64, [count], element)


@HANDLERS.of(np.eye)
def _eye(b: Builder, n: Any, m: Any = None, dtype: Any = None) -> Any:
    kept = dtype_from(b, dtype, np.float64)
    sizes = sizes_of(b, (n, n if m is None else m))
    return made(b, kept, sizes, lambda at: b.cast(b.scalar("eq", at[0], at[1]), kept))


HANDLERS[np.identity] = lambda b, n, dtype=None: _eye(b, n, None, dtype)


def _parts(b: Builder, given: Any) -> list[Lazy]:
    if not is_tuple(given) or not given or not all(map(arrayish, given)):
        b.fail("A tuple of arrays is needed", kind=DTypeError)
    parts = [lazy(b, x) for x in given]
    if len({part.type.ndim for part in parts}) > 1:
        b.fail("The arrays differ in rank", kind=ShapeError)
    return parts


@HANDLERS.of(np.concatenate)
def _concatenate(b: Builder, given: Any, axis: Any = None) -> Any:
    return _joined(b, _parts(b, given), const(0) if axis is None else axis)


def _joined(b: Builder, parts: list[Lazy], axis: Any) -> Value:
    along = axis_of(b, parts[0], axis) or 0
    total: Operand = const(0)
    for part in parts:
        total = b.scalar("add", total, part.sizes[along], dtype=np.int64)
    sizes = list(parts[0].sizes)
    sizes[along] = total
    out = b.alloc(sizes, operators.common(*[part.dtype for part in parts]))
    start: Operand = const(0)
    for part in parts:
        stop = b.scalar("add", start, part.sizes[along], dtype=np.int64)
        bounds = [x for k in range(len(sizes)) for x in ((start, stop, None) if k == along else (None, None, None))]
        target = b.view(out, "s" * len(sizes), bounds)
        b.measure(target, [part.sizes[along] if k == along else size for k, size in enumerate(sizes)])
        arrays.store_into(b, target, part)
        start = stop
    return out


@HANDLERS.of(np.stack)
def _stack(b: Builder, given: Any, axis: Any = None) -> Any:
    parts = _parts(b, given)
    if axis is not None and not (isinstance(axis, Const) and axis.value == 0):
        b.fail("np.stack along another axis than the first", fix="stack along the first one and transpose")
    return _joined(b, [_with_first_axis(b, part) for part in parts], const(0))


def _with_first_axis(b: Builder, x: Lazy) -> Lazy:
    sizes = [const(1), *x.sizes]
    return made(b, x.dtype, sizes, lambda at: x.element(at[1:]), [leaf for leaf, _ in x.leaves], plain=x.plain)


@HANDLERS.of(np.vstack)
def _vstack(b: Builder, given: Any) -> Any:
    parts = _parts(b, given)
    return _joined(b, [_with_first_axis(b, x) for x in parts] if parts[0].type.ndim == 1 else parts, const(0))


@HANDLERS.of(np.hstack)
def _hstack(b: Builder, given: Any) -> Any:
    parts = _parts(b, given)
    return _joined(b, parts, const(0 if parts[0].type.ndim == 1 else 1))


@HANDLERS.of(np.roll)
def _roll(b: Builder, x: Any, shift: Any) -> Any:
    x = array_of(b, materialise(b, x), 1)
    size = x.sizes[0]

    def element(at: Sequence[Operand]) -> Operand:
        return x.element([b.scalar("mod", b.scalar("sub", at[0], shift, dtype=np.int64), size, dtype=np.int64)])

    return made(b, x.dtype, [size], element, [leaf for leaf, _ in x.leaves])


@HANDLERS.of(np.flip)
def _flip(b: Builder, x: Any) -> Any:
    x = array_of(b, materialise(b, x))

    def element(at: Sequence[Operand]) -> Operand:
        ends = [b.scalar("sub", size, const(1), dtype=np.int64) for size in x.sizes]
        return x.element([b.scalar("sub", end, i, dtype=np.int64) for end, i in zip(ends, at, strict=True)])

    return made(b, x.dtype, x.sizes, element, [leaf for leaf, _ in x.leaves])
