"""Whole-array expressions, kept as element functions until they are stored, bound or reduced: then they are loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.loops.builder import Builder, const, dtype_of, is_array
from fnad.loops.ir import Array, Block, Const, If, Operand, Value


@dataclass(eq=False)
class Lazy:
    """An array that is not computed yet.

    `element(indices)` emits its element there, once per call. `leaves` are the arrays that it reads, each with whether it
    is read at the very indices asked for (so that storing into it, element by element, is safe).
    """

    dtype: np.dtype[Any]
    sizes: list[Operand]
    element: Callable[[Sequence[Operand]], Operand]
    leaves: list[tuple[Value, bool]]

    @property
    def type(self) -> Array:
        return Array(self.dtype, len(self.sizes))


def arrayish(x: Any) -> bool:
    return isinstance(x, Lazy) or is_array(x)


def lazy(b: Builder, x: Any) -> Lazy:
    """An array, or a scalar, as an expression."""
    if isinstance(x, Lazy):
        return x
    if is_array(x):
        return Lazy(dtype_of(x), list(b.shape(x)), lambda at: b.load(x, at), [(x, True)])
    return Lazy(dtype_of(x), [], lambda at: x, [])


def elementwise(b: Builder, function: Callable[..., Operand], dtype: Any, operands: Sequence[Any]) -> Lazy:
    """`function` of the elements of operands that broadcast against each other."""
    parts = [lazy(b, x) for x in operands]
    rank = max(len(p.sizes) for p in parts)
    sizes = [_broadcast(b, [p.sizes[k - rank] for p in parts if len(p.sizes) >= rank - k]) for k in range(rank)]
    readers = [_reader(b, part, sizes) for part in parts]
    leaves = [leaf if kept else (leaf[0], False) for part, (_, kept) in zip(parts, readers, strict=True) for leaf in part.leaves]

    def element(at: Sequence[Operand]) -> Operand:
        return function(*[read(at) for read, _ in readers])

    return Lazy(np.dtype(dtype), sizes, element, leaves)


def _same(x: Operand, y: Operand) -> bool:
    return x is y or (isinstance(x, Const) and isinstance(y, Const) and x.value == y.value)


def _broadcast(b: Builder, sizes: list[Operand]) -> Operand:
    """The common size of an axis; a program that does not know sizes checks them when it runs."""
    size = sizes[0]
    for other in sizes[1:]:
        if _same(size, other) or (isinstance(other, Const) and other.value == 1):
            continue
        if isinstance(size, Const) and size.value == 1:
            size = other
        elif isinstance(size, Const) and isinstance(other, Const):
            b.fail("Shapes that do not broadcast", got={"sizes": f"{size.value} and {other.value}"}, kind=ShapeError)
        else:
            differs = b.scalar("ne", size, other)
            odd = b.scalar("and", differs, b.scalar("and", b.scalar("ne", size, const(1)), b.scalar("ne", other, const(1))))
            b.when(odd, lambda: b.emit("raise", (), text="ValueError: arrays whose shapes do not broadcast"))
            size = b.scalar("select", b.scalar("eq", size, const(1)), other, size, dtype=np.int64)
    return size


def _reader(b: Builder, part: Lazy, sizes: Sequence[Operand]) -> tuple[Callable[[Sequence[Operand]], Operand], bool]:
    """How to read an operand at an index of the result, and whether it is read at that very index."""
    skipped = len(sizes) - len(part.sizes)
    flags: list[Operand | None] = []
    for mine, size in zip(part.sizes, sizes[skipped:], strict=True):
        if _same(mine, size):
            flags.append(None)
        else:
            flags.append(b.scalar("ne", mine, const(1)))

    def read(at: Sequence[Operand]) -> Operand:
        inner = []
        for index, flag in zip(at[skipped:], flags, strict=True):
            if flag is None:
                inner.append(index)
            elif isinstance(flag, Const):
                inner.append(index if flag.value else const(0))
            else:
                inner.append(b.scalar("select", flag, index, const(0), dtype=np.int64))
        return part.element(inner)

    return read, skipped == 0 and all(flag is None for flag in flags)


def materialise(b: Builder, x: Any, name: str = "t") -> Any:
    """An array in memory; what is not an expression is left alone."""
    if not isinstance(x, Lazy):
        return x
    out = b.alloc(x.sizes, x.dtype, name=name)
    _fill(b, out, x)
    return out


def _fill(b: Builder, target: Value, x: Lazy) -> None:
    def body(at: list[Operand], _: list[Operand]) -> list[Operand]:
        b.store(target, at, x.element(at))
        return []

    b.nest(b.shape(target), body)


def store_into(b: Builder, target: Value, x: Any) -> None:
    """`target[...] = x`, with broadcasting; what overlaps the target is copied first."""
    expression = lazy(b, x)
    if any(b.may_alias(leaf, target) and not (same and leaf is target) for leaf, same in expression.leaves):
        expression = lazy(b, materialise(b, expression if isinstance(x, Lazy) else b.copy(x)))
    sizes = b.shape(target)
    _fill(b, target, Lazy(expression.dtype, list(sizes), expand(b, expression, sizes), []))


def expand(b: Builder, x: Lazy, sizes: Sequence[Operand]) -> Callable[[Sequence[Operand]], Operand]:
    """How to read `x` at an index of the larger shape `sizes` that it is broadcast to."""
    rank, mine = len(sizes), len(x.sizes)
    if mine > rank:
        b.fail(f"An array of rank {mine} does not fit into one of rank {rank}", kind=ShapeError)
    for size, wanted in zip(x.sizes, sizes[rank - mine :], strict=True):
        _check_fits(b, size, wanted)
    return _reader(b, x, sizes)[0]


def _check_fits(b: Builder, mine: Operand, size: Operand) -> None:
    if _same(mine, size) or (isinstance(mine, Const) and mine.value == 1):
        return
    if isinstance(mine, Const) and isinstance(size, Const):
        b.fail("The value does not fit into its target", got={"sizes": f"{mine.value} into {size.value}"}, kind=ShapeError)
    odd = b.scalar("and", b.scalar("ne", mine, size), b.scalar("ne", mine, const(1)))
    b.when(odd, lambda: b.emit("raise", (), text="ValueError: a value whose shape does not fit its target"))


def reduce(
    b: Builder,
    x: Lazy,
    step: Callable[[Sequence[Operand], list[Operand]], Sequence[Operand]],
    inits: Sequence[Operand],
    axis: int | None = None,
) -> Any:
    """Accumulate over all axes, to scalars; or over one axis, to an array of the rest (one accumulator only)."""
    if axis is None:
        return b.nest(x.sizes, step, inits)
    rest = [size for k, size in enumerate(x.sizes) if k != axis]

    def element(at: Sequence[Operand]) -> Operand:
        def body(i: Value, carried: list[Operand]) -> Sequence[Operand]:
            return step([*at[:axis], i, *at[axis:]], carried)

        return b.loop(x.sizes[axis], body, inits)[0]

    return Lazy(dtype_of(inits[0]), rest, element, [(leaf, False) for leaf, _ in x.leaves])


def select_if(b: Builder, condition: Operand, then: Callable[[], Operand], orelse: Callable[[], Operand], dtype: Any) -> Operand:
    """One of two scalars; only the chosen one is computed."""
    if isinstance(condition, Const):
        return b.cast(then() if condition.value else orelse(), dtype)
    blocks, values = [], []
    for side in (then, orelse):
        with b.inside(Block()) as block:
            values.append(b.cast(side(), dtype))
        blocks.append(block)
    if not blocks[0].items and not blocks[1].items:
        return b.scalar("select", condition, *values, dtype=dtype)
    out = b.value(values[0].type)
    b.add(If(condition, *blocks, [values[0]], [values[1]], [out], b.line))
    return out
