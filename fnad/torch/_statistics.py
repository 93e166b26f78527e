"""Quantiles, running extremes, differences, histograms, distances."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from fnad.nn.functional import logsumexp
from fnad.numpy import indexing
from fnad.torch._call import lift, tensor_of
from fnad.torch._creation import tensor
from fnad.torch._reductions import ValuesIndices, amax, amin, axis_of
from fnad.torch._shapes import cat, stack
from fnad.torch._tensor import Tensor, make, method

_along = lift(indexing.take_along_axis, "gather")


class MinMax(NamedTuple):
    """What `aminmax` returns."""

    min: Any
    max: Any


def _quantile(name: str, function: Any) -> Any:
    def call(input: Any, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
        levels = q._data if isinstance(q, Tensor) else q
        kept = input._data.ndim if dim is None else None
        out = lift(function, name)(input, levels, axis=dim, keepdims=keepdim and kept is None, method=interpolation)
        return out.reshape(*np.shape(levels), *(1,) * kept) if keepdim and kept is not None else out

    call.__name__ = name
    call.__doc__ = f"Where a share `q` of the entries lies below: `numpy.{name}`."
    return method(name)(call)


quantile, nanquantile = _quantile("quantile", np.quantile), _quantile("nanquantile", np.nanquantile)


@method()
def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest entry."""
    axis = () if dim is None else dim
    return MinMax(amin(input, axis, keepdim), amax(input, axis, keepdim))


@method()
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The entry that occurs most often along an axis (the smallest of several), and where it is last."""
    axis = axis_of(input, dim)
    rows = np.moveaxis(np.atleast_1d(input._data), axis, -1)

    def of(row: Any) -> int:
        values, counts = np.unique(row, return_counts=True)
        return int(np.flatnonzero(row == values[np.argmax(counts)])[-1])

    where = np.expand_dims(np.apply_along_axis(of, -1, rows), axis)
    values = _along(input.reshape(input._data.shape or (1,)), where, axis)
    return ValuesIndices(values, make(where)) if keepdim else ValuesIndices(values.squeeze(axis), make(np.squeeze(where, axis)))


def _running(name: str, better: Any) -> Any:
    def call(input: Any, dim: int) -> ValuesIndices:
        if not input._data.ndim:
            return ValuesIndices(input.clone(), make(np.zeros((), np.int64)))
        axis = axis_of(input, dim)
        data = input._data
        best = better.accumulate(data, axis=axis)
        numbers = np.arange(data.shape[axis]).reshape((-1,) + (1,) * (data.ndim - axis - 1))
        where = np.maximum.accumulate(np.where((data == best) | (data != data), numbers, 0), axis=axis)
        return ValuesIndices(_along(input, where, axis), make(where))

    call.__name__ = name
    call.__doc__ = "The extreme entry so far along an axis, and where it is (the last of several)."
    return method(name)(call)


cummax, cummin = _running("cummax", np.maximum), _running("cummin", np.minimum)


@method()
def logcumsumexp(input: Any, dim: int) -> Any:
    """The logarithm of running sums of exponentials."""
    if not input._data.ndim:
        return input.clone()
    axis = axis_of(input, dim)
    return lift(lambda x: _logcumsumexp(x, axis), "logcumsumexp")(input)


def _logcumsumexp(x: Any, axis: int) -> Any:
    """Every entry with all before it: none is far from what it is compared with, at the price of a square of memory."""
    rows = np.swapaxes(x, axis, -1)
    seen = np.tril(np.ones((rows.shape[-1],) * 2, bool))
    return np.swapaxes(logsumexp(np.where(seen, rows[..., None, :], rows.dtype.type(-np.inf)), -1), axis, -1)


@method()
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times."""
    parts = [p for p in (prepend, input, append) if p is not None]
    return lift(np.diff, "diff")(cat(parts, dim) if len(parts) > 1 else input, n, dim)


def trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral by trapezoids."""
    return lift(lambda y, x: np.trapezoid(y, x, dx, dim), "trapezoid")(y, x)


trapz = trapezoid


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """Running integrals by trapezoids."""
    n = y._data.shape[dim]
    steps = dx if x is None else diff(x, dim=dim if x._data.ndim > 1 else -1)
    halves = (y.narrow(dim, 0, n - 1) + y.narrow(dim, 1, n - 1)) / 2
    return (halves * steps).cumsum(dim)


@method()
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance of rows."""
    weights = {k: v for k, v in (("fweights", fweights), ("aweights", aweights)) if v is not None}
    return lift(lambda x, **w: np.cov(x, ddof=correction, **w), "cov")(input, **weights)


