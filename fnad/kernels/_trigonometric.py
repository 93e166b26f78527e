"""Sine, cosine, tangent.

    x = n pi / 2 + r,  |r| <= pi / 4 (or a trifle more),  and polynomials for sin(r) and cos(r)

r is kept in two parts, so that it has full relative accuracy where x is close to a multiple of pi / 2. Up to a limit, n
times pi / 2 is subtracted in parts (Cody & Waite, Software Manual for the Elementary Functions, 1980, chapter 8; with a
fused product, the first difference is exact). Above the limit, where n has too many bits, x times 2 / pi modulo 4 is
computed from those bits of 2 / pi that matter for the exponent of x (Payne & Hanek, Radian reduction for trigonometric
functions, 1983); that is marked as rare. float32 numbers are reduced in float64, which spares the second part.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._formats import bits, format_of, from_bits, horner, quick_two_sum, two_product, two_sum
from fnad.kernels.codegen.expr import Expr, and_, cast, const, eq, fabs, fma, mad, rare, rint, select, shl, xor
from fnad.kernels.codegen.expr import table as lookup

_LIMIT = 2.0**48
_TWO_OVER_PI = 0.6366197723675814
_FIRST, _SECOND, _THIRD = table.HALF_PI["f64"]


def _modulo_4(x: Expr) -> Expr:
    return mad(rint(x * 0.25), -4.0, x)


def _reduce(x: Expr) -> tuple[Expr, Expr, Expr]:
    """n as low bits of an integer, and r in two parts."""
    if x.dtype == "f32":
        n, r = _reduce_f32(x)
        return cast(n, "i32"), cast(r, "f32"), const(0, "f32")
    shifted = mad(x, _TWO_OVER_PI, format_of(x).round)
    n = shifted - format_of(x).round
    product, error = two_product(n, const(-_SECOND, "f64"))
    high, low = two_sum(fma(n, -_FIRST, x), product)
    low = mad(n, -_THIRD, low + error)
    huge = fabs(x) > _LIMIT
    far, far_high, far_low = _reduce_huge(x)
    return bits(rare(huge, far, shifted)), rare(huge, far_high, high), rare(huge, far_low, low)


def _reduce_huge(x: Expr) -> tuple[Expr, Expr, Expr]:
    """For any float64 x of exponent E: x = m 2**(16 j - 1075) with an integer m < 2**69 and j = E // 16."""
    form = format_of(x)
    pattern = bits(x)
    j = and_(pattern >> (form.mantissa + 4), 127)
    m = from_bits(and_(pattern, -(1 << 63) + (1 << 56) - 1) + (1075 << form.mantissa))
    pieces = [lookup(table.TWO_OVER_PI["f64"], j + 3 * i, "f64") * 2.0 ** (-48 * i) for i in range(4)]
    (high, low), (high1, low1), (high2, low2) = (two_product(m, piece) for piece in pieces[:3])
    total, error = two_sum(_modulo_4(high) + _modulo_4(low), high1)
    n = rint(total)
    fraction, error1 = two_sum(total - n, low1 + high2)
    fraction, low = quick_two_sum(fraction, error + error1 + (low2 + m * pieces[3]))
    product, error = two_product(fraction, const(_FIRST, "f64"))
    return n + form.round, product, mad(fraction, _SECOND, mad(low, _FIRST, error)) + (x - x)  # nan for inf


def _reduce_f32(x: Expr) -> tuple[Expr, Expr]:
    """n as low bits of a 64-bit integer, and r in float64."""
    wide = cast(x, "f64")
    shifted = mad(wide, _TWO_OVER_PI, format_of(wide).round)
    n = shifted - format_of(wide).round
    r = mad(n, -_SECOND, fma(n, -_FIRST, wide))
    # the products with pieces of 29 bits are exact
    *pieces, last = table.TWO_OVER_PI_SHORT["f64"]
    terms = [_modulo_4(wide * piece) for piece in pieces] + [wide * last]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    far = rint(total)
    fraction = terms[0] - far
    for term in terms[1:]:  # in this order, sums that cancel are exact
        fraction = fraction + term
    huge = fabs(x) > _LIMIT
    n, r = rare(huge, far + format_of(wide).round, shifted), rare(huge, mad(fraction, _FIRST, wide - wide), r)
    return bits(n), r


def _sine(r: Expr, low: Expr) -> Expr:
    z = r * r
    series = horner(z, table.SIN[r.dtype])
    return mad(r * z, series, r) if low.op == "const" else r + mad(r * z, series, low)


def _cosine(r: Expr, low: Expr) -> Expr:
    z = r * r
    half = z * 0.5
    near = 1 - half
    rest = (1 - near) - half
    return near + mad(z * z, horner(z, table.COS[r.dtype]), rest if low.op == "const" else mad(r, -low, rest))


def _signed(x: Expr, quadrant: Expr) -> Expr:
    """x, negative in the quadrants 2 and 3 of four."""
    return from_bits(xor(bits(x), shl(and_(quadrant, 2), format_of(x).mantissa + (7 if x.dtype == "f32" else 10))))


def sin(x: Expr) -> Expr:
    """The sine."""
    n, high, low = _reduce(x)
    even = eq(and_(n, 1), 0)
    return select(eq(x, 0), x, _signed(select(even, _sine(high, low), _cosine(high, low)), n))


def cos(x: Expr) -> Expr:
    """The cosine."""
    n, high, low = _reduce(x)
    even = eq(and_(n, 1), 0)
    return _signed(select(even, _cosine(high, low), _sine(high, low)), n + 1)


def tan(x: Expr) -> Expr:
    """The tangent."""
    if x.dtype == "f32":
        n, r = _reduce_f32(x)
        z = r * r
        sine = mad(r * z, horner(z, table.SIN["f32"]), r)
        cosine = mad(z * z, horner(z, table.COS["f32"]), mad(z, -0.5, 1))
        even = eq(and_(n, 1), 0)
        return select(eq(x, 0), x, cast(select(even, sine, -cosine) / select(even, cosine, sine), "f32"))
    n, r, low = _reduce(x)
    z = r * r
    sine, sine_low = quick_two_sum(r, mad(r * z, horner(z, table.SIN["f64"]), low))
    half = z * 0.5
    near = 1 - half
    rest = mad(z * z, horner(z, table.COS["f64"]), mad(r, -low, (1 - near) - half))
    cosine, cosine_low = quick_two_sum(near, rest)
    even = eq(and_(n, 1), 0)
    over, over_low = select(even, sine, -cosine), select(even, sine_low, -cosine_low)
    under, under_low = select(even, cosine, sine), select(even, cosine_low, sine_low)
    inverse = 1 / under
    ratio = over * inverse
    ratio = mad(fma(-ratio, under, over) + mad(-ratio, under_low, over_low), inverse, ratio)
    return select(eq(x, 0), x, ratio)


def sinc(x: Expr) -> Expr:
    """sin(pi x) / (pi x), 1 at 0, computed as NumPy does."""
    y = x * math.pi
    return select(eq(x, 0), const(1, x.dtype), sin(y) / y)
