"""Subscripts: elements, slices, new axes, index arrays and masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad.errors import DTypeError, ShapeError
from fnad.loops.arrays import Lazy, arrayish, expand, lazy, made, materialise, store_into
from fnad.loops.builder import Builder, const, dtype_of, is_scalar, is_tuple
from fnad.loops.ir import Operand, Value
from fnad.loops.source import Static


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


def _items(b: Builder, rank: int, index: Any) -> list[Any]:
    """The index as one item per axis of the array, and None for a new axis."""
    items = list(index) if is_tuple(index) else [index]
    items = [None if isinstance(i, Static) and i.object is None else i for i in items]
    for i in items:
        if is_scalar(i) and dtype_of(i).kind not in "iu":
            b.fail(f"An index must be an integer, this one is {dtype_of(i)}", fix="convert it with int(...)", kind=DTypeError)
    used = sum(1 for i in items if i is not None and not _is_dots(i))
    masks = sum(i.type.ndim - 1 for i in items if arrayish(i) and dtype_of_any(i).kind == "b")
    missing = rank - used - masks
    if missing < 0:
        b.fail(f"{used + masks} indices for an array of rank {rank}", kind=ShapeError)
    dots = [k for k, i in enumerate(items) if _is_dots(i)]
    if len(dots) > 1:
        b.fail("An index can have one `...` only")
    at = dots[0] if dots else len(items)
    return items[:at] + [FULL] * missing + items[at + len(dots) :]


def _is_dots(i: Any) -> bool:
    return isinstance(i, Static) and i.object is Ellipsis


def dtype_of_any(x: Any) -> np.dtype[Any]:
    return x.dtype if isinstance(x, Lazy) else dtype_of(x)


def _view(b: Builder, array: Value, items: Sequence[Any]) -> Value:
    axes, bounds = "", list[Operand | None]()
    for i in items:
        axes += "s" if isinstance(i, Slice) else "i"
        bounds += i.bounds if isinstance(i, Slice) else [i]
    return array if all(i == FULL for i in items) else b.view(array, axes, bounds)


def read(b: Builder, x: Any, index: Any) -> Any:
    """`x[index]` of an array: an element, a view or an expression."""
    array: Value = materialise(b, x)
    items = _items(b, array.type.ndim, index)  # type: ignore[union-attr]
    if any(arrayish(i) for i in items):
        return _gather(b, array, items)
    given = [i for i in items if i is not None]
    for i in given:
        _check(b, i)
    if not any(isinstance(i, Slice) or i is None for i in items):
        return b.load(array, given)
    view = _view(b, array, given)
    if len(given) == len(items):
        return view
    return _with_new_axes(b, view, [i for i in items if i is None or isinstance(i, Slice)])


def _check(b: Builder, item: Any) -> None:
    if not isinstance(item, Slice) and not is_scalar(item):
        b.fail("An index must be an integer, a slice, None, `...` or an array", got={"index": type(item).__name__})


def _with_new_axes(b: Builder, view: Any, items: list[Any]) -> Lazy:
    inner = lazy(b, view)
    kept = [k for k, i in enumerate(items) if i is not None]
    sizes: list[Operand] = [const(1)] * len(items)
    for k, size in zip(kept, inner.sizes, strict=True):
        sizes[k] = size
    return made(b, inner.dtype, sizes, lambda at: inner.element([at[k] for k in kept]), [leaf for leaf, _ in inner.leaves], plain=True)


def _one_array(b: Builder, items: list[Any]) -> int:
    places = [k for k, i in enumerate(items) if arrayish(i)]
    if len(places) > 1 or None in items:
        b.fail("An index with several arrays, or with an array and a new axis", fix="write a loop over the elements")
    return places[0]


def _indexed(b: Builder, array: Value, items: list[Any]) -> tuple[Value, int, Lazy]:
    """The array without its integer indices, the axis that an integer array picks from, and that array."""
    place = _one_array(b, items)
    view = _view(b, array, [FULL if k == place else i for k, i in enumerate(items)])
    axis = sum(1 for i in items[:place] if isinstance(i, Slice))
    return view, axis, lazy(b, materialise(b, items[place]))


def _gather(b: Builder, array: Value, items: list[Any]) -> Any:
    place = _one_array(b, items)
    if dtype_of_any(items[place]).kind == "b":
        items = [*items[:place], _nonzero(b, items[place]), *items[place + 1 :]]
    view, axis, chosen = _indexed(b, array, items)
    rank, sizes = len(chosen.sizes), b.shape(view)

    def element(at: Sequence[Operand]) -> Operand:
        return b.load(view, [*at[:axis], chosen.element(at[axis : axis + rank]), *at[axis + rank :]])

    leaves = [view, *(leaf for leaf, _ in chosen.leaves)]
    return made(b, dtype_of(view), [*sizes[:axis], *chosen.sizes, *sizes[axis + 1 :]], element, leaves, plain=True)


def _nonzero(b: Builder, mask: Any) -> Value:
    """Where a mask of rank 1 is true."""
    mask = lazy(b, materialise(b, mask))
    if len(mask.sizes) != 1:
        b.fail("A mask of more than one axis", fix="loop over the elements and test each")

    def count(i: Value, carried: list[Operand]) -> list[Operand]:
        return [b.scalar("add", carried[0], b.cast(mask.element([i]), np.int64), dtype=np.int64)]

    (number,) = b.loop(mask.sizes[0], count, [const(0)])
    out = b.alloc([number], np.int64, name="where")

    def fill(i: Value, carried: list[Operand]) -> list[Operand]:
        here = mask.element([i])
        b.when(here, lambda: b.store(out, carried, i))
        return [b.scalar("add", carried[0], b.cast(here, np.int64), dtype=np.int64)]

    b.loop(mask.sizes[0], fill, [const(0)])
    return out


def write(b: Builder, array: Value, index: Any, value: Any) -> None:
    """`array[index] = value`."""
    items = _items(b, array.type.ndim, index)  # type: ignore[union-attr]
    if any(arrayish(i) for i in items):
        _scatter(b, array, items, value)
        return
    if None in items:
        b.fail("A new axis in the target of an assignment", fix="leave it out: values broadcast by themselves")
    for i in items:
        _check(b, i)
    if any(isinstance(i, Slice) for i in items):
        store_into(b, _view(b, array, items), value)
    elif is_scalar(value):
        b.store(array, items, value)
    else:
        b.fail("An array assigned to one element", fix="assign to a slice", kind=ShapeError)


def _scatter(b: Builder, array: Value, items: list[Any], value: Any) -> None:
    place = _one_array(b, items)
    if dtype_of_any(items[place]).kind == "b":
        items = [*items[:place], _nonzero(b, items[place]), *items[place + 1 :]]
    view, axis, chosen = _indexed(b, array, items)
    sizes, rank = b.shape(view), len(chosen.sizes)
    wanted = [*sizes[:axis], *chosen.sizes, *sizes[axis + 1 :]]
    given = lazy(b, value)
    if any(b.may_alias(leaf, view) for leaf, _ in given.fit(wanted, True)[1]):
        given = lazy(b, materialise(b, given) if isinstance(value, Lazy) else b.copy(value))
    if any(b.may_alias(leaf, view) for leaf, _ in chosen.leaves):
        chosen = lazy(b, b.copy(chosen.leaves[0][0]))
    read_value = expand(b, given, wanted)

    def body(at: list[Operand], _: list[Operand]) -> list[Operand]:
        target = [*at[:axis], chosen.element(at[axis : axis + rank]), *at[axis + rank :]]
        b.store(view, target, read_value(at))
        return []

    b.nest(wanted, body)
