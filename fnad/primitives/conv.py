"""Convolution (a correlation, as in neural networks) over one, two or three axes, and its two transposes. For two axes:

    out[n, o, i, j] = sum over c, u, v of x[n, c, i * stride + u * dilation - before, ...] w[o, c, u, v]

Three bilinear maps, each of whose transposes are the other two. Each runs as matrix products over the windows of a few
images at a time, so that the copies of the windows stay in the cache and are never kept for the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.errors import ShapeError
from fnad.primitives._families import Bilinear, Pullback
from fnad.primitives.linalg import matmul
from fnad.primitives.windows import Padding, Steps, crop_edges, fold, pad_edges, padded_size, unfold, view_windows, window_counts

_WORK = 1 << 19  # bytes of windows that are copied out at once


def _windows(x: Any, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
    """(n, c, h, w) -> (n, [groups,] c / groups * kh * kw, oh * ow), for tracers; no axis for one group."""
    many = unfold(pad_edges(x, padding), kernel=kernel, stride=stride, dilation=dilation)
    n, c, *rest = shape_of(many)
    counts = rest[len(kernel) :]
    return np.reshape(many, (n, *_grouped(groups, c * math.prod(kernel)), math.prod(counts)))


def _grouped(groups: int, size: int) -> tuple[int, ...]:
    return (size,) if groups == 1 else (groups, size // groups)


def _matrices(w: Any, n: int, groups: int) -> Any:
    """(o, c / groups, *kernel) -> (o, rows), or (n, groups, o / groups, rows): a stack of products has both operands in full."""
    o, *rest = shape_of(w)
    if groups == 1:
        return np.reshape(w, (o, math.prod(rest)))
    return np.broadcast_to(np.reshape(w, (groups, o // groups, math.prod(rest))), (n, groups, o // groups, math.prod(rest)))


def _spread(x: Any, axis: int, rank: int) -> Any:
    """Axes of size 1 for the entries of a window put before `axis`."""
    shape = shape_of(x)
    return np.reshape(x, (*shape[:axis], *(1,) * rank, *shape[axis:]))


def _per_channel(w: Any, groups: int) -> Any:
    """(o, 1, *kernel) -> (groups, o / groups, *kernel, 1, ...): a factor for each entry of the windows of a channel.

    Where each group has one channel, products with windows are loops over them: matrices with one column gain nothing.
    """
    o, _, *kernel = shape_of(w)
    return np.reshape(w, (groups, o // groups, *kernel, *(1,) * len(kernel)))


def _t(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _chunks(x: Any, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Iterator[tuple[slice, Any]]:
    """The windows of some images after the other: (which images, (images, groups, c / groups * kh * kw, oh * ow))."""
    n, c, *size = x.shape
    counts = window_counts("convolution", size, kernel, stride, dilation, padding)
    rows, columns = c // groups * math.prod(kernel), math.prod(counts)
    if {*kernel, *stride} == {1} and not any(map(any, padding)):
        yield slice(0, n), np.reshape(x, (n, groups, rows, columns))
        return
    step = max(1, min(n, _WORK // max(1, groups * rows * columns * x.itemsize)))
    work = np.empty((step, groups, rows, columns), x.dtype)
    for start in range(0, n, step):
        part = x[start : start + step]
        found = work[: len(part)]
        np.copyto(found.reshape(len(part), c, *kernel, *counts), view_windows(pad_edges(part, padding), kernel, stride, dilation, counts))
        yield slice(start, start + len(part)), found


class _Convolution(Bilinear):
    """What the three maps share. Parameters: stride, padding, dilation, groups, and sizes that cannot be told from the arguments."""

    def check(self, x: Sequence[int], w: Sequence[int], groups: int) -> None:
        if len(x) != len(w) or x[1] != w[1] * groups or w[0] % groups:
            raise ShapeError(
                "convolution: input (n, c, *size) and weight (o, c / groups, *kernel), where groups divides c and o",
                got={"input": tuple(x), "weight": tuple(w), "groups": groups},
            )

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        """Examples become images where only those are batched; otherwise they become groups."""
        size = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
        if tuple(batched) == (True, False) and self is not convolution_weight:
            first, second = args
            out = self(np.reshape(first, (size * shape_of(first)[1], *shape_of(first)[2:])), second, **params)
            return np.reshape(out, (size, shape_of(first)[1], *shape_of(out)[1:]))
        if size == 0:  # no groups at all
            one = self.infer(*(Aval(shape_of(a)[b:], aval_of(a).dtype) for a, b in zip(args, batched, strict=True)), **params)
            return np.zeros((0, *one.shape), one.dtype)
        full = [a if b else np.broadcast_to(a, (size, *shape_of(a))) for a, b in zip(args, batched, strict=True)]
        first, second = (self.as_channels(a) if images else _joined(a) for a, images in zip(full, self.of_images, strict=True))
        out = self(first, second, **{**params, "groups": size * params["groups"]})
        if self is convolution_weight:
            return np.reshape(out, (size, shape_of(out)[0] // size, *shape_of(out)[1:]))
        n, channels, *rest = shape_of(out)
        return np.moveaxis(np.reshape(out, (n, size, channels // size, *rest)), 1, 0)

    of_images = (True, False)

    @staticmethod
    def as_channels(x: Any) -> Any:
        """(batch, n, c, h, w) -> (n, batch * c, h, w)"""
        b, n, c, *rest = shape_of(x)
        return np.reshape(np.moveaxis(x, 0, 1), (n, b * c, *rest))


def _joined(w: Any) -> Any:
    """(batch, o, ...) -> (batch * o, ...)"""
    b, o, *rest = shape_of(w)
    return np.reshape(w, (b * o, *rest))


class Convolution(_Convolution):
    """(n, c, h, w), (o, c / groups, kh, kw) -> (n, o, oh, ow)"""

    def infer(self, x: Aval, w: Aval, *, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Aval:
        self.check(x.shape, w.shape, groups)
        counts = window_counts("convolution", x.shape[2:], w.shape[2:], stride, dilation, padding)
        return Aval((x.shape[0], w.shape[0], *counts), result_dtype(x, w))

    def impl(self, x: Any, w: Any, *, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
        self.check(x.shape, w.shape, groups)
        counts = window_counts("convolution", x.shape[2:], w.shape[2:], stride, dilation, padding)
        out = np.empty((x.shape[0], groups, w.shape[0] // groups, math.prod(counts)), np.result_type(x, w))
        matrix = np.reshape(w, (groups, w.shape[0] // groups, math.prod(w.shape[1:])))
        for where, windows in _chunks(x, w.shape[2:], stride, padding, dilation, groups):
            np.matmul(matrix, windows, out=out[where])
        return out.reshape(x.shape[0], w.shape[0], *counts)

    def compose(self, x: Any, w: Any, *, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
        o, each, *kernel = shape_of(w)
        counts = window_counts("convolution", shape_of(x)[2:], kernel, stride, dilation, padding)
        if groups > each == 1:
            windows = unfold(pad_edges(x, padding), kernel=tuple(kernel), stride=stride, dilation=dilation)
            out = np.sum(windows[:, :, None] * _per_channel(w, groups), axis=tuple(range(3, 3 + len(kernel))))
            return np.reshape(out, (shape_of(x)[0], o, *counts))
        windows = _windows(x, tuple(kernel), stride, padding, dilation, groups)
        out = matmul(_matrices(w, shape_of(x)[0], groups), windows)
        return np.reshape(out, (shape_of(x)[0], o, *counts))

    def vjp(self, out: Any, x: Any, w: Any, **params: Any) -> Sequence[Pullback]:
        size, kernel = shape_of(x)[2:], shape_of(w)[2:]
        return (lambda g: convolution_input(g, w, size=size, **params), lambda g: convolution_weight(x, g, kernel=kernel, **params))


class ConvolutionInput(_Convolution):
    """The transpose in the images: (n, o, oh, ow), (o, c / groups, kh, kw) -> (n, c, *size)"""

    def infer(self, g: Aval, w: Aval, *, size: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Aval:
        self.check((g.shape[0], w.shape[1] * groups, *size), w.shape, groups)
        return Aval((g.shape[0], w.shape[1] * groups, *size), result_dtype(g, w))

    def impl(self, g: Any, w: Any, *, size: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
        n, o, *counts = g.shape
        _, c, *kernel = w.shape
        rows, columns, inner = c * math.prod(kernel), math.prod(counts), padded_size(size, padding)
        out = np.empty((n, groups * c, *size), np.result_type(g, w))
        matrix = _t(np.reshape(w, (groups, o // groups, rows)))
        step = max(1, min(n, _WORK // max(1, groups * rows * columns * out.itemsize)))
        work = np.empty((step, groups, rows, columns), out.dtype)
        for start in range(0, n, step):
            part = g[start : start + step]
            windows = work[: len(part)]
            np.matmul(matrix, np.reshape(part, (len(part), groups, o // groups, columns)), out=windows)
            windows = windows.reshape(len(part), groups * c, *kernel, *counts)
            out[start : start + len(part)] = crop_edges(fold.impl(windows, size=inner, stride=stride, dilation=dilation), padding)
        return out

    def compose(self, g: Any, w: Any, *, size: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
        n, o, *counts = shape_of(g)
        _, c, *kernel = shape_of(w)
        if groups > c == 1:
            many = _spread(np.reshape(g, (n, groups, o // groups, *counts)), 3, len(kernel)) * _per_channel(w, groups)
            windows = many[:, :, 0] if o == groups else np.sum(many, axis=2)
        else:
            windows = matmul(_t(_matrices(w, n, groups)), np.reshape(g, (n, *_grouped(groups, o), math.prod(counts))))
            windows = np.reshape(windows, (n, groups * c, *kernel, *counts))
        return crop_edges(fold(windows, size=padded_size(size, padding), stride=stride, dilation=dilation), padding)

    def vjp(self, out: Any, g: Any, w: Any, *, size: Steps, **params: Any) -> Sequence[Pullback]:
        kernel = shape_of(w)[2:]
        return (lambda c: convolution(c, w, **params), lambda c: convolution_weight(c, g, kernel=kernel, **params))


class ConvolutionWeight(_Convolution):
    """The transpose in the weight: (n, c, h, w), (n, o, oh, ow) -> (o, c / groups, *kernel)"""

    of_images = (True, True)

    def infer(self, x: Aval, g: Aval, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Aval:
        shape = (g.shape[1], x.shape[1] // groups, *kernel)
        self.check(x.shape, shape, groups)
        return Aval(shape, result_dtype(x, g))

    def impl(self, x: Any, g: Any, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
        n, o, *counts = g.shape
        out = np.zeros((groups, o // groups, x.shape[1] // groups * math.prod(kernel)), np.result_type(x, g))
        rows = np.reshape(g, (n, groups, o // groups, math.prod(counts)))
        for where, windows in _chunks(x, kernel, stride, padding, dilation, groups):
            out += np.add.reduce(np.matmul(rows[where], _t(windows)), axis=0)
        return out.reshape(o, x.shape[1] // groups, *kernel)

    def compose(self, x: Any, g: Any, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, groups: int) -> Any:
        n, o, *counts = shape_of(g)
        if shape_of(x)[1] == groups > 1:
            many = unfold(pad_edges(x, padding), kernel=kernel, stride=stride, dilation=dilation)[:, :, None]
            many = many * _spread(np.reshape(g, (n, groups, o // groups, *counts)), 3, len(kernel))
            inner = tuple(range(3 + len(kernel), 3 + 2 * len(kernel)))
            return np.reshape(np.sum(np.sum(many, axis=inner), axis=0), (o, 1, *kernel))
        windows = _windows(x, kernel, stride, padding, dilation, groups)
        rows = np.reshape(g, (n, *_grouped(groups, o), math.prod(counts)))
        return np.reshape(np.sum(matmul(rows, _t(windows)), axis=0), (o, shape_of(x)[1] // groups, *kernel))

    def vjp(self, out: Any, x: Any, g: Any, *, kernel: Steps, **params: Any) -> Sequence[Pullback]:
        size = shape_of(x)[2:]
        return (lambda c: convolution_input(g, c, size=size, **params), lambda c: convolution(x, c, **params))


convolution = Convolution("convolution")
convolution_input = ConvolutionInput("convolution_input")
convolution_weight = ConvolutionWeight("convolution_weight")
