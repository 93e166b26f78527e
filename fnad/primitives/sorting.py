"""Orders of entries: integers that do not depend differentiably on what they order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, shape_of
from fnad.primitives._families import Primitive

_INDEX = np.dtype(np.intp)


class Argsort(Primitive):
    """Positions of the entries of an axis in rising order; equal entries keep theirs, nan comes last."""

    constant = True

    def infer(self, x: Aval, *, axis: int) -> Aval:
        return Aval(x.shape, _INDEX)

    def impl(self, x: Any, *, axis: int) -> Any:
        order = np.argsort(x, axis)  # far faster than a stable sort; without ties and nan it is one
        ranked = np.take_along_axis(np.asarray(x), order, axis)
        ranked = np.moveaxis(ranked, axis, 0)
        return order if np.all(ranked[:-1] < ranked[1:]) else np.argsort(x, axis, kind="stable")

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

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, side: str) -> Any:
        a, v = args
        if not batched[0]:
            return self(a, v, side=side)
        n = shape_of(a)[0]
        if n == 0:
            return np.zeros((0, *shape_of(v)[int(batched[1]) :]), _INDEX)
        return np.stack([self(a[i], v[i] if batched[1] else v, side=side) for i in range(n)])


argsort = Argsort("argsort")
argpartition = Argpartition("argpartition")
lexsort = Lexsort("lexsort")
searchsorted = Searchsorted("searchsorted")
