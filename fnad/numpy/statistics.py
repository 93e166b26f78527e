"""Order statistics (quantiles, medians), covariances, counts, and running sums without nan."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.dispatch import implements, refuse
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ConcretizationError, UnsupportedError, user_line
from fnad.numpy import at as updates
from fnad.numpy.elementwise import cast, plain, refuse_out
from fnad.numpy.indexing import as_array, known
from fnad.numpy.metadata import normalise_axes
from fnad.numpy.sorting import ranked
from fnad.primitives._families import expand

_NO = np._NoValue
_INDEX = np.dtype(np.intp)


def rows_along(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The entries along one or several axes as the rows of one last axis; and these axes, sorted."""
    shape = shape_of(a)
    axes = normalise_axes(axis, len(shape))
    rest = [i for i in range(len(shape)) if i not in axes]
    moved = a if [*rest, *axes] == list(range(len(shape))) else np.transpose(a, [*rest, *axes])
    return np.reshape(moved, (*(shape[i] for i in rest), math.prod(shape[i] for i in axes))), axes


# -- quantiles -----------------------------------------------------------------------------------------------------


def _between(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _observation(place: Any, take_lower: Any) -> Any:
    below = np.floor(place)
    return np.where(take_lower(place, below), below, below + 1)


# The place of a quantile in the sorted entries; Hyndman and Fan, Sample quantiles in statistical packages, 1996.
_PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda n, q: (n - 1) * q,
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "median_unbiased": _between(1 / 3, 1 / 3),
    "normal_unbiased": _between(3 / 8, 3 / 8),
    "midpoint": lambda n, q: (n - 1) * q,
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "inverted_cdf": lambda n, q: _observation(n * q - 1, lambda place, below: place == below),
    "closest_observation": lambda n, q: _observation(
        n * q - 1.5, lambda place, below: np.logical_and(place == below, np.remainder(below, 2) == 1)
    ),
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.round((n - 1) * q),
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
# What the distance to the entry below becomes where a method does not interpolate linearly.
_STEPS: dict[str, Callable[[Any], Any]] = {
    "midpoint": lambda share: np.where(share == 0, 0.0, 0.5),
    "averaged_inverted_cdf": lambda share: np.where(share == 0, 0.5, 1.0),
}


def _levels(q: Any, most: int) -> tuple[Any, bool]:
    """Quantiles in [0, 1] as an array, and whether they came as a Python number, which decides no dtype."""
    weak = aval_of(q).weak and aval_of(q).dtype.kind != "b" if isinstance(q, Tracer) else q.__class__ in (int, float)
    q = as_array(q)
    if len(shape_of(q)) > 2:
        raise ValueError("q must be a scalar or 1d")
    value = known(q)
    if most != 1:
        q = np.true_divide(q, most)
    if value is not None and not np.all((value >= 0) & (value <= most)):
        raise ValueError("Quantiles must be in the range [0, 1]" if most == 1 else "Percentiles must be in the range [0, 100]")
    return q, bool(weak)


def _quantile(
    a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, *, name: str, most: int = 1, skip_nan: bool = False
) -> Any:  # fmt: skip
    refuse_out(out, f"np.{name}")
    if weights is not None:
        raise UnsupportedError(f"np.{name} with weights has no rule for traced values", fix="repeat entries, or call it on plain values")
    a = as_array(a)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    if method not in _PLACES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(_PLACES)}")
    q, weak = _levels(q, most)
    rows, axes = rows_along(a, axis)
    found = _of_rows(rows, q, weak, method, skip_nan)
    lead = len(shape_of(q))
    found = np.moveaxis(found, tuple(range(-lead, 0)), tuple(range(lead))) if lead else np.reshape(found, shape_of(found)[:-1])
    return expand(found, tuple(i + lead for i in axes)) if keepdims is not _NO and keepdims else found


