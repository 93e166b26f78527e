"""Index arrays and masks: elements that are picked one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.loops.arrays import Element, Lazy, arrayish, dtype_of_any, lazy, made, materialise
from fnad.loops.builder import Builder, const, dtype_of, is_scalar
from fnad.loops.ir import Operand, Value


@dataclass(frozen=True)
class Slice:
    """`start:stop:step`; None where the user left it out."""

    start: Operand | None
    stop: Operand | None
    step: Operand | None

    @property
    def bounds(self) -> tuple[Operand | None, ...]:
        return self.start, self.stop, self.step


FULL = Slice(None, None, None)


def view_of(b: Builder, array: Value, items: Sequence[Any]) -> Value:
    """The view of integers and slices, one for each axis."""
    axes, bounds = "", list[Operand | None]()
    for i in items:
        axes += "s" if isinstance(i, Slice) else "i"
        bounds += i.bounds if isinstance(i, Slice) else [i]
    return array if all(i == FULL for i in items) else b.view(array, axes, bounds)


def _one_array(b: Builder, items: list[Any]) -> int:
    places = [k for k, i in enumerate(items) if arrayish(i)]
    used = [k for k, i in enumerate(items) if not isinstance(i, Slice)]
    if len(places) > 1 or None in items or used != list(range(used[0], used[-1] + 1)):
        b.fail("An index with several arrays, or with an array apart from an integer or a new axis", fix="write a loop over the elements")
    return places[0]


def _indexed(b: Builder, array: Value, items: list[Any]) -> tuple[Value, int, Lazy]:
    """The array without its integer indices, the axis that an integer array picks from, and that array."""
    place = _one_array(b, items)
    view = view_of(b, array, [FULL if k == place else i for k, i in enumerate(items)])
    axis = sum(1 for i in items[:place] if isinstance(i, Slice))
    return view, axis, lazy(b, materialise(b, items[place]))


def _mask(array: Value, items: list[Any]) -> Lazy | Value | None:
    """The mask, where it is the whole index and has the array's rank."""
    mask = items[0]
    whole = len(items) == 1 and arrayish(mask) and dtype_of_any(mask).kind == "b" and mask.type.ndim == array.type.ndim  # type: ignore[union-attr]
    return mask if whole else None


def _fitted(b: Builder, x: Any, sizes: Sequence[Operand], target: Value) -> Element:
    """An expression, read at the index at which `target` is written; a copy, if the writes would change what is still to be read."""
    element, leaves = lazy(b, x).fit(sizes, True)
    if any(b.may_alias(leaf, target) and not (exact and leaf is target) for leaf, exact in leaves):
        element, _ = lazy(b, materialise(b, x) if isinstance(x, Lazy) else b.copy(x)).fit(sizes, True)
    return element


def _number_of(b: Builder, mask: Lazy) -> Operand:
    sizes = mask.sizes

    def step(at: list[Operand], carried: list[Operand]) -> list[Operand]:
        return [b.scalar("add", carried[0], b.cast(mask.element(at), np.int64), dtype=np.int64)]

    return b.nest(sizes, step, [const(0)])[0]


def gather(b: Builder, array: Value, items: list[Any]) -> Any:
    """`array[items]`, where an item is an array of integers or a mask."""
    mask = _mask(array, items)
    if mask is not None:
        return _compress(b, array, lazy(b, materialise(b, mask)))
    place = _one_array(b, items)
    if dtype_of_any(items[place]).kind == "b":
        items = [*items[:place], _nonzero(b, items[place]), *items[place + 1 :]]
    view, axis, chosen = _indexed(b, array, items)
    rank, sizes = len(chosen.sizes), b.shape(view)

    def element(at: Sequence[Operand]) -> Operand:
        return b.load(view, [*at[:axis], chosen.element(at[axis : axis + rank]), *at[axis + rank :]])

    leaves = [view, *(leaf for leaf, _ in chosen.leaves)]
    return made(b, dtype_of(view), [*sizes[:axis], *chosen.sizes, *sizes[axis + 1 :]], element, leaves, plain=True)


