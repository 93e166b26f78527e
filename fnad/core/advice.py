"""What to write instead where a traced value was asked for what it cannot give, read from the instruction that asked."""

from __future__ import annotations

import ast
import builtins
import dis
import itertools
import linecache
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from fnad.core import hints
from fnad.core.tracer import STATIC, Tracer
from fnad.errors import ConcretizationError, FnadError, UnsupportedError, describe_line, is_users, user_frame

_CHOICE = "np.where(condition, a, b) selects for each entry, fnad.cond(condition, f, g, *operands) between two functions"
_FORMAT = 'fnad.debug.print("{}", x) shows the value; or return it and format it after the call'
_AT = "fnad.at(a)[i].set(x) instead of a[i] = x"

TESTS = {
    "if": _CHOICE,
    "while": "fnad.while_loop(condition, body, init), fnad.fori_loop(lower, upper, body, init); np.where(condition, a, b) keeps a value",
    "logic": f"(a > 0) & (b > 0), | and ~ instead of and, or and not; {_CHOICE}",
    "chain": f"(a < x) & (x < b) instead of a < x < b; {_CHOICE}",
    "in": f"np.any(x == v) instead of v in x; {_CHOICE}",
    "assert": "check the arguments before the call; or np.where(condition, x, np.nan), which shows in the result",
}
"""A truth value, by the statement that wants it."""

CALLS = {
    "max": ("np.max({args}) instead of max({args})", "np.maximum({args}) instead of max({args})"),
    "min": ("np.min({args}) instead of min({args})", "np.minimum({args}) instead of min({args})"),
    "sorted": ("np.sort({args}) instead of sorted({args})",) * 2,
    "any": (f"np.any({{args}}) instead of any({{args}}); {_CHOICE}",) * 2,
    "all": (f"np.all({{args}}) instead of all({{args}}); {_CHOICE}",) * 2,
    "bool": (f"np.not_equal({{args}}, 0) instead of bool({{args}}); {_CHOICE}; {{plain}}",) * 2,
    "float": ("np.astype({args}, float) instead of float({args}); {plain}",) * 2,
    "int": ("np.astype({args}, int) instead of int({args}); {plain}",) * 2,
    "complex": ("np.astype({args}, complex) instead of complex({args})", "a + 1j * b instead of complex(a, b)"),
    "round": ("np.round({args}) instead of round({args})",) * 2,
    "range": (
        "fnad.fori_loop(0, {args}, body, init) instead of a for loop over range({args}); {plain}",
        "fnad.fori_loop(lower, upper, body, init) instead of a for loop over range({args}); {plain}",
    ),
}
"""Python's own functions: with one argument, with several."""

METHODS = {
    "item": "x itself, and .item() of the result after the call,",
    "tolist": "list(x), which holds traced numbers, or .tolist() of the result after the call,",
    "tobytes": ".tobytes() of the result after the call",
}

SHAPED = frozenset(
    """
    arange broadcast_to empty eye full hsplit identity indices linspace logspace moveaxis ones pad repeat reshape resize roll split
    sum swapaxes tile transpose tri vsplit zeros max min mean var std prod cumsum argmax argmin squeeze stack concatenate expand_dims
    """.split()  # noqa: SIM905 (as a list it fills a screen)
)
"""Functions whose integers decide about a shape or an axis."""


class Asked(NamedTuple):
    """How the running instruction asks: the kind of statement or operator; of a call, what is called and with what."""

    how: str = ""
    name: str = ""
    called: Any = None
    arguments: tuple[str, ...] = ()
    node: Any = None


