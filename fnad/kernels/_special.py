"""Functions of `scipy.special` that are short combinations of others, or C functions."""

from __future__ import annotations

import math

from fnad.kernels._formats import format_of
from fnad.kernels._logarithm import log, log1p
from fnad.kernels.codegen.expr import Expr, and_, call, cast, const, eq, isnan, max_, not_, select


def relu(x: Expr) -> Expr:
    """The larger one of x and 0; nan for nan."""
    return max_(0, x)


def xlogy(x: Expr, y: Expr) -> Expr:
    """x log(y), 0 where x = 0 unless y is nan."""
    return select(and_(eq(x, 0), not_(isnan(y))), const(0, x.dtype), x * log(y))


def xlog1py(x: Expr, y: Expr) -> Expr:
    """x log(1 + y), 0 where x = 0 unless y is nan."""
    return select(and_(eq(x, 0), not_(isnan(y))), const(0, x.dtype), x * log1p(y))


def entr(x: Expr) -> Expr:
    """-x log(x), 0 at 0, -inf below."""
    below = select(x < 0, const(-math.inf, x.dtype), x)
    return select(x > 0, -x * log(x), select(eq(x, 0), const(0, x.dtype), below))


def gammaln(x: Expr) -> Expr:
    """The logarithm of the absolute value of the gamma function, by the C library; -inf at -inf, as SciPy has it."""
    format_of(x)
    return select(eq(x, -math.inf), x, cast(call("lgamma", [cast(x, "f64")], "f64"), x.dtype))


def gamma(x: Expr) -> Expr:
    """The gamma function, by the C library; nan at negative integers."""
    format_of(x)
    return cast(call("tgamma", [cast(x, "f64")], "f64"), x.dtype)
