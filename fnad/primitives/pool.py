"""Max pooling over the last two axes: (*lead, h, w) -> (*lead, oh, ow). Each window has one winner, the first of its largest entries.

The gradient goes to the winner alone, as in PyTorch. Winners are numbers of entries in their windows, row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.errors import ShapeError
from fnad.kernels import pool as kernels
from fnad.primitives._families import Linear, Primitive, Pullback
from fnad.primitives.indexing import iota
from fnad.primitives.windows import Padding, Steps, crop_edges, fold, pad_edges, padded_size, unfold, window_counts
from fnad.typing import Shape

_COMPILED = (np.dtype(np.float32), np.dtype(np.float64))
_NUMBER = np.dtype(np.int32)


def lowest(dtype: np.dtype[Any]) -> Any:
    """What is not larger than any number of a dtype."""
    return -np.inf if dtype.kind == "f" else dtype.type(False) if dtype.kind == "b" else np.iinfo(dtype).min


def _numbers(windows: Any) -> Any:
    """For each entry of windows (*lead, kh, kw, oh, ow) its number."""
    rank = len(shape_of(windows))
    return iota(windows, axis=rank - 4, dtype=_NUMBER) * shape_of(windows)[-3] + iota(windows, axis=rank - 3, dtype=_NUMBER)


def _inside(size: Sequence[int], kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, counts: Sequence[int]) -> Any:
    """(kh, kw, oh, ow): whether an entry of a window lies in the plane and not in its padding."""
    rows, columns = (
        (lambda at: (at >= 0) & (at < n))(np.arange(m) * s - p[0] + (np.arange(k) * d)[:, None])
        for n, k, s, p, d, m in zip(size, kernel, stride, padding, dilation, counts, strict=True)
    )
    return rows[:, None, :, None] & columns[None, :, None, :]


def _planes(x: Any) -> Any:
    """(*lead, h, w) -> (count, h, w), as the kernels take it."""
    native = np.require(x, x.dtype.newbyteorder("="), ["C", "W"])  # read-only arrays would be another type, compiled anew
    return native.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])


def _flat(x: Any) -> Any:
    """(*lead, h, w) -> (count, h * w)"""
    return x.reshape(math.prod(x.shape[:-2]), math.prod(x.shape[-2:]))


def _positions(winner: Any, size: Sequence[int], kernel: Steps, stride: Steps, dilation: Steps, padding: Padding) -> Any:
    """(count, oh * ow): where in its plane, flattened, each winner lies."""
    row, column = np.divmod(winner, kernel[1])
    row = np.arange(winner.shape[-2])[:, None] * stride[0] - padding[0][0] + row * dilation[0]
    column = np.arange(winner.shape[-1]) * stride[1] - padding[1][0] + column * dilation[1]
    return _flat(row * size[1] + column)


class MaxPool(Primitive):
    """The largest entry of each window, and which it is (int32)."""

    multiple = True
    reads = frozenset()

    def infer(self, x: Aval, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> tuple[Aval, Aval]:
        shape = (*x.shape[:-2], *window_counts("max_pool2d", x.shape[-2:], kernel, stride, dilation, padding))
        return Aval(shape, x.dtype), Aval(shape, _NUMBER)

    def impl(self, x: Any, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> tuple[Any, Any]:
        counts = window_counts("max_pool2d", x.shape[-2:], kernel, stride, dilation, padding)
        if x.dtype not in _COMPILED:
            return self.in_numpy(x, kernel, stride, padding, dilation)
        planes = _planes(x)
        out, winner = np.empty((len(planes), *counts), planes.dtype), np.empty((len(planes), *counts), _NUMBER)
        kernels.forward(planes, _geometry(kernel, stride, dilation, padding), out, winner)
        shape = (*x.shape[:-2], *counts)
        return out.reshape(shape).astype(x.dtype, copy=False), winner.reshape(shape)

    def in_numpy(self, x: Any, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> tuple[Any, Any]:
        """The same for other dtypes: window entry by window entry."""
        windows = unfold.impl(pad_edges(x, padding, lowest(x.dtype)), kernel=kernel, stride=stride, dilation=dilation)
        inside = _inside(x.shape[-2:], kernel, stride, padding, dilation, windows.shape[-2:])
        out = np.maximum.reduce(windows, axis=(-4, -3))
        winner = np.full(out.shape, -1, _NUMBER)
        for k in range(math.prod(kernel)):
            entry = windows[..., k // kernel[1], k % kernel[1], :, :]
            won = ((entry == out) | (entry != entry)) & inside[k // kernel[1], k % kernel[1]] & (winner < 0)
            winner[won] = k
        return out, winner

    def compose(self, x: Any, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> tuple[Any, Any]:
        windows = unfold(pad_edges(x, padding, lowest(aval_of(x).dtype)), kernel=kernel, stride=stride, dilation=dilation)
        rank = len(shape_of(windows))
        out = np.max(windows, axis=(rank - 4, rank - 3))
        won = (windows == _in_windows(out)) | (windows != windows)
        if any(map(any, padding)):
            won = won & _inside(shape_of(x)[-2:], kernel, stride, padding, dilation, shape_of(out)[-2:])
        number = np.where(won, _numbers(windows), math.prod(kernel))
        return out, np.min(number, axis=(rank - 4, rank - 3))

    def vjp(self, out: Any, x: Any, **params: Any) -> Sequence[Pullback]:
        size, winner = shape_of(x)[-2:], out[1]
        return (lambda g: pool_put(g[0], winner, size=size, **params),)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return None if tangents[0] is None else (pool_take(tangents[0], out[1], **params), None)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        return self(args[0], **params)


def _in_windows(x: Any) -> Any:
    """(*lead, oh, ow) -> (*lead, 1, 1, oh, ow)"""
    *lead, oh, ow = shape_of(x)
    return np.reshape(x, (*lead, 1, 1, oh, ow))


def _geometry(kernel: Steps, stride: Steps, dilation: Steps, padding: Padding) -> tuple[int, ...]:
    return (*kernel, *stride, *dilation, padding[0][0], padding[1][0])


class _AtWinners(Linear):
    """A linear map between planes and windows that reads winners."""

    reads = frozenset({1})

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        n = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
        return self(*[a if b else np.broadcast_to(a, (n, *shape_of(a))) for a, b in zip(args, batched, strict=True)], **params)


class PoolTake(_AtWinners):
    """The entry of each window that the winner names: (*lead, h, w), (*lead, oh, ow) int -> (*lead, oh, ow)"""

    def infer(self, x: Aval, winner: Aval, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> Aval:
        _check(self.name, x.shape, winner.shape, window_counts(self.name, x.shape[-2:], kernel, stride, dilation, padding))
        return Aval(winner.shape, x.dtype)

    def impl(self, x: Any, winner: Any, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> Any:
        if x.dtype not in _COMPILED:
            at = _positions(winner, x.shape[-2:], kernel, stride, dilation, padding)
            return np.take_along_axis(_flat(x), at, -1).reshape(winner.shape)
        out = np.empty(winner.shape, x.dtype.newbyteorder("="))
        kernels.take(_planes(x), _planes(winner), _geometry(kernel, stride, dilation, padding), _planes(out))
        return out

    def compose(self, x: Any, winner: Any, *, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> Any:
        windows = unfold(pad_edges(x, padding), kernel=kernel, stride=stride, dilation=dilation)
        rank = len(shape_of(windows))
        return np.sum(np.where(_numbers(windows) == _in_windows(winner), windows, 0), axis=(rank - 4, rank - 3))

    def vjp(self, out: Any, x: Any, winner: Any, **params: Any) -> Sequence[Pullback | None]:
        size = shape_of(x)[-2:]
        return (lambda g: pool_put(g, winner, size=size, **params), None)


class PoolPut(_AtWinners):
    """One entry per window added where the winner says: (*lead, oh, ow), (*lead, oh, ow) int -> (*lead, *size)"""

    def infer(self, g: Aval, winner: Aval, *, size: Shape, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> Aval:
        _check(self.name, g.shape, winner.shape, window_counts(self.name, size, kernel, stride, dilation, padding))
        return Aval((*g.shape[:-2], *size), g.dtype)

    def impl(self, g: Any, winner: Any, *, size: Shape, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> Any:
        out = np.zeros((*g.shape[:-2], *size), g.dtype.newbyteorder("="))
        if g.dtype in _COMPILED:
            kernels.put(_planes(g), _planes(winner), _geometry(kernel, stride, dilation, padding), _planes(out))
        else:
            at = _positions(winner, size, kernel, stride, dilation, padding)
            np.add.at(_flat(out), (np.arange(len(at))[:, None], at), _flat(g))
        return out

    def compose(self, g: Any, winner: Any, *, size: Shape, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps) -> Any:
        *lead, oh, ow = shape_of(g)
        windows = np.broadcast_to(_in_windows(g), (*lead, *kernel, oh, ow))
        chosen = np.where(_numbers(windows) == _in_windows(winner), windows, 0)
        return crop_edges(fold(chosen, size=padded_size(size, padding), stride=stride, dilation=dilation), padding)

    def vjp(self, out: Any, g: Any, winner: Any, *, size: Shape, **params: Any) -> Sequence[Pullback | None]:
        return (lambda c: pool_take(c, winner, **params), None)


def _check(name: str, x: Shape, winner: Shape, counts: Steps) -> None:
    if winner != (*x[:-2], *counts):
        raise ShapeError(f"{name}: one winner per window", got={"array": x, "winners": winner})


max_pool = MaxPool("max_pool")
pool_take = PoolTake("pool_take")
pool_put = PoolPut("pool_put")
