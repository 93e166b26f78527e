"""Reductions over axes, and scans along one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.lowering import Reduce, Scan
from fnad.primitives._families import Linear, Primitive, Pullback, Reduction, expand, guarded
from fnad.primitives.arithmetic import chosen
from fnad.primitives.indexing import iota

_INDEX = np.dtype(np.intp)


def _accumulated(ufunc: np.ufunc, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of sums or products: small integers widen."""
    return ufunc.reduce(np.zeros(1, dtype)).dtype


class Sum(Linear, Reduction):
    """Sum over axes; integers widen as in NumPy."""

    reads = frozenset()

    combine = "add", 0.0

    def result(self, x: Aval) -> np.dtype[Any]:
        return _accumulated(np.add, x.dtype)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        shape = shape_of(x)
        return (lambda g: np.broadcast_to(expand(g, axis), shape),)


class Prod(Reduction):
    """Product over axes. The slope by an entry is the product of all others, made without division: it holds at zeros."""

    combine = "multiply", 1.0

    def result(self, x: Aval) -> np.dtype[Any]:
        return _accumulated(np.multiply, x.dtype)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        return (lambda g: guarded(expand(g, axis), _products_of_others(x, axis)),)


class Extreme(Reduction):
    """Maximum or minimum over axes; entries that tie share the cotangent evenly.

    `np.maximum` and `np.minimum` return nan if an entry is nan, `np.fmax` and `np.fmin` if all are.
    """

    def __init__(self, name: str, ufunc: np.ufunc) -> None:
        super().__init__(name, ufunc.reduce)
        self.ufunc = ufunc

    def lower(self, x: Aval, *, axis: tuple[int, ...]) -> Reduce | None:
        if self.name not in ("max", "min") or x.dtype.kind not in "fiu":
            return None
        worst = {"f": np.inf, "i": 0, "u": 0}[x.dtype.kind]
        if x.dtype.kind != "f":
            limits = np.iinfo(x.dtype)
            return Reduce("maximum", limits.min, axis) if self.name == "max" else Reduce("minimum", limits.max, axis)
        return Reduce("maximum", -worst, axis) if self.name == "max" else Reduce("minimum", worst, axis)

    def infer(self, x: Aval, *, axis: tuple[int, ...]) -> Aval:
        if 0 in (x.shape[i] for i in axis):
            raise ValueError(f"zero-size array to reduction operation {self.ufunc.__name__} which has no identity")
        return super().infer(x, axis=axis)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        def pull(g: Any) -> Any:
            best = chosen(x, expand(out, axis))
            dtype = aval_of(out).dtype
            share = g / np.add.reduce(best, axis=axis, dtype=np.promote_types(dtype, np.float32))  # float16 counts to 65504 only
            return guarded(expand(share if share.dtype == dtype else share.astype(dtype), axis), best)

        return (pull,)


class Verdict(Reduction):
    """Whether any or all entries along axes are true."""

    constant = True

    def infer(self, x: Aval, *, axis: tuple[int, ...]) -> Aval:
        return Aval(tuple(n for i, n in enumerate(x.shape) if i not in axis), np.dtype(bool))

    def lower(self, x: Aval, *, axis: tuple[int, ...]) -> Reduce:
        return Reduce("maximum", False, axis) if self.name == "any" else Reduce("minimum", True, axis)

    def impl(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        return self.function(x, axis=axis, dtype=bool)


class Position(Primitive):
    """Index of the first largest or smallest entry along one axis (the first nan, if there is one)."""

    constant = True
    strong = True

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function

    def infer(self, x: Aval, *, axis: int) -> Aval:
        if x.shape[axis] == 0:
            raise ValueError(f"attempt to get {self.name} of an empty sequence")
        return Aval(x.shape[:axis] + x.shape[axis + 1 :], _INDEX)

    def impl(self, x: Any, *, axis: int) -> Any:
        return self.function(x, axis=axis)

    def compose(self, x: Any, *, axis: int) -> Any:
        x = x.astype(np.int8) if aval_of(x).dtype.kind == "b" else x
        best = (np.max if self.function is np.argmax else np.min)(x, axis=axis, keepdims=True)
        return np.min(np.where((x == best) | (x != x), iota(x, axis=axis, dtype=_INDEX), shape_of(x)[axis]), axis=axis)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int) -> Any:
        return self(args[0], axis=axis + 1)


class _Scan(Primitive):
    """A running reduction along `axis`; `reverse` begins at its end."""

    def __init__(self, name: str, ufunc: np.ufunc) -> None:
        super().__init__(name)
        self.ufunc = ufunc

    def infer(self, x: Aval, *, axis: int, reverse: bool) -> Aval:
        return Aval(x.shape, _accumulated(self.ufunc, x.dtype))

    def impl(self, x: Any, *, axis: int, reverse: bool) -> Any:
        if reverse:
            return np.flip(self.ufunc.accumulate(np.flip(x, axis), axis=axis), axis)
        return self.ufunc.accumulate(x, axis=axis)

    def lower(self, x: Aval, *, axis: int, reverse: bool) -> Scan | None:
        return Scan(self.ufunc.__name__, {"add": 0.0, "multiply": 1.0}[self.ufunc.__name__], axis, reverse)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, reverse: bool) -> Any:
        return self(args[0], axis=axis + 1, reverse=reverse)