corrcoef = method("corrcoef")(lift(np.corrcoef, "corrcoef"))


@method()
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many entries lie in each of equal parts of a range; of all of it, if min and max are equal."""
    data = input._data
    low, high = (float(data.min()), float(data.max())) if min == max and data.size else (min, max)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return make(np.histogram(data, bins, (low, high))[0].astype(data.dtype))


@method()
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of the entries that are not nan."""
    if dim is None:
        return input[~input.isnan()].median()
    axis = axis_of(input, dim)
    order = np.argsort(input._data, axis=axis, kind="stable")
    count = np.sum(~np.isnan(input._data), axis=axis, keepdims=True)
    where = np.take_along_axis(order, np.maximum(count - 1, 0) // 2, axis)
    values = _along(input, where, axis)
    return ValuesIndices(values, make(where)) if keepdim else ValuesIndices(values.squeeze(axis), make(np.squeeze(where, axis)))


@method()
def unique_consecutive(input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The entries (or slices along an axis) without those that repeat the one before."""
    rows = input._data.reshape(-1) if dim is None else np.moveaxis(input._data, dim, 0)
    n = len(rows)
    new = np.ones(n, bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    starts = np.flatnonzero(new)
    out = [make(np.array(rows[starts]) if dim is None else np.moveaxis(rows[starts], 0, dim).copy())]
    if return_inverse:
        out.append(make((np.cumsum(new) - 1).reshape(input._data.shape if dim is None else (n,))))
    if return_counts:
        out.append(make(np.diff([*starts, n])))
    return tuple(out) if len(out) > 1 else out[0]


def bucketize(input: Any, boundaries: Any, *, right: bool = False, out_int32: bool = False) -> Any:
    """The number of the interval, between rising boundaries, that each entry is in."""
    data = input._data if isinstance(input, Tensor) else np.asarray(input)
    found = np.searchsorted(boundaries._data, data, side="right" if right else "left")
    return make(np.asarray(found, np.int32 if out_int32 else np.int64))


@method()
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Which entries are among others."""
    return make(np.asarray(np.isin(tensor_of(elements)._data, tensor_of(test_elements)._data, assume_unique, invert)))


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "") -> Any:
    """The distances of all rows of one matrix from those of another: (..., n, k), (..., m, k) -> (..., n, m)."""
    if x1._data.shape[-1] != x2._data.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1._data.shape[-1]} X2: {x2._data.shape[-1]}")
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)


def cartesian_prod(*tensors: Any) -> Any:
    """All combinations of entries of vectors, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    sizes = [len(t) for t in tensors]
    grids = np.meshgrid(*map(np.arange, sizes), indexing="ij")
    return stack([t[make(g.ravel())] for t, g in zip(tensors, grids, strict=True)], 1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All choices of r entries of a vector, as rows."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    where = list(choose(range(len(input)), r))
    return input[tensor(where)] if where else input.new_empty(0, r)


def tril_indices(row: int, col: int, offset: int = 0, **_: Any) -> Any:
    """The positions of the lower triangle of a matrix, (2, n)."""
    return make(np.stack(np.tril_indices(row, offset, col)))


def triu_indices(row: int, col: int, offset: int = 0, **_: Any) -> Any:
    """The positions of the upper triangle of a matrix, (2, n)."""
    return make(np.stack(np.triu_indices(row, offset, col)))


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Positions in a flat tensor as positions along each axis."""
    return tuple(make(np.asarray(x)) for x in np.unravel_index(indices._data, tuple(shape)))


@method()
def msort(input: Any) -> Any:
    """Sorted along the first axis."""
    return input.sort(0)[0]


__all__ = [
    "aminmax", "bucketize", "cartesian_prod", "cdist", "combinations", "corrcoef", "cov", "cummax", "cummin", "cumulative_trapezoid",
    "diff", "histc", "isin", "logcumsumexp", "mode", "msort", "nanmedian", "nanquantile", "quantile", "trapezoid", "trapz",
    "tril_indices", "triu_indices", "unique_consecutive", "unravel_index",
]  # fmt: skip
