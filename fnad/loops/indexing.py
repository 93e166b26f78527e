"""Subscripts: elements, slices, new axes, index arrays and masks."""

from __future__ import annotations

from typing import Any

from fnad.errors import DTypeError, ShapeError
from fnad.loops import picking
from fnad.loops.arrays import Lazy, arrayish, dtype_of_any, lazy, made, materialise, store_into
from fnad.loops.builder import Builder, const, dtype_of, is_scalar, is_tuple
from fnad.loops.ir import Operand, Value
from fnad.loops.picking import FULL, Slice, view_of
from fnad.loops.source import Static


def _items(b: Builder, rank: int, index: Any) -> list[Any]:
    """The index as one item per axis of the array, and None for a new axis."""
    items = list(index) if is_tuple(index) else [index]
    items = [None if isinstance(i, Static) and i.object is None else i for i in items]
    for i in items:
        if (is_scalar(i) and dtype_of(i).kind not in "iu") or (arrayish(i) and dtype_of_any(i).kind not in "biu"):
            b.fail(f"An index must be an integer, this one is {dtype_of_any(i)}", fix="convert it with int(...)", kind=DTypeError)
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


def read(b: Builder, x: Any, index: Any) -> Any:
    """`x[index]` of an array: an element, a view or an expression."""
    array: Value = materialise(b, x)
    items = _items(b, array.type.ndim, index)  # type: ignore[union-attr]
    if any(arrayish(i) for i in items):
        return picking.gather(b, array, items)
    given = [i for i in items if i is not None]
    for i in given:
        _check(b, i)
    if not any(isinstance(i, Slice) or i is None for i in items):
        return b.load(array, given)
    view = view_of(b, array, given)
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


def write(b: Builder, array: Value, index: Any, value: Any) -> None:
    """`array[index] = value`."""
    items = _items(b, array.type.ndim, index)  # type: ignore[union-attr]
    if any(arrayish(i) for i in items):
        picking.scatter(b, array, items, value)
        return
    if None in items:
        b.fail("A new axis in the target of an assignment", fix="leave it out: values broadcast by themselves")
    for i in items:
        _check(b, i)
    if any(isinstance(i, Slice) for i in items):
        store_into(b, view_of(b, array, items), value)
    elif is_scalar(value):
        b.store(array, items, value)
    else:
        b.fail("An array assigned to one element", fix="assign to a slice", kind=ShapeError)