class Cumsum(Linear, _Scan):
    """Running sums; the transpose runs the other way."""

    reads = frozenset()

    def vjp(self, out: Any, x: Any, *, axis: int, reverse: bool) -> Sequence[Pullback]:
        return (lambda g: self(g, axis=axis, reverse=not reverse),)


class Cumprod(_Scan):
    """Running products, y[k] = x[0] ... x[k].

    The cotangent of x[j] is y[j-1] s[j] with s[j] = g[j] + x[j+1] s[j+1]: without division, so it holds at zeros.
    """

    def vjp(self, out: Any, x: Any, *, axis: int, reverse: bool) -> Sequence[Pullback]:
        def turn(a: Any) -> Any:
            a = np.swapaxes(a, axis, -1)
            return np.flip(a, -1) if reverse else a

        def turn_back(a: Any) -> Any:
            return np.swapaxes(np.flip(a, -1) if reverse else a, axis, -1)

        def pull(g: Any) -> Any:
            if shape_of(x)[axis] == 0:
                return g
            factors, before = turn(x), _shifted(turn(out))
            tail = np.flip(_recurrence(_shifted(np.flip(factors, -1)), np.flip(turn(g), -1)), -1)
            return turn_back(guarded(tail, before))

        return (pull,)


class Cumextreme(_Scan):
    """The largest or smallest entry so far; entries that tie share the cotangent evenly, nan stays.

    The results fall into runs of equal ones. The cotangent of each is divided by the number of entries of its run that are
    equal to it so far; an entry that ties receives what is left of its run from its place on.
    """

    def lower(self, x: Aval, *, axis: int, reverse: bool) -> Scan | None:
        if x.dtype.kind not in "fiu":
            return None
        limits = (-np.inf, np.inf) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        return Scan(self.ufunc.__name__, limits[self.ufunc is np.minimum], axis, reverse)

    def vjp(self, out: Any, x: Any, *, axis: int, reverse: bool) -> Sequence[Pullback]:
        def turn(a: Any) -> Any:
            a = np.moveaxis(a, axis, -1)
            return np.flip(a, -1) if reverse else a

        def pull(g: Any) -> Any:
            if shape_of(x)[axis] == 0:
                return g
            dtype = aval_of(out).dtype
            y = turn(out)
            tied = np.astype(chosen(turn(x), y), dtype)
            same = np.astype(chosen(y[..., 1:], y[..., :-1]), dtype)  # as the result before it
            edge = np.zeros((*shape_of(y)[:-1], 1), dtype)
            share = turn(g) / _recurrence(np.concatenate([edge, same], axis=-1), tied)
            left = np.flip(_recurrence(np.flip(np.concatenate([same, edge], axis=-1), -1), np.flip(share, -1)), -1)
            pulled = guarded(left, tied)
            return np.moveaxis(np.flip(pulled, -1) if reverse else pulled, -1, axis)

        return (pull,)


def _ones(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    return np.broadcast_to(np.ones((), dtype), shape)


def _shifted(x: Any) -> Any:
    """x moved one to the right along the last axis, which is not empty; a 1 comes in."""
    return np.concatenate([_ones((*shape_of(x)[:-1], 1), aval_of(x).dtype), x[..., :-1]], axis=-1)


def _recurrence(a: Any, b: Any) -> Any:
    """h[k] = a[k] h[k-1] + b[k] along the last axis, from h[-1] = 0: log2(n) array operations, by doubling the step."""
    step, n = 1, shape_of(b)[-1]
    while step < n:
        b = np.concatenate([b[..., :step], b[..., step:] + guarded(b[..., :-step], a[..., step:])], axis=-1)
        if 2 * step < n:
            a = np.concatenate([a[..., :step], a[..., step:] * a[..., :-step]], axis=-1)
        step *= 2
    return b


def _products_of_others(x: Any, axis: tuple[int, ...]) -> Any:
    """For each entry, the product of the others along `axis`."""
    shape = shape_of(x)
    if 0 in shape:
        return x
    order = [i for i in range(len(shape)) if i not in axis] + list(axis)
    moved = tuple(shape[i] for i in order)
    kept = moved[: len(shape) - len(axis)]
    rows = np.reshape(np.transpose(x, order), (*kept, math.prod(moved[len(kept) :])))
    last = len(kept)
    before = cumprod(_shifted(rows), axis=last, reverse=False)
    after = cumprod(np.flip(_shifted(np.flip(rows, -1)), -1), axis=last, reverse=True)
    return np.transpose(np.reshape(before * after, moved), np.argsort(order).tolist())


sum = Sum("sum", np.add.reduce)
prod = Prod("prod", np.multiply.reduce)
max = Extreme("max", np.maximum)
min = Extreme("min", np.minimum)
nanmax = Extreme("nanmax", np.fmax)
nanmin = Extreme("nanmin", np.fmin)
any = Verdict("any", np.logical_or.reduce)
all = Verdict("all", np.logical_and.reduce)
argmax = Position("argmax", np.argmax)
argmin = Position("argmin", np.argmin)
cumsum = Cumsum("cumsum", np.add)
cumprod = Cumprod("cumprod", np.multiply)
cummax = Cumextreme("cummax", np.maximum)
cummin = Cumextreme("cummin", np.minimum)
