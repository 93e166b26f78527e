"""The error function and the normal distribution.

    erf(x) = x + x P(x**2) for |x| < 1,  1 - exp(P(x)) above
    erfc(x) = exp(-x**2) P(t) / (x + K),  t = (x - K) / (x + K),  for x >= 0,  2 - erfc(-x) below

(Shepherd & Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc x, 1981, for the variable t.) The second form
keeps its relative accuracy where erfc is tiny. There the last bits of the exponential's argument matter: the square is
computed exactly, as are the quotient and the products, up to terms of second order.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._exponential import exp, power_of_two, reduce_exponent
from fnad.kernels._formats import format_of, horner, quick_two_sum, two_product, two_sum
from fnad.kernels._logarithm import split
from fnad.kernels.codegen.expr import Expr, cast, const, copysign, eq, fabs, fma, mad, max_, min_, select, sqrt

_END = {"f32": 3.95, "f64": 5.95}
"""Above, erf is 1."""


def erf(x: Expr) -> Expr:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    form = format_of(x)
    size, z = fabs(x), x * x
    near = mad(size, horner(z, table.ERF_NEAR[x.dtype]), size)
    shifted, r = reduce_exponent(horner(min_(_END[x.dtype], size), table.ERF_FAR[x.dtype]))
    unit = mad(r * r, horner(r, table.EXP[x.dtype]), r) + 1
    far = mad(power_of_two(shifted, form), -unit, 1)
    return copysign(select(size < 1, near, far), x)


def _tail(size: Expr, high: Expr, low: Expr, k: float, polynomial: tuple[float, ...]) -> Expr:
    """exp(-high - low) P(t) / (size + k) for float64; exp's argument has two parts of which the second is tiny."""
    form = format_of(size)
    shifted, r = reduce_exponent(-high)
    count = shifted - form.round
    first, second = table.LN2_SHORT["f64"]
    rest = mad(count, -second, mad(count, -first, -high) - r) - low
    unit = r + 1
    unit_low = mad(r * r, horner(r, table.EXP["f64"]), r - (unit - 1))
    unit_low = mad(unit + unit_low, rest, unit_low)
    below, below_low = two_sum(size, const(k, "f64"))
    inverse = 1 / below
    inverse_low = inverse * mad(inverse, -below_low, fma(-inverse, below, 1))
    t = mad(inverse_low, -2 * k, mad(inverse, -2 * k, 1))
    product, product_low = two_product(t, horner(t, polynomial[1:]))
    series, series_low = quick_two_sum(const(polynomial[0], "f64"), product)
    factor, factor_low = two_product(series, inverse)
    factor_low = mad(series, inverse_low, mad(inverse, series_low + product_low, factor_low))
    out, out_low = two_product(unit, factor)
    out = out + mad(unit, factor_low, mad(unit_low, factor, out_low))
    return out * power_of_two(shifted, form, 64) * 2.0**-64


def _tail_f32(size: Expr, square: Expr, k: float, polynomial: tuple[float, ...]) -> Expr:
    """exp(-square) P(t) / (size + k) in float64, as accurate as float32 needs it."""
    shifted, r = reduce_exponent(-square)
    unit = mad(r * r, horner(r, table.EXP["f32"]), r + 1)
    inverse = 1 / (size + k)
    series = horner(mad(inverse, -2 * k, 1), polynomial)
    return unit * series * inverse * power_of_two(shifted, format_of(size))


def erfc(x: Expr) -> Expr:
    """1 - erf(x), accurate where it is tiny."""
    wide = cast(x, "f64")
    (k,), polynomial = table.ERFC_K[x.dtype], table.ERFC[x.dtype]
    if x.dtype == "f32":
        size = min_(11.0, fabs(wide))
        out = _tail_f32(size, size * size, k, polynomial)
    else:
        size = min_(27.3, fabs(x))
        out = _tail(size, *two_product(size, size), k, polynomial)
    out = select(x < 0, 2 - out, out)
    if x.dtype == "f32":
        return cast(out, "f32")
    return select(fabs(x) < 0.6, mad(-x, horner(x * x, table.ERFC_NEAR["f64"]), 1), out)


def ndtr(x: Expr) -> Expr:
    """The normal distribution function, erfc(-x / sqrt(2)) / 2, accurate where it is tiny."""
    wide = cast(x, "f64")
    (k,), polynomial = table.NDTR_K[x.dtype], table.NDTR[x.dtype]
    if x.dtype == "f32":
        size = min_(15.0, fabs(wide))
        out = _tail_f32(size, size * size * 0.5, k, polynomial)
    else:
        size = min_(38.7, fabs(x))
        square, low = two_product(size, size)
        out = _tail(size, square * 0.5, low * 0.5, k, polynomial)
    out = select(x > 0, 1 - out, out)
    if x.dtype == "f32":
        return cast(out, "f32")
    return select(fabs(x) < 0.85, mad(x, horner(x * x, table.NDTR_NEAR["f64"]), 0.5), out)


def gelu(x: Expr) -> Expr:
    """x times the normal distribution function of x."""
    return x * ndtr(x)


def erfinv(x: Expr) -> Expr:
    """The inverse of erf; nan outside -1 and 1.

    x P(w) or x P(sqrt(w)) with w = -log(1 - x**2) (Giles, Approximating the erfinv function, 2012); in float64 three terms
    of the inverse function's Taylor series around that value follow.
    """
    size = fabs(cast(x, "f64"))
    w = -_short_log((1 - size) * (1 + size))
    near = horner(w, table.ERFINV_NEAR[x.dtype])
    far = horner(sqrt(max_(5.0, w)), table.ERFINV_FAR[x.dtype])
    out = size * select(w < 5, near, far)
    if x.dtype == "f64":
        excess = select(out < 0.5, erf(out) - size, (1 - size) - erfc(out))
        step = -excess * (math.sqrt(math.pi) / 2) * exp(out * out)
        square = out * out
        out = out + mad(step * step, mad(step * mad(square, 4.0, 1), 1 / 3, out), step)
    ends = select(eq(size, 1), const(math.inf, "f64"), math.nan)
    return copysign(cast(select(size < 1, out, ends), x.dtype), x)


def _short_log(x: Expr) -> Expr:
    """log(x) of a float64 x > 0 as accurate as float32 needs it."""
    k, fraction = split(x, format_of(x))
    f = fraction - 1
    s = f / (f + 2)
    z = s * s
    return mad(k, math.log(2), s * mad(z, mad(z, horner(z, table.LOG_REST["f32"]), 2 / 3), 2.0))
