"""Whole-array expressions, kept as functions of the index until they are stored, bound or reduced: then they are loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.loops.builder import Builder, NotNumeric, const, dtype_of, is_array, same
from fnad.loops.ir import Array, Block, Const, If, Operand, Value

Element = Callable[[Sequence[Operand]], Operand]
Leaves = list[tuple[Value, bool]]
"""Arrays that are read, each with whether only at the very index asked for (then storing into it one by one is safe)."""


class Lazy:
    """An array that is not computed yet.

    `sizes` and `element` are its own shape and its element at an index; asking for `sizes` emits the checks that its parts fit
    together, so ask before the loop over them starts. `fit(sizes)` reads it where it is broadcast to a given shape.
    """

    def __init__(
        self,
        b: Builder,
        dtype: Any,
        ndim: int,
        shape: Callable[[], list[Operand]],
        fit: Callable[[Sequence[Operand], bool], tuple[Element, Leaves]],
        plain: bool = False,
    ) -> None:
        self.builder, self.type, self._shape, self.fit, self.plain = b, Array(np.dtype(dtype), ndim), shape, fit, plain
        self._sizes: list[Operand] | None = None
        self._element: Element | None = None
        self.leaves: Leaves = []

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def sizes(self) -> list[Operand]:
        if self._sizes is None:
            self._sizes = self._shape()
            self._element, self.leaves = self.fit(self._sizes, False)
        return self._sizes

    def element(self, at: Sequence[Operand]) -> Operand:
        assert self._element is not None, "the sizes come first"
        return self._element(at)


def made(b: Builder, dtype: Any, sizes: Sequence[Operand], element: Element, leaves: Sequence[Value] = (), plain: bool = False) -> Lazy:
    """An expression from its shape and its element; `leaves` are the arrays that it reads, anywhere."""

    def fit(wanted: Sequence[Operand], check: bool) -> tuple[Element, Leaves]:
        read, _ = _reader(b, sizes, element, wanted, check)
        return read, [(leaf, False) for leaf in leaves]

    return Lazy(b, dtype, len(sizes), lambda: list(sizes), fit, plain)


def arrayish(x: Any) -> bool:
    return isinstance(x, Lazy) or is_array(x)


def dtype_of_any(x: Any) -> np.dtype[Any]:
    return x.dtype if isinstance(x, Lazy) else dtype_of(x)


def lazy(b: Builder, x: Any) -> Lazy:
    """An array, or a scalar, as an expression."""
    if isinstance(x, Lazy):
        return x
    if not is_array(x):
        return Lazy(b, dtype_of(x), 0, list, lambda sizes, check: ((lambda at: x), []), True)
    sizes = b.shape(x)

    def fit(wanted: Sequence[Operand], check: bool) -> tuple[Element, Leaves]:
        read, exact = _reader(b, sizes, lambda at: b.load(x, at), wanted, check)
        return read, [(x, exact)]

    return Lazy(b, dtype_of(x), len(sizes), lambda: list(sizes), fit, True)


def array_of(b: Builder, x: Any, ndim: int | None = None) -> Lazy:
    """An argument that must be an array (of a rank)."""
    if not arrayish(x) or ndim not in (None, x.type.ndim):
        raise NotNumeric(x, "an array" if ndim is None else ["", "a vector", "a matrix"][ndim])
    return lazy(b, x)


def elementwise(b: Builder, function: Callable[..., Operand], dtype: Any, operands: Sequence[Any]) -> Lazy:
    """`function` of the elements of operands that broadcast against each other."""
    rank = max(x.type.ndim for x in operands if arrayish(x))

    def part(x: Any) -> Lazy:
        found = lazy(b, x)
        again = not found.plain and found.type.ndim < rank  # each element would be computed many times
        return lazy(b, materialise(b, found)) if again else found

    parts, node = [part(x) for x in operands], b.node

    def shape() -> list[Operand]:
        every = [p.sizes for p in parts]
        with b.at(node):
            return [_broadcast(b, [sizes[k - rank] for sizes in every if len(sizes) >= rank - k]) for k in range(rank)]

    def fit(wanted: Sequence[Operand], check: bool) -> tuple[Element, Leaves]:
        fitted = [p.fit(wanted, check) for p in parts]
        reads = [read for read, _ in fitted]
        return lambda at: function(*[read(at) for read in reads]), [leaf for _, leaves in fitted for leaf in leaves]

    return Lazy(b, dtype, rank, shape, fit)


def _broadcast(b: Builder, sizes: list[Operand]) -> Operand:
    """The common size of an axis; a program that does not know sizes checks them when it runs."""
    size = sizes[0]
    for other in sizes[1:]:
        if same(size, other) or (isinstance(other, Const) and other.value == 1):
            continue
        if isinstance(size, Const) and size.value == 1:
            size = other
        elif isinstance(size, Const) and isinstance(other, Const):
            b.fail("Shapes that do not broadcast", got={"sizes": f"{size.value} and {other.value}"}, kind=ShapeError)
        else:
            one = const(1)
            odd = b.all(b.scalar("ne", size, other), b.scalar("ne", size, one), b.scalar("ne", other, one))
            b.when(odd, lambda: b.emit("raise", (), text="raise ValueError('arrays whose shapes do not broadcast')"))
            size = b.scalar("select", b.scalar("ne", size, one), size, other, dtype=np.int64)
    return size


def _reader(b: Builder, mine: Sequence[Operand], element: Element, sizes: Sequence[Operand], check: bool) -> tuple[Element, bool]:
    """How to read an array of the shape `mine` that is broadcast to `sizes`, and whether it is read at the very index asked for."""
    skipped = len(sizes) - len(mine)
    if skipped < 0:
        b.fail(f"An array of rank {len(mine)} does not fit into one of rank {len(sizes)}", kind=ShapeError)
    flags: list[Operand | None] = []
    for own, size in zip(mine, sizes[skipped:], strict=True):
        if check:
            _check_fits(b, own, size)
        flags.append(None if same(own, size) else b.scalar("ne", own, const(1)))

    def read(at: Sequence[Operand]) -> Operand:
        inner = []
        for index, flag in zip(at[skipped:], flags, strict=True):
            inner.append(index if flag is None else b.scalar("select", flag, index, const(0), dtype=np.int64))
        return element(inner)

    return read, skipped == 0 and all(flag is None for flag in flags)


def _check_fits(b: Builder, mine: Operand, size: Operand) -> None:
    if same(mine, size) or (isinstance(mine, Const) and mine.value == 1):
        return
    if isinstance(mine, Const) and isinstance(size, Const):
        b.fail("The value does not fit into its target", got={"sizes": f"{mine.value} into {size.value}"}, kind=ShapeError)
    odd = b.all(b.scalar("ne", mine, size), b.scalar("ne", mine, const(1)))
    b.when(odd, lambda: b.emit("raise", (), text="raise ValueError('a value whose shape does not fit its target')"))


def materialise(b: Builder, x: Any, name: str = "t") -> Any:
    """An array in memory; what is not an expression is left alone."""
    if not isinstance(x, Lazy):
        return x
    sizes = x.sizes
    out = b.alloc(sizes, x.dtype, name=name)
    _fill(b, out, x.element)
    return out


def _fill(b: Builder, target: Value, element: Element) -> None:
    def body(at: list[Operand], _: list[Operand]) -> list[Operand]:
        b.store(target, at, element(at))
        return []

    b.nest(b.shape(target), body)


def store_into(b: Builder, target: Value, x: Any) -> None:
    """`target[...] = x`, with broadcasting; what overlaps the target is copied first."""
    sizes = b.shape(target)
    element, leaves = lazy(b, x).fit(sizes, True)
    if any(b.may_alias(leaf, target) and not (exact and leaf is target) for leaf, exact in leaves):
        element, _ = lazy(b, materialise(b, x) if isinstance(x, Lazy) else b.copy(x)).fit(sizes, True)
    _fill(b, target, element)


def expand(b: Builder, x: Lazy, sizes: Sequence[Operand]) -> Element:
    """How to read `x` at an index of the larger shape `sizes` that it is broadcast to."""
    return x.fit(sizes, True)[0]


def reduce(
    b: Builder,
    x: Lazy,
    step: Callable[[Sequence[Operand], list[Operand]], Sequence[Operand]],
    inits: Callable[[Sequence[Operand]], Sequence[Operand]],
    axis: int | None = None,
) -> list[Any]:
    """Accumulate over all axes, to scalars; or over one axis, to arrays of the rest.

    `step(index, accumulators)` gives the next accumulators; `inits(first index)` the first ones.
    """
    sizes = x.sizes
    if axis is None:
        return list(b.nest(sizes, step, inits([const(0)] * len(sizes))))
    rest = [size for k, size in enumerate(sizes) if k != axis]
    outs: list[Value] = []

    def each(at: list[Operand], _: list[Operand]) -> list[Operand]:
        def body(i: Value, carried: list[Operand]) -> Sequence[Operand]:
            return step([*at[:axis], i, *at[axis:]], carried)

        found = b.loop(sizes[axis], body, inits([*at[:axis], const(0), *at[axis:]]))
        for out, value in zip(outs, found, strict=True):
            b.store(out, at, value)
        return []

    with b.inside(Block()):  # only to learn the types
        dtypes = [dtype_of(v) for v in inits([const(0)] * len(sizes))]
    outs += [b.alloc(rest, dtype) for dtype in dtypes]
    b.nest(rest, each)
    return list(outs)


def select_if(b: Builder, condition: Operand, then: Callable[[], Operand], orelse: Callable[[], Operand], dtype: Any) -> Operand:
    """One of two scalars; only the chosen one is computed."""
    if isinstance(condition, Const):
        return b.cast(then() if condition.value else orelse(), dtype)
    blocks, values = [], []
    for side in (then, orelse):
        with b.inside(Block()) as block:
            values.append(b.cast(side(), dtype))
        blocks.append(block)
    out = b.value(values[0].type)
    b.add(If(condition, blocks[0], blocks[1], [values[0]], [values[1]], [out], b.line))
    return out
