"""Sums, means, extremes, scans: reductions with NumPy's axis, keepdims, where and initial."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.dispatch import implements, implements_method
from fnad.core.tracer import Tracer
from fnad.numpy.elementwise import cast, plain
from fnad.numpy.elementwise import refuse_out as refuse_out
from fnad.numpy.metadata import normalise_axes, normalise_axis
from fnad.primitives import elementary
from fnad.primitives import reduction as prims
from fnad.primitives import special as special_prims
from fnad.primitives._families import Reduction, expand

_NO = np._NoValue


# -- arguments as NumPy takes them -------------------------------------------------------------------------------------


def _array(a: Any) -> Any:
    return a if isinstance(a, Tracer) else np.asarray(a)


def _axes(axis: Any, a: Any) -> tuple[int, ...]:
    ndim = len(shape_of(a))
    return () if ndim == 0 and axis in (0, -1) else normalise_axes(axis, ndim)  # 0-d arrays count as having one axis


def _keep(out: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    return expand(out, axes) if keepdims is not _NO and keepdims else out


def _mask(where: Any, a: Any) -> Any:
    """The mask broadcast to the shape of `a`; None if everything counts."""
    if where is _NO or where is True:
        return None
    where = _array(where)
    if where.dtype.kind != "b":
        raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('bool') according to the rule 'safe'")
    return np.broadcast_to(where, shape_of(a))


def _select(a: Any, where: Any, rest: Any) -> Any:
    """`a` where the mask holds, elsewhere the constant `rest` in a's dtype."""
    mask = _mask(where, a)
    return a if mask is None else np.where(mask, a, a.dtype.type(rest))


def _cast(a: Any, dtype: Any) -> Any:
    return a if dtype is None else cast(a, np.dtype(dtype))


def _start(initial: Any, like: Any) -> Any:
    """`initial` as a scalar in the dtype of a reduction's result."""
    dtype = aval_of(like).dtype
    if isinstance(initial, Tracer):
        return cast(initial, dtype)
    if np.ndim(initial):
        raise ValueError("setting an array element with a sequence.")
    return np.asarray(initial).astype(dtype)[()]


def _warn(condition: Any, message: str) -> None:
    """NumPy's warning, where it can be known that it is due."""
    if condition is False:
        return
    condition = plain(condition)
    if not isinstance(condition, Tracer) and np.any(condition):
        warnings.warn(message, RuntimeWarning, stacklevel=4)


# -- sums and products -------------------------------------------------------------------------------------------------


@implements(np.sum)
def sum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    refuse_out(out, "np.sum")
    a = _cast(_select(_array(a), where, 0), dtype)
    axes = _axes(axis, a)
    total = prims.sum(a, axis=axes)
    if initial is not _NO and not (initial.__class__ in (int, float) and initial == 0):
        total = total + _start(initial, total)
    return _keep(total, axes, keepdims)


@implements(np.prod)
def prod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    refuse_out(out, "np.prod")
    a = _cast(_select(_array(a), where, 1), dtype)
    axes = _axes(axis, a)
    total = prims.prod(a, axis=axes)
    if initial is not _NO and not (initial.__class__ in (int, float) and initial == 1):
        total = total * _start(initial, total)
    return _keep(total, axes, keepdims)


def _along(a: Any, axis: Any) -> tuple[Any, int]:
    """An array and a non-negative axis of it; axis None is the flattened array."""
    if axis is None or (not shape_of(a) and axis in (0, -1)):
        return np.ravel(a), 0
    return a, normalise_axis(axis, len(shape_of(a)))


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.cumsum")
    a, axis = _along(_cast(_array(a), dtype), axis)
    return prims.cumsum(a, axis=axis, reverse=False)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.cumprod")
    a, axis = _along(_cast(_array(a), dtype), axis)
    return prims.cumprod(a, axis=axis, reverse=False)


def _cumulative(scan: Callable[..., Any], x: Any, axis: Any, dtype: Any, out: Any, first: int | None) -> Any:
    x = np.atleast_1d(_array(x))
    if axis is None:
        if len(shape_of(x)) != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    result = scan(x, axis, dtype, out)
    if first is None:
        return result
    shape = list(shape_of(x))
    shape[axis] = 1
    return np.concatenate([np.full(shape, first, aval_of(result).dtype), result], axis=axis)


