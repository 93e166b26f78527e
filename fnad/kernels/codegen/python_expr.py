"""Scalar expressions printed as Python: one assignment per node, for people to read and for numba to compile.

The code needs `np`, `math` and what `helpers` returns. Types are written out wherever numba's rules would widen them.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from fnad.kernels.codegen.expr import BITS, DTYPES, FLOATS, SIGNED, Expr
from fnad.kernels.codegen.graph import ordered, table_name
from fnad.kernels.codegen.numpy_expr import CALLS, WIDE

_TEMPLATES = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "mad": "{0} * {1} + {2}",
    "abs": "abs({0})",
    "sqrt": "np.sqrt({0})",
    "floor": "np.floor({0})",
    "ceil": "np.ceil({0})",
    "trunc": "np.trunc({0})",
    "rint": "np.rint({0})",
    "copysign": "np.copysign({0}, {1})",
    "min": "{0} if {0} < {1} else {1}",
    "max": "{0} if {0} > {1} else {1}",
    "minimum": "np.minimum({0}, {1})",
    "maximum": "np.maximum({0}, {1})",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "select": "{1} if {0} else {2}",
    "rare": "{1} if {0} else {2}",
}
_REPEATING = frozenset({"min", "max", "shl", "shr"})  # operations that are written with an operand twice
_LOGICAL = {"and": "{0} and {1}", "or": "{0} or {1}", "xor": "{0} != {1}", "not": "not {0}"}
_WRAPS = ("add", "sub", "mul", "neg", "and", "or", "xor", "not", "shl", "shr", "floordiv", "mod")

_HELPERS = {
    "fused": '''
def fused(a, b, c):
    """a * b + c with one rounding (almost always), from an exact product and an exact sum."""
    product = a * b
    ah, bh = 134217729.0 * a, 134217729.0 * b
    ah, bh = ah - (ah - a), bh - (bh - b)
    al, bl = a - ah, b - bh
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    part = total - product
    out = total + (error + ((product - (total - part)) + (c - part)))
    return out if abs(out) < np.inf else total
''',
    "fused_f32": '''
def fused_f32(a, b, c):
    """a * b + c with one rounding (almost always)."""
    return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
''',
    "mulhi_u32": '''
def mulhi_u32(a, b):
    """The upper half of the product of two unsigned integers of 32 bits."""
    return np.uint32(np.uint64(a) * np.uint64(b) >> np.uint64(32))
''',
    "mulhi_u64": '''
def mulhi_u64(a, b):
    """The upper half of the product of two unsigned integers of 64 bits."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    return a_high * b_high + (middle >> half) + ((a_low * b_high + (middle & mask)) >> half)
''',
    "to_i32": '''
def to_i32(x):
    """The integer part; the smallest integer stands for nan and what does not fit."""
    return np.int32(x) if abs(x) < 2147483648.0 else np.int32(-2147483648)
''',
    "to_i64": '''
def to_i64(x):
    """The integer part; the smallest integer stands for nan and what does not fit."""
    return np.int64(x) if abs(x) < 9223372036854775808.0 else np.int64(-9223372036854775808)
''',
    "to_u64": '''
def to_u64(x):
    """The integer part of 0 <= x < 2**64."""
    if x >= 9223372036854775808.0:
        return np.uint64(to_i64(x - 9223372036854775808.0)) ^ np.uint64(9223372036854775808)
    return np.uint64(to_i64(x))
''',
    "floor_divide": '''
def floor_divide(a, b):
    """a // b; 0 for b = 0."""
    if b == 0:
        return a - a
    return a // b
''',
    "floor_modulo": '''
def floor_modulo(a, b):
    """a % b; 0 for b = 0."""
    if b == 0:
        return a - a
    return a % b
