"""From a Python function and the types of its arguments to an `ir.Function`: an interpreter of its statements that emits."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fnad.errors import ArgumentError, DTypeError, UnsupportedError
from fnad.loops.arrays import materialise
from fnad.loops.builder import Items, is_scalar, is_tuple
from fnad.loops.cleanup import clean, written
from fnad.loops.expressions import Frame, Pending
from fnad.loops.ir import Array, Const, Function, Operand, Scalar, Value
from fnad.loops.joins import Conflict, Undefined, describe, rebuild
from fnad.loops.jumps import VALUE, lower
from fnad.loops.source import Source, Static, error_at, parse
from fnad.loops.statements import Statements

__all__ = ["Static", "build"]

DEEPEST = 50
"""Calls inside calls, before a recursion is suspected."""


def build(function: Callable[..., Any], types: Sequence[Any], name: str | None = None) -> Function:
    """The typed form of a loop function.

    Args:
        function: A plain Python function, or a compiled one with `py_func`.
        types: One entry for each positional parameter: an `ir.Scalar` or `ir.Array`, a tuple or namedtuple of those, or
            what is static: a function, None or a string (or any object, as `Static(object)`).
        name: The name of the result; the function's own where it is None.

    Raises:
        UnsupportedError, DTypeError, ShapeError: What cannot be differentiated, with the user's line and what to write instead.
    """
    function = getattr(function, "py_func", function)
    front = Frontend()
    source = parse(function)
    front.file = source.file
    args: list[Value] = []
    names = [a.arg for a in source.node.args.posonlyargs + source.node.args.args]
    names += [f"arg{k}" for k in range(len(names), len(types))]
    given = [_argument(front, label, kind, args) for label, kind in zip(names, types, strict=False)]
    body = front.block
    value = front.run_function(source.node, source, None, given, {})
    returns: list[Operand] = []
    template = _template(source.name, value, returns)
    result = Function(name or source.name, args, body, returns, template, source=(source.file, source.name))
    result.captured = list(front.captured.values())
    clean(result)
    result.written = written(result)
    return result


def _argument(front: Frontend, name: str, kind: Any, args: list[Value]) -> Any:
    if isinstance(kind, Static):
        return kind if isinstance(kind.object, str | bytes) else front.lift(kind.object, name)
    if isinstance(kind, Scalar | Array):
        value = front.value(kind, name)
        if isinstance(kind, Array):
            front.roots[value] = frozenset({("argument", len(args))})
            front.measure(value)
        args.append(value)
        return value
    if isinstance(kind, tuple):
        return rebuild(kind, [_argument(front, f"{name}_{k}", item, args) for k, item in enumerate(kind)])
    if kind is None or isinstance(kind, str) or callable(kind):
        return Static(kind)
    raise ArgumentError("An argument is an ir.Scalar, an ir.Array, a tuple of them, or a static object", got={name: kind})


def _kind(x: Any) -> Any:
    """What `_argument` takes for a value like this one."""
    if is_tuple(x):
        return rebuild(x, [_kind(item) for item in x])
    return x.object if isinstance(x, Static) else x.type


def _template(name: str, value: Any, returns: list[Operand]) -> Any:
    if is_tuple(value) and not isinstance(value, Items):
        return rebuild(value, [_template(name, item, returns) for item in value])
    if isinstance(value, Static) and value.object is None:
        return None
    if not isinstance(value, Value | Const) or value.type.dtype.kind == "V":
        raise UnsupportedError(
            "A loop function returns numbers, arrays and tuples of them", got={"function": name, "returned": describe(value)}
        )
    returns.append(value)
    return len(returns) - 1


class Frontend(Statements):
    """Runs functions: binds their arguments, and those of the functions that they call."""

    # functions

    def run_function(
        self, node: ast.FunctionDef | ast.Lambda, source: Source, parent: Frame | None, args: list[Any], keywords: dict[str, Any]
    ) -> Any:
        frame = Frame(source, {}, parent)
        self._bind(node, frame, args, keywords)
        statements = getattr(node, "fnad_statements", None)
        if statements is None:

            def refuse(where: ast.AST, rule: str, fix: str) -> NoReturn:
                raise error_at(source.file, source.name, where, rule, fix=fix)

            statements = node.fnad_statements = lower(node, refuse)  # type: ignore[union-attr]
        before = getattr(self, "frame", None), self.source, self.node
        self.frame, self.source = frame, source
        self.node = node
        self.run(statements)
        value = frame.env.get(VALUE, Static(None))
        if isinstance(value, Conflict):
            self._read("the result", Conflict("the result", value.first, value.second))
        self.frame, self.source, self.node = before  # type: ignore[assignment]
        if isinstance(value, Undefined) and self.pending:
            raise Pending
        return Static(None) if isinstance(value, Undefined) else value

    def _bind(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> None:
        """Give the parameters their arguments."""
        spec = node.args
        names = [a.arg for a in spec.posonlyargs + spec.args]
        env, left = frame.env, dict(keywords)
        env.update(zip(names, args, strict=False))
        if spec.vararg:
            env[spec.vararg.arg] = tuple(args[len(names) :])
        elif len(args) > len(names):
            self.fail(f"{frame.source.name} takes {len(names)} arguments", got={"given": len(args)}, kind=ArgumentError)
        defaults = self._defaults(node, frame, names)
        for name in [*names[len(args) :], *(a.arg for a in spec.kwonlyargs)]:
            if name in left:
                env[name] = left.pop(name)
            elif name in defaults:
                env[name] = defaults[name]
            else:
                self.fail(f"{frame.source.name} misses its argument {name}", kind=ArgumentError)
        if left or spec.kwarg:
            self.fail(f"{frame.source.name} has no parameter {next(iter(left), '**')}", kind=ArgumentError)

    def _defaults(self, node: ast.FunctionDef | ast.Lambda, frame: Frame, names: list[str]) -> dict[str, Any]:
        spec = node.args
        if frame.parent is not None:  # a local function: its defaults stand in the text
            found = {n: self.evaluate(d) for n, d in zip(names[::-1], spec.defaults[::-1], strict=False)}
            pairs = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
            return {**found, **{a.arg: self.evaluate(d) for a, d in pairs if d is not None}}
        function = frame.source.function
        given = function.__defaults__ or ()
        found = {n: self.lift(d, n) for n, d in zip(names[::-1], given[::-1], strict=False)}
        return {**found, **{n: self.lift(d, n) for n, d in (function.__kwdefaults__ or {}).items()}}

    def call_user(self, target: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        if getattr(target, "derivative_rule", None) is not None:
            return self._opaque(target, args, keywords)
        if hasattr(target, "function_for"):  # a derivative: its text depends on the types
            args = [materialise(self, x) for x in args]
            return self._derivative(target, args, keywords)
        if not hasattr(target, "py_func"):
            self.fail(
                f"The function {getattr(target, '__name__', target)} cannot be differentiated inside a loop function",
                fix="decorate it with @fnad.njit, or register its derivative",
            )
        source = parse(target.py_func)
        return self.inline(source.node, source, None, args, keywords)

    def _opaque(self, target: Any, args: list[Any], keywords: dict[str, Any]) -> Operand:
        """A call of a compiled function of numbers whose derivative is registered."""
        try:
            bound = inspect.signature(getattr(target, "py_func", target)).bind(*args, **keywords)
        except TypeError as error:
            self.fail(f"{target.__name__} is called with arguments that it does not have", got={"because": str(error)}, kind=ArgumentError)
        bound.apply_defaults()
        given = [x if isinstance(x, Value | Const) else self.lift(x) for x in bound.args]
        for x in given:
            if not is_scalar(x):
                self.fail(
                    "A function with a registered derivative takes numbers",
                    got={"argument": describe(x)},
                    fix="call it for each element in a loop",
                    kind=DTypeError,
                )
        return self.emit("opaque", given, Scalar(np.dtype(np.float64)), function=target)

    def _derivative(self, target: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        source = parse(target.function_for(tuple(map(_kind, args))))
        before = self.frame, self.source, self.node
        try:
            return self.inline(source.node, source, None, args, keywords)
        except UnsupportedError as error:
            self.frame, self.source, self.node = before
            self.fail(
                "The derivative that is taken here cannot be differentiated once more",
                got={"because": str(error).partition("\n")[0]},
                fix="take it in forward mode, fnad.njit(fnad.jacfwd(f))",
            )

    def inline(
        self, node: ast.FunctionDef | ast.Lambda, source: Source, parent: Frame | None, args: list[Any], keywords: dict[str, Any]
    ) -> Any:
        if any(call is source.function for call, inner, _ in self.calls if inner is node) or len(self.calls) > DEEPEST:
            self.fail(f"{source.name} calls itself; recursion cannot be differentiated", fix="write it as a loop")
        args = [materialise(self, x) for x in args]
        keywords = {k: materialise(self, x) for k, x in keywords.items()}
        self.calls.append((source.function, node, self.node))
        try:
            return self.run_function(node, source, parent, args, keywords)
        finally:
            self.calls.pop()
