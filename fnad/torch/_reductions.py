"""Reductions, scans along one axis, sorting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fnad.core.primitive import Primitive
from fnad.errors import ShapeError
from fnad.nn.functional import activations
from fnad.numpy import indexing, linalg, reductions, sorting
from fnad.numpy.metadata import normalise_axes, normalise_axis
from fnad.primitives import reduction as prims
from fnad.primitives._families import expand
from fnad.primitives.shape import reshape as reshape_primitive
from fnad.primitives.shape import stop
from fnad.torch import _dtypes
from fnad.torch._call import cast, lift, prim, tensor_of
from fnad.torch._dtypes import as_numpy
from fnad.torch._operators import maximum, minimum, true_divide
from fnad.torch._tensor import Tensor, make, method


class ValuesIndices(NamedTuple):
    """What functions along one axis return: `values, indices = x.max(1)`."""

    values: Any
    indices: Any


def axes_of(x: Any, dim: Any) -> tuple[int, ...]:
    """Non-negative axes; None and () mean all."""
    ndim = x._data.ndim
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(ndim))
    return () if ndim == 0 and dim in (0, -1) else normalise_axes(dim, ndim)


def axis_of(x: Any, dim: int) -> int:
    return 0 if x._data.ndim == 0 and dim in (0, -1) else normalise_axis(dim, x._data.ndim)


def _kept(out: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdim: bool) -> Any:
    return prim(reshape_primitive, out, shape=tuple(1 if i in axes else n for i, n in enumerate(shape))) if keepdim else out


def _reduce(primitive: Primitive, x: Any, dim: Any, keepdim: bool) -> Any:
    axes = axes_of(x, dim)
    return _kept(prim(primitive, x, axis=axes), x._data.shape, axes, keepdim)


def _floating(x: Any, dtype: Any, name: str) -> Any:
    if dtype is not None:
        return cast(x, as_numpy(dtype))
    if x._data.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}"
        )
    return x


@method()
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all entries, or along axes; integers give int64."""
    return _reduce(prims.sum, input if dtype is None else cast(input, as_numpy(dtype)), dim, keepdim)


@method()
def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of all entries, or along axes."""
    x = _floating(input, dtype, "mean")
    axes = axes_of(x, dim)
    return true_divide(_reduce(prims.sum, x, axes, keepdim) if axes else x, math.prod(x._data.shape[a] for a in axes) if axes else 1)


@method()
def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all entries, or along an axis."""
    return _reduce(prims.prod, input if dtype is None else cast(input, as_numpy(dtype)), dim, keepdim)


def _spread(function: Any, input: Any, dim: Any, unbiased: bool, correction: Any, keepdim: bool, name: str) -> Any:
    x = _floating(input, None, name)
    ddof = correction if correction is not None else int(unbiased)
    return lift(function, name)(x, axis=axes_of(x, dim), ddof=ddof, keepdims=keepdim)


def _swapped(dim: Any, unbiased: bool) -> tuple[Any, bool]:
    return (None, dim) if isinstance(dim, bool) else (dim, unbiased)


