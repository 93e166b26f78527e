"""Logarithms.

    log(x) = k log 2 + log(1 + f),  x = 2**k (1 + f),  sqrt(1/2) <= 1 + f < sqrt(2)
    log(1 + f) = 2 atanh(s) = f - f**2 / 2 + s (f**2 / 2 + s**2 P(s**2)),  s = f / (2 + f)

(Tang, Table-driven implementation of the logarithm function, 1990, discusses the reduction; Muller, Elementary Functions,
2016, chapter 11.) Exponents become floats by way of bits, since few machines convert 64-bit integers several at once.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._exponential import exp2, exp_of_negative
from fnad.kernels._formats import Format, bits, format_of, from_bits, horner, quick_two_sum, times_constant, two_sum
from fnad.kernels.codegen.expr import Expr, and_, const, eq, fabs, fma, mad, max_, min_, select

_HALF_ROOT = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
"""The bits of sqrt(1/2)."""


def _fields(x: Expr, form: Format) -> tuple[Expr, Expr]:
    """k + bias, an integer, and 1 + f, for x > 0 with a full mantissa."""
    moved = bits(x) + ((form.bias << form.mantissa) - _HALF_ROOT[x.dtype])
    return moved >> form.mantissa, from_bits((moved & ((1 << form.mantissa) - 1)) + _HALF_ROOT[x.dtype])


def _as_float(exponent: Expr, form: Format) -> Expr:
    """2**mantissa + exponent, for a small positive integer: its bits are the low ones."""
    return from_bits(exponent | ((form.bias + form.mantissa) << form.mantissa))


def split(x: Expr, form: Format) -> tuple[Expr, Expr]:
    """k and 1 + f for x > 0; a subnormal number is scaled first."""
    tiny = x < form.smallest
    exponent, fraction = _fields(select(tiny, x * 2.0 ** (form.mantissa + 2), x), form)
    zero = 2.0**form.mantissa + form.bias
    return _as_float(exponent, form) - select(tiny, const(zero + form.mantissa + 2, x.dtype), zero), fraction


def _correction(f: Expr) -> Expr:
    """log(1 + f) - f."""
    s = f / (f + 2)
    z = s * s
    square = f * f * 0.5
    return mad(s, mad(z, horner(z, table.LOG[f.dtype]), square), -square)


def _ends(x: Expr, out: Expr) -> Expr:
    """The result, with what a logarithm is at 0, below 0, at inf and nan."""
    out = select(x > 0, out, select(eq(x, 0), const(-math.inf, x.dtype), math.nan))
    return select(x < math.inf, out, x + x)  # inf, nan


def log(x: Expr) -> Expr:
    """The natural logarithm."""
    k, fraction = split(x, format_of(x))
    f = fraction - 1
    first, second = table.LN2_SHORT[x.dtype]
    return _ends(x, mad(k, first, mad(k, second, _correction(f)) + f))


def log2(x: Expr) -> Expr:
    """The logarithm to base 2; exact for powers of 2."""
    k, fraction = split(x, format_of(x))
    f = fraction - 1
    parts = table.LOG2_E[x.dtype]
    product, low = times_constant(f, parts)
    total, rest = quick_two_sum(k, product)
    return _ends(x, total + (rest + mad(_correction(f), parts[0], low)))


def log10(x: Expr) -> Expr:
    """The logarithm to base 10."""
    k, fraction = split(x, format_of(x))
    f = fraction - 1
    parts = table.LOG10_E[x.dtype]
    product, low = times_constant(f, parts)
    first, second = table.LOG10_2_SHORT[x.dtype]
    total, rest = quick_two_sum(k * first, product)
    return _ends(x, total + (rest + mad(k, second, mad(_correction(f), parts[0], low))))


def log1p(x: Expr) -> Expr:
    """log(1 + x) without cancellation near 0."""
    out = log1p_of_parts(x, const(0, x.dtype))
    return select(fabs(x) < 2.0 ** -(format_of(x).mantissa + 2), x, _ends(1 + x, out))


def log1p_of_parts(x: Expr, low: Expr, exponent: Expr | None = None) -> Expr:
    """log((1 + x + low) 2**exponent), the rounding error of 1 + x being added to f; low is tiny against x."""
    total, error = two_sum(const(1, x.dtype), x)
    return log_of_parts(total, error + low, exponent)


def log_of_parts(x: Expr, low: Expr, exponent: Expr | None = None) -> Expr:
    """log((x + low) 2**exponent) for x > 0 with a full mantissa; low is tiny."""
    form = format_of(x)
    field, fraction = _fields(x, form)
    shrunk = from_bits(const(2 * form.bias, form.integer) - min_(field, 2 * form.bias - 1) << form.mantissa)  # 2**-k
    f, rest = quick_two_sum(fraction - 1, low * shrunk)
    k = _as_float(field, form) - (2.0**form.mantissa + form.bias)
    if exponent is not None:
        k = k + exponent
    first, second = table.LN2_SHORT[x.dtype]
    return mad(k, first, mad(k, second, _correction(f) + rest) + f)


def logit(x: Expr) -> Expr:
    """log(x / (1 - x)); nan outside 0 and 1."""
    form = format_of(x)
    tiny = x < form.smallest * 2.0 ** (form.mantissa + 2)
    above = select(tiny, x * 2.0 ** (form.mantissa + 2), x)
    below, below_low = two_sum(const(1, x.dtype), -x)
    inverse = 1 / below
    ratio = above * inverse
    low = mad(-ratio, below_low, fma(-ratio, below, above)) * inverse
    out = log_of_parts(ratio, low, select(tiny, const(-form.mantissa - 2, x.dtype), 0.0))
    ends = select(eq(x, 0), const(-math.inf, x.dtype), select(eq(x, 1), const(math.inf, x.dtype), math.nan))
    return select(and_(x > 0, x < 1), out, ends)


def _parts_of_unit(e: Expr) -> tuple[Expr, Expr]:
    """Whether k = 1 (otherwise 0), and f, of 1 + e for 0 <= e <= 1."""
    upper = e > 0.41421356237309503
    return upper, select(upper, mad(e, 0.5, -0.5), e)


def _log1p_of_unit(e: Expr) -> Expr:
    """log(1 + e) for 0 <= e <= 1."""
    upper, f = _parts_of_unit(e)
    first, second = (select(upper, const(part, e.dtype), 0.0) for part in table.LN2_SHORT[e.dtype])
    return first + (second + _correction(f) + f)


def logaddexp(x: Expr, y: Expr) -> Expr:
    """log(exp(x) + exp(y)) without overflow."""
    distance = select(eq(x, y), 0.0, fabs(x - y))  # also where both are inf
    return max_(x, y) + _log1p_of_unit(exp_of_negative(-distance))


def logaddexp2(x: Expr, y: Expr) -> Expr:
    """log2(2**x + 2**y) without overflow."""
    distance = select(eq(x, y), 0.0, fabs(x - y))
    upper, f = _parts_of_unit(exp2(-distance))
    parts = table.LOG2_E[x.dtype]
    product, low = times_constant(f, parts)
    total, rest = quick_two_sum(select(upper, const(1, x.dtype), 0.0), product)
    return max_(x, y) + (total + (rest + mad(_correction(f), parts[0], low)))


def softplus(x: Expr) -> Expr:
    """log(1 + exp(x)), accurate in both tails."""
    return max_(0.0, x) + _log1p_of_unit(exp_of_negative(-fabs(x)))


def log_sigmoid(x: Expr) -> Expr:
    """log(sigmoid(x)), accurate in both tails."""
    return -softplus(-x)
