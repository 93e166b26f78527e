"""What calls of NumPy's, math's and Python's own functions become."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from fnad.errors import DTypeError
from fnad.loops import arrays, makers, operators, products, reductions
from fnad.loops.arrays import array_of, arrayish, materialise
from fnad.loops.builder import Builder, const, dtype_of, is_tuple
from fnad.loops.ir import Const, Value
from fnad.loops.source import Static
from fnad.loops.tables import Handler, Table, count, dtype_from, is_none, sizes_of

HANDLERS = Table({**reductions.HANDLERS, **makers.HANDLERS, **products.HANDLERS})
METHODS: dict[str, Handler] = {}
"""The methods of arrays."""

NAMES = {
    "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "cbrt": "cbrt", "fabs": "fabs", "sign": "sign",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "hypot": "hypot", "arctan2": "atan2", "copysign": "copysign",
    "fmod": "fmod", "maximum": "maximum", "minimum": "minimum", "fmax": "fmax", "fmin": "fmin", "logaddexp": "logaddexp",
    "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite", "degrees": "degrees", "rad2deg": "degrees", "radians": "radians",
    "deg2rad": "radians", "sinc": "sinc", "heaviside": "heaviside", "real": "real", "imag": "imag", "conj": "conj",
    "conjugate": "conj", "abs": "abs", "absolute": "abs",
}  # fmt: skip
MATH = {
    "asin": "asin", "acos": "acos", "atan": "atan", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "atan2": "atan2",
    "erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "lgamma",
}  # fmt: skip


def _function(name: str) -> Handler:
    return lambda b, *args: operators.function(b, name, *args)


def _binary(kind: str) -> Handler:
    return lambda b, x, y: operators.binary(b, kind, x, y)


HANDLERS.update({getattr(np, name): _function(kind) for name, kind in NAMES.items()})
HANDLERS.update({getattr(math, name): _function(kind) for name, kind in {**NAMES, **MATH}.items() if hasattr(math, name)})
HANDLERS[abs] = _function("abs")
for _names, _kind in (
    ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "div"), ("true_divide", "div"), ("floor_divide", "floordiv"),
    ("mod", "mod"), ("remainder", "mod"), ("power", "pow"), ("float_power", "pow"), ("less", "lt"), ("less_equal", "le"),
    ("greater", "gt"), ("greater_equal", "ge"), ("equal", "eq"), ("not_equal", "ne"), ("bitwise_and", "bitand"),
    ("bitwise_or", "bitor"), ("bitwise_xor", "bitxor"), ("left_shift", "shl"), ("right_shift", "shr"),
):  # fmt: skip
    HANDLERS[getattr(np, _names)] = _binary(_kind)
for _names, _kind in (
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("truediv", "div"),
    ("floordiv", "floordiv"),
    ("mod", "mod"),
    ("pow", "pow"),
):
    HANDLERS[getattr(operator, _names)] = _binary(_kind)
HANDLERS[math.pow] = lambda b, x, y: operators.binary(b, "pow", operators.convert(b, x, np.float64), y)
HANDLERS[np.negative] = HANDLERS[operator.neg] = operators.negative
HANDLERS[np.positive] = lambda b, x: x
HANDLERS[np.square] = lambda b, x: operators.binary(b, "mul", x, x)
HANDLERS[np.reciprocal] = lambda b, x: operators.binary(b, "div", const(1), x)
HANDLERS[np.invert] = operators.invert
HANDLERS[np.logical_not] = operators.logical_not
HANDLERS[np.logical_and] = lambda b, x, y: operators.logical(b, "and", x, y)
HANDLERS[np.logical_or] = lambda b, x, y: operators.logical(b, "or", x, y)
HANDLERS[np.logical_xor] = lambda b, x, y: operators.binary(b, "ne", operators.convert(b, x, bool), operators.convert(b, y, bool))


@HANDLERS.of(np.where)
def _where(b: Builder, condition: Any, x: Any, y: Any) -> Any:
    return operators.where(b, condition, x, y)


@HANDLERS.of(np.clip)
def _clip(b: Builder, x: Any, low: Any, high: Any) -> Any:
    x = x if is_none(low) else operators.function(b, "maximum", x, low)
    return x if is_none(high) else operators.function(b, "minimum", x, high)


def _extreme(kind: str) -> Handler:
    def handler(b: Builder, *args: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and is_tuple(args[0]) else list(args)
        if len(values) == 1 and arrayish(values[0]):
            return HANDLERS[np.max if kind == "gt" else np.min](b, values[0])
        operators.check_numbers(b, *values)
        if any(arrayish(v) for v in values):
            b.fail("max and min compare numbers", fix="np.maximum or np.minimum for arrays")
        best = values[0]
        for value in values[1:]:
            best = operators.pick(b, kind, best, value)
        return best

    return handler


HANDLERS[max] = _extreme("gt")
HANDLERS[min] = _extreme("lt")


@HANDLERS.of(len)
def _len(b: Builder, x: Any) -> Any:
    if is_tuple(x):
        return const(len(x))
    if not arrayish(x):
        b.fail("len() is for arrays and tuples", kind=DTypeError)
    return array_of(b, x).sizes[0]


# conversions


def _conversion(dtype: Any) -> Handler:
    return lambda b, x=None: const(0, dtype) if x is None else operators.convert(b, x, dtype)


for _type, _dtype in ((int, np.int64), (float, np.float64), (bool, np.bool_), (complex, np.complex128)):
    HANDLERS[_type] = _conversion(_dtype)
for _number in (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64,
    np.complex64, np.complex128,
):  # fmt: skip
    HANDLERS[_number] = _conversion(_number)


@HANDLERS.of(round)
def _round(b: Builder, x: Any) -> Any:
    return b.cast(operators.function(b, "rint", x), np.int64)


def _rounding(name: str) -> Handler:
    return lambda b, x: operators.convert(b, operators.function(b, name, x), np.int64)


for _name in ("floor", "ceil", "trunc"):
    HANDLERS[getattr(math, _name)] = _rounding(_name)


@HANDLERS.of(divmod)
def _divmod(b: Builder, x: Any, y: Any) -> Any:
    return operators.binary(b, "floordiv", x, y), operators.binary(b, "mod", x, y)


# methods


def _reshape(b: Builder, x: Any, *shape: Any) -> Any:
    x = materialise(b, x)
    sizes = sizes_of(b, shape[0] if len(shape) == 1 else tuple(shape))
    unknown = [k for k, s in enumerate(sizes) if isinstance(s, Const) and s.value == -1]
    if unknown:
        others = [s for k, s in enumerate(sizes) if k != unknown[0]]
        sizes[unknown[0]] = b.scalar("floordiv", count(b, b.shape(x)), count(b, others), dtype=np.int64)
    return b.reshape(x, sizes)


def _fill_method(b: Builder, x: Value, value: Any) -> Any:
    arrays.store_into(b, x, value)
    return Static(None)


_SAME_AS_FUNCTIONS = (
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "all", "any", "cumsum", "cumprod", "trace", "diagonal",
)  # fmt: skip
METHODS.update(
    reshape=_reshape,
    ravel=lambda b, x: _reshape(b, x, const(-1)),
    flatten=lambda b, x: _reshape(b, HANDLERS[np.copy](b, x), const(-1)),
    copy=HANDLERS[np.copy],
    fill=_fill_method,
    astype=lambda b, x, dtype: materialise(b, _copy_as(b, x, dtype_from(b, dtype, np.float64))),
    transpose=lambda b, x: b.transpose(materialise(b, x), tuple(range(array_of(b, x).type.ndim))[::-1]),
    dot=HANDLERS[np.dot],
    conj=HANDLERS[np.conj],
    conjugate=HANDLERS[np.conj],
    **{name: HANDLERS[getattr(np, name)] for name in _SAME_AS_FUNCTIONS},
)
HANDLERS[np.reshape] = lambda b, x, shape: _reshape(b, x, shape)
HANDLERS[np.ravel] = METHODS["ravel"]
HANDLERS[np.transpose] = METHODS["transpose"]


def _copy_as(b: Builder, x: Any, dtype: np.dtype[Any]) -> Any:
    return b.copy(x) if isinstance(x, Value) and dtype_of(x) == dtype else operators.convert(b, x, dtype)


@HANDLERS.of(builtins.print)
def _print(b: Builder, *args: Any, **keywords: Any) -> Any:
    return Static(None)
