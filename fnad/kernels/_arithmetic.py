"""What NumPy's arithmetic functions are in terms of the operations of expressions, for floats and integers."""

from __future__ import annotations

import math

from fnad.kernels._formats import bits
from fnad.kernels.codegen import expr as ex
from fnad.kernels.codegen.expr import FLOATS, SIGNED, Expr, call, const, eq, fabs, fma, isnan, ne, or_, rare, select, trunc


def absolute(x: Expr) -> Expr:
    """|x|."""
    if x.dtype in FLOATS:
        return fabs(x)
    return select(x < 0, -x, x) if x.dtype in SIGNED else x


def sign(x: Expr) -> Expr:
    """-1, 0 or 1; nan for nan."""
    if x.dtype in FLOATS:
        return select(x > 0, const(1, x.dtype), select(x < 0, const(-1, x.dtype), select(eq(x, 0), const(0, x.dtype), x)))
    positive = select(x > 0, const(1, x.dtype), 0)
    return select(x < 0, const(-1, x.dtype), positive) if x.dtype in SIGNED else positive


def reciprocal(x: Expr) -> Expr:
    """1 / x; of integers, the integer part, and 0 for 0."""
    if x.dtype in FLOATS:
        return 1 / x
    inverse = select(eq(x, 1), const(1, x.dtype), 0)
    return select(eq(x, -1), const(-1, x.dtype), inverse) if x.dtype in SIGNED else inverse


def fmax(x: Expr, y: Expr) -> Expr:
    """The larger one; the other one where one is nan."""
    return select(or_(x >= y, isnan(y)), x, y) if x.dtype in FLOATS else ex.max_(x, y)


def fmin(x: Expr, y: Expr) -> Expr:
    """The smaller one; the other one where one is nan."""
    return select(or_(x <= y, isnan(y)), x, y) if x.dtype in FLOATS else ex.min_(x, y)


def maximum(x: Expr, y: Expr) -> Expr:
    """The larger one; nan where one is nan."""
    return ex.maximum(x, y) if x.dtype in FLOATS else or_(x, y) if x.dtype == "bool" else ex.max_(x, y)


def minimum(x: Expr, y: Expr) -> Expr:
    """The smaller one; nan where one is nan."""
    return ex.minimum(x, y) if x.dtype in FLOATS else ex.and_(x, y) if x.dtype == "bool" else ex.min_(x, y)


def heaviside(x: Expr, at_zero: Expr) -> Expr:
    """0 below 0, 1 above, `at_zero` at 0; nan for nan."""
    return select(x < 0, const(0, x.dtype), select(x > 0, const(1, x.dtype), select(eq(x, 0), at_zero, x)))


def isfinite(x: Expr) -> Expr:
    """Whether x is neither infinite nor nan."""
    return fabs(x) < math.inf if x.dtype in FLOATS else const(True, "bool")


def isinf(x: Expr) -> Expr:
    """Whether x is infinite."""
    return eq(fabs(x), math.inf) if x.dtype in FLOATS else const(False, "bool")


def signbit(x: Expr) -> Expr:
    """Whether the sign bit is set."""
    return bits(x) < 0 if x.dtype in FLOATS else x < 0


def degrees(x: Expr) -> Expr:
    """Radians as degrees."""
    return x * (180 / math.pi)


def radians(x: Expr) -> Expr:
    """Degrees as radians."""
    return x * (math.pi / 180)


def fmod(x: Expr, y: Expr) -> Expr:
    """The remainder of x / y with the sign of x, exact.

    Quotients of more bits than the mantissa has take the C function and are marked as rare; of integers, C's `%`.
    """
    if x.dtype not in FLOATS:
        rest = ex.mod(x, y)
        opposite = ex.and_(ne(rest, 0), ex.xor(x, y) < 0) if x.dtype in SIGNED else const(False, "bool")
        return select(opposite, rest - y, rest)
    if x.dtype == "f32":
        wide = (ex.cast(x, "f64"), ex.cast(y, "f64"))
        return ex.cast(_fmod_f64(*wide), "f32")
    return _fmod_f64(x, y)


def _fmod_f64(x: Expr, y: Expr) -> Expr:
    a, b = fabs(x), fabs(y)
    ratio = a / b
    rest = fma(-trunc(ratio), b, a)  # exact: the rounded quotient is at most one too large
    rest = select(rest < 0, rest + b, select(rest >= b, rest - b, rest))
    rest = select(a < b, a, rest)
    hard = ex.not_(ex.and_(ratio < 2.0**52, b > 2.0**-960))
    return ex.copysign(rare(hard, fabs(call("fmod", [a, b], "f64")), rest), x)


def remainder(x: Expr, y: Expr) -> Expr:
    """x - floor(x / y) y, with the sign of y."""
    if x.dtype not in FLOATS:
        return ex.mod(x, y)
    rest = fmod(x, y)
    moved = select((rest < 0) ^ (y < 0), rest + y, rest)
    return select(eq(rest, 0), ex.copysign(const(0, x.dtype), y), moved)


def floor_divide(x: Expr, y: Expr) -> Expr:
    """The floor of x / y, as NumPy rounds it."""
    if x.dtype not in FLOATS:
        return ex.floordiv(x, y)
    rest = fmod(x, y)
    quotient = (x - rest) / y
    quotient = select(ex.and_(ne(rest, 0), (rest < 0) ^ (y < 0)), quotient - 1, quotient)
    whole = ex.floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1, whole)
    whole = select(eq(quotient, 0), ex.copysign(const(0, x.dtype), x / y), whole)
    return select(eq(y, 0), x / y, whole)