def _of_rows(rows: Any, q: Any, weak: bool, method: str, skip_nan: bool) -> Any:
    """(..., n) and levels of any shape -> (..., *that shape), which is (1,) for a scalar."""
    *lead, n = shape_of(rows)
    size = math.prod(shape_of(q))
    levels = np.reshape(q, (size,))
    inexact = rows.dtype.kind == "f"
    if n == 0:
        if not skip_nan:
            raise IndexError("index -1 is out of bounds for axis 0 with size 0")
        warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=5)
        return np.full((*lead, *(shape_of(q) or (1,))), math.nan, rows.dtype)
    count: Any = n
    if skip_nan and inexact:
        count = np.sum(np.logical_not(np.isnan(rows)), axis=-1, keepdims=True)
        if (empty := known(count)) is not None and np.any(empty == 0):
            warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=5)
    place = _PLACES[method](count, levels)
    last = np.maximum(count - 1, 0)
    inside = np.clip(plain(place), 0, last)
    below = np.astype(np.floor(as_array(inside)), _INDEX)
    if method in _DISCRETE:
        wanted, parts = below, 1
    else:
        above = np.where(inside >= last, last, np.where(place < 0, 0, below + 1))
        wanted, parts = np.concatenate([below, np.astype(above, _INDEX)], axis=-1), 2
    if inexact and not skip_nan:
        wanted, parts = np.concatenate([wanted, [n - 1]]), parts + 1
    values = ranked(rows, wanted)
    found = [values[..., k * size : (k + 1) * size] for k in range(2)]
    result = found[0]
    if method not in _DISCRETE:
        share = place - np.floor(place)
        share = _STEPS[method](share) if method in _STEPS else share
        rest = 1 - share
        if weak and (inexact or method != "linear"):  # as a Python number, it gives way to the dtype of the entries
            share, rest = (cast(x, rows.dtype if inexact else np.dtype(np.float64)) for x in (share, rest))
        step = found[1] - found[0]
        result = np.where(share >= 0.5, found[1] - step * rest, found[0] + step * share)
    if inexact and not skip_nan:
        worst = values[..., -1:]  # nan is sorted to the end
        result = np.where(np.isnan(worst), cast(worst, aval_of(result).dtype), result)
    return np.reshape(result, (*lead, *(shape_of(q) or (1,))))


@implements(np.quantile)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: Any = False, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    """All methods; those that interpolate differentiate by q too. Of equal entries the one that a stable sort puts there counts."""
    return _quantile(a, q, axis, out, method, keepdims, weights, name="quantile")


@implements(np.percentile)
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: Any = False, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    return _quantile(a, q, axis, out, method, keepdims, weights, name="percentile", most=100)


@implements(np.nanquantile)
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: Any = _NO, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    return _quantile(a, q, axis, out, method, keepdims, weights, name="nanquantile", skip_nan=True)


