"""Orders of entries: integers that do not depend differentiably on what they order.

Compiled code searches by halving, and orders few short rows by counting for each entry how many come before it. More it
leaves to NumPy, whose vectorised sort is several times faster than that, or than a merge sort compiled by numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.primitives._families import Primitive
from fnad.primitives.indexing import gather, iota

_INDEX = np.dtype(np.intp)
_NATIVE = 64 * 64  # comparisons that take about as long as Python takes to call NumPy
_STABLE = 512  # where a stable sort takes longer than a vectorised one with a look for ties


def _less(x: Any, y: Any) -> Any:
    """NumPy's order of real numbers, in which nan comes after everything else."""
    return (x < y) | ((x == x) & (y != y))


def _ordered(x: Any) -> Any | None:
    """An array with entries that compiled code compares; None if it compares none like them."""
    kind = aval_of(x).dtype.kind
    return x.astype(np.int8) if kind == "b" else x if kind in "fiu" else None


class Argsort(Primitive):
    """Positions of the entries of an axis in rising order; equal entries keep theirs, nan comes last."""

    constant = True

    def infer(self, x: Aval, *, axis: int) -> Aval:
        return Aval(x.shape, _INDEX)

    def impl(self, x: Any, *, axis: int) -> Any:
        if shape_of(x)[axis] <= _STABLE:
            return np.argsort(x, axis, kind="stable")
        order = np.argsort(x, axis)  # far faster than a stable sort; without ties and nan it is one
        ranked = np.take_along_axis(np.asarray(x), order, axis)
        ranked = np.moveaxis(ranked, axis, 0)
        return order if np.all(ranked[:-1] < ranked[1:]) else np.argsort(x, axis, kind="stable")

    def compose(self, x: Any, *, axis: int) -> Any | None:
        n = shape_of(x)[axis]
        rows = _ordered(x)
        if rows is None or not 0 < n * aval_of(x).size <= _NATIVE:
            return None
        rows = np.moveaxis(rows, axis, -1)
        mine, other = rows[..., :, None], rows[..., None, :]
        square = np.broadcast_to(rows[..., :, None], (*shape_of(rows), n))
        last = len(shape_of(rows))
        number, column = (iota(square, axis=a, dtype=_INDEX) for a in (last - 1, last))
        before = _less(other, mine) | (~_less(mine, other) & (column < number))
        rank: Any = np.sum(before, axis=-1, dtype=_INDEX)
        found = np.sum(np.where(rank[..., None, :] == number, column, 0), axis=-1)
        return np.moveaxis(found, -1, axis)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int) -> Any:
        return self(args[0], axis=axis + 1)


class Argpartition(Primitive):
    """Positions in an order such that the entries at `kth` are where sorting would put them, smaller ones before them."""

    constant = True

    def infer(self, x: Aval, *, kth: tuple[int, ...], axis: int) -> Aval:
        return Aval(x.shape, _INDEX)

    def impl(self, x: Any, *, kth: tuple[int, ...], axis: int) -> Any:
        return np.argpartition(x, kth, axis) if kth else np.argsort(x, axis)  # no position at all: of an empty axis

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, kth: tuple[int, ...], axis: int) -> Any:
        return self(args[0], kth=kth, axis=axis + 1)


class Lexsort(Primitive):
    """Positions along an axis in rising order of the last key, equal ones by the key before it, and so on."""

    constant = True

    def infer(self, *keys: Aval, axis: int) -> Aval:
        return Aval(keys[0].shape, _INDEX)

    def impl(self, *keys: Any, axis: int) -> Any:
        return np.lexsort(keys, axis)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int) -> Any:
        n = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
        return self(*[a if b else np.broadcast_to(a, (n, *shape_of(a))) for a, b in zip(args, batched, strict=True)], axis=axis + 1)


class Searchsorted(Primitive):
    """Where values belong in a rising vector, before (left) or after (right) equal entries: (n,), (...) -> (...)."""

    constant = True

    def infer(self, a: Aval, v: Aval, *, side: str) -> Aval:
        return Aval(v.shape, _INDEX)

    def impl(self, a: Any, v: Any, *, side: Any) -> Any:
        return np.searchsorted(a, v, side)

    def compose(self, a: Any, v: Any, *, side: str) -> Any | None:
        a, v = _ordered(a), _ordered(v)
        return None if a is None or v is None else _halved(a, v, side)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, side: str) -> Any:
        a, v = args
        if not batched[0]:
            return self(a, v, side=side)
        n = shape_of(a)[0]
        if not batched[1]:
            v = np.broadcast_to(v, (n, *shape_of(v)))
        if aval_of(a).dtype.kind in "fiub" and aval_of(v).dtype.kind in "fiub":
            return _halved(a, v, side)
        if n == 0:
            return np.zeros(shape_of(v), _INDEX)
        return np.stack([self(a[i], v[i], side=side) for i in range(n)])


def _halved(a: Any, v: Any, side: str) -> Any:
    """Where values belong in rising rows, by halving: (n,), (...) -> (...), or for each of b rows (b, n), (b, ...) -> (b, ...)."""
    *lead, n = shape_of(a)
    dtype = np.promote_types(aval_of(a).dtype, aval_of(v).dtype)
    a, v = a.astype(dtype), np.astype(v, dtype)
    row = [iota(v, axis=0, dtype=_INDEX)] if lead else []
    found = np.zeros(shape_of(v), _INDEX)
    step = 1 << (n.bit_length() - 1) if n else 0
    while step:
        probe = found + (step - 1)
        entry = gather(a, *row, np.minimum(probe, n - 1), axis=0)
        passed = _less(entry, v) if side == "left" else ~_less(v, entry)
        found = np.where(passed & (probe < n), found + step, found)
        step //= 2
    return found


argsort = Argsort("argsort")
argpartition = Argpartition("argpartition")
lexsort = Lexsort("lexsort")
searchsorted = Searchsorted("searchsorted")