def asked(code: CodeType, instruction: int, names: dict[str, Any]) -> Asked:
    """What an instruction of the user's code does, from its place in the source (an empty answer where there is none).

    Args:
        code: The code that runs.
        instruction: Offset of its current instruction.
        names: The variables it sees.
    """
    path, node = _path_to(code, instruction)
    if node is None:
        return Asked()
    operation = dis.opname[code.co_code[instruction]]
    if "JUMP" in operation or operation in ("TO_BOOL", "UNARY_NOT", "COMPARE_OP"):  # later Pythons compare and test at once
        chained = isinstance(node, ast.Compare) and len(node.ops) > 1
        return Asked("chain" if chained else _tested(path, node))
    if isinstance(node, ast.Call):
        arguments = tuple(map(ast.unparse, [*node.args, *(k.value for k in node.keywords)]))
        return Asked("call", ast.unparse(node.func), _look_up(node.func, names), arguments)
    if isinstance(node, ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            return Asked("store")
        sliced = any(isinstance(n, ast.Slice) for n in ast.walk(node.slice))
        return Asked("slice" if sliced else "item", "", _look_up(node.value, names), (), node)
    if isinstance(node, ast.BinOp):
        return Asked("format" if isinstance(node.op, ast.Mod) else "")
    return Asked("in" if isinstance(node, ast.Compare) else "")


def _tested(path: list[ast.AST], node: ast.AST) -> str:
    """The statement that wants to know whether an expression is true; the instruction may carry the place of either."""
    if isinstance(node, ast.If | ast.While | ast.Assert):
        node = node.test
    elif (inside := path.index(node)) and _is_logic(path[inside - 1]):
        return "logic"
    if _is_logic(node):
        return "logic"
    for parent in reversed(path):
        if isinstance(parent, ast.Assert):
            return "assert"
        if isinstance(parent, ast.If | ast.IfExp | ast.While):
            return ("while" if isinstance(parent, ast.While) else "if") if parent.test is node else ""
        if isinstance(parent, ast.comprehension):
            return "if"
    return ""


def _is_logic(node: ast.AST) -> bool:
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _path_to(code: CodeType, instruction: int) -> tuple[list[ast.AST], ast.AST | None]:
    """The nodes of the source around that of an instruction, from the outermost to itself."""
    place = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    lines = linecache.getlines(code.co_filename)
    if None in place or not lines:
        return [], None
    first, last, column, end = place
    try:
        node: ast.AST = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return [], None
    start, stop = (first, column), (last, end)
    path = [node]
    while True:
        inner = [n for n in _nodes(node) if _start(n) <= start and stop <= _stop(n)]
        if not inner:
            break
        node = inner[0]
        path.append(node)
        if (_start(node), _stop(node)) == (start, stop) and isinstance(node, ast.expr | ast.If | ast.While | ast.Assert):
            return path, node
    return path, None


def _nodes(node: ast.AST) -> list[ast.AST]:
    """The children that have a place; what has none (a comprehension, arguments) is looked through."""
    out: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        out += [child] if hasattr(child, "lineno") else _nodes(child)
    return out


def _start(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _stop(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def _look_up(node: ast.AST, names: dict[str, Any]) -> Any:
    """The object that a dotted name stands for, found without running code of the user's; None if it cannot be had."""
    if isinstance(node, ast.Name):
        return names.get(node.id, getattr(builtins, node.id, None))
    if not isinstance(node, ast.Attribute):
        return None
    base = _look_up(node.value, names)
    if isinstance(base, ModuleType) or type(base).__module__.startswith("numpy.random"):
        return getattr(base, node.attr, None)
    return getattr(base, "__dict__", {}).get(node.attr) if base is not None else None


def asked_by_user() -> Asked:
    """What the user's running line asks for."""
    frame = user_frame()
    return Asked() if frame is None else asked(frame.f_code, frame.f_lasti, _names(frame))


def _names(frame: FrameType) -> dict[str, Any]:
    return {**frame.f_globals, **frame.f_locals}


def _list_of_traced(a: Asked) -> str:
    """The first argument that is a list with traced entries."""
    frame = user_frame()
    names = {} if frame is None else _names(frame)
    lists = (text for text in a.arguments if isinstance(names.get(text), list | tuple))
    return next((text for text in lists if any(isinstance(x, Tracer) for x in names[text])), "")


def _in_print() -> bool:
    """Whether the user's running line prints."""
    frame = user_frame()
    return frame is not None and linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("print(")


def for_conversion(wanted: str, plain: str) -> str:
    """What to write instead of turning a traced value into a plain one; empty if the line says too little.

    Args:
        wanted: What the value was asked to become.
        plain: How to get a plain value in its place.
    """
    a = asked_by_user()
    if a.how == "store":
        return _AT
    if a.how == "call" and wanted == "a Python float" and _in_print():
        return f"{_FORMAT}; {plain}"
    if a.how == "call" and wanted == "a plain ndarray" and (listed := _list_of_traced(a)):
        return f"np.stack({listed}) instead of {listed}: a list as an argument holds traced numbers; or pass np.array({listed}) to the call"
    if a.how == "call":
        return _of_call(a, wanted, plain)
    if a.how == "format" or wanted == "formatting":
        return _FORMAT
    if a.how == "slice":
        return f"{_without_slice(a)}; {plain}"
    if a.how == "item" and wanted == "an index":
        return f"fnad.at(np.stack(items))[i].get() instead of items[i], or fnad.switch(i, functions, *operands); {plain}"
    if a.how == "item":
        return f"fnad.at(plain)[t].get() instead of plain[t]; {plain}"
    return ""


def _without_slice(a: Asked) -> str:
    """An index array in place of a slice whose ends are unknown."""
    value = ast.unparse(a.node.value)
    if a.called is None or isinstance(a.called, np.ndarray):
        value, end = f"fnad.at({value})", ".get()"
    else:
        end = ""
    slices = [n for n in ast.walk(a.node.slice) if isinstance(n, ast.Slice) and (n.lower or n.upper)]
    first, last = ("i", "i + n") if len(slices) > 1 or slices[0].lower is None else map(_source, (slices[0].lower, slices[0].upper))
    size = last.removeprefix(f"{first} + ") if last.startswith(f"{first} + ") else "n"
    index = ast.unparse(a.node).removeprefix(ast.unparse(a.node.value))
    plain = len(slices) == 1 and size != "n"
    index = index.replace(f"{first}:{last}", f"{first} + np.arange({size})") if plain else "[i + np.arange(n)]"
    return f"{value}{index}{end} with a plain size instead of a slice; fnad.at(...){index}.set(v) to write"


def _source(node: ast.AST | None) -> str:
    return "" if node is None else ast.unparse(node)


def needed(wanted: str, plain: str, flag: bool = False) -> str:
    """What to write instead of asking for the value of what only shape and dtype are known of; a flag is a bool as an argument."""
    if wanted != "bool()":
        return for_conversion(wanted, plain) or f"fnad.at(table)[i].get() instead of table[i], np.where(condition, a, b) to select; {plain}"
    a = asked_by_user()
    if flag:
        return f"{plain}; {TESTS.get(a.how) or _CHOICE}"
    if a.how == "call" and (found := _of_call(a, wanted, plain)):
        return found
    return f"{TESTS.get(a.how) or f'{_CHOICE}; fnad.while_loop(condition, body, init) repeats'}; {plain}"


def _of_call(a: Asked, wanted: str, plain: str) -> str:
    """What to write instead of a call."""
    called, last = a.called, a.name.rsplit(".", 1)[-1]
    args = ", ".join(a.arguments)
    if last in CALLS and called is getattr(builtins, last):
        return CALLS[last][len(a.arguments) > 1].format(args=args, plain=plain)
    if getattr(called, "__module__", None) in ("math", "cmath"):
        name = "power" if last == "pow" else last
        found = f"np.{name}({args})" if callable(getattr(np, name, None)) else "a function of NumPy or scipy.special"
        return f"{found} instead of {a.name}({args})"
    if type(getattr(called, "__self__", None)).__module__.startswith(("numpy.random", "random")):
        return "draw standard numbers before the call, pass them in, and scale them here: mean + scale * z"
    if isinstance(called, type) and issubclass(called, np.generic):
        return f"x.astype({a.name}) instead of {a.name}(x)"
    if any(called is f for f in (np.array, np.asarray, np.ascontiguousarray, np.asanyarray)):
        return f"np.stack([a, b]) instead of {a.name}([a, b]); x itself instead of {a.name}(x)"
    if called is np.full and wanted != "an index":
        return f"np.broadcast_to(x, shape) instead of np.full(shape, x); {plain}"
    if last in METHODS and "." in a.name:
        return f"{METHODS[last]} instead of x.{last}(); {plain}"
    if last in SHAPED and (wanted == "an index" or called is np.arange):
        return f"shapes, sizes and axes are fixed when a function is recorded: take them from x.shape; {plain}"
    return ""


def of_foreign(error: TypeError) -> FnadError | None:
    """A better error for one that Python or NumPy raised at the user's line because of a traced value; None if there is none."""
    tb: TracebackType | None = error.__traceback__
    place = None
    while tb is not None:
        if is_users(tb.tb_frame):
            place = tb
        tb = tb.tb_next
    if place is None or isinstance(error, FnadError):
        return None
    frame, message = place.tb_frame, str(error)
    line = describe_line(frame.f_code.co_filename, place.tb_lineno, frame.f_code.co_name)
    if message.startswith("expected a sequence of integers or a single integer") and "tracer" in message:
        return ConcretizationError(
            "a shape needs plain integers, but while a function is recorded only shapes and dtypes are known",
            got={"shape": message.partition("got ")[2].strip("'"), "at": line},
            fix=f"take sizes from x.shape; {STATIC}",
        )
    if message.endswith("object is not callable"):
        a = asked(frame.f_code, place.tb_lasti, _names(frame))
        name = a.name.rpartition(".")[2]
        if "." in a.name and name in hints.CALLED:
            return UnsupportedError(f".{name} is an attribute, not a method", got={"at": line}, fix=hints.CALLED[name])
    return None
