"""Softmax and its relatives, and the ufuncs of `scipy.special`.

The latter are declared when one of them first meets a tracer, because importing SciPy takes longer than importing NumPy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import _fork, _scipy
from fnad.core import dispatch
from fnad.core.aval import Aval, aval_of, promotion_operand, shape_of
from fnad.core.primitive import REGISTRY
from fnad.errors import DTypeError
from fnad.primitives import distributions, elementary
from fnad.primitives._families import Elementwise, Primitive, Pullback, Reduction, Unary, expand, guarded
from fnad.primitives._of_scipy import no_slope, weak
from fnad.primitives.arithmetic import quotient
from fnad.primitives.indexing import iota

_LN10 = 2.302585092994046
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_ROOT_HALF = math.sqrt(0.5)


def shifted_exponentials(x: Any, axis: tuple[int, ...]) -> tuple[Any, Any]:
    """exp(x - m) with the maximum m of each slice (0 where that is infinite), and m with its axes kept."""
    start: dict[str, Any] = {"initial": -np.inf} if 0 in shape_of(x) else {}
    top = np.maximum.reduce(x, axis=axis, keepdims=True, **start)
    top = np.where(np.isfinite(top), top, 0)
    return np.exp(x - top), top


class LogSumExp(Reduction):
    """log(sum(exp(x))) over axes, without overflow. Its slope is the softmax; 0 where all entries are -inf."""

    def impl(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        with np.errstate(divide="ignore"):
            exps, top = shifted_exponentials(x, axis)
            return np.squeeze(np.log(np.add.reduce(exps, axis=axis, keepdims=True)) + top, axis)[()]

    def compose(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        exps, top = shifted_exponentials(x, axis)
        return np.squeeze(np.log(np.sum(exps, axis=axis, keepdims=True)) + top, axis)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        return (lambda g: guarded(expand(np.where(out == -np.inf, 0, g), axis), softmax(x, axis=axis)),)


class _AlongAxes(Primitive):
    """A function of slices along `axis` that keeps the shape."""

    def infer(self, x: Aval, *, axis: tuple[int, ...]) -> Aval:
        return x

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: tuple[int, ...]) -> Any:
        return self(args[0], axis=tuple(a + 1 for a in axis))


class Softmax(_AlongAxes):
    """exp(x) / sum(exp(x))."""

    reads = frozenset()

    def impl(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        with np.errstate(invalid="ignore"):
            exps, _ = shifted_exponentials(x, axis)
            return exps / np.add.reduce(exps, axis=axis, keepdims=True)

    def compose(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        exps, _ = shifted_exponentials(x, axis)
        return exps / np.sum(exps, axis=axis, keepdims=True)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        return (lambda g: _softmax_slope(g, out, axis),)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: tuple[int, ...]) -> Any:
        return _softmax_slope(tangents[0], out, axis)  # the matrix is symmetric


def _softmax_slope(t: Any, out: Any, axis: tuple[int, ...]) -> Any:
    """p (t - sum(p t)): the Jacobian of softmax at p, times t."""
    if 0 in shape_of(out):
        return t
    # p sums to 1, so a shift of t changes nothing; this one makes the largest p meet 0, and 1 - p is never formed.
    t = t - np.add.reduce(t * first_largest(out, axis=axis), axis=axis, keepdims=True)
    return guarded(t - np.add.reduce(guarded(t, out), axis=axis, keepdims=True), out)


class FirstLargest(_AlongAxes):
    """A mask of the first largest entry of each slice along `axis` (the first nan, if there is one)."""

    constant = True

    def infer(self, x: Aval, *, axis: tuple[int, ...]) -> Aval:
        return Aval(x.shape, np.dtype(bool))

    def impl(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        shape = shape_of(x)
        if 0 in shape:
            return np.zeros(shape, bool)
        order = [i for i in range(len(shape)) if i not in axis] + list(axis)
        moved = tuple(shape[i] for i in order)
        n = math.prod(shape[i] for i in axis)
        rows = np.reshape(np.transpose(x, order), (-1, n))
        mask = np.zeros(rows.shape, bool)
        mask[np.arange(len(rows)), np.argmax(rows, axis=-1)] = True
        return np.transpose(np.reshape(mask, moved), np.argsort(order).tolist())

    def compose(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        shape = shape_of(x)
        if 0 in shape:
            return np.zeros(shape, bool)
        number: Any = 0
        for a in axis:
            number = number * shape[a] + iota(x, axis=a, dtype=np.dtype(np.int32))
        top = np.max(x, axis=axis, keepdims=True)
        first = np.where((x == top) | (x != x), number, np.iinfo(np.int32).max)
        return np.broadcast_to(number == np.min(first, axis=axis, keepdims=True), shape)


class LogSoftmax(_AlongAxes):
    """x - log(sum(exp(x)))."""

    reads = frozenset()

    def impl(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            exps, top = shifted_exponentials(x, axis)
            return x - top - np.log(np.add.reduce(exps, axis=axis, keepdims=True))

    def compose(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        exps, top = shifted_exponentials(x, axis)
        return x - top - np.log(np.sum(exps, axis=axis, keepdims=True))

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...]) -> Sequence[Pullback]:
        def pull(g: Any) -> Any:
            if 0 in shape_of(out):
                return g
            rest = g - guarded(np.add.reduce(g, axis=axis, keepdims=True), np.exp(out))
            # It sums to 0: at the largest entry it is minus the sum of the others, where 1 - p would cancel.
            largest = first_largest(out, axis=axis)
            rest = np.where(largest, 0, rest)
            return np.where(largest, -np.add.reduce(rest, axis=axis, keepdims=True), rest)

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: tuple[int, ...]) -> Any:
        t = tangents[0]
        if 0 in shape_of(out):
            return t
        t = t - np.add.reduce(t * first_largest(out, axis=axis), axis=axis, keepdims=True)  # as in _softmax_slope
        return t - np.add.reduce(guarded(t, np.exp(out)), axis=axis, keepdims=True)


logsumexp = LogSumExp("logsumexp", np.logaddexp.reduce)
softmax = Softmax("softmax")
first_largest = FirstLargest("first_largest")
log_softmax = LogSoftmax("log_softmax")


# -- scipy.special -----------------------------------------------------------------------------------------------------

_lock = _fork.lock(5)
_loaded = False


def load_all() -> None:
    """Declare the primitives of `scipy.special` and their dispatch rows, if that is still to be done."""
    global _loaded
    with _lock:
        if not _loaded:
            sp = _scipy.special()
            for declare in (_logistic, _error_functions, _gamma_functions, _entropies, _bessel_functions, distributions.declare):
                declare(sp)
            _loaded = True


def _provide(function: Any) -> None:
    if isinstance(function, np.ufunc) and "scipy.special" in sys.modules:
        load_all()


dispatch.PROVIDERS.append(_provide)


def _ratio(x: Any, y: Any) -> Any:
    """x / y, and 0 where both are 0; elsewhere it must keep its derivative with respect to x."""
    return quotient(x, np.where((x == 0) & (y == 0), 1, y))


def _in_precision_of(ufunc: np.ufunc, primitive: Unary) -> Callable[[Any], Any]:
    """NumPy's function of the same name in the dtype in which SciPy computes it, which has none for float16."""

    def call(x: Any) -> Any:
        dtype = ufunc.resolve_dtypes((promotion_operand(aval_of(x)), None))[0]
        return primitive(x if aval_of(x).weak or x.dtype == dtype else x.astype(dtype))

    call.__doc__ = "real and complex" if "c" in primitive.kinds else ""
    return call