def _compress(b: Builder, array: Value, mask: Lazy) -> Value:
    """The elements where the mask is true."""
    read, _ = mask.fit(b.shape(array), True)
    out = b.alloc([_number_of(b, mask)], dtype_of(array))

    def step(at: list[Operand], carried: list[Operand]) -> list[Operand]:
        here = read(at)
        b.when(here, lambda: b.store(out, carried, b.load(array, at)))
        return [b.scalar("add", carried[0], b.cast(here, np.int64), dtype=np.int64)]

    b.nest(b.shape(array), step, [const(0)])
    return out


def _nonzero(b: Builder, mask: Any) -> Value:
    """Where a mask of rank 1 is true."""
    mask = lazy(b, materialise(b, mask))
    if mask.type.ndim != 1:
        b.fail("A mask of several axes beside other indices", fix="loop over the elements and test each")
    out = b.alloc([_number_of(b, mask)], np.int64, name="where")

    def fill(i: Value, carried: list[Operand]) -> list[Operand]:
        here = mask.element([i])
        b.when(here, lambda: b.store(out, carried, i))
        return [b.scalar("add", carried[0], b.cast(here, np.int64), dtype=np.int64)]

    b.loop(mask.sizes[0], fill, [const(0)])
    return out


def scatter(b: Builder, array: Value, items: list[Any], value: Any) -> None:
    """`array[items] = value`, where an item is an array of integers or a mask."""
    mask = _mask(array, items)
    if mask is not None:
        _put(b, array, mask, value)
        return
    place = _one_array(b, items)
    if dtype_of_any(items[place]).kind == "b":
        items = [*items[:place], _nonzero(b, items[place]), *items[place + 1 :]]
    view, axis, chosen = _indexed(b, array, items)
    sizes, rank = b.shape(view), len(chosen.sizes)
    wanted = [*sizes[:axis], *chosen.sizes, *sizes[axis + 1 :]]
    if any(b.may_alias(leaf, view) for leaf, _ in chosen.leaves):
        chosen = lazy(b, b.copy(chosen.leaves[0][0]))
    given = lazy(b, value)
    if any(b.may_alias(leaf, view) for leaf, _ in given.fit(wanted, False)[1]):
        given = lazy(b, materialise(b, given) if isinstance(value, Lazy) else b.copy(value))
    read_value, _ = given.fit(wanted, True)

    def body(at: list[Operand], _: list[Operand]) -> list[Operand]:
        target = [*at[:axis], chosen.element(at[axis : axis + rank]), *at[axis + rank :]]
        b.store(view, target, read_value(at))
        return []

    b.nest(wanted, body)


def _put(b: Builder, array: Value, mask: Any, value: Any) -> None:
    """`array[mask] = value`."""
    sizes = b.shape(array)
    test = _fitted(b, mask, sizes, array)
    if is_scalar(value):
        _where(b, sizes, test, lambda at: b.store(array, at, value))
        return
    mask = lazy(b, materialise(b, mask))
    wanted = [_number_of(b, mask)]
    given = _fitted(b, value, wanted, array)
    read = mask.fit(sizes, True)[0]

    def step(at: list[Operand], carried: list[Operand]) -> list[Operand]:
        here = read(at)
        b.when(here, lambda: b.store(array, at, given(carried)))
        return [b.scalar("add", carried[0], b.cast(here, np.int64), dtype=np.int64)]

    b.nest(sizes, step, [const(0)])


def change_masked(b: Builder, array: Value, index: Any, change: Callable[[Operand], Operand]) -> bool:
    """`array[index] = change(array[index])` of a number, where the index is a mask; whether it is."""
    items = [index]
    mask = _mask(array, items) if arrayish(index) else None
    if mask is None:
        return False
    sizes = b.shape(array)
    test = _fitted(b, mask, sizes, array)
    _where(b, sizes, test, lambda at: b.store(array, at, change(b.load(array, at))))
    return True


def _where(b: Builder, sizes: Sequence[Operand], test: Element, then: Callable[[list[Operand]], None]) -> None:
    """`then(index)` at every index where the test is true."""

    def step(at: list[Operand], _: list[Operand]) -> list[Operand]:
        b.when(test(at), lambda: then(at))
        return []

    b.nest(sizes, step)
