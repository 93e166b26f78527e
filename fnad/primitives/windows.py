"""Windows that slide over the last axes: what convolution and pooling are made of.

For two axes, (*lead, h, w) -> (*lead, kh, kw, oh, ow): entry [..., u, v, i, j] is [..., i * stride + u * dilation, ...] of the
array, so the windows themselves lie along the last axes and their entries along those before. How many axes windows have is
told by the lengths of `kernel`, `stride` and `dilation`. Nothing is padded here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.lowering import Place, View
from fnad.errors import ShapeError
from fnad.kernels import pool as kernels
from fnad.primitives._families import Linear, Pullback
from fnad.typing import Shape

Pair: TypeAlias = tuple[int, int]
Steps: TypeAlias = tuple[int, ...]
"""One number for each axis of a window."""
Padding: TypeAlias = tuple[Pair, ...]
"""(before, after) along each axis of a window."""

_LARGE = 1 << 14
"""Up to this many entries NumPy adds windows up fast enough; both ways give the same bits."""


def span(kernel: int, dilation: int) -> int:
    """How many entries a window reaches over."""
    return (kernel - 1) * dilation + 1


def window_counts(name: str, size: Sequence[int], kernel: Sequence[int], stride: Steps, dilation: Steps, padding: Padding = ()) -> Steps:
    """How many windows there are along each axis.

    Raises:
        ShapeError: a window is larger than the padded array.
    """
    edges = padding or ((0, 0),) * len(size)
    rest = [n + sum(p) - span(k, d) for n, p, k, d in zip(size, edges, kernel, dilation, strict=True)]
    if min(rest) < 0:
        raise ShapeError(
            f"{name}: a window must fit into the padded array",
            got={"size": tuple(size), "padding": edges, "window": tuple(kernel), "dilation": dilation},
        )
    return tuple(n // s + 1 for n, s in zip(rest, stride, strict=True))


def view_windows(x: Any, kernel: Sequence[int], stride: Steps, dilation: Steps, counts: Steps) -> Any:
    """The windows of a plain array as a read-only view of its memory."""
    rank = len(kernel)
    lead, inner = x.strides[:-rank], x.strides[-rank:]
    steps = (*lead, *(n * d for n, d in zip(inner, dilation, strict=True)), *(n * s for n, s in zip(inner, stride, strict=True)))
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:-rank], *kernel, *counts), steps, writeable=False)


def _source(where: Sequence[Any], number: Any, stride: Steps, dilation: Steps) -> list[Any]:
    """Which entry of the array an entry of its windows is."""
    rank = len(stride)
    lead, entry, window = where[: -2 * rank], where[-2 * rank : -rank], where[-rank:]

    def times(e: Any, n: int) -> Any:
        return e if n == 1 else e * number(n)

    return [*lead, *(times(i, s) + times(u, d) for u, i, s, d in zip(entry, window, stride, dilation, strict=True))]


class Unfold(Linear):
    """All windows of an array."""

    def infer(self, x: Aval, *, kernel: Steps, stride: Steps, dilation: Steps) -> Aval:
        rank = len(kernel)
        return Aval((*x.shape[:-rank], *kernel, *window_counts(self.name, x.shape[-rank:], kernel, stride, dilation)), x.dtype)

    def impl(self, x: Any, *, kernel: Steps, stride: Steps, dilation: Steps) -> Any:
        counts = window_counts(self.name, x.shape[-len(kernel) :], kernel, stride, dilation)
        return view_windows(x, kernel, stride, dilation, counts)

    def vjp(self, out: Any, x: Any, *, kernel: Steps, stride: Steps, dilation: Steps) -> Sequence[Pullback]:
        size = shape_of(x)[-len(kernel) :]
        return (lambda g: fold(g, size=size, stride=stride, dilation=dilation),)

    def lower(self, x: Aval, *, kernel: Steps, stride: Steps, dilation: Steps) -> View:
        return View(lambda where, number: _source(where, number, stride, dilation))

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        return self(args[0], **params)


def _parts(shape: Sequence[int], rank: int) -> tuple[Steps, Steps, Steps]:
    """Leading axes, entries of a window, and numbers of windows."""
    return tuple(shape[: -2 * rank]), tuple(shape[-2 * rank : -rank]), tuple(shape[-rank:])


class Fold(Linear):
    """An array whose last axes have the sizes `size` into which windows are added: the transpose of `unfold`."""

    def infer(self, v: Aval, *, size: Steps, stride: Steps, dilation: Steps) -> Aval:
        lead, kernel, counts = _parts(v.shape, len(size))
        if window_counts(self.name, size, kernel, stride, dilation) != counts:
            raise ShapeError("fold: the windows must be those of an array of the given size", got={"windows": v, "size": size})
        return Aval((*lead, *size), v.dtype)

    def impl(self, v: Any, *, size: Steps, stride: Steps, dilation: Steps) -> Any:
        lead, kernel, counts = _parts(v.shape, len(size))
        out = np.zeros((*lead, *size), v.dtype.newbyteorder("="))
        if v.size > _LARGE and v.dtype.char in "fd" and len(size) <= 2:
            flat = (1,) * (2 - len(size))  # one axis is two of which the first has one entry
            planes = np.require(v, out.dtype, ["C", "W"]).reshape(math.prod(lead), *flat, *kernel, *flat, *counts)
            kernels.fold(planes, *flat, *stride, *flat, *dilation, out.reshape(len(planes), *flat, *size))
            return out
        for entry in itertools.product(*map(range, kernel)):
            places = (slice(u * d, u * d + span(c, s), s) for u, d, c, s in zip(entry, dilation, counts, stride, strict=True))
            where: tuple[Any, ...] = (..., *places)
            out[where] += v[(..., *entry, *(slice(None),) * len(size))]
        return out

    def vjp(self, out: Any, v: Any, *, size: Steps, stride: Steps, dilation: Steps) -> Sequence[Pullback]:
        kernel = _parts(shape_of(v), len(size))[1]
        return (lambda g: unfold(g, kernel=kernel, stride=stride, dilation=dilation),)

    def lower(self, v: Aval, *, size: Steps, stride: Steps, dilation: Steps) -> Place:
        _, kernel, counts = _parts(v.shape, len(size))
        apart = all(s >= span(k, d) for s, k, d in zip(stride, kernel, dilation, strict=True))
        covered = apart and all(k * c == n for k, c, n in zip(kernel, counts, size, strict=True))
        part = (0, lambda where, number: _source(where, number, stride, dilation))
        return Place((part,), covered=covered, combine=None if apart else "add")

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        return self(args[0], **params)


def pad_edges(x: Any, padding: Padding, fill: Any = 0) -> Any:
    """The last axes with borders of a constant."""
    if not any(map(any, padding)):
        return x
    value = aval_of(x).dtype.type(fill)
    return np.pad(x, ((0, 0),) * (len(shape_of(x)) - len(padding)) + padding, constant_values=value)


def crop_edges(x: Any, padding: Padding) -> Any:
    """The last axes without their borders."""
    if not any(map(any, padding)):
        return x
    sizes = shape_of(x)[-len(padding) :]
    return x[(..., *(slice(before, n - after) for n, (before, after) in zip(sizes, padding, strict=True)))]


def padded_size(size: Shape, padding: Padding) -> Steps:
    return tuple(n + sum(p) for n, p in zip(size, padding, strict=True))


unfold = Unfold("unfold")
fold = Fold("fold")
