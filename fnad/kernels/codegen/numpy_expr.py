"""Scalar expressions evaluated by NumPy, element by element: what the operations mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fnad.errors import ArgumentError
from fnad.kernels.codegen.expr import BITS, DTYPES, FLOATS, SIGNED, Expr
from fnad.kernels.codegen.graph import ordered

CALLS = {"tgamma": "gamma"}
"""C functions which Python's `math` module has under another name."""


def evaluate(exprs: Sequence[Expr], env: Mapping[str, Any]) -> list[Any]:
    """The values of expressions for given values of their variables (arrays that broadcast, or scalars).

    Every node is computed once. NumPy's floating-point warnings are off.

    >>> from fnad.kernels.codegen.expr import var
    >>> x = var("x", "f64")
    >>> [y.tolist() for y in evaluate([x * x + 1, -x], {"x": np.array([1.0, 2.0])})]
    [[2.0, 5.0], [-1.0, -2.0]]
    """
    values: dict[Expr, Any] = {}
    with np.errstate(all="ignore"):
        for node in ordered(exprs):
            dtype = DTYPES[node.dtype]
            if node.op == "var":
                values[node] = np.asarray(env[node.attr], dtype)
            elif node.op == "const":
                values[node] = np.asarray(node.attr, dtype)
            else:
                values[node] = np.asarray(_EVALUATE[node.op](node, *(values[arg] for arg in node.args)), dtype)
    return [values[e] for e in exprs]


def fused(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of float64 arrays as if rounded once, from an exact product (Dekker 1971) and an exact sum (Knuth)."""
    product = a * b
    ah, bh = _high(a), _high(b)
    al, bl = a - ah, b - bh
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part)
    out = total + (error + rest)
    return np.where(np.isfinite(out), out, total)


def _high(a: Any) -> Any:
    scaled = 134217729.0 * a
    return scaled - (scaled - a)


def _fma(node: Expr, a: Any, b: Any, c: Any) -> Any:
    if node.dtype == "f32":
        return a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return fused(a, b, c)


def _cast(node: Expr, a: Any) -> Any:
    source, target = node.args[0].dtype, node.dtype
    if source not in FLOATS or target in FLOATS:
        return a.astype(DTYPES[target])
    if target == "bool":
        return a != 0
    if target == "u64":
        large = a >= 2.0**63
        return _to_signed(np.where(large, a - a.dtype.type(2.0**63), a), "i64").astype(np.uint64) ^ (
            large.astype(np.uint64) << np.uint64(63)
        )
    return _to_signed(a, WIDE[target]).astype(DTYPES[target])


WIDE = {"i8": "i32", "i16": "i32", "i32": "i32", "i64": "i64", "u8": "i32", "u16": "i32", "u32": "i64"}
"""The signed integer through which a float is converted to an integer, and whose smallest value stands for nan."""


def _to_signed(a: Any, dtype: str) -> Any:
    limit = 2.0 ** (BITS[dtype] - 1)
    fits = np.abs(a) < limit
    return np.where(fits, np.where(fits, a, 0).astype(DTYPES[dtype]), DTYPES[dtype].type(-int(limit)))


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    def evaluate_shift(node: Expr, a: Any, b: Any) -> Any:
        bits = BITS[node.dtype]
        fits = (b >= 0) & (b < bits)
        least = -1 if node.op == "shr" and node.dtype in SIGNED else 0
        return np.where(fits, function(a, np.where(fits, b, 0).astype(b.dtype)), np.where(a < 0, least, 0).astype(a.dtype))

    return evaluate_shift


def mulhi(a: Any, b: Any) -> Any:
    """The upper half of the product of unsigned integers, from the four products of half words; none of the sums overflows."""
    half = a.dtype.type(a.dtype.itemsize * 4)
    mask = a.dtype.type((1 << int(half)) - 1)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    return a_high * b_high + (middle >> half) + ((a_low * b_high + (middle & mask)) >> half)


def _call(node: Expr, *args: Any) -> Any:
    function = getattr(math, CALLS.get(node.attr, node.attr), None)
    if function is None:
        raise ArgumentError("this C function has no counterpart in Python's math module", got={"function": node.attr})
    return np.vectorize(_without_errors(function), otypes=[DTYPES[node.dtype]])(*args)


def _without_errors(function: Callable[..., float]) -> Callable[..., float]:
    """nan where Python's function raises: infinities from finite arguments are not told apart."""

    def call(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *args: function(*args)


_EVALUATE: dict[str, Callable[..., Any]] = {
    "add": _plain(np.add),
    "sub": _plain(np.subtract),
    "mul": _plain(np.multiply),
    "div": _plain(np.true_divide),
    "mulhi": _plain(mulhi),
    "neg": _plain(np.negative),
    "mad": _plain(lambda a, b, c: a * b + c),
    "fma": _fma,
    "floordiv": _plain(np.floor_divide),
    "mod": _plain(np.remainder),
    "abs": _plain(np.fabs),
    "sqrt": _plain(np.sqrt),
    "floor": _plain(np.floor),
    "ceil": _plain(np.ceil),
    "trunc": _plain(np.trunc),
    "rint": _plain(np.rint),
    "copysign": _plain(np.copysign),
    "min": _plain(lambda a, b: np.where(a < b, a, b)),
    "max": _plain(lambda a, b: np.where(a > b, a, b)),
    "minimum": _plain(np.minimum),
    "maximum": _plain(np.maximum),
    "lt": _plain(np.less),
    "le": _plain(np.less_equal),
    "gt": _plain(np.greater),
    "ge": _plain(np.greater_equal),
    "eq": _plain(np.equal),
    "ne": _plain(np.not_equal),
    "and": _plain(np.bitwise_and),
    "or": _plain(np.bitwise_or),
    "xor": _plain(np.bitwise_xor),
    "not": _plain(np.invert),
    "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift),
    "select": _plain(np.where),
    "rare": _plain(np.where),
    "cast": _cast,
    "bitcast": lambda node, a: np.ascontiguousarray(a).reshape(a.shape).view(DTYPES[node.dtype]),
    "table": lambda node, index: np.array(node.attr, DTYPES[node.dtype])[index],
    "call": _call,
}