def _logistic(sp: Any) -> None:
    for ufunc, primitive in (
        (sp.expm1, elementary.expm1), (sp.log1p, elementary.log1p), (sp.exp2, elementary.exp2), (sp.cbrt, elementary.cbrt),
    ):  # fmt: skip
        dispatch.ROWS[ufunc] = _in_precision_of(ufunc, primitive)
    Unary("exp10", sp.exp10, slope_from_out=lambda y: y * _LN10, domain=(-1.0, 1.0))
    Unary("expit", sp.expit, lambda x: sp.expit(x) * sp.expit(-x), special=(0.0, 125.0, -125.0, 1000.0))
    Unary("log_expit", sp.log_expit, lambda x: sp.expit(-x), special=(0.0, 125.0, -125.0))
    Unary("logit", sp.logit, lambda x: np.reciprocal(x * (1 - x)), domain=(0.1, 0.9), special=(1e-10,))


def _error_functions(sp: Any) -> None:
    Unary("erf", sp.erf, lambda x: _TWO_OVER_ROOT_PI * np.exp(-x * x), domain=(-1.5, 1.5), special=(0.0, 5.0))
    Unary("erfc", sp.erfc, lambda x: -_TWO_OVER_ROOT_PI * np.exp(-x * x), domain=(-1.5, 1.5), special=(0.0, 5.0))
    Elementwise("erfcx", sp.erfcx, _erfcx_slope, domain=(-1.0, 3.0), special=(0.0, 20.0, 1e6))
    Unary("erfi", sp.erfi, lambda x: _TWO_OVER_ROOT_PI * np.exp(x * x), domain=(-1.0, 1.0))
    Unary("erfinv", sp.erfinv, slope_from_out=lambda y: np.exp(y * y) / _TWO_OVER_ROOT_PI, domain=(-0.9, 0.9), special=(0.0,))
    Unary("erfcinv", sp.erfcinv, slope_from_out=lambda y: -np.exp(y * y) / _TWO_OVER_ROOT_PI, domain=(0.1, 1.9), special=(1.0,))
    Elementwise("dawsn", sp.dawsn, _dawsn_slope, domain=(-1.5, 1.5), special=(0.0, 9.9, -20.0, 1e8))
    Unary("ndtr", sp.ndtr, lambda x: np.exp(-0.5 * x * x) / _ROOT_TWO_PI, special=(0.0, 8.0))
    Unary("log_ndtr", sp.log_ndtr, lambda x: _log_ndtr_slope(sp, x), special=(0.0, 8.0, -30.0))
    Unary("ndtri", sp.ndtri, slope_from_out=lambda y: _ROOT_TWO_PI * np.exp(0.5 * y * y), domain=(0.1, 0.9), special=(0.5,))


