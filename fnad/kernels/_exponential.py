"""The exponential function and what is made of it.

    exp(x) = 2**k exp(r),  k the integer nearest to x / log 2,  r = x - k log 2,  |r| <= log(2) / 2

with a polynomial for exp(r) (Cody & Waite, Software Manual for the Elementary Functions, 1980, chapter 6). k is found by
adding 1.5 * 2**mantissa, so that it stands in the low bits of the sum and never has to be converted to an integer.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._formats import Format, bits, format_of, from_bits, horner, times_constant
from fnad.kernels.codegen.expr import Expr, const, copysign, fabs, mad, max_, min_, rint, select


def reduce_exponent(x: Expr) -> tuple[Expr, Expr]:
    """k + the rounding constant, and r."""
    form = format_of(x)
    first, second = table.LN2_SHORT[x.dtype]
    shifted = mad(x, table.LOG2_E[x.dtype][0], form.round)
    k = shifted - form.round
    return shifted, mad(k, -second, mad(k, -first, x))


def power_of_two(shifted: Expr, form: Format, offset: Expr | int = 0) -> Expr:
    """2**(k + offset) for k + the rounding constant; an expression for the offset stands in the place of the exponent."""
    scale = bits(shifted) << form.mantissa
    if isinstance(offset, int):
        return from_bits(scale + ((form.bias + offset) << form.mantissa))
    return from_bits(scale + offset)


def exp_unit(r: Expr, low: Expr | None = None) -> Expr:
    """exp(r + low) for |r| <= log(2) / 2 and a tiny low, to 0.8 units in the last place."""
    near = r + 1
    bend = mad(r * r, horner(r, table.EXP[r.dtype]), r - (near - 1))
    return near + (bend if low is None else mad(near + bend, low, bend))


def exp(x: Expr) -> Expr:
    """The exponential."""
    low, high = format_of(x).exp_range
    shifted, r = reduce_exponent(min_(high, max_(low, x)))
    return scaled(exp_unit(r), shifted, x > 0)


def scaled(unit: Expr, shifted: Expr, up: Expr) -> Expr:
    """unit * 2**k, where k >= 0 if `up` and k <= 0 otherwise.

    2**k may be no number with a full mantissa; 2**(k -+ 64) is, and one more product rounds once.
    """
    form = format_of(unit)
    offset = [const((form.bias + o) << form.mantissa, form.integer) for o in (-64, 64)]
    return unit * power_of_two(shifted, form, select(up, *offset)) * select(up, const(2.0**64, unit.dtype), 2.0**-64)


def exp_of_negative(x: Expr) -> Expr:
    """exp(x) for x <= 0, or nan."""
    shifted, r = reduce_exponent(max_(format_of(x).exp_range[0], x))
    return exp_unit(r) * power_of_two(shifted, format_of(x), 64) * 2.0**-64


def exp2(x: Expr) -> Expr:
    """2**x."""
    low, high = (-1076.0, 1025.0) if x.dtype == "f64" else (-151.0, 129.0)
    x = min_(high, max_(low, x))
    k = rint(x)
    r, rest = times_constant(x - k, table.LN2[x.dtype])
    return scaled(exp_unit(r, rest), k + format_of(x).round, x > 0)


def exp10(x: Expr) -> Expr:
    """10**x."""
    form = format_of(x)
    low, high = (-324.5, 309.0) if x.dtype == "f64" else (-46.0, 39.0)
    clamped = min_(high, max_(low, x))
    shifted = mad(clamped, math.log2(10), form.round)
    k = shifted - form.round
    first, second = table.LOG10_2_SHORT[x.dtype]
    whole = mad(k, -first, clamped)
    part = mad(k, -second, whole)
    r, rest = times_constant(part, table.LN10[x.dtype])
    return scaled(exp_unit(r, mad(mad(k, -second, whole - part), math.log(10), rest)), shifted, x > 0)


def expm1(x: Expr) -> Expr:
    """exp(x) - 1 without cancellation near 0."""
    form = format_of(x)
    low, high = -(form.mantissa + 4) * 0.7, form.exp_range[1]
    shifted, r = reduce_exponent(min_(high, max_(low, x)))
    half = power_of_two(shifted, form, -1)  # 2**k itself may be inf
    bend = r * r * horner(r, table.EXPM1[x.dtype])  # exp(r) - 1 - r
    out = mad(half, bend, mad(half, r, half - 0.5)) * 2
    return select(fabs(x) < 2.0 ** -(form.mantissa + 2), x, out)


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent: x + x**3 P(x**2) / Q(x**2) near 0, 1 - 2 / (exp(2x) + 1) elsewhere, by one division."""
    form = format_of(x)
    size = fabs(x)
    shifted, r = reduce_exponent(min_((form.mantissa + 4) * 0.7, size * 2))
    z = x * x
    near = size < 0.55
    over = select(near, z * horner(z, table.TANH_OVER[x.dtype]), -2.0)
    under = select(near, horner(z, table.TANH_UNDER[x.dtype]), mad(power_of_two(shifted, form), exp_unit(r), 1))
    ratio = over / under
    return copysign(mad(select(near, size, 1.0), ratio, select(near, size, 1.0)), x)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), accurate in both tails."""
    return _sigmoid(x, exp_of_negative(-fabs(x)))


def logistic2(x: Expr) -> Expr:
    """1 / (1 + 2**-x), accurate in both tails."""
    return _sigmoid(x, exp2(-fabs(x)))


def _sigmoid(x: Expr, e: Expr) -> Expr:
    """1 / (1 + e) for x >= 0, e / (1 + e) below."""
    below = e + 1
    ratio = select(x < 0, e, 1.0) / below
    return mad(ratio, (below - 1) - e, ratio)  # makes up for the rounding of e + 1
