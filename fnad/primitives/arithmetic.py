"""Arithmetic, comparison and selection, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, Aval, all_weak, result_dtype, shape_of, weak_aval
from fnad.core.lowering import Scalar
from fnad.core.primitive import keep_weak
from fnad.primitives._families import Elementwise, Primitive, Pullback, Unary, add_tangents, align, broadcast_shapes, unbroadcast
from fnad.primitives.elementary import is_complex, log, logistic, logistic2, sign


def quotient(x: Any, y: Any) -> Any:
    """x / y; Python scalars stay Python scalars, but divide as NumPy's do."""
    return divide(x, y) if y.__class__ in PYTHON_SCALARS else x / y


def _ratio(x: Any, r: Any) -> Any:
    """x / r, and 0 where r is 0."""
    zero = r == 0
    return np.where(zero, 0, x / np.where(zero, 1, r))


def _power(x: Any, y: Any) -> Any:
    # Python's own power raises at 0.0**-1, and answers (-1.0)**0.5 with a complex number.
    return np.power(x, y) if x.__class__ in PYTHON_SCALARS and y.__class__ in PYTHON_SCALARS else x**y


def _power_slope_base(x: Any, y: Any) -> Any:
    if y.__class__ in PYTHON_SCALARS:
        return y if y in (0, 1) else 2 * x if y == 2 else y * power(x, y - 1)
    if x.__class__ in PYTHON_SCALARS and x != 0:
        return y * power(x, y - 1)
    # Only x = y = 0 is set aside: elsewhere the expression must keep its own derivative with respect to y.
    flat = (x == 0) & (y == 0)
    return np.where(flat, 0, y * np.where(flat, 1, x) ** np.where(flat, 1, y - 1))


def _power_slope_exponent(x: Any, y: Any, out: Any) -> Any:
    if is_complex(out):
        x = x + 0j  # log must not see a negative real number
    if x.__class__ in PYTHON_SCALARS and x != 0:
        return out * log(x)
    flat = (x == 0) & (np.real(y) >= 0)
    return np.where(flat, 0, out * log(np.where(flat, 1, x)))


def chosen(x: Any, out: Any) -> Any:
    """Where x is what max or min (out) took, nan included."""
    if x.__class__ in PYTHON_SCALARS and x == x:
        return x == out
    return (x == out) | ((x != x) & (out != out))


def _share(x: Any, y: Any, out: Any) -> Any:
    """1 where x alone was taken, a half at ties, 0 elsewhere."""
    mine = chosen(x, out)
    return np.where(mine & chosen(y, out), out.dtype.type(0.5), mine) if hasattr(out, "dtype") else 0.5 * (1 + mine - chosen(y, out))


def _softmax_of_two(x: Any, y: Any, of_difference: Elementwise) -> Any:
    """exp(x) / (exp(x) + exp(y)), a function of their difference; 0 where both are -inf, a half where both are inf."""
    same = np.isinf(x) & (x == y)
    return np.where(same & np.less(x, 0), 0, of_difference(np.where(same, 0, x - y)))


def _arctan2_slope(x: Any, y: Any) -> Any:
    """y / (x**2 + y**2) without overflow or underflow, 0 at the origin."""
    r = np.hypot(x, y)
    return _ratio(_ratio(y, r), r)


def _copysign_slope(x: Any, y: Any) -> Any:
    return sign(x) * copysign(1.0, y)


_TIES = ((0.0, 1.0), (1.0, 1.0), (-2.0, 2.0))

add = Elementwise("add", np.add, 1, 1, kinds="fc")
subtract = Elementwise("subtract", np.subtract, 1, -1, kinds="fc")
multiply = Elementwise("multiply", np.multiply, lambda y: y, lambda x: x, kinds="fc", special=((0.0, 0.0), (0.0, 2.0)))
divide = Elementwise("divide", np.true_divide, lambda y: quotient(1, y), lambda out, y: quotient(-out, y), kinds="fc", domain=(0.5, 3.0))
power = Elementwise(
    "power", np.power, _power_slope_base, _power_slope_exponent, impl=_power, kinds="fc",
    domain=(0.3, 2.5), special=((0.0, 2.0), (0.0, 1.0), (2.0, 0.0), (1.0, 3.0)),
)  # fmt: skip
negative = Unary("negative", np.negative, -1, kinds="fc")
positive = Unary("positive", np.positive, 1, kinds="fc")

floor_divide = Elementwise("floor_divide", np.floor_divide, None, None, domain=(0.6, 2.9))
remainder = Elementwise("remainder", np.remainder, 1, lambda x, y: -np.floor_divide(x, y), domain=(0.6, 2.9), special=((-1.3, 0.7),))
fmod = Elementwise("fmod", np.fmod, 1, lambda x, y, out: -np.rint(quotient(x - out, y)), domain=(0.6, 2.9), special=((-1.3, 0.7),))

