"""Scalar expressions: what a compiled loop computes from the elements it has loaded.

An expression is an immutable node of a graph with one dtype. Equal expressions are the same object, so `is` and hashing
by identity find common subexpressions, and a value that is used twice is computed once:

    >>> x = var("x", "f64")
    >>> (x + 1) * (x + 1) is square(x + 1)
    True
    >>> square(x + 1).args[0] is x + 1
    True

Operands have equal dtypes; a Python number takes the dtype of the other operand. Nothing is promoted implicitly:
`cast` converts. `==` is identity; compare values with `eq` and `ne`.

`numpy_expr.evaluate` computes with arrays and is the reference for what an operation means; `python_expr.source` and
`llvm_expr.emit` print. Compiled, a sum or difference may be fused with the product it is made of (one rounding in place
of two) unless one of the two was made with `strict=True`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad import _fork
from fnad.errors import DTypeError

FLOATS = ("f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in zip(FLOATS + INTEGERS + ("bool",), ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"), strict=True)
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
BITS = {name: 8 * dtype.itemsize for name, dtype in DTYPES.items()}


class Expr:
    """One node: an operation, its operands, the dtype of the result, and what else the operation depends on.

    Made by the functions of this module only. `attr` is the value of a constant, the name of a variable or function, the
    values of a table, and "strict" on sums and products that must be rounded on their own.
    """

    __slots__ = ("__weakref__", "args", "attr", "dtype", "op")

    op: str
    args: tuple[Expr, ...]
    dtype: str
    attr: Any

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an expression cannot be changed (tried to set {name})")

    def __reduce__(self) -> Any:
        return node, (self.op, self.args, self.dtype, self.attr)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: Any) -> Expr:
        return self

    def __repr__(self) -> str:
        if self.op in ("var", "const"):
            return f"{self.op}({self.attr!r}, {self.dtype!r})"
        return f"<{self.op} of {', '.join(arg.op for arg in self.args)}: {self.dtype}>"

    def __bool__(self) -> bool:
        raise DTypeError("an expression has no truth value", got={"expression": self}, fix="write select(condition, a, b)")

    def __add__(self, other: Any) -> Expr:
        return add(self, other)

    def __radd__(self, other: Any) -> Expr:
        return add(other, self)

    def __sub__(self, other: Any) -> Expr:
        return sub(self, other)

    def __rsub__(self, other: Any) -> Expr:
        return sub(other, self)

    def __mul__(self, other: Any) -> Expr:
        return mul(self, other)

    def __rmul__(self, other: Any) -> Expr:
        return mul(other, self)

    def __truediv__(self, other: Any) -> Expr:
        return div(self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return div(other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return floordiv(self, other)

    def __mod__(self, other: Any) -> Expr:
        return mod(self, other)

    def __neg__(self) -> Expr:
        return neg(self)

    def __and__(self, other: Any) -> Expr:
        return and_(self, other)

    def __or__(self, other: Any) -> Expr:
        return or_(self, other)

    def __xor__(self, other: Any) -> Expr:
        return xor(self, other)

    def __invert__(self) -> Expr:
        return not_(self)

    def __lshift__(self, other: Any) -> Expr:
        return shl(self, other)

    def __rshift__(self, other: Any) -> Expr:
        return shr(self, other)

    def __lt__(self, other: Any) -> Expr:
        return lt(self, other)

    def __le__(self, other: Any) -> Expr:
        return le(self, other)

    def __gt__(self, other: Any) -> Expr:
        return gt(self, other)

    def __ge__(self, other: Any) -> Expr:
        return ge(self, other)


_interned: weakref.WeakValueDictionary[Any, Expr] = weakref.WeakValueDictionary()
_lock = _fork.lock(5)


def node(op: str, args: tuple[Expr, ...], dtype: str, attr: Any = None) -> Expr:
    """The one node with these parts. Nothing is checked: for code that rebuilds expressions."""
    key = (op, args, dtype, None if attr is None else _key(attr))
    with _lock:
        found = _interned.get(key)
        if found is None:
            found = object.__new__(Expr)
            _SET_OP(found, op)
            _SET_ARGS(found, args)
            _SET_DTYPE(found, dtype)
            _SET_ATTR(found, attr)
            _interned[key] = found
    return found


_SET_OP, _SET_ARGS, _SET_DTYPE, _SET_ATTR = (vars(Expr)[slot].__set__ for slot in ("op", "args", "dtype", "attr"))


def _key(attr: Any) -> Any:
    """A form in which 0.0 and -0.0, 1 and 1.0 and True differ and nan equals itself."""
    if isinstance(attr, float):
        return attr.hex()
    if isinstance(attr, tuple):
        return tuple(map(_key, attr))
    return (type(attr), attr)


# Leaves


def var(name: str, dtype: str) -> Expr:
    """A value that is given from outside under a name, which must be a Python identifier."""
    return node("var", (), _checked(dtype), name)


def const(value: Any, dtype: str) -> Expr:
    """A number; rounded to float32 or wrapped to the integer's bits where `dtype` is narrower than the number."""
    return node("const", (), _checked(dtype), _number(value, dtype))


