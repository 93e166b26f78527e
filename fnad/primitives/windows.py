"""Windows that slide over the last two axes: what convolution and pooling are made of.

(*lead, h, w) -> (*lead, kh, kw, oh, ow): entry [..., u, v, i, j] is [..., i * stride + u * dilation, ...] of the array, so
the windows themselves lie along the last axes and their entries along the two before. Nothing is padded here.
"""

from __future__ import annotations

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
Padding: TypeAlias = tuple[Pair, Pair]
"""(before, after) along the height and along the width."""

_LARGE = 1 << 14
"""Up to this many entries NumPy adds windows up fast enough; both ways give the same bits."""


def span(kernel: int, dilation: int) -> int:
    """How many entries a window reaches over."""
    return (kernel - 1) * dilation + 1


def window_counts(name: str, size: Sequence[int], kernel: Pair, stride: Pair, dilation: Pair, padding: Padding = ((0, 0), (0, 0))) -> Pair:
    """How many windows there are along the height and along the width.

    Raises:
        ShapeError: a window is larger than the padded array.
    """
    rest = [n + sum(p) - span(k, d) for n, p, k, d in zip(size, padding, kernel, dilation, strict=True)]
    if min(rest) < 0:
        raise ShapeError(
            f"{name}: a window must fit into the padded array",
            got={"height and width": tuple(size), "padding": padding, "window": kernel, "dilation": dilation},
        )
    return rest[0] // stride[0] + 1, rest[1] // stride[1] + 1


def view_windows(x: Any, kernel: Pair, stride: Pair, dilation: Pair, counts: Pair) -> Any:
    """The windows of a plain array as a read-only view of its memory."""
    *lead, high, wide = x.strides
    steps = (*lead, high * dilation[0], wide * dilation[1], high * stride[0], wide * stride[1])
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:-2], *kernel, *counts), steps, writeable=False)


def _source(where: Sequence[Any], number: Any, stride: Pair, dilation: Pair) -> list[Any]:
    """Which entry of the array an entry of its windows is."""
    *lead, u, v, i, j = where

    def times(e: Any, n: int) -> Any:
        return e if n == 1 else e * number(n)

    return [*lead, times(i, stride[0]) + times(u, dilation[0]), times(j, stride[1]) + times(v, dilation[1])]


class Unfold(Linear):
    """All windows of an array."""

    def infer(self, x: Aval, *, kernel: Pair, stride: Pair, dilation: Pair) -> Aval:
        return Aval((*x.shape[:-2], *kernel, *window_counts(self.name, x.shape[-2:], kernel, stride, dilation)), x.dtype)

    def impl(self, x: Any, *, kernel: Pair, stride: Pair, dilation: Pair) -> Any:
        return view_windows(x, kernel, stride, dilation, window_counts(self.name, x.shape[-2:], kernel, stride, dilation))

    def vjp(self, out: Any, x: Any, *, kernel: Pair, stride: Pair, dilation: Pair) -> Sequence[Pullback]:
        size = shape_of(x)[-2:]
        return (lambda g: fold(g, size=size, stride=stride, dilation=dilation),)

    def lower(self, x: Aval, *, kernel: Pair, stride: Pair, dilation: Pair) -> View:
        return View(lambda where, number: _source(where, number, stride, dilation))

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        return self(args[0], **params)


class Fold(Linear):
    """An array of height and width `size` into which windows are added: the transpose of `unfold`."""

    def infer(self, v: Aval, *, size: Pair, stride: Pair, dilation: Pair) -> Aval:
        kernel, counts = v.shape[-4:-2], v.shape[-2:]
        if window_counts(self.name, size, (kernel[0], kernel[1]), stride, dilation) != counts:
            raise ShapeError("fold: the windows must be those of an array of the given size", got={"windows": v, "size": size})
        return Aval((*v.shape[:-4], *size), v.dtype)

    def impl(self, v: Any, *, size: Pair, stride: Pair, dilation: Pair) -> Any:
        out = np.zeros((*v.shape[:-4], *size), v.dtype.newbyteorder("="))
        if v.size > _LARGE and v.dtype.char in "fd":
            planes = np.require(v, out.dtype, ["C", "W"]).reshape(math.prod(v.shape[:-4]), *v.shape[-4:])
            kernels.fold(planes, *stride, *dilation, out.reshape(len(planes), *size))
            return out
        high, wide = span(v.shape[-2], stride[0]), span(v.shape[-1], stride[1])
        for a in range(v.shape[-4]):
            rows = out[..., a * dilation[0] : a * dilation[0] + high : stride[0], :]
            for b in range(v.shape[-3]):
                rows[..., b * dilation[1] : b * dilation[1] + wide : stride[1]] += v[..., a, b, :, :]
        return out

    def vjp(self, out: Any, v: Any, *, size: Pair, stride: Pair, dilation: Pair) -> Sequence[Pullback]:
        kernel = shape_of(v)[-4:-2]
        return (lambda g: unfold(g, kernel=kernel, stride=stride, dilation=dilation),)

    def lower(self, v: Aval, *, size: Pair, stride: Pair, dilation: Pair) -> Place:
        kernel, counts = v.shape[-4:-2], v.shape[-2:]
        apart = all(s >= span(k, d) for s, k, d in zip(stride, kernel, dilation, strict=True))
        covered = apart and all(k * c == n for k, c, n in zip(kernel, counts, size, strict=True))
        part = (0, lambda where, number: _source(where, number, stride, dilation))
        return Place((part,), covered=covered, combine=None if apart else "add")

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        return self(args[0], **params)


def pad_plane(x: Any, padding: Padding, fill: Any = 0) -> Any:
    """The last two axes with borders of a constant."""
    if not any(map(any, padding)):
        return x
    value = aval_of(x).dtype.type(fill)
    return np.pad(x, ((0, 0),) * (len(shape_of(x)) - 2) + padding, constant_values=value)


def crop_plane(x: Any, padding: Padding) -> Any:
    """The last two axes without their borders."""
    if not any(map(any, padding)):
        return x
    (top, bottom), (left, right) = padding
    h, w = shape_of(x)[-2:]
    return x[..., top : h - bottom, left : w - right]


def padded_size(size: Shape, padding: Padding) -> Pair:
    return size[0] + sum(padding[0]), size[1] + sum(padding[1])


unfold = Unfold("unfold")
fold = Fold("fold")
