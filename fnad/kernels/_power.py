"""Powers, the cube root and the length of a vector.

    x**y = 2**(y log2 |x|),  with the logarithm in two parts, since its error is multiplied by up to 1000

float32 powers are computed in float64, where one part suffices.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._exponential import exp_unit, scaled
from fnad.kernels._formats import (
    bits,
    format_of,
    from_bits,
    horner,
    quick_two_sum,
    times_constant,
    two_product,
)
from fnad.kernels._logarithm import split
from fnad.kernels.codegen.expr import (
    Expr,
    and_,
    cast,
    const,
    copysign,
    eq,
    fabs,
    fma,
    isnan,
    mad,
    max_,
    min_,
    mul,
    ne,
    not_,
    or_,
    rint,
    select,
    shl,
    sqrt,
    xor,
)

_MOST_PRODUCTS = 64
"""Powers up to this one are products."""


def _log2_parts(x: Expr) -> tuple[Expr, Expr]:
    """log2(x) of a float64 x > 0 with an error of less than 2**-65 of it."""
    k, fraction = split(x, format_of(x))
    f = fraction - 1
    below, below_low = quick_two_sum(const(2, "f64"), f)
    inverse = 1 / below
    s = f * inverse
    s_low = mad(-s, below_low, fma(-s, below, f)) * inverse
    z, z_low = two_product(s, s)
    z_low = mad(s * 2, s_low, z_low)
    third, third_low = table.TWO_THIRDS["f64"]
    # log(1 + f) = s (2 + z (2/3 + z P(z)))
    inner, inner_low = quick_two_sum(const(third, "f64"), mad(z, horner(z, table.LOG_REST["f64"]), third_low))
    bend, bend_low = two_product(z, inner)
    outer, outer_low = quick_two_sum(const(2, "f64"), bend)
    outer_low = outer_low + mad(z, inner_low, mad(z_low, inner, bend_low))
    high, low = two_product(s, outer)
    low = mad(s, outer_low, mad(s_low, outer, low))
    product, product_low = times_constant(high, table.LOG2_E["f64"])
    total, rest = quick_two_sum(k, product)
    return total, rest + mad(low, table.LOG2_E["f64"][0], product_low)


def _power_f64(x: Expr, y: Expr) -> Expr:
    """x**y for x > 0."""
    high, low = _log2_parts(x)
    y = min_(2.0**66, max_(-(2.0**66), y))
    product = mul(y, high, strict=True)
    product_low = mad(y, low, fma(y, high, -product))
    clamped = min_(1100.0, max_(-1100.0, product))
    k = rint(clamped)
    r, r_low = times_constant(clamped - k, table.LN2["f64"])
    r_low = mad(select(eq(clamped, product), product_low, 0.0), table.LN2["f64"][0], r_low)
    return scaled(exp_unit(r, r_low), min_(1025.0, max_(-1076.0, k)) + format_of(x).round, k > 0)


def _power_f32(x: Expr, y: Expr) -> Expr:
    """x**y for float64 x > 0 and y as accurate as float32 needs it."""
    k, fraction = split(x, format_of(x))
    f = fraction - 1
    s = f / (f + 2)
    z = s * s
    log = s * mad(z, mad(z, horner(z, table.LOG_REST["f32"]), 2 / 3), 2.0)
    product = min_(2.0**200, max_(-(2.0**200), y)) * mad(log, table.LOG2_E["f64"][0], k)
    clamped = min_(200.0, max_(-200.0, product))
    k = rint(clamped)
    r = (clamped - k) * table.LN2["f64"][0]
    unit = mad(r * r, horner(r, table.EXP["f32"]), r + 1)
    form = format_of(x)
    return unit * from_bits(shl(bits(k + form.round), form.mantissa) + (form.bias << form.mantissa))


def power(x: Expr, y: Expr) -> Expr:
    """x**y of floats by the rules of C; of integers, 0 stands for a negative power except of 1 and -1."""
    if x.dtype not in ("f32", "f64"):
        return _integer_power(x, y)
    if y.op == "const" and y.attr == int(y.attr if abs(y.attr) <= _MOST_PRODUCTS else 0.5):
        return power_of(x, int(y.attr))
    if y.op == "const" and y.attr in _HALVES:
        return _half_power(x, float(y.attr))
    size = fabs(x)
    wide, exponent = cast(size, "f64"), cast(y, "f64")
    out = cast((_power_f64 if x.dtype == "f64" else _power_f32)(wide, exponent), x.dtype)
    return _power_ends(x, size, y, out)


_HALVES = (0.5, 1.5, 2.5, -0.5, -1.5)
"""Powers that a square root and at most two more roundings give to 1.5 units in the last place."""


def _half_power(x: Expr, y: float) -> Expr:
    if y == 0.5:
        return sqrt(x)  # as NumPy does, also at -inf and -0.0
    a = select(and_(x < 0, x > -math.inf), const(math.nan, x.dtype), fabs(x))
    root = sqrt(a)
    if y < 0:
        return 1 / root if y == -0.5 else 1 / a / root  # without overflow on the way
    return a * root if y == 1.5 else a * root * a


def _power_ends(x: Expr, size: Expr, y: Expr, out: Expr) -> Expr:
    """The rules of C for zeros, infinities, negative bases and nan."""
    dtype = x.dtype
    whole = eq(rint(y), y)
    odd = and_(whole, ne(rint(y * 0.5), y * 0.5))
    end = or_(eq(size, 0), eq(size, math.inf))
    grows = xor(eq(size, 0), y > 0)
    out = select(end, select(grows, const(math.inf, dtype), 0.0), out)
    out = select(and_(odd, bits(x) < 0), -out, out)
    undefined = and_(and_(x < 0, x > -math.inf), not_(whole))
    out = select(undefined, const(math.nan, dtype), out)
    out = select(or_(isnan(x), isnan(y)), x + y, out)
    return select(or_(eq(y, 0), eq(x, 1)), 1.0, out)


def power_of(x: Expr, n: int) -> Expr:
    """x**n by products, which for more than four factors (and for quotients) carry their rounding errors along."""
    if n == 0:
        return const(1, x.dtype)
    if x.dtype == "f32":
        return cast(_product(cast(x, "f64"), abs(n)), "f32") if n > 0 else cast(1 / _product(cast(x, "f64"), -n), "f32")
    if 0 < n <= 4:
        return _product(x, n)
    if n == -1:
        return 1 / x
    base, low = (x, const(0, "f64")) if n > 0 else _inverse(x)
    high, low = _product_of_parts(base, low, abs(n))
    return select(fabs(high) < math.inf, select(or_(isnan(low), eq(high, 0)), high, high + low), high)


def _inverse(x: Expr) -> tuple[Expr, Expr]:
    inverse = 1 / x
    return inverse, fma(-inverse, x, 1) * inverse


def _product(x: Expr, n: int) -> Expr:
    """x**n, n > 0, by squaring."""
    out = x
    for digit in bin(n)[3:]:
        out = out * out
        if digit == "1":
            out = out * x
    return out


def _product_of_parts(x: Expr, x_low: Expr, n: int) -> tuple[Expr, Expr]:
    """(x + x_low)**n, n > 0, by squaring."""
    high, low = x, x_low
    for digit in bin(n)[3:]:
        square, error = two_product(high, high)
        high, low = square, mad(high * 2, low, error)
        if digit == "1":
            product, error = two_product(high, x)
            high, low = product, mad(high, x_low, mad(low, x, error))
    return high, low


def _integer_power(x: Expr, n: Expr) -> Expr:
    """x**n of integers, wrapping around."""
    if n.op == "const" and 0 < n.attr <= _MOST_PRODUCTS:
        return _product(x, n.attr)
    out, base = const(1, x.dtype), x
    for place in range({"8": 8, "6": 16, "2": 32, "4": 64}[x.dtype[-1]]):
        out = select(ne(and_(n >> place, 1), 0), out * base, out)
        base = base * base
    if x.dtype[0] == "u":
        return out
    ones = select(eq(x, 1), const(1, x.dtype), select(eq(x, -1), select(ne(and_(n, 1), 0), const(-1, x.dtype), 1), 0))
    return select(n < 0, ones, out)


def cbrt(x: Expr) -> Expr:
    """The cube root: a polynomial for 2**-1/2 <= x < 2**1/2 and one step of Halley's iteration."""
    form = format_of(x)
    size = fabs(x)
    k, fraction = split(size, form)
    q = rint(k * (1 / 3))
    r = mad(q, -3.0, k)
    one = const(1, x.dtype)
    value = fraction * select(r > 0, one * 2.0, select(r < 0, one * 0.5, one))
    start = horner(fraction, table.CBRT[x.dtype]) * select(
        r > 0, const(2 ** (1 / 3), x.dtype), select(r < 0, const(0.5 ** (1 / 3), x.dtype), 1.0)
    )
    square, low = two_product(start, start)
    excess = mad(low, start, fma(square, start, -value))
    root = start - start * (excess / (excess * 2 + value * 3))
    scale = from_bits((bits(q + form.round) << form.mantissa) + (form.bias << form.mantissa))
    return select(and_(size > 0, size < math.inf), copysign(root * scale, x), x)


def hypot(x: Expr, y: Expr) -> Expr:
    """sqrt(x**2 + y**2) without overflow or underflow."""
    a, b = fabs(x), fabs(y)
    if x.dtype == "f32":
        wide = (cast(a, "f64"), cast(b, "f64"))
        out = cast(sqrt(mad(wide[0], wide[0], wide[1] * wide[1])), "f32")
    else:
        large = max_(a, b)
        huge, tiny = large > 2.0**500, large < 2.0**-400
        one = const(1, "f64")
        scale = select(huge, one * 2.0**-600, select(tiny, one * 2.0**600, one))
        back = select(huge, one * 2.0**600, select(tiny, one * 2.0**-600, one))
        a1, b1 = a * scale, b * scale
        out = sqrt(mad(a1, a1, b1 * b1)) * back
    return select(or_(eq(a, math.inf), eq(b, math.inf)), const(math.inf, x.dtype), out)