@implements(np.cumulative_sum)
def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
    return _cumulative(cumsum, x, axis, dtype, out, 0 if include_initial else None)


@implements(np.cumulative_prod)
def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
    return _cumulative(cumprod, x, axis, dtype, out, 1 if include_initial else None)


# -- extremes ----------------------------------------------------------------------------------------------------------


def _extreme(
    primitive: Reduction, pair: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, worst: float
) -> Any:
    refuse_out(out, f"np.{primitive.name}")
    a = _array(a)
    mask, dtype = _mask(where, a), a.dtype
    if mask is not None:
        if initial is _NO:
            raise ValueError(
                f"reduction operation '{pair.__name__}' does not have an identity, so to use a where mask one has to specify 'initial'"
            )
        a = np.where(mask, a, _worst(dtype, worst))
    axes = _axes(axis, a)
    if initial is _NO:
        return _keep(primitive(a, axis=axes), axes, keepdims)
    start, shape = _start(initial, a), shape_of(a)
    if 0 in (shape[i] for i in axes):
        best = np.broadcast_to(start, tuple(n for i, n in enumerate(shape) if i not in axes))
    else:
        best = pair(primitive(a, axis=axes), start)
    return _keep(best, axes, keepdims)


def _worst(dtype: np.dtype[Any], worst: float) -> Any:
    """What loses against every value of the dtype."""
    if dtype.kind in "fc":
        return dtype.type(worst)
    if dtype.kind == "b":
        return np.bool_(worst > 0)
    return dtype.type(np.iinfo(dtype).max if worst > 0 else np.iinfo(dtype).min)


@implements(np.max, np.amax)
def max(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    return _extreme(prims.max, np.maximum, a, axis, out, keepdims, initial, where, -math.inf)


@implements(np.min, np.amin)
def min(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    return _extreme(prims.min, np.minimum, a, axis, out, keepdims, initial, where, math.inf)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO) -> Any:
    refuse_out(out, "np.ptp")
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def _position(primitive: Any, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    refuse_out(out, f"np.{primitive.name}")
    a = _array(a)
    flat, where = _along(a, axis)
    found = primitive(flat, axis=where)
    if keepdims is _NO or not keepdims:
        return found
    return np.reshape(found, (1,) * len(shape_of(a))) if axis is None else expand(found, (where,) if shape_of(a) else ())


@implements(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NO) -> Any:
    return _position(prims.argmax, a, axis, out, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NO) -> Any:
    return _position(prims.argmin, a, axis, out, keepdims)


# -- truth -------------------------------------------------------------------------------------------------------------


@implements(np.any)
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO, *, where: Any = _NO) -> Any:
    refuse_out(out, "np.any")
    a = _array(a)
    axes = _axes(axis, a)
    return _keep(prims.any(_select(a, where, 0), axis=axes), axes, keepdims)


@implements(np.all)
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO, *, where: Any = _NO) -> Any:
    refuse_out(out, "np.all")
    a = _array(a)
    axes = _axes(axis, a)
    return _keep(prims.all(_select(a, where, 1), axis=axes), axes, keepdims)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(_array(a))
    return sum(np.not_equal(a, 0), axis, keepdims=keepdims) if isinstance(a, Tracer) else np.count_nonzero(a, axis, keepdims=keepdims)


# -- moments -----------------------------------------------------------------------------------------------------------


def _count(a: Any, axes: tuple[int, ...], where: Any, dtype: np.dtype[Any], keepdims: Any) -> Any:
    """How many entries a reduction reads: an int, or with a mask an array of the given dtype."""
    mask, shape = _mask(where, a), shape_of(a)
    return math.prod(shape[i] for i in axes) if mask is None else sum(mask, axes, dtype, keepdims=keepdims)