@method()
def var(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The variance; by default of a sample (divided by n - 1)."""
    dim, unbiased = _swapped(dim, unbiased)
    return _spread(reductions.var, input, dim, unbiased, correction, keepdim, "var")


@method()
def std(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The standard deviation; by default of a sample (divided by n - 1)."""
    dim, unbiased = _swapped(dim, unbiased)
    return _spread(reductions.std, input, dim, unbiased, correction, keepdim, "std")


def var_mean(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Variance and mean."""
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


def std_mean(input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """Standard deviation and mean."""
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, dim, keepdim)


def _position(primitive: Primitive, x: Any, dim: Any, keepdim: bool) -> Any:
    data = x._data
    if data.size == 0:
        raise IndexError(f"{primitive.name}(): Expected reduction dim to be specified for input.numel() == 0.")
    if dim is None:
        out = np.asarray(primitive(np.reshape(data, (-1,)), axis=0))
        return make(np.reshape(out, (1,) * data.ndim) if keepdim else out)
    if data.ndim == 0:
        return make(np.zeros((), np.int64))
    axis = axis_of(x, dim)
    out = np.asarray(primitive(data, axis=axis))
    return make(np.expand_dims(out, axis) if keepdim else out)


@method()
def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The first position of the largest entry: of all, or along an axis."""
    return _position(prims.argmax, input, dim, keepdim)


@method()
def argmin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The first position of the smallest entry: of all, or along an axis."""
    return _position(prims.argmin, input, dim, keepdim)


_along = lift(indexing.take_along_axis, "gather")


def _winner(primitive: Primitive, x: Any, dim: int, keepdim: bool) -> ValuesIndices:
    """One entry along an axis, which alone gets the gradient."""
    if x._data.ndim == 0:
        return ValuesIndices(x.clone(), make(np.zeros((), np.int64)))
    axis = axis_of(x, dim)
    if x._data.shape[axis] == 0:
        raise IndexError(f"{primitive.name}(): Expected reduction dim {axis} to have non-zero size.")
    where = np.expand_dims(np.asarray(primitive(x._data, axis=axis)), axis)
    return _taken(x, where, axis, keepdim)


def _taken(x: Any, where: Any, axis: int, keepdim: bool) -> ValuesIndices:
    values = _along(x, where, axis)
    if not keepdim:
        values, where = values.squeeze(axis), np.squeeze(where, axis)
    return ValuesIndices(values, make(where))


def _extreme(name: str, all_of: Primitive, position: Primitive, pairwise: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def function(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if isinstance(dim, Tensor) or other is not None:
            return pairwise(input, dim if other is None else other)
        if dim is None:
            if input._data.size == 0:
                raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            return _reduce(all_of, input, None, False)
        return _winner(position, input, dim, keepdim)

    function.__name__ = name
    function.__doc__ = f"The {name} of all entries; `(values, indices)` along an axis, where one entry wins; or of two tensors."
    return method(name)(function)


max = _extreme("max", prims.max, prims.argmax, maximum)
min = _extreme("min", prims.min, prims.argmin, minimum)


@method()
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest entry of all or along axes; entries that tie share the gradient."""
    return _reduce(prims.max, input, dim, keepdim)


@method()
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest entry of all or along axes; entries that tie share the gradient."""
    return _reduce(prims.min, input, dim, keepdim)


def _middle(x: Any) -> Any:
    """The lower median of a vector; entries that tie share the cotangent."""
    plain = stop(x)
    values = np.sort(plain)
    middle = values[-1] if np.isnan(values[-1]) else values[(len(values) - 1) // 2]
    chosen = (plain == middle) | (np.isnan(plain) & np.isnan(middle))
    return middle + np.sum(np.where(chosen, x - np.where(chosen, plain, 0), 0)) / np.sum(chosen).astype(x.dtype)


@method()
def median(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The median, of an even number of entries the lower one; `(values, indices)` along an axis."""
    if dim is None:
        if input._data.dtype.kind != "f":
            flat = np.sort(input._data, axis=None)
            return make(np.asarray(flat[(flat.size - 1) // 2]))
        return lift(_middle, "median")(input.reshape(-1))
    axis = axis_of(input, dim)
    order = np.argsort(input._data, axis=axis, kind="stable")
    n = input._data.shape[axis]
    where = np.take(order, [(n - 1) // 2], axis)
    if input._data.dtype.kind == "f":
        last = np.take(order, [n - 1], axis)
        first_nan = np.expand_dims(np.argmax(np.isnan(input._data), axis=axis), axis)
        where = np.where(np.isnan(np.take_along_axis(input._data, last, axis)), first_nan, where)
    return _taken(input, where, axis, keepdim)


@method()
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices:
    """The entries in order along an axis, and where they were. It is always stable."""
    where = argsort(input, dim, descending)
    return ValuesIndices(input.clone() if input._data.ndim == 0 else _along(input, where._data, axis_of(input, dim)), where)


@method()
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The positions that sort an axis; always stable."""
    data = input._data
    if data.ndim == 0:
        return make(np.zeros((), np.int64))
    axis = axis_of(input, dim)
    if not descending:
        return make(np.argsort(data, axis=axis, kind="stable"))
    order = np.argsort(np.flip(data, axis), axis=axis, kind="stable")  # from behind: equal entries keep their order
    return make(np.ascontiguousarray(np.flip(data.shape[axis] - 1 - order, axis)))


@method()
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
    """The k largest (or smallest) entries along an axis, in order, and where they are."""
    axis = axis_of(input, dim)
    if not 0 <= k <= input._data.shape[axis]:
        raise RuntimeError("selected index k out of range")
    where = np.take(argsort(input, dim, largest)._data, np.arange(k), axis)
    return ValuesIndices(_along(input, where, axis), make(where))


@method()
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The k-th smallest entry along an axis, counted from 1, and where it is."""
    axis = axis_of(input, dim)
    return _taken(input, np.take(argsort(input, dim)._data, [k - 1], axis), axis, keepdim)


@method()
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running sums."""
    x = input if dtype is None else cast(input, as_numpy(dtype))
    return prim(prims.cumsum, x, axis=axis_of(x, dim), reverse=False)


@method()
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Running products."""
    x = input if dtype is None else cast(input, as_numpy(dtype))
    return prim(prims.cumprod, x, axis=axis_of(x, dim), reverse=False)


def _verdict(primitive: Primitive) -> Callable[..., Any]:
    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return _reduce(primitive, input, dim, keepdim)

    function.__name__ = primitive.name
    function.__doc__ = f"Whether {primitive.name} entries are true, or along axes."
    return method(primitive.name)(function)


any, all = _verdict(prims.any), _verdict(prims.all)
_logsumexp = lift(activations.logsumexp)


@method()
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials along axes."""
    return _logsumexp(input, dim if isinstance(dim, int) else tuple(dim), keepdim)


def _norm(x: Any, ord: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    flat = np.reshape(x, (-1,)) if len(axes) == len(x.shape) else x
    if len(axes) == len(x.shape):
        out = linalg.norm(flat, ord)
        return expand(out, axes) if keepdim else out
    if len(axes) == 1:
        return linalg.norm(x, ord, axes[0], keepdim)
    raise ShapeError("norm: one axis, or all of them", got={"dim": axes, "shape": x.shape})


@method()
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    """The p-norm of all entries, or along an axis; its gradient at 0 is 0."""
    order = 2 if p in ("fro", None) else p
    return lift(_norm, "norm")(_floating(input, None, "norm"), order, axes_of(input, dim), keepdim)


@method()
def count_nonzero(input: Any, dim: Any = None) -> Any:
    """How many entries are not 0."""
    return make(np.asarray(np.count_nonzero(input._data, axis=None if dim is None else axes_of(input, dim))))


nansum, nanmean = lift(reductions.nansum), lift(reductions.nanmean)


def unique(input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    """The different entries, in order."""
    out: Any = np.unique(input._data, False, return_inverse, return_counts, dim)  # type: ignore[call-overload]
    return tuple(map(make, out)) if isinstance(out, tuple) else make(out)


method("unique")(unique)


def searchsorted(sorted_sequence: Any, input: Any, *, right: bool = False) -> Any:
    """Where entries would be put in a sorted vector."""
    return make(np.asarray(sorting.searchsorted(sorted_sequence._data, tensor_of(input)._data, "right" if right else "left")))


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number occurs."""
    return make(np.bincount(input._data, None if weights is None else weights._data, minlength))


def default_float(x: Any) -> Any:
    return x if x._data.dtype.kind in "fc" else cast(x, _dtypes.DEFAULT.floating)
