"""Operators and mathematical functions on scalars, arrays and expressions: result types and the operations that they become."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import DTypeError
from fnad.loops.arrays import arrayish, dtype_of_any, elementwise
from fnad.loops.builder import Builder, const, dtype_of, is_scalar, is_tuple
from fnad.loops.ir import Const, Operand

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.BitAnd: "bitand", ast.BitOr: "bitor", ast.BitXor: "bitxor", ast.LShift: "shl", ast.RShift: "shr",
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
BITS = frozenset({"bitand", "bitor", "bitxor", "shl", "shr"})
COMPARISONS = frozenset(COMPARED.values())
ROUNDINGS = frozenset({"floor", "ceil", "trunc", "rint"})
TESTS = frozenset({"isnan", "isinf", "isfinite"})


def common(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of mixed scalars: NumPy's, without special rules for literals (as in compiled code)."""
    return np.result_type(*dtypes)


def floating(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def check_numbers(b: Builder, *operands: Any) -> None:
    for x in operands:
        if not is_scalar(x) and not arrayish(x):
            what = "a tuple" if is_tuple(x) else type(x).__name__
            b.fail("An operand must be a number or an array", got={"operand": what}, kind=DTypeError)


def binary(b: Builder, kind: str, x: Any, y: Any) -> Any:
    """`x kind y` of scalars and arrays."""
    check_numbers(b, x, y)
    arrays = arrayish(x) or arrayish(y)
    dtype = _result(b, kind, x, y, arrays)
    if kind in COMPARISONS:
        joint = common(dtype_of_any(x), dtype_of_any(y))
        return _apply(b, lambda u, v: b.scalar(kind, b.cast(u, joint), b.cast(v, joint)), np.dtype(np.bool_), x, y)
    if kind == "pow":
        return _apply(b, lambda u, v: _power(b, u, v, dtype), dtype, x, y)
    return _apply(b, lambda u, v: b.scalar(kind, b.cast(u, dtype), b.cast(v, dtype), dtype=dtype), dtype, x, y)


def _result(b: Builder, kind: str, x: Any, y: Any, arrays: bool) -> np.dtype[Any]:
    first, second = dtype_of_any(x), dtype_of_any(y)
    dtype = common(first, second)
    if kind in BITS:
        if dtype.kind not in "biu":
            b.fail(f"Bit operations are for integers and booleans, not for {dtype}", kind=DTypeError)
        return (
            dtype
            if (dtype.kind == "b" and kind[0] == "b") or arrays
            else common(dtype, np.dtype(np.int64))
            if dtype.kind == "b"
            else _wide(dtype)
        )
    if kind == "div":
        return floating(dtype)
    if kind == "pow":
        if second.kind in "biu" and first.kind in "fc":
            return first
        if isinstance(y, Const) and dtype.kind in "biu" and y.value < 0:
            return np.dtype(np.float64)
    if dtype.kind == "b":
        return np.dtype(np.int64)
    return dtype if arrays else _wide(dtype)


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Integers are computed with 64 bits."""
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return np.dtype(np.int64 if dtype.kind == "i" else np.uint64)
    return dtype


def _power(b: Builder, x: Operand, y: Operand, dtype: np.dtype[Any]) -> Operand:
    """A power; an integer exponent stays one, so that its derivative is exact for negative bases."""
    exponent = y if isinstance(y, Const) or dtype_of(y).kind in "iu" else b.cast(y, dtype)
    if isinstance(x, Const) and isinstance(exponent, Const) and dtype.kind in "iu" and exponent.value >= 0:
        return const(x.value**exponent.value, dtype)
    return b.scalar("pow", b.cast(x, dtype), exponent, dtype=dtype)


def _apply(b: Builder, function: Callable[..., Operand], dtype: np.dtype[Any], *operands: Any) -> Any:
    if any(arrayish(x) for x in operands):
        return elementwise(b, function, dtype, operands)
    return function(*operands)


def negative(b: Builder, x: Any) -> Any:
    check_numbers(b, x)
    dtype = dtype_of_any(x) if arrayish(x) else _wide(dtype_of_any(x))
    dtype = np.dtype(np.int64) if dtype.kind == "b" else dtype
    return _apply(b, lambda u: b.scalar("neg", b.cast(u, dtype), dtype=dtype), dtype, x)


def logical_not(b: Builder, x: Any) -> Any:
    return _apply(b, lambda u: b.scalar("not", b.truth(u)), np.dtype(np.bool_), x)


def logical(b: Builder, kind: str, x: Any, y: Any) -> Any:
    """`and`, `or` of every element."""
    return _apply(b, lambda u, v: b.scalar(kind, b.truth(u), b.truth(v)), np.dtype(np.bool_), x, y)


def invert(b: Builder, x: Any) -> Any:
    dtype = dtype_of_any(x)
    if dtype.kind == "b":
        return logical_not(b, x)
    if dtype.kind not in "iu":
        b.fail(f"`~` is for integers and booleans, not for {dtype}", kind=DTypeError)
    return _apply(b, lambda u: b.scalar("invert", u, dtype=dtype), dtype, x)


def function(b: Builder, name: str, *operands: Any) -> Any:
    """A function of `fnad.loops.scalars.FUNCTIONS`, of scalars or of the elements of arrays."""
    check_numbers(b, *operands)
    joint = common(*[dtype_of_any(x) for x in operands])
    if name in ("fabs", "abs", "sign", "conj", "real", "imag", "maximum", "minimum") and joint.kind in "biu":
        return _of_integers(b, name, _wide(joint) if joint.kind != "b" else np.dtype(np.int64), *operands)
    joint = dtype = floating(joint)
    if joint.kind == "f" and name in ("real", "conj"):
        return operands[0]
    if name in TESTS:
        dtype = np.dtype(np.bool_)
    elif name in ("real", "imag", "fabs", "abs") and joint.kind == "c":
        dtype = np.dtype(np.float32 if joint.itemsize == 8 else np.float64)
        name = "abs" if name == "fabs" else name
    elif name == "abs":
        name = "fabs"

    def element(*values: Operand) -> Operand:
        return b.scalar(name, *[b.cast(v, joint) for v in values], dtype=dtype)

    return _apply(b, element, dtype, *operands)


def _of_integers(b: Builder, name: str, dtype: np.dtype[Any], *operands: Any) -> Any:
    zero = const(0, dtype)

    def element(*values: Operand) -> Operand:
        x = b.cast(values[0], dtype)
        if name in ("fabs", "abs"):
            return b.scalar("select", b.scalar("lt", x, zero), b.scalar("neg", x, dtype=dtype), x, dtype=dtype)
        if name == "sign":
            positive, negated = b.scalar("gt", x, zero), b.scalar("lt", x, zero)
            return b.scalar("sub", b.cast(positive, dtype), b.cast(negated, dtype), dtype=dtype)
        if name == "imag":
            return zero
        if name in ("maximum", "minimum"):
            return pick(b, "gt" if name == "maximum" else "lt", x, b.cast(values[1], dtype))
        return x

    return _apply(b, element, dtype, *operands)


def pick(b: Builder, kind: str, x: Operand, y: Operand) -> Operand:
    """Python's `max(x, y)` (`gt`) or `min(x, y)` (`lt`): y where it is strictly better."""
    dtype = common(dtype_of(x), dtype_of(y))
    x, y = b.cast(x, dtype), b.cast(y, dtype)
    if isinstance(x, Const) and isinstance(y, Const):
        return y if (y.value > x.value if kind == "gt" else y.value < x.value) else x
    return b.scalar("select", b.scalar(kind, y, x), y, x, dtype=dtype)


def where(b: Builder, condition: Any, x: Any, y: Any) -> Any:
    """`np.where(condition, x, y)`."""
    check_numbers(b, condition, x, y)
    dtype = common(dtype_of_any(x), dtype_of_any(y))

    def element(c: Operand, u: Operand, v: Operand) -> Operand:
        return b.scalar("select", b.truth(c), b.cast(u, dtype), b.cast(v, dtype), dtype=dtype)

    return _apply(b, element, dtype, condition, x, y)


def convert(b: Builder, x: Any, dtype: Any) -> Any:
    """`dtype(x)`, `x.astype(dtype)`."""
    check_numbers(b, x)
    dtype = np.dtype(dtype)
    return _apply(b, lambda u: b.truth(u) if dtype.kind == "b" else b.cast(u, dtype), dtype, x)


def mapped(b: Builder, element: Callable[..., Operand], dtype: np.dtype[Any], *operands: Any) -> Any:
    """Any function of the elements, of the given result dtype."""
    check_numbers(b, *operands)
    return _apply(b, element, dtype, *operands)
