"""Inverse trigonometric functions.

    arcsin(x) = x + x**3 P(x**2) for |x| <= 1/2,  pi / 2 - 2 arcsin(sqrt((1 - x) / 2)) above
    arctan(x) = c + t + t**3 P(t**2),  with c = 0, t = x  or  c = pi / 4, t = (x - 1) / (x + 1)  or  c = pi / 2, t = -1 / x

and so |t| <= tan(pi / 8) (Cody & Waite, Software Manual for the Elementary Functions, 1980, chapters 10 and 11, use other
intervals). float32 arctangents are computed in float64.
"""

from __future__ import annotations

import math

from fnad.kernels import _coefficients as table
from fnad.kernels._formats import bits, horner
from fnad.kernels.codegen.expr import Expr, cast, const, copysign, eq, fabs, fma, isnan, mad, max_, min_, or_, select, sqrt

_EIGHTH = 0.41421356237309503  # tan(pi / 8)
_HALF_PI, _HALF_PI_LOW, _ = table.HALF_PI["f64"]


def _half_pi(x: Expr) -> tuple[float, float]:
    first, second = table.HALF_PI_SHORT["f32"] if x.dtype == "f32" else table.HALF_PI["f64"][:2]
    return first, second


def _arcsin_parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Whether |x| <= 1/2, |x|, and arcsin as base + bend of |x| there, of sqrt((1 - |x|) / 2) elsewhere."""
    size = fabs(x)
    near = size <= 0.5
    z = select(near, size * size, mad(size, -0.5, 0.5))
    base = select(near, size, sqrt(z))
    return near, size, base, base * z * horner(z, table.ARCSIN[x.dtype])


def arcsin(x: Expr) -> Expr:
    """The inverse of sin; nan outside -1 and 1."""
    near, _, base, bend = _arcsin_parts(x)
    first, second = _half_pi(x)
    far = first - (mad(bend, 2.0, -second) + base * 2)
    return copysign(select(near, base + bend, far), x)


def arccos(x: Expr) -> Expr:
    """The inverse of cos; nan outside -1 and 1."""
    near, _, base, bend = _arcsin_parts(x)
    first, second = _half_pi(x)
    negative = x < 0
    middle = first - (copysign(base, x) - (second - copysign(bend, x)))
    low = (base + bend) * 2
    high = first * 2 - ((base * 2 - second * 2) + bend * 2)
    return select(near, middle, select(negative, high, low))


def _arctan_ratio(above: Expr, below: Expr) -> tuple[Expr, Expr, Expr]:
    """arctan(above / below) for 0 <= above <= below as c + t + rest, for float64; rest makes up for all roundings."""
    middle = above > below * _EIGHTH
    over = select(middle, above - below, above)
    under = select(middle, above + below, below)
    inverse = 1 / under
    t = over * inverse
    over_low = select(middle, above - (over + below), 0.0)
    under_low = select(middle, above - (under - below), 0.0)
    rest = (fma(-t, under, over) + mad(-t, under_low, over_low)) * inverse
    z = t * t
    rest = mad(t * z, horner(z, table.ARCTAN["f64"]), rest)
    return select(middle, const(_HALF_PI / 2, "f64"), 0.0), t, rest + select(middle, const(_HALF_PI_LOW / 2, "f64"), 0.0)


def _arctan_short(above: Expr, below: Expr) -> Expr:
    """The same sum as accurate as float32 needs it."""
    middle = above > below * _EIGHTH
    t = select(middle, above - below, above) / select(middle, above + below, below)
    z = t * t
    return mad(t * z, horner(z, table.ARCTAN["f32"]), t) + select(middle, const(_HALF_PI / 2, "f64"), 0.0)


def _arctan_of(y: Expr, x: Expr, left: Expr, single: bool) -> Expr:
    """The angle of (|x|, |y|) for x, y >= 0, or pi minus it."""
    steep = y > x
    above, below = select(steep, x, y), select(steep, y, x)
    # quadrant * pi / 2 +- angle
    turned = copysign(const(1, "f64"), select(steep, const(-1, "f64"), 1.0) * select(left, const(-1, "f64"), 1.0))
    start = select(steep, const(1, "f64"), select(left, const(2, "f64"), 0.0))
    if single:
        return mad(start, _HALF_PI, turned * _arctan_short(above, below))
    c, t, rest = _arctan_ratio(above, below)
    high = mad(start, _HALF_PI, turned * c)  # exact: multiples of pi / 4 as rounded
    return high + mad(turned, t, mad(start, _HALF_PI_LOW, turned * rest))


def arctan(x: Expr) -> Expr:
    """The inverse of tan, between -pi / 2 and pi / 2."""
    wide = min_(2.0**1000, fabs(cast(x, "f64")))
    angle = _arctan_of(wide, const(1, "f64"), const(False, "bool"), x.dtype == "f32")
    return copysign(cast(angle, x.dtype), x)


def arctan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y), between -pi and pi."""
    a, b = fabs(cast(y, "f64")), fabs(cast(x, "f64"))
    large = max_(a, b)
    # inf and 0 as the larger one: the same direction with finite numbers
    flat = eq(large, 0)
    endless = eq(large, math.inf)
    a1 = select(endless, select(eq(a, math.inf), const(1, "f64"), 0.0), a)
    b1 = select(endless, select(eq(b, math.inf), const(1, "f64"), 0.0), select(flat, const(1, "f64"), b))
    if x.dtype == "f64":
        scale = select(large > 2.0**1000, const(2.0**-200, "f64"), select(large < 2.0**-800, const(2.0**200, "f64"), 1.0))
        a1, b1 = a1 * select(endless, 1.0, scale), b1 * select(or_(endless, flat), 1.0, scale)
    left = bits(x) < 0
    angle = cast(_arctan_of(a1, b1, left, x.dtype == "f32"), x.dtype)
    return select(or_(isnan(x), isnan(y)), x + y, copysign(angle, y))