''',
}


def source(exprs: Sequence[Expr], names: Sequence[str], prefix: str = "t", width: int = 0) -> list[str]:
    """Lines of Python that assign the values of expressions to names.

    Variables stand under their own names, from which `names` must differ; `prefix` and a number name what is computed on
    the way. What is used once is written where it is used, as far as lines do not get longer than `width`.

    >>> from fnad.kernels.codegen.expr import var
    >>> x = var("x", "f32")
    >>> print(*source([(x + 1) * (x + 1)], ["y"]), sep="\\n")
    t0 = x + np.float32(1.0)
    y = t0 * t0
    """
    nodes = ordered(exprs)
    used = {arg for e in nodes for arg in e.args}
    results = {e: name for e, name in zip(exprs, names, strict=True) if e not in used and e.args}
    taken = {e.attr for e in nodes if e.op == "var"} | set(names)
    free = (name for name in map(f"{prefix}{{}}".format, itertools.count()) if name not in taken)
    text: dict[Expr, str] = {}
    lines: list[str] = []
    python = _python_floats(nodes)
    uses = collections.Counter(arg for e in nodes for arg in (*e.args, *(e.args if e.op in _REPEATING else ())))
    for e in nodes:
        if e.op == "var":
            text[e] = e.attr
        elif e.op == "const":
            text[e] = _literal(e.attr, e.dtype)
        else:
            args = [text[arg] for arg in e.args]
            if e.op == "div" and python.issuperset(e.args):
                args[0] = f"np.float64({args[0]})"  # Python's own numbers raise where there is an infinity
            printed = _print(e, args)
            if uses[e] == 1 and e not in results and len(printed) < width:
                text[e] = f"({printed})"
                continue
            text[e] = results.get(e) or next(free)
            lines.append(f"{text[e]} = {printed}")
    return lines + [f"{name} = {text[e]}" for e, name in zip(exprs, names, strict=True) if text[e] != name]


def _python_floats(nodes: Sequence[Expr]) -> set[Expr]:
    """What may be a float of Python's, not of NumPy's, when the code runs as plain Python."""
    found: set[Expr] = set()
    for e in nodes:
        if e.dtype == "f64":
            choice = e.op in ("select", "rare", "min", "max")
            operands = [arg for arg in e.args if arg.dtype == "f64"]
            soft = [arg in found for arg in operands]
            if e.op == "const" or (choice and any(soft)) or (e.op in ("add", "sub", "mul", "neg", "abs", "mad") and all(soft)):
                found.add(e)
    return found


def helpers(exprs: Iterable[Expr], decorator: str = "") -> list[str]:
    """Source of the functions and tables that the printed expressions name, each to stand once in the module.

    Args:
        exprs: What is printed.
        decorator: A line such as "@njit" to put before every function.
    """
    wanted: dict[str, str] = {}
    for node in ordered(exprs):
        if node.op == "table":
            values = ", ".join(plain_literal(v) for v in node.attr)
            wanted[table_name(node)] = f"{table_name(node)} = np.array([{values}], np.{DTYPES[node.dtype].name})"
        for name in _uses(node):
            wanted[name] = (decorator + "\n" if decorator else "") + _HELPERS[name].strip()
    return list(wanted.values())


def _uses(node: Expr) -> list[str]:
    if node.op == "fma":
        return ["fused_f32" if node.dtype == "f32" else "fused"]
    if node.op == "mulhi":
        return [f"mulhi_{node.dtype}"]
    if node.op in ("floordiv", "mod"):
        return ["floor_divide" if node.op == "floordiv" else "floor_modulo"]
    if node.op == "cast" and node.args[0].dtype in FLOATS and node.dtype not in (*FLOATS, "bool"):
        return ["to_i64", "to_u64"] if node.dtype == "u64" else [f"to_{WIDE[node.dtype]}"]
    return []


def _print(node: Expr, args: list[str]) -> str:
    op, dtype = node.op, node.dtype
    kind = "np.bool_" if dtype == "bool" else f"np.{DTYPES[dtype].name}"
    if dtype == "bool" and op in _LOGICAL:
        return _LOGICAL[op].format(*args)
    if op in ("shl", "shr"):
        return f"{kind}({_shift(node, *args)})"
    if op in ("fma", "mulhi", "floordiv", "mod"):
        text = f"{_uses(node)[0]}({', '.join(args)})"
    elif op == "not":
        text = f"~{args[0]}"
    elif op == "cast":
        return _cast(node, args[0], kind)
    elif op == "bitcast":
        return f"np.{DTYPES[node.args[0].dtype].name}({args[0]}).view({kind})"
    elif op == "table":
        return f"{table_name(node)}[{args[0]}]"
    elif op == "call":
        return f"{kind}(math.{CALLS.get(node.attr, node.attr)}({', '.join(args)}))"
    else:
        text = _TEMPLATES[op].format(*args)
    return f"{kind}({text})" if dtype not in FLOATS and op in _WRAPS else text


def _shift(node: Expr, a: str, b: str) -> str:
    sign, amount, bits = "<<" if node.op == "shl" else ">>", node.args[1], BITS[node.dtype]
    if amount.op == "const" and 0 <= amount.attr < bits:
        return f"{a} {sign} {b}"
    far = f"{a} >> {_literal(bits - 1, node.dtype)}" if node.op == "shr" and node.dtype in SIGNED else _literal(0, node.dtype)
    return f"({a} {sign} {b}) if 0 <= {b} < {bits} else ({far})"


def _cast(node: Expr, a: str, kind: str) -> str:
    if node.dtype == "bool":
        return f"{a} != 0"
    uses = _uses(node)
    return f"{kind}({uses[-1]}({a}))" if uses else f"{kind}({a})"


def _literal(value: Any, dtype: str) -> str:
    """A number that numba and Python read with this dtype."""
    if dtype in ("f64", "bool"):
        return plain_literal(value)
    return f"np.{DTYPES[dtype].name}({plain_literal(value)})"


def plain_literal(value: Any) -> str:
    """A number that numba and Python read; inf and nan are NumPy's."""
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else ("np.inf" if value > 0 else "-np.inf")
    return repr(value)
