"""Changing shape, layout, dtype, and joining; nothing is computed."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.lowering import Place, Scalar, View
from fnad.errors import ShapeError
from fnad.primitives._families import Linear, Primitive, Pullback, unbroadcast
from fnad.typing import Shape


class Reshape(Linear):
    """The entries in C order under another shape (all sizes given)."""

    def infer(self, x: Aval, *, shape: Shape) -> Aval:
        if Aval(shape, x.dtype).size != x.size:
            raise ShapeError("reshape: the number of entries must stay the same", got={"from": x, "to shape": shape})
        return Aval(shape, x.dtype, x.weak and not shape)

    def impl(self, x: Any, *, shape: Shape) -> Any:
        return np.reshape(x, shape)

    def vjp(self, out: Any, x: Any, *, shape: Shape) -> Sequence[Pullback]:
        before = shape_of(x)
        return (lambda g: np.reshape(g, before),)

    def lower(self, x: Aval, *, shape: Shape) -> View:
        if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
            return View(None, alias=True)

        def index(where: Sequence[Any], number: Any) -> list[Any]:  # only axes of size 1 come and go
            rest = (i for i, n in zip(where, shape, strict=True) if n != 1)
            return [number(0) if n == 1 else next(rest) for n in x.shape]

        return View(index, alias=True)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, shape: Shape) -> Any:
        return self(args[0], shape=(shape_of(args[0])[0], *shape))


class Transpose(Linear):
    """Axes in the order `axes`."""

    def infer(self, x: Aval, *, axes: tuple[int, ...]) -> Aval:
        return Aval(tuple(x.shape[a] for a in axes), x.dtype, x.weak)

    def impl(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.transpose(x, axes)

    def vjp(self, out: Any, x: Any, *, axes: tuple[int, ...]) -> Sequence[Pullback]:
        return (lambda g: np.transpose(g, _inverse(axes)),)

    def lower(self, x: Aval, *, axes: tuple[int, ...]) -> View:
        back = _inverse(axes)
        return View(lambda where, number: [where[k] for k in back])

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axes: tuple[int, ...]) -> Any:
        return self(args[0], axes=(0, *(a + 1 for a in axes)))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


class BroadcastTo(Linear):
    """Repeat along axes of size 1 and new leading axes."""

    def infer(self, x: Aval, *, shape: Shape) -> Aval:
        return Aval(shape, x.dtype, x.weak and not shape)

    def impl(self, x: Any, *, shape: Shape) -> Any:
        return np.broadcast_to(x, shape)

    def vjp(self, out: Any, x: Any, *, shape: Shape) -> Sequence[Pullback]:
        before = shape_of(x)
        return (lambda g: unbroadcast(g, before),)

    def lower(self, x: Aval, *, shape: Shape) -> View:
        lead = len(shape) - x.ndim
        return View(lambda where, number: [number(0) if n == 1 else where[lead + k] for k, n in enumerate(x.shape)])

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, shape: Shape) -> Any:
        n, *rest = shape_of(args[0])
        x = np.reshape(args[0], (n, *(1,) * (len(shape) - len(rest)), *rest))
        return self(x, shape=(n, *shape))


class Cast(Linear):
    """The same values in another dtype. To an integer or boolean dtype there is no derivative; complex to real drops the imaginary part."""

    strong = True

    def infer(self, x: Aval, *, dtype: np.dtype[Any]) -> Aval:
        return Aval(x.shape, dtype)

    def impl(self, x: Any, *, dtype: np.dtype[Any]) -> Any:
        x = np.asarray(x)
        return (x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x).astype(dtype)[()]

    def vjp(self, out: Any, x: Any, *, dtype: np.dtype[Any]) -> Sequence[Pullback | None]:
        return (None if dtype.kind not in "fc" else lambda g: g,)  # the tape converts to the input's dtype

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return None if params["dtype"].kind not in "fc" or tangents[0] is None else self(tangents[0], **params)

    def lower(self, x: Aval, *, dtype: np.dtype[Any]) -> Scalar:
        return Scalar("same", (x.dtype,))

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, dtype: np.dtype[Any]) -> Any:
        return self(args[0], dtype=dtype)


class Concatenate(Primitive):
    """Arrays that differ in the size of `axis` at most, one after the other along it."""

    reads = frozenset()
    reads_output = False

    def infer(self, *arrays: Aval, axis: int) -> Aval:
        first, *others = (a.shape[:axis] + a.shape[axis + 1 :] for a in arrays)
        if any(shape != first for shape in others):
            raise ShapeError(
                "concatenate: all axes but the one along which arrays are joined must have equal sizes",
                got={"axis": axis, **{f"array {i}": a for i, a in enumerate(arrays)}},
            )
        shape = list(arrays[0].shape)
        shape[axis] = sum(a.shape[axis] for a in arrays)
        return Aval(tuple(shape), _strong_dtype(arrays))

    def impl(self, *arrays: Any, axis: int) -> Any:
        return np.concatenate(arrays, axis)

    def vjp(self, out: Any, *arrays: Any, axis: int) -> Sequence[Pullback]:
        stops = list(itertools.accumulate((shape_of(a)[axis] for a in arrays), initial=0))
        lead = (slice(None),) * axis
        return [operator.itemgetter((*lead, slice(i, j))) for i, j in itertools.pairwise(stops)]

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: int) -> Any:
        return _joined(self, out, args, tangents, axis)

    def lower(self, *arrays: Aval, axis: int) -> Place:
        starts = np.cumsum([0, *(a.shape[axis] for a in arrays)]).tolist()

        def part(start: int) -> Any:
            return lambda where, number: [w + number(start) if k == axis and start else w for k, w in enumerate(where)]

        return Place(tuple((k, part(starts[k])) for k in range(len(arrays))), covered=True)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int) -> Any:
        return self(*_batch_all(args, batched), axis=axis + 1)


class Stack(Primitive):
    """Arrays of one shape, side by side along a new axis."""

    reads = frozenset()
    reads_output = False

    def infer(self, *arrays: Aval, axis: int) -> Aval:
        shape = arrays[0].shape
        if any(a.shape != shape for a in arrays):
            raise ShapeError("stack: all arrays must have the same shape", got={f"array {i}": a for i, a in enumerate(arrays)})
        return Aval((*shape[:axis], len(arrays), *shape[axis:]), _strong_dtype(arrays))

    def impl(self, *arrays: Any, axis: int) -> Any:
        return np.stack(arrays, axis)

    def vjp(self, out: Any, *arrays: Any, axis: int) -> Sequence[Pullback]:
        lead = (slice(None),) * axis
        return [operator.itemgetter((*lead, i)) for i in range(len(arrays))]

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: int) -> Any:
        return _joined(self, out, args, tangents, axis)

    def lower(self, *arrays: Aval, axis: int) -> Place:
        def part(k: int) -> Any:
            return lambda where, number: [*where[:axis], number(k), *where[axis:]]

        return Place(tuple((k, part(k)) for k in range(len(arrays))), covered=True)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int) -> Any:
        return self(*_batch_all(args, batched), axis=axis + 1)


def _strong_dtype(arrays: Sequence[Aval]) -> np.dtype[Any]:
    """The common dtype where Python scalars count as arrays of their own dtype, as in functions that make arrays of them first."""
    return np.result_type(*[a.dtype for a in arrays])


def _joined(primitive: Primitive, out: Any, args: Sequence[Any], tangents: Sequence[Any], axis: int) -> Any:
    if all(t is None for t in tangents):
        return None
    zero = np.zeros((), aval_of(out).dtype)
    rows = [np.broadcast_to(zero, shape_of(a)) if t is None else t for a, t in zip(args, tangents, strict=True)]
    return primitive(*rows, axis=axis)


def _batch_all(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    n = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
    return [a if b else np.broadcast_to(a, (n, *shape_of(a))) for a, b in zip(args, batched, strict=True)]


class StopGradient(Primitive):
    """The value, cut off from differentiation: a copy, since what is plain may be written to."""

    constant = True

    def infer(self, x: Aval) -> Aval:
        return x

    def impl(self, x: Any) -> Any:
        return np.array(x) if isinstance(x, np.ndarray) else x

    def lower(self, x: Aval) -> Scalar:
        return Scalar("same", (x.dtype,))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class Again(Primitive):
    """The first operand, at the time when the second one is known: what is computed from it is not what was computed before.

    Recorded computations that are repeated to save memory begin with it.
    """

    reads = frozenset()

    def infer(self, x: Aval, now: Aval) -> Aval:
        return x

    def impl(self, x: Any, now: Any) -> Any:
        return np.array(x) if isinstance(x, np.ndarray) else x

    def vjp(self, out: Any, x: Any, now: Any) -> tuple[Callable[[Any], Any], None]:
        return (lambda g: g), None

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0]

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(_batch_all(args, batched)[0], args[1])

    def lower(self, x: Aval, now: Aval) -> View:
        return View(None, alias=True, later=True)


reshape = Reshape("reshape")
transpose = Transpose("transpose")
broadcast_to = BroadcastTo("broadcast_to")
cast = Cast("cast")
concatenate = Concatenate("concatenate")
stack = Stack("stack")
stop = StopGradient("stop_gradient")
again = Again("again")
