"""Hyperbolic sine and cosine, and the inverse hyperbolic functions.

    sinh(x) = x + x**3 P(x**2) for |x| < 1, exp(x) / 2 - exp(-x) / 2 above
    arcsinh(x) = log(x + sqrt(x**2 + 1)),  arccosh(x) = log(x + sqrt(x**2 - 1)),  arctanh(x) = log((1 + x) / (1 - x)) / 2

The arguments of these logarithms are found in two parts, as 1 + u, so that nothing is lost where u is small.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._exponential import exp_unit, power_of_two, reduce_exponent
from fnad.kernels._formats import format_of, horner, quick_two_sum, two_product, two_sum
from fnad.kernels._logarithm import log1p_of_parts
from fnad.kernels.codegen.expr import Expr, const, copysign, eq, fabs, fma, mad, min_, select, sqrt


def _half_exp(size: Expr) -> Expr:
    """exp(size) / 2 for size >= 0, which is finite for somewhat larger arguments than exp itself."""
    shifted, r = reduce_exponent(min_(715.0 if size.dtype == "f64" else 93.0, size))
    return exp_unit(r) * power_of_two(shifted, format_of(size), -64) * 2.0**63


def sinh(x: Expr) -> Expr:
    """The hyperbolic sine."""
    size, z = fabs(x), x * x
    near = mad(size * z, horner(z, table.SINH[x.dtype]), size)
    half = _half_exp(size)
    return copysign(select(size < 1, near, half - 0.25 / half), x)


def cosh(x: Expr) -> Expr:
    """The hyperbolic cosine."""
    half = _half_exp(fabs(x))
    return half + 0.25 / half


def _root(square: Expr, low: Expr) -> tuple[Expr, Expr]:
    """The square root of a number in two parts, in two parts."""
    root = sqrt(square)
    return root, select(eq(root, 0), 0.0, (fma(-root, root, square) + low) * (0.5 / root))


def _far(x: Expr) -> float:
    """Above, x + 1 rounds to x."""
    return float(2.0 ** (format_of(x).mantissa + 2))


def arcsinh(x: Expr) -> Expr:
    """The inverse of sinh."""
    size = fabs(x)
    square, square_low = two_product(size, size)
    total, low = two_sum(const(1, x.dtype), square)
    root, root_low = _root(total, low + square_low)
    high, low = two_sum(size, root - 1)
    far = size > _far(x)
    u = select(far, size, high)
    out = log1p_of_parts(u, select(far, 0.0, low + root_low), select(far, const(1, x.dtype), 0.0))
    out = select(size < 2.0 ** -(format_of(x).mantissa // 2 + 2), size, out)
    return copysign(select(size < math.inf, out, size), x)


def arccosh(x: Expr) -> Expr:
    """The inverse of cosh; nan below 1."""
    t = x - 1
    more, more_low = two_sum(t, const(2, x.dtype))
    square, square_low = two_product(t, more)
    root, root_low = _root(square, mad(t, more_low, square_low))
    high, low = two_sum(t, root)
    far = x > _far(x)
    u = select(far, x, high)
    out = log1p_of_parts(u, select(far, 0.0, low + root_low), select(far, const(1, x.dtype), 0.0))
    return select(x < math.inf, select(x < 1, const(math.nan, x.dtype), out), x)


def arctanh(x: Expr) -> Expr:
    """The inverse of tanh; nan outside -1 and 1."""
    size = fabs(x)
    below, below_low = quick_two_sum(const(1, x.dtype), -size)
    inverse = 1 / below
    double = size * 2
    u = double * inverse
    low = mad(-u, below_low, fma(-u, below, double)) * inverse
    out = log1p_of_parts(u, low) * 0.5
    out = select(size < 2.0 ** -(format_of(x).mantissa // 2 + 2), size, out)
    ends = select(eq(size, 1), const(math.inf, x.dtype), math.nan)
    return copysign(select(size < 1, out, ends), x)
