"""The user's function as text: its syntax tree, the names that it can see, and errors that point into it."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from fnad.errors import FnadError, UnsupportedError


@dataclass(frozen=True)
class Static:
    """An argument or a value that is known when the function is built: a function, a dtype, a string, None."""

    object: Any


@dataclass(eq=False)
class Source:
    """A Python function: its node in the tree of its whole file, so that lines and columns are the file's."""

    function: Callable[..., Any]
    name: str
    file: str
    node: ast.FunctionDef | ast.Lambda

    def lookup(self, name: str) -> Any:
        """What a free name of the function holds now."""
        code = self.function.__code__
        if name in code.co_freevars:
            return self.function.__closure__[code.co_freevars.index(name)].cell_contents  # type: ignore[index]
        names = self.function.__globals__
        if name in names:
            return names[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise KeyError(name)


_FOUND: WeakKeyDictionary[CodeType, ast.FunctionDef | ast.Lambda] = WeakKeyDictionary()
_TREES: dict[str, tuple[tuple[str, ...], ast.Module]] = {}


def parse(function: Callable[..., Any]) -> Source:
    """The source of a plain Python function."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise UnsupportedError(
            "A loop function must be a plain Python function", got={"function": function}, fix="define it with def, in a file"
        )
    found = _FOUND.get(code)
    if found is None:
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename, function.__globals__)
        found = _find(_tree(code.co_filename, lines), code) if lines else None
    if found is None:
        raise UnsupportedError(
            f"The source of {function.__qualname__} cannot be read, and its derivative is made from its source",
            got={"file": code.co_filename, "line": code.co_firstlineno},
            fix="write it in a file or a notebook cell, not with exec or at the bare prompt; import it again if the file has changed",
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise UnsupportedError(f"{function.__qualname__} is a generator or a coroutine", fix="return arrays from a plain function")
    _FOUND[code] = found
    return Source(function, function.__name__, code.co_filename, found)


def _tree(file: str, lines: list[str]) -> ast.Module:
    key = tuple(lines)
    kept = _TREES.get(file)
    if kept is None or kept[0] != key:
        try:
            kept = _TREES[file] = (key, ast.parse("".join(lines)))
        except SyntaxError:
            kept = _TREES[file] = (key, ast.Module([], []))
    return kept[1]


def _find(tree: ast.Module, code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    spot = next(((line, column) for line, _, column, _ in code.co_positions() if line and column), (0, 0))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno and _arguments(node) == code.co_varnames[: len(_arguments(node))]:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            body = node.body
            if _arguments(node) == code.co_varnames[: len(_arguments(node))] and _within(body, spot):
                return node
    return None


def _arguments(node: ast.FunctionDef | ast.Lambda) -> tuple[str, ...]:
    given = node.args
    stars = [a for a in (given.vararg, given.kwarg) if a is not None]
    return tuple(a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars])


def _within(node: ast.expr, spot: tuple[int, int]) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return spot == (0, 0) or start <= spot <= end


def error_at(
    file: str,
    function: str,
    node: ast.AST | None,
    rule: str,
    *,
    got: dict[str, Any] | None = None,
    fix: str = "",
    kind: type[FnadError] = UnsupportedError,
) -> FnadError:
    """An error whose message shows the line of the user's file, with a caret under the expression."""
    line = getattr(node, "lineno", 0)
    text = linecache.getline(file, line).rstrip("\n")
    found = {} if got is None else dict(got)
    if text:
        start = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", start + 1) if getattr(node, "end_lineno", line) == line else len(text)
        shift = len(text) - len(text.lstrip())
        lead = text.encode()[:start].decode(errors="replace")
        width = max(1, len(text.encode()[start:end].decode(errors="replace")))
        mark = " " * (len(lead) - shift) + "^" * width
        rule = f"{rule}\n  {file}:{line} in {function}\n    {text.strip()}\n    {mark}"
    elif line:
        rule = f"{rule}\n  {file}:{line} in {function}"
    return kind(rule, got=found, fix=fix)
