"""Calls: of functions in the tables, of methods, of functions that are inlined."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from fnad.loops import calls, sequences
from fnad.loops.expressions import Bound, Expressions, Frame, Local
from fnad.loops.joins import describe
from fnad.loops.source import Source, Static
from fnad.loops.tables import Handler


class Calling(Expressions):
    """Evaluates calls."""

    def eval_Call(self, node: ast.Call) -> Any:
        function = self.evaluate(node.func)
        args = self.spread([*node.args, *[k.value for k in node.keywords]])
        given = len(args) - len(node.keywords)
        keywords: dict[str, Any] = {}
        for keyword, value in zip(node.keywords, args[given:], strict=True):
            if keyword.arg is None:
                self.fail("`**keywords` in a call", fix="write the arguments out")
            keywords[keyword.arg] = value
        return self.call(function, args[:given], keywords)

    def call(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        if isinstance(function, Bound):
            if function.name == "item":
                return function.owner
            return self._handled(calls.METHODS[function.name], f"the method {function.name}", [function.owner, *args], keywords)
        if not isinstance(function, Static):
            self.fail("Only a function can be called", got={"value": describe(function)})
        target = function.object
        try:
            handler = calls.HANDLERS.get(target)
        except TypeError:
            handler = None
        if handler is not None:
            return self._handled(handler, getattr(target, "__name__", "the function"), args, keywords)
        if isinstance(target, Local):
            return self.inline(target.node, target.frame.source, target.frame, args, keywords)
        special = sequences.SPECIAL.get(getattr(target, "__name__", ""))
        if (
            special is not None
            and not hasattr(target, "py_func")
            and getattr(target, "__module__", "").split(".")[0] in ("builtins", "numba", "numpy", "fnad")
        ):
            return special(self, *args)
        if isinstance(target, type) and issubclass(target, tuple) and hasattr(target, "_fields"):
            return target(*args, **keywords)
        return self.call_user(target, args, keywords)

    def _handled(self, handler: Handler, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        try:
            inspect.signature(handler).bind(self, *args, **keywords)
        except TypeError as error:
            self.fail(f"{name} with these arguments is not supported in a differentiable loop function", got={"because": str(error)})
        return handler(self, *args, **keywords)

    def call_user(self, target: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError

    def inline(
        self, node: ast.FunctionDef | ast.Lambda, source: Source, parent: Frame | None, args: list[Any], keywords: dict[str, Any]
    ) -> Any:
        raise NotImplementedError