def _log_ndtr_slope(sp: Any, x: Any) -> Any:
    """exp(-x**2 / 2) / (sqrt(2 pi) ndtr(x)); below 0 without that quotient of two small numbers."""
    above = np.greater(x, 0)
    low = np.where(above, 0, x)
    return np.where(above, np.exp(-0.5 * x * x) / (_ROOT_TWO_PI * sp.ndtr(x)), _ROOT_TWO_OVER_PI / sp.erfcx(-_ROOT_HALF * low))


def _erfcx_coefficients(terms: int) -> tuple[float, ...]:
    """Of the slope's asymptotic series, -1 / (sqrt(pi) x**2) times a polynomial in 1 / x**2; the highest power first."""
    out, c = [], 1.0
    for n in range(terms):
        out.append(c * (2 * n + 1))
        c *= -(2 * n + 1) / 2
    return tuple(reversed(out))


_ERFCX_SERIES = _erfcx_coefficients(16)


def _erfcx_slope(x: Any, out: Any) -> Any:
    """2 x erfcx(x) - 2 / sqrt(pi), whose two terms cancel for large x: there it is a series."""
    large = np.greater(x, 10.0)
    inverse = np.reciprocal(np.where(large, x, 10.0))
    square = inverse * inverse
    series = 0.0 * square
    for c in _ERFCX_SERIES:
        series = series * square + c
    return np.where(large, -0.5 * _TWO_OVER_ROOT_PI * square * series, 2 * np.where(large, 0, x) * out - _TWO_OVER_ROOT_PI)


_DAWSN_SERIES = tuple(float(math.prod(range(1, 2 * k, 2))) / 2**k for k in range(16, 0, -1))
"""Of the slope's asymptotic series in 1 / x**2, with its sign turned; the highest power first."""


def _dawsn_slope(x: Any, out: Any) -> Any:
    """1 - 2 x dawsn(x), whose two terms cancel for large x: there it is a series."""
    large = np.greater(np.absolute(x), 10.0)
    inverse = np.reciprocal(np.where(large, x, 10.0))
    square = inverse * inverse
    series = 0.0 * square
    for c in _DAWSN_SERIES:
        series = (series + c) * square
    return np.where(large, -series, 1 - 2 * np.where(large, 0, x) * out)