def _working(a: Any, dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The dtype in which a mean is computed, and that of the result."""
    own = a.dtype
    if dtype is not None:
        return np.dtype(dtype), np.dtype(dtype)
    if own.kind in "iub":
        return np.dtype(np.float64), np.dtype(np.float64)
    return (np.dtype(np.float32), own) if own == np.float16 else (own, own)


def _same(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if x.dtype == dtype else cast(x, dtype)


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO, *, where: Any = _NO) -> Any:
    refuse_out(out, "np.mean")
    a = _array(a)
    work, result = _working(a, dtype)
    axes = normalise_axes(axis, len(shape_of(a)))
    n = _count(a, axes, where, work, keepdims)
    _warn(n == 0, "Mean of empty slice")
    return _same(np.true_divide(sum(_same(a, work), axes, keepdims=keepdims, where=where), n), result)


@implements(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NO, *,
    where: Any = _NO, mean: Any = _NO, correction: Any = _NO,
) -> Any:  # fmt: skip
    refuse_out(out, "np.var")
    if correction is not _NO:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    a = _array(a)
    work, result = _working(a, dtype)
    axes = normalise_axes(axis, len(shape_of(a)))
    n = _count(a, axes, where, work, keepdims)
    _warn(n - ddof <= 0, "Degrees of freedom <= 0 for slice")
    a = _same(a, work)
    if mean is _NO:
        mean = np.true_divide(sum(a, axes, keepdims=True, where=where), _count(a, axes, where, work, True))
    x = a - mean
    squares = np.real(x * np.conjugate(x)) if x.dtype.kind == "c" else np.square(x)
    freedom = np.maximum(n - ddof, 0) if isinstance(n, Tracer | np.ndarray) else n - ddof if n > ddof else 0
    spread = np.true_divide(sum(squares, axes, keepdims=keepdims, where=where), freedom)
    return _same(spread, np.zeros(0, result).real.dtype if dtype is None else result)


@implements(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NO, *,
    where: Any = _NO, mean: Any = _NO, correction: Any = _NO,
) -> Any:  # fmt: skip
    refuse_out(out, "np.std")
    return elementary.root(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction))


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = _NO) -> Any:
    a = _array(a)
    axes = None if axis is None else _axes(axis, a)
    if weights is None:
        mid = mean(a, axes, keepdims=keepdims)
        scale = np.full(shape_of(mid), math.prod(shape_of(a)) / math.prod(shape_of(mid)), aval_of(mid).dtype)[()] if returned else None
        return (mid, scale) if returned else mid
    weights = _spread_weights(a, axis, axes, _array(weights))
    dtype = np.result_type(a, weights, *([np.float64] if a.dtype.kind in "iub" else []))
    scale = sum(weights, axes, dtype=dtype, keepdims=keepdims)
    zero = plain(scale) == 0
    if not isinstance(zero, Tracer) and np.any(zero):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    mid = sum(_same(a, dtype) * weights, axes, keepdims=keepdims) / scale
    return (mid, np.broadcast_to(scale, shape_of(mid))) if returned else mid


def _spread_weights(a: Any, axis: Any, axes: tuple[int, ...] | None, weights: Any) -> Any:
    """Weights in a shape that broadcasts with `a`."""
    shape = shape_of(a)
    if shape_of(weights) == shape:
        return weights
    if axes is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    given = [normalise_axis(i, len(shape)) for i in (axis if isinstance(axis, tuple) else (axis,))]
    if shape_of(weights) != tuple(shape[i] for i in given):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    weights = np.transpose(weights, sorted(range(len(given)), key=given.__getitem__))
    return np.broadcast_to(np.reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(shape))), shape)


# -- without nan -------------------------------------------------------------------------------------------------------


def _without_nan(a: Any, rest: float) -> tuple[Any, Any]:
    """An array with `rest` in place of nan, and where it was not nan."""
    a = _array(a)
    bad = np.isnan(a)
    return np.where(bad, a.dtype.type(rest), a), np.logical_not(bad)


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    return sum(_without_nan(a, 0)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    return prod(_without_nan(a, 1)[0], axis, dtype, out, keepdims, initial, where)


def _counted(good: Any, where: Any) -> Any:
    mask = _mask(where, good)
    return good if mask is None else np.logical_and(good, mask)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NO, *, where: Any = _NO) -> Any:
    filled, good = _without_nan(a, 0)
    with np.errstate(invalid="ignore"):
        return mean(filled, _axes(axis, filled), dtype, out, keepdims, where=_counted(good, where))


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NO, *,
    where: Any = _NO, mean: Any = _NO, correction: Any = _NO,
) -> Any:  # fmt: skip
    filled, good = _without_nan(a, 0)
    counted = _counted(good, where)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = var(filled, _axes(axis, filled), dtype, out, ddof, keepdims, where=counted, mean=mean, correction=correction)
    few = sum(counted, axis, keepdims=keepdims) <= (ddof if correction is _NO else correction)
    return np.where(few, aval_of(spread).dtype.type(math.nan), spread)


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NO, *,
    where: Any = _NO, mean: Any = _NO, correction: Any = _NO,
) -> Any:  # fmt: skip
    return elementary.root(nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))


def _nan_extreme(
    primitive: Reduction, pair: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, worst: float
) -> Any:
    result = _extreme(primitive, pair, a, axis, out, keepdims, initial, where, worst)
    _warn(np.isnan(result), "All-NaN slice encountered")
    return result


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    return _nan_extreme(prims.nanmax, np.fmax, a, axis, out, keepdims, initial, where, -math.inf)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, out: Any = None, keepdims: Any = _NO, initial: Any = _NO, where: Any = _NO) -> Any:
    return _nan_extreme(prims.nanmin, np.fmin, a, axis, out, keepdims, initial, where, math.inf)


# -- methods of ufuncs -------------------------------------------------------------------------------------------------


def _reduce_like(ufunc: np.ufunc, function: Callable[..., Any], takes: str = "initial where") -> None:
    """`ufunc.reduce` by a function of NumPy's that does the same; its axis defaults to 0, not to all."""

    @implements_method(ufunc, "reduce")
    def reduce(
        array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NO, where: Any = True
    ) -> Any:
        refuse_out(out, f"np.{ufunc.__name__}.reduce")
        options = {"initial": initial, "where": where} if "initial" in takes else {"where": where}
        return function(_cast(_array(array), dtype), axis, keepdims=keepdims, **options)


def _logaddexp(a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    a = _select(_array(a), where, -math.inf)
    axes = _axes(axis, a)
    total = special_prims.logsumexp(_same(a, _working(a, None)[1]), axis=axes)
    return _keep(total if initial is _NO else np.logaddexp(total, _start(initial, total)), axes, keepdims)


def _accumulate_like(ufunc: np.ufunc, scan: Callable[..., Any]) -> None:
    @implements_method(ufunc, "accumulate")
    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        refuse_out(out, f"np.{ufunc.__name__}.accumulate")
        if not shape_of(array):
            raise TypeError("cannot accumulate on a scalar")
        if axis is None and len(shape_of(array)) > 1:
            raise ValueError("accumulate does not allow multiple axes")
        return scan(array, 0 if axis is None else axis, dtype)


_reduce_like(np.add, sum)
_reduce_like(np.multiply, prod)
_reduce_like(np.maximum, max)
_reduce_like(np.minimum, min)
_reduce_like(np.fmax, lambda a, axis, keepdims, **k: _extreme(prims.nanmax, np.fmax, a, axis, None, keepdims, worst=-math.inf, **k))
_reduce_like(np.fmin, lambda a, axis, keepdims, **k: _extreme(prims.nanmin, np.fmin, a, axis, None, keepdims, worst=math.inf, **k))
_reduce_like(np.logical_or, any, "where")
_reduce_like(np.logical_and, all, "where")
_reduce_like(np.logaddexp, _logaddexp)
_accumulate_like(np.add, cumsum)
_accumulate_like(np.multiply, cumprod)
_accumulate_like(np.maximum, lambda a, axis, dtype: prims.cummax(_cast(_array(a), dtype), axis=normalise_axis(axis, a.ndim), reverse=False))
_accumulate_like(np.minimum, lambda a, axis, dtype: prims.cummin(_cast(_array(a), dtype), axis=normalise_axis(axis, a.ndim), reverse=False))
