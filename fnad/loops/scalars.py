"""The functions of numbers that loops may call: how each is spelled in the generated code, and its slopes.

A slope is stated once, in operations of the loop language, so that tangent code, adjoint code and derivatives of any order
come from the same line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fnad.loops.emit import Builder
from fnad.loops.ir import Const, Op, Operand, Scalar, Value

Slopes = Callable[[Builder, Sequence[Operand], Value], Sequence[Operand]]


class Function(NamedTuple):
    """A function of numbers.

    Attributes:
        spell: Python source with `{0}`, `{1}` for the arguments; it runs under numba and without.
        slopes: The partial derivative by each argument, from the arguments and the result; None where it is constant.
        guard: Whether a slope can be infinite or nan at a point where the function is not.
    """

    spell: str
    slopes: Slopes | None = None
    guard: bool = False


def _one(slope: Callable[[Builder, Operand, Value], Operand]) -> Slopes:
    return lambda b, args, out: (slope(b, args[0], out),)


def _square(b: Builder, x: Operand) -> Operand:
    return b.mul(x, x)


def _scaled(b: Builder, factor: float, x: Operand) -> Operand:
    return b.mul(b.const(factor, x), x)


def _one_minus_square(b: Builder, x: Operand) -> Operand:
    return b.sub(b.const(1.0, x), _square(b, x))


def _over_root(b: Builder, x: Operand, sign: float) -> Operand:
    return b.div(b.const(sign, x), b.call("sqrt", _one_minus_square(b, x)))


def _gaussian(b: Builder, x: Operand, factor: float) -> Operand:
    return _scaled(b, factor * 2 / math.sqrt(math.pi), b.call("exp", b.neg(_square(b, x))))


def _share(b: Builder, x: Operand, y: Operand, ahead: str) -> Sequence[Operand]:
    """1 for the operand that is ahead, halves at a tie."""
    one, half, zero = (b.const(v, x) for v in (1.0, 0.5, 0.0))
    first = b.select(b.compare(ahead, x, y), one, b.select(b.compare("eq", x, y), half, zero))
    return first, b.sub(one, first)


def _hypot(b: Builder, args: Sequence[Operand], out: Value) -> Sequence[Operand]:
    zero, origin = b.const(0.0, out), b.compare("eq", out, b.const(0.0, out))
    return tuple(b.select(origin, zero, b.div(a, b.select(origin, b.const(1.0, out), out))) for a in args)


def _atan2(b: Builder, args: Sequence[Operand], out: Value) -> Sequence[Operand]:
    y, x = args
    r2 = b.add(_square(b, x), _square(b, y))
    return b.div(x, r2), b.neg(b.div(y, r2))


def _pow(b: Builder, args: Sequence[Operand], out: Value) -> Sequence[Operand]:
    """By the base y * x**(y - 1); by the exponent x**y * log(x), 0 where the base is 0."""
    x, y = args
    one = b.const(1.0, out)
    base = b.mul(y, b.pow(x, b.sub(y, Const(1, Scalar(y.type.dtype)))))
    if isinstance(y, Const) or y.type.dtype.kind != "f":
        return base, b.const(0.0, out)
    positive = b.compare("gt", x, b.const(0.0, out))
    log = b.select(positive, b.call("log", b.select(positive, x, one)), b.const(0.0, out))
    at_zero = b.select(b.compare("eq", y, b.const(0.0, out)), b.const(0.0, out), base)
    return at_zero, b.mul(out, log)


def _logaddexp(b: Builder, args: Sequence[Operand], out: Value) -> Sequence[Operand]:
    return tuple(b.call("exp", b.sub(a, out)) for a in args)


def _sinc(b: Builder, x: Operand, out: Value) -> Operand:
    """(cos(pi x) - sinc(x)) / x, and its limit -pi^2 x / 3 close to the origin, where the difference cancels."""
    near = b.compare("lt", b.call("fabs", x), b.const(1e-4, x))
    safe = b.select(near, b.const(1.0, x), x)
    away = b.div(b.sub(b.call("cos", _scaled(b, math.pi, x)), out), safe)
    return b.select(near, _scaled(b, -(math.pi**2) / 3, x), away)


def _polygamma(b: Builder, args: Sequence[Operand], out: Value) -> Sequence[Operand]:
    n, x = args
    return b.const(0.0, out), b.op("polygamma", b.op("add", n, b.integer(1)), x, type=out.type)


def _reciprocal(b: Builder, x: Operand) -> Operand:
    return b.inverse(x)


FUNCTIONS: dict[str, Function] = {
    "sin": Function("np.sin({0})", _one(lambda b, x, y: b.call("cos", x))),
    "cos": Function("np.cos({0})", _one(lambda b, x, y: b.neg(b.call("sin", x)))),
    "tan": Function("np.tan({0})", _one(lambda b, x, y: b.add(b.const(1.0, y), _square(b, y)))),
    "asin": Function("np.arcsin({0})", _one(lambda b, x, y: _over_root(b, x, 1.0)), guard=True),
    "acos": Function("np.arccos({0})", _one(lambda b, x, y: _over_root(b, x, -1.0)), guard=True),
    "atan": Function("np.arctan({0})", _one(lambda b, x, y: _reciprocal(b, b.add(b.const(1.0, y), _square(b, x))))),
    "sinh": Function("np.sinh({0})", _one(lambda b, x, y: b.call("cosh", x))),
    "cosh": Function("np.cosh({0})", _one(lambda b, x, y: b.call("sinh", x))),
    "tanh": Function("np.tanh({0})", _one(lambda b, x, y: _one_minus_square(b, y))),
    "asinh": Function("np.arcsinh({0})", _one(lambda b, x, y: _reciprocal(b, b.call("hypot", b.const(1.0, y), x)))),
    "acosh": Function(
        "np.arccosh({0})",
        _one(lambda b, x, y: _reciprocal(b, b.mul(b.call("sqrt", b.sub(x, b.const(1.0, y))), b.call("sqrt", b.add(x, b.const(1.0, y)))))),
        guard=True,
    ),
    "atanh": Function("np.arctanh({0})", _one(lambda b, x, y: _reciprocal(b, _one_minus_square(b, x))), guard=True),
    "exp": Function("np.exp({0})", _one(lambda b, x, y: y)),
    "exp2": Function("np.exp2({0})", _one(lambda b, x, y: _scaled(b, math.log(2.0), y))),
    "expm1": Function("np.expm1({0})", _one(lambda b, x, y: b.call("exp", x))),
    "log": Function("np.log({0})", _one(lambda b, x, y: _reciprocal(b, x)), guard=True),
    "log2": Function("np.log2({0})", _one(lambda b, x, y: b.div(b.const(1 / math.log(2.0), y), x)), guard=True),
    "log10": Function("np.log10({0})", _one(lambda b, x, y: b.div(b.const(1 / math.log(10.0), y), x)), guard=True),
    "log1p": Function("np.log1p({0})", _one(lambda b, x, y: _reciprocal(b, b.add(b.const(1.0, y), x))), guard=True),
    "sqrt": Function("np.sqrt({0})", _one(lambda b, x, y: b.div(b.const(0.5, y), y)), guard=True),
    "cbrt": Function("np.cbrt({0})", _one(lambda b, x, y: b.div(b.const(1 / 3, y), _square(b, y))), guard=True),
    "fabs": Function("np.fabs({0})", _one(lambda b, x, y: b.call("sign", x))),
    "abs": Function("abs({0})", _one(lambda b, x, y: b.call("sign", x))),
    "sign": Function("np.sign({0})"),
    "floor": Function("np.floor({0})"),
    "ceil": Function("np.ceil({0})"),
    "trunc": Function("np.trunc({0})"),
    "rint": Function("np.rint({0})"),
    "heaviside": Function("np.heaviside({0}, {1})"),
    "isnan": Function("np.isnan({0})"),
    "isinf": Function("np.isinf({0})"),
    "isfinite": Function("np.isfinite({0})"),
    "erf": Function("math.erf({0})", _one(lambda b, x, y: _gaussian(b, x, 1.0))),
    "erfc": Function("math.erfc({0})", _one(lambda b, x, y: _gaussian(b, x, -1.0))),
    "gamma": Function("math.gamma({0})", _one(lambda b, x, y: b.mul(y, b.op("polygamma", b.integer(0), x, type=y.type)))),
    "lgamma": Function("math.lgamma({0})", _one(lambda b, x, y: b.op("polygamma", b.integer(0), x, type=y.type))),
    "polygamma": Function("polygamma({0}, {1})", _polygamma),
    "degrees": Function("np.degrees({0})", _one(lambda b, x, y: b.const(180 / math.pi, y))),
    "radians": Function("np.radians({0})", _one(lambda b, x, y: b.const(math.pi / 180, y))),
    "sinc": Function("np.sinc({0})", _one(_sinc)),
    "hypot": Function("np.hypot({0}, {1})", _hypot),
    "atan2": Function("np.arctan2({0}, {1})", _atan2, guard=True),
    "copysign": Function(
        "np.copysign({0}, {1})",
        lambda b, args, y: (b.call("copysign", b.const(1.0, y), b.mul(args[0], args[1])), b.const(0.0, y)),
    ),
    "fmod": Function("np.fmod({0}, {1})", lambda b, args, y: (b.const(1.0, y), b.neg(b.call("trunc", b.div(args[0], args[1]))))),
    "maximum": Function("np.maximum({0}, {1})", lambda b, args, y: _share(b, args[0], args[1], "gt")),
    "minimum": Function("np.minimum({0}, {1})", lambda b, args, y: _share(b, args[0], args[1], "lt")),
    "fmax": Function("np.fmax({0}, {1})", lambda b, args, y: _share(b, args[0], args[1], "gt")),
    "fmin": Function("np.fmin({0}, {1})", lambda b, args, y: _share(b, args[0], args[1], "lt")),
    "logaddexp": Function("np.logaddexp({0}, {1})", _logaddexp, guard=True),
}

ARITHMETIC: dict[str, Function] = {
    "add": Function("{0} + {1}", lambda b, args, y: (b.const(1.0, y), b.const(1.0, y))),
    "sub": Function("{0} - {1}", lambda b, args, y: (b.const(1.0, y), b.const(-1.0, y))),
    "mul": Function("{0} * {1}", lambda b, args, y: (args[1], args[0])),
    "div": Function("{0} / {1}", lambda b, args, y: (_reciprocal(b, args[1]), b.neg(b.div(y, args[1])))),
    "mod": Function("{0} % {1}", lambda b, args, y: (b.const(1.0, y), b.neg(b.call("floor", b.div(args[0], args[1]))))),
    "floordiv": Function("{0} // {1}"),
    "pow": Function("{0} ** {1}", _pow, guard=True),
    "neg": Function("-{0}", _one(lambda b, x, y: b.const(-1.0, y))),
    "pos": Function("+{0}", _one(lambda b, x, y: b.const(1.0, y))),
}


def guarded(op: Op, known: Function) -> bool:
    """Whether a slope of the operation may be infinite or nan where its result is not."""
    if op.kind == "pow" and isinstance(op.args[1], Const):
        return not op.args[1].value >= 1
    return known.guard


def rule(kind: str) -> Function | None:
    """The function or arithmetic operation of that kind."""
    return FUNCTIONS.get(kind) or ARITHMETIC.get(kind)