@implements(np.nanpercentile)
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear", keepdims: Any = _NO, *,
    weights: Any = None,
) -> Any:  # fmt: skip
    return _quantile(a, q, axis, out, method, keepdims, weights, name="nanpercentile", most=100, skip_nan=True)


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """Of an even number of entries the mean of the two in the middle, each of which takes half of the derivative."""
    refuse_out(out, "np.median")
    a = as_array(a)
    rows, axes = rows_along(a, () if not shape_of(a) and axis in (0, -1) else axis)
    n = shape_of(rows)[-1]
    if n == 0:
        return np.mean(a, axes, keepdims=keepdims)
    middle = [n // 2] if n % 2 else [n // 2 - 1, n // 2]
    values = ranked(rows, np.array([*middle, n - 1]))
    result, last = np.mean(values[..., :-1], axis=-1), values[..., -1]  # nan is sorted to the end
    result = np.where(np.isnan(last), last, result) if a.dtype.kind in "fc" else result
    return expand(result, axes) if keepdims is not _NO and keepdims else result


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = _NO) -> Any:
    refuse_out(out, "np.nanmedian")
    a = as_array(a)
    if a.dtype.kind not in "fc" or 0 in shape_of(a):
        return np.median(a, axis, keepdims=keepdims is not _NO and keepdims)
    rows, axes = rows_along(a, axis)
    count = np.sum(np.logical_not(np.isnan(rows)), axis=-1, keepdims=True)
    if (empty := known(count)) is not None and np.any(empty == 0):
        warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=3)
    middle = np.concatenate([np.maximum(count - 1, 0) // 2, np.minimum(count // 2, np.maximum(count - 1, 0))], axis=-1)
    result = np.mean(ranked(rows, middle), axis=-1)
    return expand(result, axes) if keepdims is not _NO and keepdims else result


# -- covariance ----------------------------------------------------------------------------------------------------


def _observations(m: Any, rowvar: Any, dtype: Any) -> Any:
    """Variables in rows."""
    if len(shape_of(m)) > 2:
        raise ValueError("m has more than 2 dimensions")
    x = cast(np.atleast_2d(m), dtype)
    return x.T if not rowvar and len(shape_of(m)) == 2 else x


def _weights(given: Any, name: str, observations: int, whole: bool = False) -> Any:
    if given is None:
        return None
    w = cast(given, np.dtype(np.float64))
    value = known(w)
    if len(shape_of(w)) > 1 or shape_of(w) != (observations,):
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if value is not None and np.any(value < 0):
        raise ValueError(f"{name} cannot be negative")
    if whole and value is not None and np.any(value != np.round(value)):
        raise TypeError(f"{name} must be integer")
    return w


@implements(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
    dtype: Any = None,
) -> Any:  # fmt: skip
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    m, y = as_array(m), None if y is None else as_array(y)
    dtype = np.result_type(*([m] if y is None else [m, y]), np.float64) if dtype is None else np.dtype(dtype)
    x = _observations(m, rowvar, dtype)
    if not shape_of(x)[0]:
        return np.zeros((0, 0))
    if y is not None:
        x = np.concatenate([x, _observations(y, rowvar, dtype)], axis=0)
    n = shape_of(x)[1]
    lost = (0 if bias else 1) if ddof is None else int(ddof)
    repeats, aweights = _weights(fweights, "fweights", n, whole=True), _weights(aweights, "aweights", n)
    w = aweights if repeats is None else repeats if aweights is None else repeats * aweights
    total = n if w is None else np.sum(w)
    scale = total - lost if aweights is None or not lost else total - lost * np.sum(w * aweights) / total
    value = known(scale)
    if value is not None and value <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        scale = 0.0
    x = x - np.average(x, axis=1, weights=w, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.matmul(x, np.conjugate((x if w is None else x * w).T)) * np.true_divide(1, scale)
    return np.squeeze(spread)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return c / c
    scale = np.sqrt(np.real(np.diag(c)))
    c = c / scale[:, None] / scale
    return np.clip(np.real(c), -1, 1) + 1j * np.clip(np.imag(c), -1, 1) if aval_of(c).dtype.kind == "c" else np.clip(c, -1, 1)


# -- counts --------------------------------------------------------------------------------------------------------


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """The places must be known; the sums of weights differentiate by the weights."""
    places = known(as_array(x))
    if places is None:
        raise ConcretizationError(
            "np.bincount needs the entries: the largest of them decides the shape of the result",
            got={"value": repr(x), "at": user_line()},
            fix="write fnad.at(np.zeros(n)).add: fnad.at(np.zeros(n))[x].add(weights)",
        )
    if weights is None:
        return np.bincount(places, None, minlength)
    counts = np.bincount(places, None, minlength)  # which checks them
    if shape_of(weights) != places.shape:
        raise ValueError("The weights and list don't have the same length.")
    return updates.at(np.zeros(counts.shape))[places].add(cast(weights, np.dtype(np.float64)))


refuse(
    "counts have no derivative: call it on fnad.stop_gradient(x), outside of jit and vmap (np.bincount and np.searchsorted can be traced)",
    np.histogram,
    np.histogram2d,
    np.histogramdd,
    np.histogram_bin_edges,
)


# -- without nan ---------------------------------------------------------------------------------------------------


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumsum(_filled(a, 0), axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumprod(_filled(a, 1), axis, dtype, out)


def _filled(a: Any, rest: float) -> Any:
    a = as_array(a)
    return np.where(np.isnan(a), a.dtype.type(rest), a)


def _nan_position(find: Any, a: Any, axis: Any, out: Any, keepdims: Any, worst: float) -> Any:
    a = as_array(a)
    bad = np.isnan(a)
    value = known(bad)
    if value is not None and np.any(np.all(value, axis=axis)):
        raise ValueError("All-NaN slice encountered")
    return find(np.where(bad, a.dtype.type(worst), a) if a.dtype.kind == "f" else a, axis, out, keepdims=keepdims)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NO) -> Any:
    return _nan_position(np.argmax, a, axis, out, keepdims, -math.inf)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = _NO) -> Any:
    return _nan_position(np.argmin, a, axis, out, keepdims, math.inf)


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    if kind == "table":
        raise ArgumentError("np.isin of traced values compares entries", got={"kind": kind}, fix="leave kind out")
    found = np.any(np.equal(np.expand_dims(as_array(element), -1), np.ravel(as_array(test_elements))), axis=-1)
    return np.logical_not(found) if invert else found
