"""Derivatives stated by the user for functions of numbers that numba compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fnad.errors import ArgumentError, UnsupportedError, describe_function
from fnad.loops.emit import Builder
from fnad.loops.ir import Operand, Value
from fnad.loops.scalars import Function


def register_derivative(function: Any, *partials: Callable[..., Any] | None) -> None:
    """State the partial derivatives of a compiled function of numbers, so that `fnad.njit` functions which call it have derivatives.

    Args:
        function: A function that numba compiled (`numba.njit`, `numba.cfunc`, ...), of numbers, which returns a float.
        partials: One compiled function per argument, of the same arguments: the derivative by it. None stands for zero, or for an
            argument that is an integer. For second derivatives the partials need registered derivatives themselves.

    Raises:
        ArgumentError: `function` is not compiled, or there is a wrong number of partials.

    Example:
        >>> import numba, fnad
        >>> square = numba.njit(lambda x: x * x)
        >>> twice = numba.njit(lambda x: 2.0 * x)
        >>> fnad.register_derivative(square, twice)
        >>> @fnad.njit
        ... def f(x):
        ...     return 3.0 * square(x)
        >>> fnad.grad(f)(2.0)
        np.float64(12.0)
    """
    code = getattr(getattr(function, "py_func", None), "__code__", None)
    if code is None:
        raise ArgumentError(
            "register_derivative takes a function that numba compiled",
            got={"function": describe_function(function)},
            fix="decorate it with numba.njit; a function of arrays gets its derivative from fnad.custom_vjp",
        )
    if len(partials) != code.co_argcount:
        raise ArgumentError(
            "register_derivative takes one partial derivative per argument of the function",
            got={"function": describe_function(function), "arguments": code.co_argcount, "partials": len(partials)},
            fix="pass None for an argument without derivative",
        )
    function.derivative_rule = Function("", _slopes(partials))


def _slopes(partials: Sequence[Callable[..., Any] | None]) -> Callable[[Builder, Sequence[Operand], Value], Sequence[Operand]]:
    def slopes(b: Builder, args: Sequence[Operand], out: Value) -> Sequence[Operand]:
        return [b.const(0.0, out) if p is None else b.op("opaque", *args, type=out.type, function=p) for p in partials]

    return slopes


def rule_of(function: Any) -> Function:
    """The registered derivative of a compiled function."""
    rule = getattr(function, "derivative_rule", None)
    if rule is None:
        raise UnsupportedError(
            "the derivative of a compiled function is not known",
            got={"function": describe_function(function)},
            fix="register it with fnad.register_derivative (for second derivatives: also those of the partial derivatives)",
        )
    found: Function = rule
    return found