def table(values: Iterable[Any], index: Expr, dtype: str) -> Expr:
    """`values[index]`; the index must lie inside, which is not checked."""
    _require(index, INTEGERS, "an index")
    return node("table", (index,), _checked(dtype), tuple(_number(v, dtype) for v in values))


def call(name: str, args: Sequence[Expr], dtype: str) -> Expr:
    """The value of a C function (of libm, or one whose address is registered); a loop around it is not vectorised.

    `evaluate` and `source` know those functions that Python's `math` module has, and `tgamma`.
    """
    return node("call", tuple(args), _checked(dtype), name)


def dtype_name(dtype: Any) -> str:
    """The name used here for a NumPy dtype: `dtype_name(np.float32) == "f32"`.

    Raises:
        DTypeError: expressions have no such dtype.
    """
    name = _NAMES.get(np.dtype(dtype))
    if name is None:
        raise DTypeError("scalar expressions have no such dtype", got={"dtype": np.dtype(dtype)})
    return name


def _checked(dtype: str) -> str:
    if dtype not in DTYPES:
        raise DTypeError("scalar expressions have no such dtype", got={"dtype": dtype}, fix=f"use one of {', '.join(DTYPES)}")
    return dtype


def _number(value: Any, dtype: str) -> Any:
    if dtype == "f64":
        return float(value)
    if dtype == "f32":
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float32(value))
    if dtype == "bool":
        return bool(value)
    wrapped = int(value) & (1 << BITS[dtype]) - 1
    return wrapped - (1 << BITS[dtype]) if dtype in SIGNED and wrapped >> BITS[dtype] - 1 else wrapped


def _require(x: Expr, allowed: Sequence[str], what: str) -> None:
    if x.dtype not in allowed:
        raise DTypeError(f"{what} has one of the dtypes {', '.join(allowed)}", got={"expression": x}, fix="convert it with cast")


def _operands(*values: Any) -> tuple[Expr, ...]:
    """The operands as expressions of one dtype."""
    dtype = ""
    for v in values:
        if v.__class__ is Expr:
            if dtype and v.dtype != dtype:
                raise DTypeError("operands have equal dtypes", got={"dtypes": [dtype, v.dtype]}, fix="convert one with cast")
            dtype = v.dtype
    return tuple([v if v.__class__ is Expr else const(v, dtype) for v in values])


def _same(op: str, allowed: Sequence[str], *values: Any, attr: Any = None) -> Expr:
    """A node whose operands and result have one dtype."""
    args = _operands(*values)
    _require(args[0], allowed, f"an operand of {op}")
    return node(op, args, args[0].dtype, attr)


# Arithmetic

_NUMBERS = FLOATS + INTEGERS
_BITWISE = (*INTEGERS, "bool")


def add(a: Any, b: Any, strict: bool = False) -> Expr:
    """a + b; integers wrap around. Never fused with a product if `strict`."""
    return _same("add", _NUMBERS, a, b, attr="strict" if strict else None)


def sub(a: Any, b: Any, strict: bool = False) -> Expr:
    """a - b; integers wrap around. Never fused with a product if `strict`."""
    return _same("sub", _NUMBERS, a, b, attr="strict" if strict else None)


def mul(a: Any, b: Any, strict: bool = False) -> Expr:
    """a * b; integers wrap around. Never fused with a sum if `strict`."""
    return _same("mul", _NUMBERS, a, b, attr="strict" if strict else None)


def div(a: Any, b: Any) -> Expr:
    """a / b of floats."""
    return _same("div", FLOATS, a, b)


def neg(a: Expr) -> Expr:
    """-a."""
    return _same("neg", _NUMBERS, a)


def mad(a: Any, b: Any, c: Any) -> Expr:
    """a * b + c of floats, with one rounding where the machine has an instruction for it and two elsewhere."""
    return _same("mad", FLOATS, a, b, c)


def fma(a: Any, b: Any, c: Any) -> Expr:
    """a * b + c of floats with one rounding everywhere; slow on machines without an instruction for it.

    `evaluate` and `source` compute it from exact products and sums, to within one unit in the last place.
    """
    return _same("fma", FLOATS, a, b, c)


def mulhi(a: Any, b: Any) -> Expr:
    """The upper half of the double-width product of unsigned integers."""
    return _same("mulhi", ("u32", "u64"), a, b)


def square(a: Expr) -> Expr:
    """a * a."""
    return mul(a, a)


def floordiv(a: Any, b: Any) -> Expr:
    """The floor of a / b of integers; 0 where b is 0."""
    return _same("floordiv", INTEGERS, a, b)


