"""Arithmetic, comparison and selection, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, all_weak, result_dtype
from fnad.primitives._families import Elementwise, Primitive, Pullback, Unary, align, broadcast_shapes, unbroadcast
from fnad.primitives._families import add_tangents as _add_tangents


def _ratio_slope(x: Any, r: Any) -> Any:
    """x / r, and 0 where r is 0."""
    zero = r == 0
    return np.where(zero, 0.0 * r, x) / np.where(zero, r + 1, r)


def _power_slope_base(x: Any, y: Any) -> Any:
    if isinstance(y, int | float):
        return y * x ** (y - 1) if y != 0 else 0 * x
    zero = y == 0
    return np.where(zero, 0 * y, y * x ** np.where(zero, y + 1, y - 1))


def _power_slope_exponent(x: Any, y: Any, out: Any) -> Any:
    flat = (x == 0) & (y >= 0)
    return np.where(flat, 0 * out, out * np.log(np.where(flat, x + 1, x)))


def _winner(x: Any, y: Any, larger: bool) -> Any:
    """1 where x is chosen, 0 where y is, a half at ties: in x's dtype."""
    won = x > y if larger else x < y
    won = won | ((x != x) & (y == y))
    return np.where(won, 1.0, np.where((x == y) | ((x != x) & (y != y)), 0.5, 0.0))


_SPECIAL_PAIRS = ((0.0, 1.0), (1.0, 1.0), (-2.0, 2.0))

add = Elementwise("add", np.add, 1, 1, kinds="fc")
subtract = Elementwise("subtract", np.subtract, 1, -1, kinds="fc")
multiply = Elementwise("multiply", np.multiply, lambda y: y, lambda x: x, kinds="fc", special=((0.0, 0.0), (0.0, 2.0)))
divide = Elementwise("divide", np.true_divide, lambda y: 1 / y, lambda out, y: -out / y, kinds="fc", domain=(0.5, 3.0))
power = Elementwise(
    "power", np.power, _power_slope_base, _power_slope_exponent, numpy=(np.power, np.float_power),
    impl=lambda x, y: x**y, domain=(0.3, 2.5), special=((0.0, 2.0), (0.0, 1.0), (2.0, 0.0), (1.0, 3.0)),
)  # fmt: skip
negative = Unary("negative", np.negative, -1, kinds="fc")
positive = Unary("positive", np.positive, 1, kinds="fc")
maximum = Elementwise(
    "maximum", np.maximum, lambda x, y: _winner(x, y, True), lambda x, y: _winner(y, x, True), special=_SPECIAL_PAIRS
)
minimum = Elementwise(
    "minimum", np.minimum, lambda x, y: _winner(x, y, False), lambda x, y: _winner(y, x, False), special=_SPECIAL_PAIRS
)