maximum = Elementwise("maximum", np.maximum, _share, lambda x, y, out: _share(y, x, out), kinds="f", special=_TIES)
minimum = Elementwise("minimum", np.minimum, _share, lambda x, y, out: _share(y, x, out), kinds="f", special=_TIES)
fmax = Elementwise("fmax", np.fmax, _share, lambda x, y, out: _share(y, x, out), kinds="f", special=_TIES)
fmin = Elementwise("fmin", np.fmin, _share, lambda x, y, out: _share(y, x, out), kinds="f", special=_TIES)

hypot = Elementwise("hypot", np.hypot, lambda x, out: _ratio(x, out), lambda y, out: _ratio(y, out), special=((3.0, 4.0), (1e-200, 1e-200)))
arctan2 = Elementwise(
    "arctan2", np.arctan2, _arctan2_slope, lambda x, y: -_arctan2_slope(y, x), domain=(0.3, 3.0), special=((1.0, -1.0), (-1.0, 2.0))
)
logaddexp = Elementwise(
    "logaddexp", np.logaddexp, lambda x, y: _softmax_of_two(x, y, logistic), lambda x, y: _softmax_of_two(y, x, logistic),
    special=((800.0, 0.0), (-800.0, 0.0), (1.0, 1.0)),
)  # fmt: skip
logaddexp2 = Elementwise(
    "logaddexp2", np.logaddexp2, lambda x, y: _softmax_of_two(x, y, logistic2), lambda x, y: _softmax_of_two(y, x, logistic2),
    special=((1200.0, 0.0), (-1200.0, 0.0), (1.0, 1.0)),
)  # fmt: skip
copysign = Elementwise("copysign", np.copysign, _copysign_slope, None, special=((1.0, -2.0), (-1.0, 3.0)))
heaviside = Elementwise("heaviside", np.heaviside, None, lambda x: x == 0, special=((0.0, 0.3), (1.0, 0.5)))

less = Elementwise("less", np.less, None, None)
less_equal = Elementwise("less_equal", np.less_equal, None, None)
greater = Elementwise("greater", np.greater, None, None)
greater_equal = Elementwise("greater_equal", np.greater_equal, None, None)
equal = Elementwise("equal", np.equal, None, None, kinds="fc", special=_TIES)
not_equal = Elementwise("not_equal", np.not_equal, None, None, kinds="fc", special=_TIES)
logical_and = Elementwise("logical_and", np.logical_and, None, None, kinds="fcib")
logical_or = Elementwise("logical_or", np.logical_or, None, None, kinds="fcib")
logical_xor = Elementwise("logical_xor", np.logical_xor, None, None, kinds="fcib")
bitwise_and = Elementwise("bitwise_and", np.bitwise_and, None, None, kinds="ib")
bitwise_or = Elementwise("bitwise_or", np.bitwise_or, None, None, kinds="ib")
bitwise_xor = Elementwise("bitwise_xor", np.bitwise_xor, None, None, kinds="ib")
left_shift = Elementwise("left_shift", np.left_shift, None, None, kinds="i", domain=(0.0, 5.0))
right_shift = Elementwise("right_shift", np.right_shift, None, None, kinds="i", domain=(0.0, 5.0))


class Where(Primitive):
    """x where the condition holds, y elsewhere; the three broadcast together."""

    reads = frozenset({0})
    reads_output = False

    def infer(self, condition: Aval, x: Aval, y: Aval) -> Aval:
        shape = broadcast_shapes(self.name, condition, x, y)
        dtype = result_dtype(x, y)
        return weak_aval(dtype) if all_weak(x, y) and not shape and dtype.kind != "b" else Aval(shape, dtype)

    def impl(self, condition: Any, x: Any, y: Any) -> Any:
        out = np.where(condition, x, y)
        return keep_weak(out, (x, y))

    def vjp(self, out: Any, condition: Any, x: Any, y: Any) -> Sequence[Pullback | None]:
        return None, _masked(condition, shape_of(x), True), _masked(condition, shape_of(y), False)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        _, tx, ty = tangents
        if tx is None and ty is None:
            return None
        return add_tangents(where(args[0], 0 if tx is None else tx, 0 if ty is None else ty), None, shape_of(out))

    def lower(self, condition: Aval, x: Aval, y: Aval) -> Scalar:
        dtype = result_dtype(x, y)
        return Scalar("where", (condition.dtype, dtype, dtype))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(*align(args, batched))


def _masked(condition: Any, shape: tuple[int, ...], chosen: bool) -> Callable[[Any], Any]:
    return lambda g: unbroadcast(where(condition, g, 0) if chosen else where(condition, 0, g), shape)


where = Where("where")