def _polygamma(n: Any, x: Any) -> Any:
    if aval_of(x).dtype.kind == "c":
        raise DTypeError(
            "the derivative of digamma has no rule for complex numbers",
            got={"dtype": aval_of(x).dtype},
            fix="differentiate at real numbers",
        )
    out = _scipy.special().polygamma(n, x)
    dtype = aval_of(x).dtype
    return out.astype(dtype)[()] if dtype.kind == "f" else out[()]


def _gamma_functions(sp: Any) -> None:
    def psi(x: Any) -> Any:
        return weak(sp.digamma, x)

    Unary("gammaln", sp.gammaln, psi, domain=(0.5, 4.0), special=(1.0, 2.0, -0.5, 100.0))
    Elementwise("gamma", sp.gamma, lambda x, out: out * sp.digamma(x), domain=(0.5, 4.0), special=(1.0, -0.5))
    Elementwise("rgamma", sp.rgamma, lambda x, out: _rgamma_slope(sp, x, out), domain=(0.5, 4.0), special=(0.0, -1.0, -2.0, -2.5))
    Unary("digamma", sp.digamma, lambda x: polygamma(1, x), domain=(0.5, 4.0), special=(-0.5, 100.0))
    Unary("gammasgn", sp.gammasgn, domain=(0.5, 4.0), special=(-0.5, 1.5))
    Elementwise(
        "psi_difference",
        sp.beta,
        lambda x, y: _psi_gain(x, y),
        lambda x, y: -polygamma(1, x + y),
        numpy=(),
        impl=lambda x, y: _psi_difference(sp, x, y),
        domain=(0.5, 3.0),
        special=((50.0, 0.1), (1e3, 2.5)),
    )
    difference = REGISTRY["psi_difference"]
    Elementwise("beta", sp.beta, lambda x, y, out: out * difference(x, y), lambda x, y, out: out * difference(y, x), domain=(0.5, 3.0))
    Elementwise("betaln", sp.betaln, lambda x, y: difference(x, y), lambda x, y: difference(y, x), domain=(0.5, 3.0), special=((1e3, 2.5),))


def _psi_gain(x: Any, y: Any) -> Any:
    return polygamma(1, x) - polygamma(1, x + y)


def _psi_difference(sp: Any, x: Any, y: Any) -> Any:
    """digamma(x) - digamma(x + y), without their cancellation for positive arguments.

    The asymptotic series of digamma, in terms of a = 1 / x and b = 1 / (x + y), with a - b = y a b taken out of each difference
    of powers; where x is small, after the step digamma(x) = digamma(x + 1) - 1 / x has been taken often enough.
    """
    dtype = sp.beta.resolve_dtypes((*[promotion_operand(aval_of(v)) for v in (x, y)], None))[-1]
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    positive = (x > 0) & (y > 0)
    x0, y0 = np.where(positive, x, 1.0), np.where(positive, y, 1.0)
    steps, high = np.zeros_like(x0), x0
    if np.any(x0 < _STEPS):
        small = x0 < _STEPS
        for k in range(_STEPS):
            steps += np.where(small, 1 / ((x0 + k) * (x0 + k + y0)), 0)
        high = np.where(small, x0 + _STEPS, x0)
    a, b = 1 / high, 1 / (high + y0)
    a2, b2 = a * a, b * b
    series = 1 / 2 + (a + b) * (1 / 12 - (a2 + b2) / 120 + (a2 * a2 + a2 * b2 + b2 * b2) / 252 - (a2 + b2) * (a2 * a2 + b2 * b2) / 240)
    accurate = -np.log1p(y0 * a) - y0 * a * b * series - y0 * steps
    with np.errstate(all="ignore"):
        out = np.where(positive, accurate, sp.digamma(x) - sp.digamma(x + y))
    return out.astype(dtype)[()]


_STEPS = 20