def mod(a: Any, b: Any) -> Expr:
    """a - b * (a // b) of integers, with the sign of b; 0 where b is 0."""
    return _same("mod", INTEGERS, a, b)


def fabs(a: Expr) -> Expr:
    """The absolute value of a float."""
    return _same("abs", FLOATS, a)


def sqrt(a: Expr) -> Expr:
    """The square root, correctly rounded; nan below zero."""
    return _same("sqrt", FLOATS, a)


def floor(a: Expr) -> Expr:
    """The next integer towards -inf, as a float."""
    return _same("floor", FLOATS, a)


def ceil(a: Expr) -> Expr:
    """The next integer towards inf, as a float."""
    return _same("ceil", FLOATS, a)


def trunc(a: Expr) -> Expr:
    """The next integer towards 0, as a float."""
    return _same("trunc", FLOATS, a)


def rint(a: Expr) -> Expr:
    """The nearest integer, the even one at ties, as a float."""
    return _same("rint", FLOATS, a)


def copysign(a: Any, b: Any) -> Expr:
    """The magnitude of a with the sign of b."""
    return _same("copysign", FLOATS, a, b)


def min_(a: Any, b: Any) -> Expr:
    """`a if a < b else b`: one instruction. b where one of them is nan."""
    return _same("min", _NUMBERS, a, b)


def max_(a: Any, b: Any) -> Expr:
    """`a if a > b else b`: one instruction. b where one of them is nan."""
    return _same("max", _NUMBERS, a, b)


def minimum(a: Any, b: Any) -> Expr:
    """The smaller one, nan where one of them is nan. Compiled, -0.0 is smaller than 0.0."""
    return _same("minimum", FLOATS, a, b)


def maximum(a: Any, b: Any) -> Expr:
    """The larger one, nan where one of them is nan. Compiled, 0.0 is larger than -0.0."""
    return _same("maximum", FLOATS, a, b)


# Comparisons: all but `ne` are false where an operand is nan


def _compare(op: str, a: Any, b: Any) -> Expr:
    return node(op, _operands(a, b), "bool")


def lt(a: Any, b: Any) -> Expr:
    """a < b."""
    return _compare("lt", a, b)


def le(a: Any, b: Any) -> Expr:
    """a <= b."""
    return _compare("le", a, b)


def gt(a: Any, b: Any) -> Expr:
    """a > b."""
    return _compare("gt", a, b)


def ge(a: Any, b: Any) -> Expr:
    """a >= b."""
    return _compare("ge", a, b)


def eq(a: Any, b: Any) -> Expr:
    """a == b."""
    return _compare("eq", a, b)


def ne(a: Any, b: Any) -> Expr:
    """a != b; true where an operand is nan."""
    return _compare("ne", a, b)


def isnan(a: Expr) -> Expr:
    """Whether a float is nan."""
    return ne(a, a)


# Bits and choices


def and_(a: Any, b: Any) -> Expr:
    """The bitwise (of bool: logical) and."""
    return _same("and", _BITWISE, a, b)


def or_(a: Any, b: Any) -> Expr:
    """The bitwise (of bool: logical) or."""
    return _same("or", _BITWISE, a, b)


def xor(a: Any, b: Any) -> Expr:
    """The bitwise (of bool: logical) exclusive or."""
    return _same("xor", _BITWISE, a, b)


def not_(a: Expr) -> Expr:
    """The bitwise (of bool: logical) complement."""
    return _same("not", _BITWISE, a)


def shl(a: Any, b: Any) -> Expr:
    """a << b; 0 where b is negative or not below the number of bits."""
    return _same("shl", INTEGERS, a, b)


def shr(a: Any, b: Any) -> Expr:
    """a >> b, which repeats the sign bit of signed integers; what an endless shift gives where b is out of range."""
    return _same("shr", INTEGERS, a, b)


def select(condition: Expr, a: Any, b: Any) -> Expr:
    """a where the condition holds, b elsewhere; both are computed."""
    _require(condition, ("bool",), "a condition")
    args = _operands(a, b)
    return node("select", (condition, *args), args[0].dtype)


def rare(condition: Expr, exact: Any, fast: Any) -> Expr:
    """`select(condition, exact, fast)` whose condition holds for few inputs: see `graph.split_rare`."""
    chosen = select(condition, exact, fast)
    return node("rare", chosen.args, chosen.dtype)


def cast(a: Expr, dtype: str) -> Expr:
    """The number in another dtype, as C converts it; nan and floats out of range give the smallest signed integer."""
    return a if a.dtype == _checked(dtype) else node("cast", (a,), dtype)


def bitcast(a: Expr, dtype: str) -> Expr:
    """The same bits as another dtype of the same size."""
    if BITS[a.dtype] != BITS[_checked(dtype)] or "bool" in (a.dtype, dtype):
        raise DTypeError("bits are kept between dtypes of one size", got={"from": a.dtype, "to": dtype})
    return a if a.dtype == dtype else node("bitcast", (a,), dtype)
