"""Arithmetic, comparison and selection as scalar expressions, under the names of the primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.kernels import scalar
from fnad.kernels._exponential import exp_of_negative, sigmoid
from fnad.kernels.codegen import expr as ex


def truth(x: Any) -> Any:
    """An expression as a condition."""
    return x if x.dtype == "bool" else ex.ne(x, 0)


def _finite(x: Any) -> Any:
    return ex.fabs(x) < float("inf") if x.dtype in ex.FLOATS else ex.const(True, "bool")


def _guarded(g: Any, slope: Any) -> Any:
    return ex.select(ex.eq(g, 0), g, g * slope)


def _guarded_both(g: Any, slope: Any) -> Any:
    return ex.select(ex.eq(g, 0), g, ex.select(ex.eq(slope, 0), slope, g * slope))


def _sech2(x: Any) -> Any:
    """4 e / (1 + e)**2 with e = exp(-2 |x|)."""
    e = exp_of_negative(ex.fabs(x) * -2)
    below = e + 1
    return e * 4 / (below * below)


BASIC: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: ex.or_(x, y) if x.dtype == y.dtype == "bool" else x + y,
    "subtract": ex.sub,
    "rounded_add": lambda x, y: ex.add(x, y, strict=True),
    "rounded_subtract": lambda x, y: ex.sub(x, y, strict=True),
    "multiply": lambda x, y: ex.and_(x, y) if x.dtype == y.dtype == "bool" else x * y,
    "divide": ex.div,
    "negative": ex.neg,
    "square": ex.square,
    "sqrt": ex.sqrt,
    "absolute": ex.fabs,
    "floor": ex.floor,
    "ceil": ex.ceil,
    "trunc": ex.trunc,
    "rint": ex.rint,
    "copysign": ex.copysign,
    "maximum": ex.maximum,
    "minimum": ex.minimum,
    "less": ex.lt,
    "less_equal": ex.le,
    "greater": ex.gt,
    "greater_equal": ex.ge,
    "equal": ex.eq,
    "not_equal": ex.ne,
    "isnan": ex.isnan,
    "logical_and": lambda x, y: ex.and_(truth(x), truth(y)),
    "logical_or": lambda x, y: ex.or_(truth(x), truth(y)),
    "logical_xor": lambda x, y: ex.xor(truth(x), truth(y)),
    "logical_not": lambda x: ex.not_(truth(x)),
    "bitwise_and": ex.and_,
    "bitwise_or": ex.or_,
    "bitwise_xor": ex.xor,
    "left_shift": ex.shl,
    "right_shift": ex.shr,
    "invert": ex.not_,
    "reciprocal": lambda x: 1 / x,
    "sign": lambda x: ex.select(ex.gt(x, 0), 1, ex.select(ex.lt(x, 0), -1, x)),
    "positive": lambda x: x,
    "root": ex.sqrt,
    "sech2": _sech2,
    "logistic": sigmoid,
    "expit": sigmoid,
    "isfinite": _finite,
    "isinf": lambda x: ex.not_(ex.or_(_finite(x), ex.ne(x, x))),
    "where": lambda c, x, y: ex.select(truth(c), x, y),
    "guarded_multiply": _guarded,
    "guarded_multiply_both": _guarded_both,
    "same": lambda x: x,
}


def find(name: str) -> Callable[..., Any] | None:
    """The expression of a function by the name of its primitive; None if there is none."""
    return getattr(scalar, name, None) or BASIC.get(name)
