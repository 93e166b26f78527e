"""Arithmetic, comparisons and functions of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.primitive import Primitive
from fnad.nn.functional import activations
from fnad.numpy import elementwise
from fnad.primitives import arithmetic, elementary
from fnad.primitives.elementary import logistic
from fnad.torch import _dtypes
from fnad.torch._call import cast, in_place, lift, prim, tensor_of
from fnad.torch._dtypes import common
from fnad.torch._fused import fused
from fnad.torch._tensor import Tensor, make, method

_FLOAT = {"f", "c"}


def operands(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands in PyTorch's common dtype; Python numbers stay numbers where they do not change it."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a._data.dtype == b._data.dtype:
            return a, b
        dtype = common([a._data, b._data], [])
        return cast(a, dtype), cast(b, dtype)
    if isinstance(a, Tensor):
        return _with_number(a, b)
    b, a = _with_number(b, a)
    return a, b


def _with_number(x: Any, n: Any) -> tuple[Any, Any]:
    kind, cls = x._data.dtype.kind, n.__class__
    if (cls is float and kind in _FLOAT) or (cls is int and kind in "ifc"):
        return x, n
    if isinstance(n, np.ndarray) and n.ndim:
        return operands(x, make(n))
    n = n.item() if isinstance(n, np.generic | np.ndarray) else n
    dtype = common([x._data], [n])
    return cast(x, dtype), dtype.type(n)


def _is_operand(x: Any) -> bool:
    return isinstance(x, Tensor | int | float | complex | np.generic | np.ndarray)


def binary(primitive: Primitive, *, floating: bool = False) -> Callable[[Any, Any], Any]:
    """The function of two tensors or numbers that a primitive is."""

    def function(input: Any, other: Any) -> Any:
        a, b = operands(input if isinstance(input, Tensor) or isinstance(other, Tensor) else tensor_of(input), other)
        if floating:
            a, b = _as_floating(a), _as_floating(b)
        return prim(primitive, a, b)

    function.__name__ = primitive.name
    return function


def _as_floating(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x if x._data.dtype.kind in _FLOAT else cast(x, _dtypes.DEFAULT.floating)
    return x if isinstance(x, float | complex | np.floating) else float(x)


def _flat(x: Any, out: Any) -> Any:
    """A function with the slope 0, as PyTorch has it: its result requires gradients, and gives zeros."""
    return prim(arithmetic.where, np.zeros((), bool), x, out)


def unary(primitive: Primitive, *names: str, floating: bool = True, flat: bool = False) -> Callable[[Any], Any]:
    """The function of one tensor that a primitive is, as method and in place too; integers become the default dtype."""

    def function(input: Any) -> Any:
        x = tensor_of(input)
        x = _as_floating(x) if floating else x
        out = prim(primitive, x)
        return _flat(x, out) if flat and x._req else out

    function.__name__ = names[0] if names else primitive.name
    function.__doc__ = f"`torch.{function.__name__}` of each element."
    method(*(names or (primitive.name,)))(function)
    for name in names or (primitive.name,):
        in_place(function, f"{name}_")
    return function


add_ = binary(arithmetic.add)
sub_ = binary(arithmetic.subtract)
mul = binary(arithmetic.multiply)
true_divide = binary(arithmetic.divide, floating=True)
_pow = binary(arithmetic.power)
floor_divide = binary(arithmetic.floor_divide)
remainder = binary(arithmetic.remainder)
fmod = binary(arithmetic.fmod)
maximum, minimum = binary(arithmetic.maximum), binary(arithmetic.minimum)
fmax, fmin = binary(arithmetic.fmax), binary(arithmetic.fmin)
atan2, hypot = binary(arithmetic.arctan2, floating=True), binary(arithmetic.hypot)
logaddexp = binary(arithmetic.logaddexp, floating=True)
copysign = binary(arithmetic.copysign, floating=True)
eq, ne = binary(arithmetic.equal), binary(arithmetic.not_equal)
lt, le = binary(arithmetic.less), binary(arithmetic.less_equal)
gt, ge = binary(arithmetic.greater), binary(arithmetic.greater_equal)
logical_and, logical_or, logical_xor = (binary(p) for p in (arithmetic.logical_and, arithmetic.logical_or, arithmetic.logical_xor))
bitwise_and, bitwise_or, bitwise_xor = (binary(p) for p in (arithmetic.bitwise_and, arithmetic.bitwise_or, arithmetic.bitwise_xor))
bitwise_left_shift, bitwise_right_shift = binary(arithmetic.left_shift), binary(arithmetic.right_shift)


def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input + alpha * other."""
    return add_(input, other if alpha == 1 else mul(other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """input - alpha * other."""
    for x in (input, other):
        if isinstance(x, Tensor) and x._data.dtype.kind == "b":
            raise RuntimeError(
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
                "`logical_not()` operator instead."
            )
    return sub_(input, other if alpha == 1 else mul(other, alpha))


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other - alpha * input."""
    return sub(other, input, alpha=alpha)


def pow(input: Any, exponent: Any) -> Any:
    """input ** exponent."""
    if isinstance(input, Tensor) and input._data.dtype.kind in "iu" and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return _pow(input, exponent)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """input / other; with rounding_mode "trunc" or "floor", rounded."""
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    out = trunc(true_divide(input, other))
    return cast(
        out, common([x._data for x in (input, other) if isinstance(x, Tensor)], [x for x in (input, other) if not isinstance(x, Tensor)])
    )


def _register(function: Callable[..., Any], *names: str, inplace: bool = True) -> None:
    method(*names)(function)
    if inplace:
        for name in names:
            in_place(function, f"{name}_")


for _f, _names in (
    (add, ("add",)), (sub, ("sub", "subtract")), (mul, ("mul", "multiply")), (div, ("div", "divide", "true_divide")), (pow, ("pow",)),
    (floor_divide, ("floor_divide",)), (remainder, ("remainder",)), (fmod, ("fmod",)), (atan2, ("atan2", "arctan2")), (hypot, ("hypot",)),
    (copysign, ("copysign",)), (logical_and, ("logical_and",)), (logical_or, ("logical_or",)), (logical_xor, ("logical_xor",)),
    (bitwise_and, ("bitwise_and",)), (bitwise_or, ("bitwise_or",)), (bitwise_xor, ("bitwise_xor",)),
    (eq, ("eq",)), (ne, ("ne", "not_equal")), (lt, ("lt", "less")), (le, ("le", "less_equal")), (gt, ("gt", "greater")),
    (ge, ("ge", "greater_equal")),
):  # fmt: skip
    _register(_f, *_names)
for _f, _names in (
    (maximum, ("maximum",)), (minimum, ("minimum",)), (fmax, ("fmax",)), (fmin, ("fmin",)), (logaddexp, ("logaddexp",)), (rsub, ("rsub",)),
):  # fmt: skip
    _register(_f, *_names, inplace=False)


def _operator(function: Callable[..., Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return function(other, self) if swapped else function(self, other)

    return operator


def _in_place_operator(name: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return getattr(self, name)(other) if _is_operand(other) else NotImplemented

    return operator


for _name, _f, _changing in (
    ("add", add_, "add_"), ("sub", sub, "sub_"), ("mul", mul, "mul_"), ("truediv", true_divide, "div_"), ("pow", pow, "pow_"),
    ("floordiv", floor_divide, "floor_divide_"), ("mod", remainder, "remainder_"), ("and", bitwise_and, "bitwise_and_"),
    ("or", bitwise_or, "bitwise_or_"), ("xor", bitwise_xor, "bitwise_xor_"),
    ("lshift", bitwise_left_shift, ""), ("rshift", bitwise_right_shift, ""),
):  # fmt: skip
    method(f"__{_name}__")(_operator(_f))
    method(f"__r{_name}__")(_operator(_f, True))
    if _changing:
        method(f"__i{_name}__")(_in_place_operator(_changing))
for _name, _f in (("eq", eq), ("ne", ne), ("lt", lt), ("le", le), ("gt", gt), ("ge", ge)):
    method(f"__{_name}__")(_operator(_f))
method("__hash__")(object.__hash__)

exp, exp2, expm1 = unary(elementary.exp), unary(elementary.exp2), unary(elementary.expm1)
log, log2, log10, log1p = unary(elementary.log), unary(elementary.log2), unary(elementary.log10), unary(elementary.log1p)
sqrt, square = unary(elementary.sqrt), unary(elementary.square, floating=False)
reciprocal = unary(elementary.reciprocal)
sin, cos, tan = unary(elementary.sin), unary(elementary.cos), unary(elementary.tan)
asin, acos, atan = (
    unary(p, f"a{n}", f"arc{n}") for p, n in ((elementary.arcsin, "sin"), (elementary.arccos, "cos"), (elementary.arctan, "tan"))
)
sinh, cosh, tanh = unary(elementary.sinh), unary(elementary.cosh), unary(elementary.tanh)
asinh, acosh, atanh = (
    unary(p, f"a{n}", f"arc{n}") for p, n in ((elementary.arcsinh, "sinh"), (elementary.arccosh, "cosh"), (elementary.arctanh, "tanh"))
)
sigmoid = unary(logistic, "sigmoid")
neg = unary(arithmetic.negative, "neg", "negative", floating=False)
abs = unary(elementary.absolute, "abs", "absolute", floating=False)
sign = unary(elementary.sign, "sign", floating=False, flat=True)
floor, ceil, trunc = (unary(p, floating=False, flat=True) for p in (elementary.floor, elementary.ceil, elementary.trunc))
isnan, isinf, isfinite = (unary(p, floating=False) for p in (elementary.isnan, elementary.isinf, elementary.isfinite))
logical_not, bitwise_not = unary(elementary.logical_not, floating=False), unary(elementary.invert, "bitwise_not", floating=False)
signbit = unary(elementary.signbit, floating=False)


@method()
def rsqrt(input: Any) -> Any:
    """1 / sqrt(input)."""
    return reciprocal(sqrt(input))


@method()
def round(input: Any, *, decimals: int = 0) -> Any:
    """Rounded, to even at ties."""
    out = prim(elementary.round, input, decimals=decimals)
    return _flat(input, out) if input._req else out


in_place(round, "round_")


def _clamped(x: Any, low: Any, high: Any) -> Any:
    out = x if low is None else np.where(np.less(x, low), low, x)
    return out if high is None else np.where(np.greater(out, high), high, out)


_clamp = lift(_clamped, "clamp")


@method("clamp", "clip")
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """The entries, kept within bounds; at a bound the gradient passes, as in PyTorch."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [b for b in (min, max) if b is not None]
    dtype = common([input._data, *(b._data for b in bounds if isinstance(b, Tensor))], [b for b in bounds if not isinstance(b, Tensor)])
    low, high = (b if b is None else cast(b, dtype) if isinstance(b, Tensor) else dtype.type(b) for b in (min, max))
    return _clamp(cast(input, dtype), low, high)


in_place(clamp, "clamp_", "clip_")


@method()
def clamp_min(input: Any, min: Any) -> Any:
    """See `clamp`."""
    return clamp(input, min)


@method()
def clamp_max(input: Any, max: Any) -> Any:
    """See `clamp`."""
    return clamp(input, None, max)


in_place(clamp_min, "clamp_min_")
in_place(clamp_max, "clamp_max_")
relu = fused(activations.relu)
method("relu")(relu)
in_place(relu, "relu_")
nan_to_num = lift(elementwise.nan_to_num)
method("nan_to_num")(nan_to_num)


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """input + weight * (end - input)."""
    return input + mul(end - input, weight)


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """input + value * tensor1 * tensor2."""
    return input + mul(tensor1 * tensor2, value)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """input + value * tensor1 / tensor2."""
    return input + mul(tensor1 / tensor2, value)


_register(lerp, "lerp")
_register(addcmul, "addcmul")
_register(addcdiv, "addcdiv")
method("__neg__")(lambda self: neg(self))
method("__pos__")(lambda self: self)
method("__abs__")(lambda self: abs(self))
method("__invert__")(lambda self: bitwise_not(self))


@method()
def logit(input: Any, eps: float | None = None) -> Any:
    """log(x / (1 - x))."""
    x = input if eps is None else clamp(input, eps, 1 - eps)
    return log(x / (1 - x))


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all entries are close."""
    return bool(np.allclose(input._data, other._data, rtol, atol, equal_nan))


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Which entries are close."""
    return make(np.asarray(np.isclose(input._data, other._data, rtol, atol, equal_nan)))


def equal(input: Any, other: Any) -> bool:
    """Whether shapes and all entries are equal."""
    return input._data.shape == other._data.shape and bool(np.array_equal(input._data, other._data))


method("allclose")(allclose)
method("isclose")(isclose)
method("equal")(equal)