def _rgamma_slope(sp: Any, x: Any, out: Any) -> Any:
    """-rgamma(x) digamma(x), where digamma has no poles; to the left of it by reflection, which has none there."""
    left = np.less(x, 0.5)
    low = np.where(left, x, 0.0)
    mirrored = 1 - low
    reflected = sp.gamma(mirrored) * (np.cos(np.pi * low) - low * np.sinc(low) * sp.digamma(mirrored))
    return np.where(left, reflected, -out * sp.digamma(np.where(left, 1.0, x)))


polygamma: Elementwise = Elementwise(
    "polygamma", _polygamma, no_slope("polygamma", "n"), lambda x, y: polygamma(x + 1, y), numpy=(), domain=(0.5, 4.0)
)
"""The n-th derivative of digamma at x; SciPy's is a function of Python, not a ufunc."""


def _entropies(sp: Any) -> None:
    Elementwise(
        "xlogy", sp.xlogy, lambda y: elementary.log(y), lambda x, y: _ratio(x, y), domain=(0.3, 3.0), special=((0.0, 0.0), (0.0, 2.0))
    )
    Elementwise(
        "xlog1py",
        sp.xlog1py,
        lambda y: elementary.log1p(y),
        lambda x, y: _ratio(x, 1 + y),
        domain=(-0.7, 3.0),
        special=((0.0, -1.0), (0.0, 2.0)),
    )
    Unary("entr", sp.entr, lambda x: -np.log(x) - 1, domain=(0.2, 3.0))
    Elementwise("rel_entr", sp.rel_entr, lambda x, y: np.log(quotient(x, y)) + 1, lambda x, y: -_ratio(x, y), domain=(0.3, 3.0))
    Elementwise("kl_div", sp.kl_div, lambda x, y: np.log(quotient(x, y)), lambda x, y: quotient(y - x, y), domain=(0.3, 3.0))


def _mean(below: Any, above: Any) -> Any:
    return 0.5 * (below + above)


def _bessel_functions(sp: Any) -> None:
    Unary("j0", sp.j0, lambda x: -sp.j1(x), special=(0.0,))
    Unary("j1", sp.j1, lambda x: _mean(sp.j0(x), -sp.jv(2.0, x)), special=(0.0,))
    Elementwise("jv", sp.jv, no_slope("jv", "v"), lambda x, y: _mean(sp.jv(x - 1, y), -sp.jv(x + 1, y)), domain=(0.5, 3.0))
    Unary("y0", sp.y0, lambda x: -sp.y1(x), domain=(0.5, 4.0))
    Unary("y1", sp.y1, lambda x: _mean(sp.y0(x), -sp.yv(2.0, x)), domain=(0.5, 4.0))
    Elementwise("yv", sp.yv, no_slope("yv", "v"), lambda x, y: _mean(sp.yv(x - 1, y), -sp.yv(x + 1, y)), domain=(0.5, 3.0))
    Unary("i0", sp.i0, lambda x: sp.i1(x), special=(0.0,))
    Unary("i1", sp.i1, lambda x: _mean(sp.i0(x), sp.iv(2.0, x)), special=(0.0,))
    Elementwise("iv", sp.iv, no_slope("iv", "v"), lambda x, y: _mean(sp.iv(x - 1, y), sp.iv(x + 1, y)), domain=(0.5, 3.0))
    Elementwise("i0e", sp.i0e, lambda x, out: sp.i1e(x) - np.sign(x) * out, special=(0.0,))
    Elementwise("i1e", sp.i1e, lambda x, out: _mean(sp.i0e(x), sp.ive(2.0, x)) - np.sign(x) * out, domain=(0.2, 3.0), special=(-1.0,))
    Elementwise(
        "ive", sp.ive, no_slope("ive", "v"),
        lambda x, y, out: _mean(sp.ive(x - 1, y), sp.ive(x + 1, y)) - np.sign(y) * out, domain=(0.5, 3.0),
    )  # fmt: skip
    Unary("k0", sp.k0, lambda x: -sp.k1(x), domain=(0.5, 4.0))
    Unary("k1", sp.k1, lambda x: -_mean(sp.k0(x), sp.kv(2.0, x)), domain=(0.5, 4.0))
    Elementwise("kv", sp.kv, no_slope("kv", "v"), lambda x, y: -_mean(sp.kv(x - 1, y), sp.kv(x + 1, y)), domain=(0.5, 3.0))
