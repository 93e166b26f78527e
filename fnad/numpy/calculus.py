"""Interpolation, integrals and differences on grids, convolution, polynomials, phases."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import aval_of, result_dtype, shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, UnsupportedError
from fnad.numpy import at as updates
from fnad.numpy.elementwise import as_operand, cast, plain
from fnad.numpy.indexing import as_array, known, take
from fnad.numpy.metadata import normalise_axes, normalise_axis
from fnad.numpy.sorting import searchsorted
from fnad.primitives.convolve import convolve as convolution
from fnad.primitives.windows import unfold

_WIDE = np.dtype(np.float64)

# -- on grids ------------------------------------------------------------------------------------------------------


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Differentiates by x, xp and fp. At a point of xp the slope is that of the interval above it (at the last one, below)."""
    x, xp, fp = (as_array(v) for v in (x, xp, fp))
    if len(shape_of(xp)) != 1 or shape_of(fp) != shape_of(xp):
        raise ValueError("Data points must be 1-D sequences" if len(shape_of(xp)) != 1 else "fp and xp are not of the same length.")
    x, xp, fp = cast(x, _WIDE), cast(xp, _WIDE), cast(fp, np.result_type(fp.dtype, _WIDE))
    n = shape_of(xp)[0]
    if n == 0:
        raise ValueError("array of sample points is empty")
    if period is not None:
        if isinstance(period, Tracer) or period == 0:
            raise ArgumentError("np.interp: the period must be a plain number other than 0", got={"period": repr(period)})
        period = abs(period)
        x, xp = np.remainder(x, period), np.remainder(xp, period)
        order = np.argsort(plain(xp))
        xp, fp = take(xp, order), take(fp, order)
        xp, fp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period]), np.concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
        n += 2
    ends = fp[0] if left is None else left, fp[n - 1] if right is None else right
    if n == 1:
        inner = np.broadcast_to(fp[0], shape_of(x))
    else:
        below = np.clip(searchsorted(plain(xp), plain(x), "right") - 1, 0, n - 2)
        low, high, start, stop = take(xp, below), take(xp, below + 1), take(fp, below), take(fp, below + 1)
        slope = (stop - start) / np.where(high == low, 1, high - low)
        last = x == xp[n - 1]  # so that the value there is the last one, exactly
        inner = slope * (x - np.where(last, high, low)) + np.where(last, stop, start)
    found = np.where(x < xp[0], ends[0], np.where(x > xp[n - 1], ends[1], inner))
    return np.where(np.isnan(x), x, found)


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = as_array(y)
    shape = shape_of(y)
    axis = normalise_axis(axis, len(shape))
    lead = (slice(None),) * axis
    steps = dx
    if x is not None:
        x = as_array(x)
        steps = np.diff(x) if len(shape_of(x)) == 1 else np.diff(x, axis=axis)
        if len(shape_of(x)) == 1:
            steps = np.reshape(steps, (-1, *(1,) * (len(shape) - axis - 1)))
    return np.sum(steps * (y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]) / 2.0, axis)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Finite differences; they differentiate by the spacing too."""
    f = as_array(f)
    shape = shape_of(f)
    axes = tuple(range(len(shape))) if axis is None else normalise_axes(axis, len(shape))
    if isinstance(axis, tuple | list):
        axes = tuple(normalise_axis(a, len(shape)) for a in axis)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if not varargs:
        spacings: list[Any] = [1.0] * len(axes)
    elif len(varargs) == 1 and not shape_of(as_operand(varargs[0])):
        spacings = [varargs[0]] * len(axes)
    elif len(varargs) == len(axes):
        spacings = [_spacing(s, shape[a]) for s, a in zip(varargs, axes, strict=True)]
    else:
        raise TypeError("invalid number of arguments")
    if f.dtype.kind in "iu":
        f = cast(f, _WIDE)
    found = tuple(_difference(f, s, a, edge_order) for s, a in zip(spacings, axes, strict=True))
    return found[0] if len(found) == 1 else found


def _spacing(given: Any, n: int) -> Any:
    """A step, or the steps between coordinates; a step where all of them are equal (only plain coordinates can be seen to be)."""
    given = as_operand(given)
    shape = shape_of(given)
    if not shape:
        return given
    if len(shape) != 1:
        raise ValueError("distances must be either scalars or 1d")
    if shape != (n,):
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    steps = np.diff(cast(given, _WIDE) if given.dtype.kind in "iu" else given)
    return steps[0] if isinstance(steps, np.ndarray) and np.all(steps == steps[0]) else steps


def _difference(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    n = shape_of(f)[axis]
    if n < edge_order + 1:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.")
    f = np.moveaxis(f, axis, -1)
    uniform = not shape_of(h)
    if uniform:
        inner = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
    else:
        low, high = h[:-1], h[1:]
        a, b, c = -high / (low * (low + high)), (high - low) / (low * high), low / (high * (low + high))
        inner = a * f[..., :-2] + b * f[..., 1:-1] + c * f[..., 2:]
    if edge_order == 1:
        first = (f[..., 1:2] - f[..., :1]) / (h if uniform else h[0])
        last = (f[..., -1:] - f[..., -2:-1]) / (h if uniform else h[-1])
    else:
        first = _edge(f[..., 0:1], f[..., 1:2], f[..., 2:3], *((h, h) if uniform else (h[0], h[1])), uniform)
        last = -_edge(f[..., -1:], f[..., -2:-1], f[..., -3:-2], *((h, h) if uniform else (h[-1], h[-2])), uniform)
    return cast(np.moveaxis(np.concatenate([first, inner, last], axis=-1), -1, axis), f.dtype if f.dtype.kind in "fc" else _WIDE)


def _edge(f0: Any, f1: Any, f2: Any, h1: Any, h2: Any, uniform: bool) -> Any:
    """The slope at the first of three points, of second order."""
    if uniform:
        return -1.5 / h1 * f0 + 2.0 / h1 * f1 + -0.5 / h1 * f2
    return -(2.0 * h1 + h2) / (h1 * (h1 + h2)) * f0 + (h1 + h2) / (h1 * h2) * f1 + -h1 / (h2 * (h1 + h2)) * f2


# -- windows and convolution ---------------------------------------------------------------------------------------


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Any:
    """Windows that slide over axes; a new value, not a view of memory."""
    sizes = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    shape = shape_of(x)
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    if len(sizes) != len(axes):
        raise ValueError(f"Since axis is {axis}, must provide window_shape for all of them; got {len(sizes)} sizes for {len(axes)} axes.")
    if any(m < 0 for m in sizes):
        raise ValueError("`window_shape` cannot contain negative values")
    for m, where in zip(sizes, [normalise_axis(a, len(shape)) for a in axes], strict=True):
        if shape_of(x)[where] < m:
            raise ValueError("window shape cannot be larger than input array shape")
        moved = np.expand_dims(np.moveaxis(x, where, -1), -2)
        windows = unfold(moved, kernel=(1, m), stride=(1, 1), dilation=(1, 1))  # (..., 1, m, 1, count)
        *lead, _, _, _, count = shape_of(windows)
        x = np.moveaxis(np.swapaxes(np.reshape(windows, (*lead, m, count)), -1, -2), -2, where)
    return x


def _sequences(a: Any, v: Any) -> tuple[Any, Any]:
    a, v = (np.reshape(x, (1,)) if not shape_of(x) else x for x in (as_array(a), as_array(v)))
    if len(shape_of(a)) != 1 or len(shape_of(v)) != 1:
        raise ValueError("object too deep for desired array")
    for name, x in (("a", a), ("v", v)):
        if not shape_of(x)[0]:
            raise ValueError(f"{name} cannot be empty")
    return a, v


def _cut(full: Any, n: int, m: int, mode: Any, begin: int) -> Any:
    if mode == "full":
        return full
    if mode == "same":
        return full[begin : begin + max(n, m)]
    raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    a, v = _sequences(a, v)
    n, m = shape_of(a)[0], shape_of(v)[0]
    if n < m:
        a, v = v, a
    if mode == "valid":
        return convolution(a, v, mode="valid")
    return _cut(convolution(a, v, mode="full"), n, m, mode, (min(n, m) - 1) // 2)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    a, v = _sequences(a, v)
    n, m = shape_of(a)[0], shape_of(v)[0]
    v = np.conjugate(v)[::-1]
    if mode == "valid":
        return convolution(*((a, v) if n >= m else (v, a)), mode="valid")
    return _cut(convolution(a, v, mode="full"), n, m, mode, (m - 1) // 2 if n >= m else n // 2)


# -- polynomials ---------------------------------------------------------------------------------------------------


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = as_array(x)
    if len(shape_of(x)) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns = shape_of(x)[0] if N is None else N.__index__()
    dtype = np.promote_types(x.dtype, np.int64)
    ones = np.ones((shape_of(x)[0], min(columns, 1)), dtype)
    powers = np.cumprod(np.broadcast_to(cast(x, dtype)[:, None], (shape_of(x)[0], max(columns - 1, 0))), axis=1)
    powers = np.concatenate([ones, powers], axis=1)
    return powers if increasing else powers[:, ::-1]


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    p = as_array(p)
    x = as_array(x)
    y: Any = np.zeros(shape_of(x), aval_of(x).dtype)
    for k in range(shape_of(p)[0]):
        y = y * x + p[k]
    return y


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """The coefficients of a least-squares fit; they differentiate by x, y and w."""
    if full or cov:
        raise UnsupportedError("np.polyfit of traced values gives the coefficients only", fix="leave full= and cov= out")
    if np.ndim(deg):
        raise UnsupportedError("np.polyfit of traced values takes one degree", got={"deg": deg}, fix="solve np.vander with np.linalg.lstsq")
    x, y = as_array(x) + 0.0, as_array(y) + 0.0
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if len(shape_of(x)) != 1 or not shape_of(x)[0]:
        raise TypeError("expected non-empty 1D vector for x")
    if len(shape_of(y)) not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if shape_of(y)[0] != shape_of(x)[0]:
        raise TypeError("expected x and y to have same length")
    rcond = shape_of(x)[0] * np.finfo(x.dtype).eps if rcond is None else rcond
    columns, right = np.vander(x, deg + 1), y
    if w is not None:
        w = as_array(w) + 0.0
        if shape_of(w) != shape_of(x):
            raise TypeError("expected w and y to have the same length")
        columns, right = columns * w[:, None], right * (w if len(shape_of(y)) == 1 else w[:, None])
    scale = np.sqrt(np.sum(columns * columns, axis=0))
    found, _, rank, _ = np.linalg.lstsq(columns / scale, right, rcond)
    if (value := known(rank)) is not None and value != deg + 1:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    return (found.T / scale).T


def _coefficients(a: Any) -> Any:
    return np.atleast_1d(as_array(a))


def _sum_of(a1: Any, a2: Any, sign: int) -> Any:
    a1, a2 = _coefficients(a1), _coefficients(a2)
    n = max(shape_of(a1)[0], shape_of(a2)[0])
    a1, a2 = (np.pad(a, (n - shape_of(a)[0], 0)) for a in (a1, a2))
    return a1 + a2 if sign > 0 else a1 - a2


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    return _sum_of(a1, a2, 1)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    return _sum_of(a1, a2, -1)


@implements(np.polyder)
def polyder(p: Any, m: Any = 1) -> Any:
    if m.__index__() < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = _coefficients(p)
    for _ in range(m):
        p = p[:-1] * np.arange(shape_of(p)[0] - 1, 0, -1)
    return p


# -- phases and parts ----------------------------------------------------------------------------------------------


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = math.tau) -> Any:
    """What is added are multiples of the period: the derivative is that of p."""
    if isinstance(period, Tracer) or isinstance(discont, Tracer):
        raise ArgumentError("np.unwrap: period and discont must be plain numbers", got={"period": repr(period), "discont": repr(discont)})
    p = as_array(p)
    axis = normalise_axis(axis, len(shape_of(p)))
    steps = np.diff(plain(p), axis=axis)
    dtype = np.result_type(aval_of(steps).dtype, period)
    half = period / 2 if dtype.kind == "f" or period % 2 else period // 2
    wrapped = np.remainder(steps + half, period) - half
    if dtype.kind == "f" or period % 2 == 0:
        wrapped = np.where((wrapped == -half) & (steps > 0), half, wrapped)
    jumps = np.where(np.abs(steps) < (half if discont is None else discont), 0, wrapped - steps)
    edge = [(1, 0) if k == axis else (0, 0) for k in range(len(shape_of(p)))]
    return cast(p, dtype) + cast(np.pad(np.cumsum(jumps, axis), edge), dtype)


@implements(np.i0)
def i0(x: Any) -> Any:
    return _scipy.special().i0(x)


@implements(np.modf)
def modf(x: Any, /) -> tuple[Any, Any]:
    whole = np.trunc(x)
    return np.where(np.isinf(x), np.copysign(0, x), x - whole), whole


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Where the conditions are not known (while recording, under `vmap`), each function is given all of x and must work entry by entry."""
    x = as_array(x)
    if np.isscalar(condlist) or (not shape_of(condlist[0]) and shape_of(x)):
        condlist = [condlist]
    conditions = [np.astype(as_array(c), np.bool_) for c in condlist]
    if len(funclist) == len(conditions) + 1:
        met = conditions[0]
        for c in conditions[1:]:
            met = met | c
        conditions.append(np.logical_not(met))
    elif len(funclist) != len(conditions):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected")
    dtype = aval_of(x).dtype
    out: Any = np.zeros(shape_of(x), dtype)
    for condition, function in zip(conditions, funclist, strict=True):
        mask = known(condition)
        if not callable(function):
            out = np.where(condition, cast(function, dtype), out)
        elif mask is None or not shape_of(x):
            with np.errstate(all="ignore"):
                out = np.where(condition, cast(function(x, *args, **kw), dtype), out)
        elif np.any(mask):
            out = updates.at(out)[mask].set(cast(function(x[mask], *args, **kw), dtype))
    return out


# -- ranges --------------------------------------------------------------------------------------------------------


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Between real ends of the same sign."""
    ends = [as_operand(x) for x in (start, stop)]
    common = np.result_type(result_dtype(*map(aval_of, ends)), 1.0)
    if common.kind == "c":
        raise UnsupportedError("np.geomspace between traced ends takes real ones", fix="write np.exp(np.linspace(np.log(a), np.log(b), n))")
    start, stop = (cast(x, common) for x in ends)
    sign = np.sign(plain(start))
    exponents = np.linspace(0.0, 1.0, num, endpoint=endpoint)
    exponents = np.reshape(exponents, (-1, *(1,) * len(np.broadcast_shapes(shape_of(start), shape_of(stop)))))
    low, high = np.log(np.abs(start)), np.log(np.abs(stop))
    samples = sign * np.exp(low + (high - low) * exponents)
    at_ends = np.where(exponents == 0, start, np.where(exponents == 1, stop, samples))  # exactly, whatever rounding did
    samples = cast(np.moveaxis(at_ends, 0, axis), common)
    return samples if dtype is None else np.astype(samples, dtype)
