"""What a `for` runs over: ranges, arrays, and what `enumerate`, `zip` and `reversed` make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.errors import DTypeError
from fnad.loops import indexing, operators
from fnad.loops.arrays import array_of, arrayish, materialise
from fnad.loops.builder import Builder, const, dtype_of, is_scalar, is_tuple, same
from fnad.loops.ir import Const, Operand, Value
from fnad.loops.joins import describe
from fnad.loops.picking import Slice
from fnad.loops.tables import count, is_none, sizes_of


@dataclass(eq=False)
class Range:
    """What a `for` runs over: `item(i)` for i in `range(lo, hi, step)`."""

    lo: Operand
    hi: Operand
    step: Operand
    item: Callable[[Operand], Any]
    parallel: bool = False


def sequence(b: Builder, x: Any) -> Range:
    """Something that a `for` can run over."""
    if isinstance(x, Range):
        return x
    if not arrayish(x):
        b.fail("A `for` loop runs over range, prange, an array, a tuple, enumerate, zip or reversed", got={"value": describe(x)})
    array: Value = materialise(b, x)
    return Range(const(0), b.dim(array, 0), const(1), lambda i: indexing.read(b, array, i))


def _range(b: Builder, *args: Any, parallel: bool = False) -> Range:
    for x in args:
        if not is_scalar(x) or dtype_of(x).kind not in "biu":
            b.fail("The bounds of a range are integers", got={"bound": describe(x)}, kind=DTypeError)
    bounds = [b.cast(x, np.int64) for x in args]
    lo, hi, step = [const(0), *bounds, const(1)] if len(bounds) == 1 else [*bounds, const(1)][:3]
    if isinstance(step, Const) and step.value == 0:
        b.fail("The step of a range must not be 0")
    return Range(lo, hi, step, lambda i: i, parallel)


def _length(b: Builder, s: Range) -> Operand:
    """The number of items."""
    span = b.scalar("sub", s.lo, s.hi, dtype=np.int64)
    ahead = b.scalar("neg", b.scalar("floordiv", span, s.step, dtype=np.int64), dtype=np.int64)
    return operators.pick(b, "gt", const(0), ahead)


def counted(b: Builder, s: Range) -> Range:
    """The same items, by their number."""
    if same(s.lo, const(0)) and same(s.step, const(1)):
        return s

    def item(k: Operand) -> Any:
        return s.item(b.scalar("add", s.lo, b.scalar("mul", k, s.step, dtype=np.int64), dtype=np.int64))

    return Range(const(0), _length(b, s), const(1), item, s.parallel)


def _enumerate(b: Builder, x: Any, start: Any = None) -> Any:
    first = const(0) if start is None else start
    if is_tuple(x):
        return tuple((b.scalar("add", const(k), first, dtype=np.int64), item) for k, item in enumerate(x))
    s = counted(b, sequence(b, x))
    return Range(s.lo, s.hi, s.step, lambda k: (b.scalar("add", k, first, dtype=np.int64), s.item(k)))


def _zip(b: Builder, *args: Any) -> Any:
    if all(map(is_tuple, args)):
        return tuple(zip(*args, strict=False))
    if any(map(is_tuple, args)):
        b.fail("zip of tuples with arrays", fix="index the array by enumerate's number")
    parts = [counted(b, sequence(b, x)) for x in args]
    size = parts[0].hi
    for part in parts[1:]:
        if part.hi is not size:
            size = operators.pick(b, "lt", size, part.hi)
    return Range(const(0), size, const(1), lambda k: tuple(part.item(k) for part in parts))


def _reversed(b: Builder, x: Any) -> Any:
    if is_tuple(x):
        return tuple(x)[::-1]
    s = counted(b, sequence(b, x))
    last = b.scalar("sub", s.hi, const(1), dtype=np.int64)
    return Range(const(0), s.hi, const(1), lambda k: s.item(b.scalar("sub", last, k, dtype=np.int64)))


def _tuple(b: Builder, x: Any) -> Any:
    if not is_tuple(x):
        b.fail("tuple() of something else than a tuple")
    return tuple(x)


def _slice(b: Builder, *args: Any) -> Slice:
    given = [None if is_none(x) else x for x in args]
    return Slice(*([None, given[0], None] if len(given) == 1 else [*given, None][:3]))


def _ndindex(b: Builder, *shape: Any) -> Range:
    """Every index of a shape, in C order."""
    sizes = sizes_of(b, shape[0] if len(shape) == 1 else tuple(shape))

    def item(k: Operand) -> tuple[Operand, ...]:
        found: list[Operand] = []
        for size in reversed(sizes[1:]):
            found.append(b.scalar("mod", k, size, dtype=np.int64))
            k = b.scalar("floordiv", k, size, dtype=np.int64)
        return (k, *reversed(found)) if sizes else ()

    return Range(const(0), count(b, sizes), const(1), item)


def _ndenumerate(b: Builder, x: Any) -> Range:
    array: Value = materialise(b, array_of(b, x) if not arrayish(x) else x)
    indices = _ndindex(b, b.shape(array))

    def item(k: Operand) -> tuple[Any, Operand]:
        at = indices.item(k)
        return at, b.load(array, at)

    return Range(const(0), indices.hi, const(1), item)


SPECIAL: dict[str, Callable[..., Any]] = {
    "range": _range,
    "prange": lambda b, *args: _range(b, *args, parallel=True),
    "enumerate": _enumerate,
    "zip": _zip,
    "reversed": _reversed,
    "ndindex": _ndindex,
    "ndenumerate": _ndenumerate,
    "tuple": _tuple,
    "slice": _slice,
}
