"""Functions of each element of one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of
from fnad.primitives._families import Elementwise, Linear, Primitive, Pullback, Unary

_LN2, _LN10 = 0.6931471805599453, 2.302585092994046
_DEGREE = 0.017453292519943295

# Slopes divide with np.true_divide and np.reciprocal, not `/`: an operand may be a Python number, whose `/` raises at 0.


def is_complex(x: Any) -> bool:
    return aval_of(x).dtype.kind == "c"


def _abs_slope(x: Any) -> Any:
    """The sign; for complex x, conj(x) / |x|. 0 at 0."""
    if is_complex(x):
        r = np.absolute(x)
        return np.conjugate(x) / np.where(r == 0, 1.0, r)
    return np.sign(x)


def _root_slope(out: Any) -> Any:
    zero = out == 0
    return np.where(zero, 0, 0.5 / np.where(zero, 1, out))


def _arcsinh_slope(x: Any) -> Any:
    return np.reciprocal(np.sqrt(1 + x * x) if is_complex(x) else np.hypot(x, 1.0))


def _sinc_slope(x: Any) -> Any:
    """pi (cos t - sin t / t) / t for t = pi x; below 1 as its power series, where the difference cancels."""
    t = np.pi * x
    small = np.absolute(t) < 1
    s = np.where(small, t, 0.0)
    series, square = 0.0 * s, s * s
    for c in _SINC_SERIES:
        series = series * square + c
    far = np.where(small, 1.0, t)
    return np.pi * np.where(small, s * series, (np.cos(far) - np.sin(far) / far) / far)


def _sinc_series() -> tuple[float, ...]:
    """Coefficients of h(t) / t in t**2, the highest first: (-1)**k 2k / (2k + 1)!."""
    out, factorial = [], 1.0
    for k in range(1, 11):
        factorial *= 2 * k * (2 * k + 1)
        out.append((-1) ** k * 2 * k / factorial)
    return tuple(reversed(out))


_SINC_SERIES = _sinc_series()


def _logistic(power: np.ufunc) -> Callable[[Any], Any]:
    """1 / (1 + power(-x)) without overflow, accurate in both tails."""

    def logistic(x: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.ndim == 0 or x.dtype.kind != "f":
            return power(np.minimum(x, 0)) / (1 + power(-np.absolute(x)))  # a second power costs less than np.where
        above, below = np.minimum(x, 0), np.absolute(x)  # the same in two arrays: fresh memory costs more than the arithmetic
        np.negative(below, out=below)
        power(below, out=below)
        np.add(below, 1, out=below)
        power(above, out=above)
        return np.divide(above, below, out=above)

    return logistic


def _sech2(x: Any) -> Any:
    """1 / cosh(x)**2, accurate in both tails."""
    if is_complex(x):  # whose cosh would overflow to nan: 4 e / (1 + e)**2 with e = exp(-2 |x|)
        e = np.exp(-2 * np.where(np.real(x) < 0, -x, x))
        below = 1 + e
        return 4 * e / (below * below)
    with np.errstate(over="ignore"):
        out = np.cosh(x)
    if out.__class__ is not np.ndarray:
        return np.square(1 / out)
    np.reciprocal(out, out=out)  # in place: temporaries cost more than the arithmetic
    out *= out
    return out


exp = Unary("exp", np.exp, slope_from_out=lambda y: y, kinds="fc", special=(0.0, 1000.0, -1000.0))
exp2 = Unary("exp2", np.exp2, slope_from_out=lambda y: y * _LN2, kinds="fc", special=(0.0, 2000.0, -2000.0))
expm1 = Unary("expm1", np.expm1, np.exp, kinds="fc", special=(0.0, 1e-12, -40.0))
log = Unary("log", np.log, np.reciprocal, kinds="fc", domain=(0.2, 4.0))
log2 = Unary("log2", np.log2, lambda x: np.reciprocal(x * _LN2), kinds="fc", domain=(0.2, 4.0))
log10 = Unary("log10", np.log10, lambda x: np.reciprocal(x * _LN10), kinds="fc", domain=(0.2, 4.0))
log1p = Unary("log1p", np.log1p, lambda x: np.reciprocal(1 + x), kinds="fc", domain=(-0.8, 3.0), special=(0.0, 1e-12))
sqrt = Unary("sqrt", np.sqrt, slope_from_out=lambda y: np.true_divide(0.5, y), kinds="fc", domain=(0.2, 4.0))
root = Unary("root", np.sqrt, _root_slope, numpy=(), domain=(0.2, 4.0), special=(0.0,))
"""The square root whose slope at 0 is 0: what norm and std are made of."""
cbrt = Unary("cbrt", np.cbrt, slope_from_out=lambda y: np.reciprocal(3 * y * y), domain=(0.2, 4.0), special=(-1.0, 1e-30))
square = Unary("square", np.square, lambda x: 2 * x, kinds="fc", special=(0.0,))
reciprocal = Unary("reciprocal", np.reciprocal, slope_from_out=lambda y: -y * y, kinds="fc", domain=(0.5, 3.0))
sin = Unary("sin", np.sin, np.cos, kinds="fc", special=(0.0,))
cos = Unary("cos", np.cos, lambda x: -np.sin(x), kinds="fc", special=(0.0,))
tan = Unary("tan", np.tan, slope_from_out=lambda y: 1 + y * y, kinds="fc", domain=(-1.2, 1.2))
arcsin = Unary("arcsin", np.arcsin, lambda x: np.reciprocal(np.sqrt((1 - x) * (1 + x))), kinds="fc", domain=(-0.9, 0.9))
arccos = Unary("arccos", np.arccos, lambda x: np.true_divide(-1, np.sqrt((1 - x) * (1 + x))), kinds="fc", domain=(-0.9, 0.9))
arctan = Unary("arctan", np.arctan, lambda x: np.reciprocal(1 + x * x), kinds="fc", domain=(-0.9, 0.9), special=(0.0, 2.0, 1e8))
sinh = Unary("sinh", np.sinh, np.cosh, kinds="fc", special=(0.0,))
cosh = Unary("cosh", np.cosh, np.sinh, kinds="fc", special=(0.0,))
tanh = Unary("tanh", np.tanh, lambda x: sech2(x), kinds="fc", domain=(-1.2, 1.2), special=(0.0, 30.0, -30.0))
sech2: Unary = Unary(
    "sech2", _sech2, lambda x: -2 * np.tanh(x) * sech2(x), numpy=(), kinds="fc", domain=(-1.2, 1.2), special=(0.0, 30.0, -400.0)
)
"""1 / cosh(x)**2, the slope of tanh; made of its output, 1 - tanh(x)**2, it would be lost in the tails."""
arcsinh = Unary("arcsinh", np.arcsinh, _arcsinh_slope, kinds="fc", special=(0.0,))
arccosh = Unary("arccosh", np.arccosh, lambda x: np.reciprocal(np.sqrt(x - 1) * np.sqrt(x + 1)), kinds="fc", domain=(1.2, 4.0))
arctanh = Unary("arctanh", np.arctanh, lambda x: np.reciprocal((1 - x) * (1 + x)), kinds="fc", domain=(-0.9, 0.9))
degrees = Elementwise("degrees", np.degrees, lambda: 1 / _DEGREE, numpy=(np.degrees, np.rad2deg))
radians = Elementwise("radians", np.radians, lambda: _DEGREE, numpy=(np.radians, np.deg2rad))
sinc = Unary("sinc", np.sinc, _sinc_slope, special=(0.0, 1e-9, 0.3, 1.0, -2.0))
logistic: Elementwise = Elementwise("logistic", _logistic(np.exp), lambda x, out: out * logistic(-x), numpy=(), special=(0.0, 40.0, -40.0))
"""1 / (1 + exp(-x)) in NumPy alone; what slopes of logarithms of sums are made of."""
logistic2: Unary = Unary(
    "logistic2", _logistic(np.exp2), lambda x: logistic2(x) * logistic2(-x) * _LN2, numpy=(), special=(0.0, 40.0, -40.0)
)
"""1 / (1 + 2**-x)."""

absolute = Unary("absolute", np.absolute, _abs_slope, kinds="fc", special=(0.0,))
fabs = Unary("fabs", np.fabs, np.sign, special=(0.0,))
sign = Unary("sign", np.sign, numpy=(), special=(0.0,))
floor = Unary("floor", np.floor)
ceil = Unary("ceil", np.ceil)
trunc = Unary("trunc", np.trunc)
rint = Unary("rint", np.rint)

isnan = Unary("isnan", np.isnan, kinds="fc", special=(np.nan, np.inf, 1.0))
isinf = Unary("isinf", np.isinf, kinds="fc", special=(np.nan, np.inf, 1.0))
isfinite = Unary("isfinite", np.isfinite, kinds="fc", special=(np.nan, np.inf, 1.0))
signbit = Unary("signbit", np.signbit)
logical_not = Unary("logical_not", np.logical_not, kinds="fcib")
invert = Unary("invert", np.invert, kinds="ib")


class Round(Primitive):
    """Rounded to `decimals` decimal places, to even at ties; the slope is zero."""

    constant = True

    def infer(self, x: Aval, *, decimals: int) -> Aval:
        return Aval(x.shape, np.round(np.zeros((), x.dtype), decimals).dtype, x.weak)

    def impl(self, x: Any, *, decimals: int) -> Any:
        return np.round(x, decimals)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, decimals: int) -> Any:
        return self(args[0], decimals=decimals)


class _OfComplex(Linear):
    """A function of complex numbers that is linear over the reals; never called with a real array."""

    def __init__(self, name: str, function: Any) -> None:
        super().__init__(name)
        self.function = function

    def infer(self, x: Aval) -> Aval:
        return Aval(x.shape, self.function(np.zeros((), x.dtype)).dtype, x.weak)

    def impl(self, x: Any) -> Any:
        return self.function(x)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


class Real(_OfComplex):
    """The real part. The cotangent of z = a + ib is df/da - i df/db, so that of the real part passes unchanged."""

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: g,)


class Imag(_OfComplex):
    """The imaginary part."""

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: g * -1j,)


class Conjugate(_OfComplex):
    """The complex conjugate; its transpose is itself."""

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: np.conjugate(g),)


round = Round("round")
real = Real("real", np.real)
imag = Imag("imag", np.imag)
conjugate = Conjugate("conjugate", np.conjugate)
