"""How operations of the loop language are written as Python that numba compiles and Python runs, with the same results.

An `Expression` is text with its precedence, so that nested ones get the parentheses they need and no others.
"""

from __future__ import annotations

import keyword
import linecache
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fnad.loops.ir import FLOAT, Const, Op, Operand, Scalar, Value
from fnad.loops.scalars import FUNCTIONS
from fnad.loops.support import polygamma

ATOM, POWER, UNARY, PRODUCT, SUM, SHIFT, AND, XOR, OR, COMPARE, NOT, BOTH, EITHER, CHOICE = range(14, 0, -1)

_BINARY = {
    "add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT), "floordiv": ("//", PRODUCT),
    "mod": ("%", PRODUCT), "shl": ("<<", SHIFT), "shr": (">>", SHIFT), "bitand": ("&", AND), "bitxor": ("^", XOR),
    "bitor": ("|", OR), "and": ("and", BOTH), "or": ("or", EITHER),
}  # fmt: skip
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_UNARY = {"neg": ("-", UNARY), "pos": ("+", UNARY), "invert": ("~", UNARY), "not": ("not ", NOT)}
_ARITHMETIC = frozenset({"add", "sub", "mul", "div", "floordiv", "mod"})
AUGMENTED = {"add": "+=", "sub": "-=", "mul": "*=", "div": "/="}

PURE = frozenset({*_BINARY, *_COMPARISONS, *_UNARY, "pow", "cast", "select", "dim", "real", "imag", "conj", *FUNCTIONS})
"""Kinds of operations whose result depends on nothing but the numbers (and shapes) they are given."""

RESERVED = frozenset({"np", "math", "range", "prange", "int", "float", "bool", "complex", "abs", "min", "max", "round", "len"})
_BUILTIN = {np.dtype(np.int64): "int", np.dtype(np.float64): "float", np.dtype(np.bool_): "bool", np.dtype(np.complex128): "complex"}


class Expression(str):
    """Python source of an expression, and how tightly its outermost operator binds."""

    level: int

    def __new__(cls, text: str, level: int = ATOM) -> Expression:
        self = super().__new__(cls, text)
        self.level = level
        return self


def within(text: str, level: int) -> str:
    """The text as an operand of an operator of that level; plain strings are taken as they are."""
    return f"({text})" if getattr(text, "level", ATOM) < level else str(text)


def dtype_name(dtype: np.dtype[Any]) -> str:
    """`np.float32`, `np.bool_`: what numba and NumPy both take as a dtype."""
    return "np.bool_" if dtype == np.bool_ else f"np.{dtype.name}"


def constant(c: Const) -> Expression:
    """A number, with its dtype where that is not the one Python's number has."""
    if isinstance(c.value, complex):
        return Expression(f"complex({constant(_part(c.value.real))}, {constant(_part(c.value.imag))})")
    kind = c.type.dtype.kind
    value = bool(c.value) if kind == "b" else int(c.value) if kind in "iu" else float(c.value)
    if isinstance(value, float) and not math.isfinite(value):
        text = Expression("np.nan") if math.isnan(value) else Expression("np.inf") if value > 0 else Expression("-np.inf", UNARY)
    else:
        text = Expression(repr(value), UNARY if repr(value).startswith("-") else ATOM)
    return text if c.type.dtype in _BUILTIN else Expression(f"{dtype_name(c.type.dtype)}({text})")


def _part(x: float) -> Const:
    return Const(x, FLOAT)


def converted(text: str, dtype: np.dtype[Any]) -> Expression:
    """A scalar as another dtype."""
    return Expression(f"{_BUILTIN.get(dtype) or dtype_name(dtype)}({text})")


def expression(op: Op, args: Sequence[str]) -> Expression:
    """The right-hand side of an operation whose operands are written as `args`: of every kind with a result but `opaque`."""
    kind = op.kind
    assert op.out is not None
    dtype = op.out.type.dtype
    if kind in _ARITHMETIC:
        args = _promoted(op, args, dtype)
    if kind in _BINARY:
        sign, level = _BINARY[kind]
        return Expression(f"{within(args[0], level)} {sign} {within(args[1], level + 1)}", level)
    if kind in _COMPARISONS:
        return Expression(f"{within(args[0], OR)} {_COMPARISONS[kind]} {within(args[1], OR)}", COMPARE)
    if kind in _UNARY:
        sign, level = _UNARY[kind]
        return Expression(f"{sign}{within(args[0], level)}", level)
    if kind in FUNCTIONS:
        return _function(op, args, dtype)
    return _OTHERS[kind](op, list(args))


