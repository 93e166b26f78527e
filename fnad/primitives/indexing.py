"""Selecting entries, and the transposes of that: putting entries into zeros or into another array.

Static: the index is a parameter, a tuple with one entry per axis: an int, a normalised slice `(start, stop, step)`, or
None (a new axis); axes that are left out are taken whole. Dynamic: integer arrays, which may be traced, index
consecutive axes, the first of which is `axis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from fnad.core import lowering
from fnad.core.aval import Aval, all_weak, aval_of, shape_of
from fnad.core.cotangent import Scattered
from fnad.core.lowering import Place, Scatter, View
from fnad.core.tracer import Tracer
from fnad.errors import ShapeError
from fnad.kernels import scatter
from fnad.primitives._families import Linear, Primitive, Pullback, align, broadcast_shapes
from fnad.typing import Shape

Range: TypeAlias = tuple[int, int | None, int]
Static: TypeAlias = tuple[int | Range | None, ...]


@lru_cache(4096)
def native(index: Static) -> tuple[Any, ...]:
    """A static index as NumPy takes it."""
    return tuple(slice(*e) if isinstance(e, tuple) else e for e in index)


def count(entry: Range) -> int:
    """How many entries a normalised slice takes."""
    start, stop, step = entry
    return len(range(start, -1 if stop is None else stop, step))


def selected_shape(shape: Shape, index: Static) -> Shape:
    out: list[int] = []
    axis = 0
    for e in index:
        if e is None:
            out.append(1)
            continue
        if isinstance(e, tuple):
            out.append(count(e))
        axis += 1
    return (*out, *shape[axis:])


def _zeros(shape: Shape, like: Any) -> Any:
    return np.broadcast_to(np.zeros((), aval_of(like).dtype), shape)


def _whole(n: int) -> Range:
    return 0, n, 1


def _source(where: Sequence[Any], number: Any, index: Static) -> list[Any]:
    """Which entry of an array an entry of what a static index selects is."""
    rest = iter(where)
    out: list[Any] = []
    for e in index:
        if e is None:
            next(rest)
        elif isinstance(e, tuple):
            start, _, step = e
            k = next(rest)
            k = k if step == 1 else k * number(step)
            out.append(k if start == 0 else k + number(start))
        else:
            out.append(number(e))
    return [*out, *rest]


class StaticIndex(Linear):
    """The entries at a static index."""

    def infer(self, x: Aval, *, index: Static) -> Aval:
        shape = selected_shape(x.shape, index)
        return Aval(shape, x.dtype, x.weak and not shape)

    def impl(self, x: Any, *, index: Static) -> Any:
        if len(index) == 1 and index[0].__class__ is int:
            return x[index[0]]
        return (x if isinstance(x, np.ndarray) else np.asarray(x))[native(index)]

    def vjp(self, out: Any, x: Any, *, index: Static) -> Sequence[Pullback]:
        shape = shape_of(x)
        return (lambda g: _spread_cotangent(g, shape, index),)

    def lower(self, x: Aval, *, index: Static) -> View:
        return View(lambda where, number: _source(where, number, index))

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, index: Static) -> Any:
        return self(args[0], index=(_whole(shape_of(args[0])[0]), *index))


def _spread_cotangent(g: Any, shape: Shape, index: Static) -> Any:
    if isinstance(g, Tracer):
        return static_spread(g, shape=shape, index=index)
    where = native(index)

    def add_into(buffer: np.ndarray[Any, Any]) -> None:
        view = buffer[where]
        if isinstance(view, np.ndarray):
            view += g
        else:
            buffer[where] = view + g

    return Scattered(shape, aval_of(g).dtype, add_into)


class StaticSpread(Linear):
    """Zeros of the given shape, but for the entries at a static index."""

    def infer(self, v: Aval, *, shape: Shape, index: Static) -> Aval:
        _check_values(self, v, selected_shape(shape, index))
        return Aval(shape, v.dtype, v.weak and not shape)

    def impl(self, v: Any, *, shape: Shape, index: Static) -> Any:
        out = np.zeros(shape, aval_of(v).dtype)
        out[native(index)] = v
        return out

    def vjp(self, out: Any, v: Any, *, shape: Shape, index: Static) -> Sequence[Pullback]:
        return (lambda g: static_index(g, index=index),)

    def lower(self, v: Aval, *, shape: Shape, index: Static) -> Place:
        return Place(((0, lambda where, number: _source(where, number, index)),))

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, shape: Shape, index: Static) -> Any:
        n = shape_of(args[0])[0]
        return self(args[0], shape=(n, *shape), index=(_whole(n), *index))


class StaticSet(Primitive):
    """A copy of x with other values at a static index."""

    reads = frozenset()
    reads_output = False

    def infer(self, x: Aval, v: Aval, *, index: Static) -> Aval:
        _check_values(self, v, selected_shape(x.shape, index))
        return Aval(x.shape, x.dtype, all_weak(x, v) and not x.shape)

    def impl(self, x: Any, v: Any, *, index: Static) -> Any:
        out = np.array(x, order="C")
        out[native(index)] = v
        return out if out.ndim else out[()]

    def vjp(self, out: Any, x: Any, v: Any, *, index: Static) -> Sequence[Pullback]:
        shape = shape_of(v)
        return (lambda g: self(g, _zeros(shape, g), index=index), lambda g: static_index(g, index=index))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, index: Static) -> Any:
        (x, v), (tx, tv) = args, tangents
        if tx is None:
            return None if tv is None else static_spread(tv, shape=shape_of(x), index=index)
        return self(tx, _zeros(shape_of(v), tx) if tv is None else tv, index=index)

    def lower(self, x: Aval, v: Aval, *, index: Static) -> Place | None:
        return Place(((1, lambda where, number: _source(where, number, index)),), base=0) if x.dtype == v.dtype else None

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, index: Static) -> Any:
        n = _batch_size(args, batched)
        return self(*_all_batched(args, batched, n), index=(_whole(n), *index))


class Gather(Linear):
    """Entries of consecutive axes at index arrays: (*lead, *indexed, *rest) -> (*lead, *many, *rest)."""

    def infer(self, x: Aval, *indices: Aval, axis: int) -> Aval:
        many = broadcast_shapes(self.name, *indices)
        return Aval((*x.shape[:axis], *many, *x.shape[axis + len(indices) :]), x.dtype)

    def impl(self, x: Any, *indices: Any, axis: int) -> Any:
        x = np.asarray(x)
        if len(indices) == 1 and x.size:  # of empty arrays take checks no bounds
            return x.take(indices[0], axis)
        return x[(slice(None),) * axis + indices]

    def vjp(self, out: Any, x: Any, *indices: Any, axis: int) -> Sequence[Pullback | None]:
        shape = shape_of(x)
        return (lambda g: _scatter_cotangent(g, indices, axis, shape), *(None,) * len(indices))

    def lower(self, x: Aval, *indices: Aval, axis: int) -> lowering.Gather:
        return lowering.Gather(axis)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int) -> Any:
        if not any(batched[1:]):
            return self(*args, axis=axis + 1)
        if batched[0]:
            (x,), indices = _pair_examples(args, batched, 1, axis)
        else:
            x, indices = args[0], align(args[1:], batched[1:])
        return np.moveaxis(self(x, *indices, axis=axis), axis, 0)


def _scatter_cotangent(g: Any, indices: tuple[Any, ...], axis: int, shape: Shape) -> Any:
    if isinstance(g, Tracer) or any(isinstance(i, Tracer) for i in indices):
        return scatter_add(g, *indices, axis=axis, shape=shape)
    return Scattered(shape, aval_of(g).dtype, lambda buffer: scatter.add_at(buffer, indices, axis, g))


class ScatterAdd(Linear):
    """Zeros of the given shape plus values at index arrays: the transpose of `gather`. Values at repeated positions add up."""

    def infer(self, v: Aval, *indices: Aval, axis: int, shape: Shape) -> Aval:
        _check_values(self, v, _gathered_shape(shape, [i.shape for i in indices], axis))
        return Aval(shape, v.dtype)

    def impl(self, v: Any, *indices: Any, axis: int, shape: Shape) -> Any:
        out = np.zeros(shape, aval_of(v).dtype)
        scatter.add_at(out, indices, axis, v)
        return out

    def vjp(self, out: Any, v: Any, *indices: Any, axis: int, shape: Shape) -> Sequence[Pullback | None]:
        return (lambda g: gather(g, *indices, axis=axis), *(None,) * len(indices))

    def lower(self, v: Aval, *indices: Aval, axis: int, shape: Shape) -> Scatter:
        return Scatter(axis, False, "add")

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, shape: Shape) -> Any:
        n = _batch_size(args, batched)
        if not any(batched[1:]):
            return self(*args, axis=axis + 1, shape=(n, *shape))
        (v,), indices = _pair_examples(args, batched, 1, axis)
        return np.moveaxis(self(v, *indices, axis=axis, shape=(*shape[:axis], n, *shape[axis:])), axis, 0)


class Update(Primitive):
    """A copy of x with entries at index arrays replaced by a function of themselves and of values (*lead, *many, *rest)."""

    def infer(self, x: Aval, v: Aval, *indices: Aval, axis: int, **params: Any) -> Aval:
        _check_values(self, v, _gathered_shape(x.shape, [i.shape for i in indices], axis))
        return Aval(x.shape, x.dtype)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, **params: Any) -> Any:
        n = _batch_size(args, batched)
        if not any(batched[2:]):
            x, v = _all_batched(args[:2], batched[:2], n)
            return self(x, v, *args[2:], axis=axis + 1, **params)
        (x, v), indices = _pair_examples(args, batched, 2, axis)
        return np.moveaxis(self(x, v, *indices, axis=axis, **params), axis, 0)


class AddAt(Update):
    """x plus values at index arrays; values at repeated positions add up."""

    reads_output = False

    def keeps(self, asked: Sequence[bool], count: int) -> tuple[tuple[int, ...], bool]:
        return tuple(range(2, count)), False

    def impl(self, x: Any, v: Any, *indices: Any, axis: int) -> Any:
        out = np.array(x, order="C")
        scatter.add_at(out, indices, axis, v)
        return out

    def lower(self, x: Aval, v: Aval, *indices: Aval, axis: int) -> Scatter | None:
        return Scatter(axis, True, "add") if x.dtype == v.dtype else None

    def vjp(self, out: Any, x: Any, v: Any, *indices: Any, axis: int) -> Sequence[Pullback | None]:
        return (lambda g: g, lambda g: gather(g, *indices, axis=axis), *(None,) * len(indices))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: int) -> Any:
        (x, _, *indices), (tx, tv, *_) = args, tangents
        if tv is None:
            return tx
        return scatter_add(tv, *indices, axis=axis, shape=shape_of(x)) if tx is None else self(tx, tv, *indices, axis=axis)


class SetAt(Update):
    """x with values at index arrays; at repeated positions the last one (in C order) stays."""

    reads_output = False

    def keeps(self, asked: Sequence[bool], count: int) -> tuple[tuple[int, ...], bool]:
        return tuple(range(2, count)), False

    def impl(self, x: Any, v: Any, *indices: Any, axis: int) -> Any:
        out = np.array(x, order="C")
        scatter.set_at(out, indices, axis, v)
        return out

    def lower(self, x: Aval, v: Aval, *indices: Aval, axis: int) -> Scatter | None:
        return Scatter(axis, True, None) if x.dtype == v.dtype else None

    def vjp(self, out: Any, x: Any, v: Any, *indices: Any, axis: int) -> Sequence[Pullback | None]:
        shape_x, shape_v = shape_of(x), shape_of(v)

        def pull_values(g: Any) -> Any:
            if all(aval_of(i).size == 1 for i in indices):
                return gather(g, *indices, axis=axis)
            last = axis + len(indices)
            stays = _stays(indices, shape_x[axis:last])
            stays = np.reshape(stays, (*shape_of(stays), *(1,) * len(shape_x[last:])))
            return np.where(stays, gather(g, *indices, axis=axis), _zeros((), g))

        return (lambda g: self(g, _zeros(shape_v, g), *indices, axis=axis), pull_values, *(None,) * len(indices))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: int) -> Any:
        (x, v, *indices), (tx, tv, *_) = args, tangents
        if tx is None and tv is None:
            return None
        tx = _zeros(shape_of(x), tv) if tx is None else tx
        return self(tx, _zeros(shape_of(v), tx) if tv is None else tv, *indices, axis=axis)


def _stays(indices: Sequence[Any], sizes: Shape) -> Any:
    """For each entry of the index arrays (broadcast), whether no later one names the same position."""
    many = np.broadcast_shapes(*map(shape_of, indices))
    order = np.reshape(np.arange(np.prod(many, dtype=int)), many)
    last = set_at(np.zeros(sizes, order.dtype), order, *indices, axis=0)
    return gather(last, *indices, axis=0) == order


class ExtremeAt(Update):
    """x where entries at index arrays become the largest (smallest) of themselves and all their values; ties share evenly."""

    def impl(self, x: Any, v: Any, *indices: Any, axis: int, larger: bool) -> Any:
        out = np.array(x, order="C")
        scatter.extreme_at(out, indices, axis, v, larger)
        return out

    def vjp(self, out: Any, x: Any, v: Any, *indices: Any, axis: int, larger: bool) -> Sequence[Pullback | None]:
        def pull_x(g: Any) -> Any:
            won, _, winners = _winners(out, x, v, indices, axis)
            return np.where(won, g / winners, _zeros((), g))

        def pull_values(g: Any) -> Any:
            _, won, winners = _winners(out, x, v, indices, axis)
            return np.where(won, gather(g / winners, *indices, axis=axis), _zeros((), g))

        return (pull_x, pull_values, *(None,) * len(indices))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: int, larger: bool) -> Any:
        (x, v, *indices), (tx, tv, *_) = args, tangents
        if tx is None and tv is None:
            return None
        won_x, won_v, winners = _winners(out, x, v, indices, axis)
        zero = _zeros((), out)
        total = _zeros(shape_of(x), out) if tx is None else np.where(won_x, tx, zero)
        if tv is not None:
            total = total + scatter_add(np.where(won_v, tv, zero), *indices, axis=axis, shape=shape_of(x))
        return total / winners


def _winners(out: Any, x: Any, v: Any, indices: Sequence[Any], axis: int) -> tuple[Any, Any, Any]:
    """Where x attains the extreme, where values do, and how many do at each position (nan counts as the extreme)."""
    won_x = (x == out) | (x != x)
    won_v = (v == gather(out, *indices, axis=axis)) | (v != v)
    one, zero = np.ones((), aval_of(out).dtype), _zeros((), out)
    values = scatter_add(np.where(won_v, one, zero), *indices, axis=axis, shape=shape_of(x))
    return won_x, won_v, np.where(won_x, one, zero) + values


def _gathered_shape(shape: Shape, indices: Sequence[Shape], axis: int) -> Shape:
    return (*shape[:axis], *np.broadcast_shapes(*indices), *shape[axis + len(indices) :])


def _check_values(primitive: Primitive, v: Aval, shape: Shape) -> None:
    if v.shape != shape:
        raise ShapeError(f"{primitive.name}: the values must have the shape of what is selected", got={"values": v, "selected": shape})


def _batch_size(args: Sequence[Any], batched: Sequence[bool]) -> int:
    return next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)


def _all_batched(args: Sequence[Any], batched: Sequence[bool], n: int) -> list[Any]:
    return [a if b else np.broadcast_to(a, (n, *shape_of(a))) for a, b in zip(args, batched, strict=True)]


def _pair_examples(args: Sequence[Any], batched: Sequence[bool], arrays: int, axis: int) -> tuple[list[Any], list[Any]]:
    """Arguments of which index arrays are batched: the batch axis becomes one more indexed axis, indexed by the example's number.

    The first `arrays` of the arguments are not index arrays.
    """
    n = _batch_size(args, batched)
    moved = [np.moveaxis(a, 0, axis) for a in _all_batched(args[:arrays], batched[:arrays], n)]
    rank = max(len(shape_of(i)) - b for i, b in zip(args[arrays:], batched[arrays:], strict=True))
    example = np.reshape(np.arange(n), (n, *(1,) * rank))
    return moved, [example, *align(args[arrays:], batched[arrays:])]


class Iota(Primitive):
    """The number of each entry along one axis. Only the shape of the argument counts."""

    constant = True
    strong = True
    reads = frozenset()

    def infer(self, x: Aval, *, axis: int, dtype: np.dtype[Any]) -> Aval:
        return Aval(x.shape, dtype)

    def impl(self, x: Any, *, axis: int, dtype: np.dtype[Any]) -> Any:
        shape = shape_of(x)
        numbers = np.arange(shape[axis], dtype=dtype)
        return np.broadcast_to(np.reshape(numbers, (-1, *(1,) * (len(shape) - axis - 1))), shape)

    def lower(self, x: Aval, *, axis: int, dtype: np.dtype[Any]) -> lowering.Iota:
        return lowering.Iota(axis)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, dtype: np.dtype[Any]) -> Any:
        return self(args[0], axis=axis + 1, dtype=dtype)


iota = Iota("iota")
static_index = StaticIndex("static_index")
static_spread = StaticSpread("static_spread")
static_set = StaticSet("static_set")
gather = Gather("gather")
scatter_add = ScatterAdd("scatter_add")
add_at = AddAt("add_at")
set_at = SetAt("set_at")
extreme_at = ExtremeAt("extreme_at")