def _promoted(op: Op, args: Sequence[str], dtype: np.dtype[Any]) -> Sequence[str]:
    """The operands of an arithmetic operation, converted where numba or NumPy would not compute in the result's dtype."""
    kinds = [_dtype(a) for a in op.args]
    if all(k == dtype for k in kinds):
        return args
    if dtype == np.float64 and all(k in (np.int64, np.float64) for k in kinds) and (op.kind == "div" or np.float64 in kinds):
        return args
    if dtype.kind in "iu" and all(k.kind in "iu" for k in kinds):
        return args
    return [_as(a, t, dtype) if k != dtype else t for a, t, k in zip(op.args, args, kinds, strict=True)]


def _as(a: Operand | None, text: str, dtype: np.dtype[Any]) -> str:
    return constant(a._replace(type=a.type._replace(dtype=dtype))) if isinstance(a, Const) else converted(text, dtype)


def _dtype(a: Operand | None) -> np.dtype[Any]:
    assert a is not None
    return a.type.dtype


def _function(op: Op, args: Sequence[str], dtype: np.dtype[Any]) -> Expression:
    """A scalar function; numba computes `math.sin` of a float32 as one, Python does not."""
    function: Any = FUNCTIONS[op.kind]
    if dtype not in _BUILTIN:
        args = [_as(a, t, dtype) if _dtype(a) != dtype and _dtype(a).kind in "iuf" else t for a, t in zip(op.args, args, strict=True)]
    text = Expression(function.spell.format(*args))
    return text if dtype in _BUILTIN or text.startswith("np.") else converted(text, dtype)


def _power(op: Op, args: list[str]) -> Expression:
    """An integer exponent stays one: numba multiplies then; of a float32 and a variable integer it makes a float64."""
    assert op.out is not None
    dtype, base, exponent = op.out.type.dtype, _dtype(op.args[0]), _dtype(op.args[1])
    first = args[0] if base == dtype else _as(op.args[0], args[0], dtype)
    literal = isinstance(op.args[1], Const) and exponent.kind in "iu"
    text = Expression(f"{within(first, ATOM)} ** {within(args[1], UNARY)}", POWER)
    return text if literal or exponent == dtype or (dtype == np.float64 and exponent == np.int64) else converted(text, dtype)


def _select(op: Op, args: list[str]) -> Expression:
    return Expression(f"{within(args[1], EITHER)} if {within(args[0], EITHER)} else {within(args[2], CHOICE)}", CHOICE)


def _cast(op: Op, args: list[str]) -> Expression:
    assert op.out is not None
    dtype = op.out.type.dtype
    if _dtype(op.args[0]) == np.bool_ and dtype.kind in "fc":  # numba has no float(bool)
        one, zero = (constant(Const(v, Scalar(dtype))) for v in (1.0, 0.0))
        return Expression(f"{one} if {within(args[0], EITHER)} else {zero}", CHOICE)
    return _as_expression(_as(op.args[0], args[0], dtype))


def _as_expression(text: str) -> Expression:
    return text if isinstance(text, Expression) else Expression(text)


def element(array: str, indices: Sequence[str]) -> Expression:
    """`a[i, j]`, for reading and for writing; `a[()]` for an array without axes."""
    return Expression(f"{within(array, ATOM)}[{', '.join(indices) or '()'}]")


def _view(op: Op, args: list[str]) -> Expression:
    parts, rest = [], iter(zip(op.args[1:], args[1:], strict=True))
    for letter in op.attrs["axes"]:
        if letter == "i":
            parts.append(next(rest)[1])
            continue
        start, stop, step = (None if a is None else t for a, t in (next(rest) for _ in range(3)))
        parts.append(f"{start or ''}:{stop or ''}" + (f":{step}" if step is not None and step != "1" else ""))
    return element(args[0], parts)


def _transpose(op: Op, args: list[str]) -> Expression:
    axes = tuple(op.attrs["axes"])
    reverse = axes == tuple(range(len(axes)))[::-1]
    return Expression(f"{within(args[0], ATOM)}.T" if reverse else f"np.transpose({args[0]}, {axes})")


def _reshape(op: Op, args: list[str]) -> Expression:
    return Expression(f"{within(args[0], ATOM)}.reshape({_sizes(args[1:])})")


def _alloc(op: Op, args: list[str]) -> Expression:
    assert op.out is not None
    fill, dtype = op.attrs.get("fill"), op.out.type.dtype
    last = "" if dtype == np.float64 else f", {dtype_name(dtype)}"
    if fill is None or fill in (0, 1):
        return Expression(f"np.{'empty' if fill is None else 'ones' if fill == 1 else 'zeros'}({_sizes(args)}{last})")
    return Expression(f"np.full({_sizes(args)}, {constant(Const(fill, Scalar(dtype)))}{last})")


def _sizes(sizes: Sequence[str]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"({', '.join(sizes)})"


_OTHERS: Mapping[str, Callable[[Op, list[str]], Expression]] = {
    "pow": _power,
    "select": _select,
    "cast": _cast,
    "load": lambda op, args: element(args[0], args[1:]),
    "view": _view,
    "transpose": _transpose,
    "reshape": _reshape,
    "field": lambda op, args: Expression(f"{within(args[0], ATOM)}[{op.attrs['field']!r}]"),
    "alloc": _alloc,
    "trips": lambda op, args: Expression(f"len(range({', '.join(args)}))"),
    "dim": lambda op, args: Expression(f"{within(args[0], ATOM)}.shape[{op.attrs['axis']}]"),
    "real": lambda op, args: Expression(f"{within(args[0], ATOM)}.real"),
    "imag": lambda op, args: Expression(f"{within(args[0], ATOM)}.imag"),
    "conj": lambda op, args: Expression(f"np.conj({args[0]})"),
    "dot": lambda op, args: Expression(f"{within(args[0], PRODUCT)} @ {within(args[1], PRODUCT + 1)}", PRODUCT),
    "copy": lambda op, args: Expression(f"{within(args[0], ATOM)}.copy()"),
}


class Writer:
    """Python source that grows line by line, with the user's lines as comments.

    Args:
        file: The user's file, for the comments; without one there are none.

    `namespace` collects the objects which the source refers to by name, besides `np` and `math`.
    """

    def __init__(self, file: str = "") -> None:
        self.file = file
        self.lines: list[str] = []
        self.depth = 0
        self.namespace: dict[str, Any] = {}
        self.taken: frozenset[str] = RESERVED  # names that stand for something else
        self._commented: set[int] = set()

    def put(self, text: str, line: int = 0) -> None:
        """A statement, after a comment with the user's line unless that line has had one."""
        self.comment(line)
        self.lines.append("    " * self.depth + text)

    def comment(self, line: int) -> None:
        """The text of the user's line, once."""
        if line and self.file and line not in self._commented:
            self._commented.add(line)
            text = linecache.getline(self.file, line).strip()
            if text:
                self.lines.append("    " * self.depth + f"# {line}: {text}")

    def again(self) -> None:
        """From here on the user's lines are commented again (the reverse sweep)."""
        self._commented.clear()

    def block(self) -> _Deeper:
        """`with w.block():` the statements of a block."""
        return _Deeper(self)

    def name(self, operand: Operand) -> Expression:
        """An operand as it is written: a number, or the name of a value."""
        if isinstance(operand, Const):
            return constant(operand)
        return Expression(f"{operand.name}_" if operand.name in RESERVED else operand.name)

    def refer(self, thing: Any, name: str) -> Expression:
        """The name under which the source finds an object."""
        base = re.sub(r"\W", "_", name).strip("_")  # "<lambda>" is no name
        unique, count = base, 0
        while self.namespace.get(unique, thing) is not thing or unique in self.taken or keyword.iskeyword(unique):
            count += 1
            unique = f"{base}_{count}"
        self.namespace[unique] = thing
        return Expression(unique)

    def expression(self, op: Op, spell: Callable[[Operand], str] | None = None) -> Expression:
        """The right-hand side of an operation; `spell` writes the operands (`name` does if it is left out)."""
        spell = spell or self.name
        args = ["" if a is None else spell(a) for a in op.args]
        if op.kind == "opaque":
            function = op.attrs["function"]
            return Expression(f"{self.refer(function, getattr(function, '__name__', 'function'))}({', '.join(args)})")
        if op.kind == "polygamma":
            self.refer(polygamma, "polygamma")
        return expression(op, args)

    def source(self) -> str:
        return "\n".join(self.lines) + "\n"


class _Deeper:
    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    def __enter__(self) -> None:
        self.writer.depth += 1
        self.mark = len(self.writer.lines)

    def __exit__(self, *_: object) -> None:
        statements = self.writer.lines[self.mark :]
        if all(text.lstrip().startswith("#") for text in statements):
            self.writer.put("pass")
        self.writer.depth -= 1


def defined_name(value: Value) -> str:
    """The name of a value as the source has it."""
    return f"{value.name}_" if value.name in RESERVED else value.name
