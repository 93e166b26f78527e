"""The Python printer of the loop IR: the same loops as numba source, for people to read and to run elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fnad.kernels.codegen.expr import DTYPES, Expr, var
from fnad.kernels.codegen.graph import ordered, substitute, variables
from fnad.kernels.codegen.python_expr import helpers, source
from fnad.kernels.codegen.text import inline

_WIDTH = 70  # of what is written into another line
_NUMBERS = 8  # sizes and literals that are read in one line
_LARGE = 8  # nodes of an expression that is printed as a function
_DECORATOR = "@numba.njit"


def assigned(names: Sequence[str]) -> str:
    """Names of sizes and literals are entries of the argument vectors."""
    return f"{', '.join(names)} = {', '.join(f'{name[0]}[{name[1:]}]' for name in names)}"


class Printer:
    """Prints the nodes of a program as the body of a function of its buffers, each flattened to one axis.

    `calls` says which expressions are functions of others, `find` what they are made of: they are printed as functions.
    """

    def __init__(self, program: Any, calls: dict[Expr, Any], find: Callable[[str], Any], titles: Sequence[tuple[str, Any]] = ()) -> None:
        self.program, self.calls, self.find = program, calls, find
        self.titles = {id(first): title for title, first in titles}
        self.lines: list[str] = []
        self.expressions: list[Expr] = []
        self.functions: dict[str, str] = {}
        self.same: dict[Expr, Expr] = {}  # the counter of a merged loop -> that of the loop it is part of
        self._temporary = 0

    def run(self) -> str:
        """`def program(buffers..., s, l)` with everything it calls."""
        for node in self.program.nodes:
            if id(node) in self.titles:
                self.put(1, f"# {self.titles[id(node)]}")
            self.node(node, 1)
        memory = [b for b in self.program.roots if not b.is_register]
        body = "\n".join(self.lines)
        wanted = {v.attr for v in variables(self.expressions) if v.attr[0] in "sl" and v.attr[1:].isdigit()}
        names = sorted(wanted, key=lambda n: (n[0], int(n[1:])))
        head = "".join(f"    {assigned(names[k : k + _NUMBERS])}\n" for k in range(0, len(names), _NUMBERS))
        arguments = ", ".join([*(b.name for b in memory), "s", "l"])
        functions = [*helpers(self.expressions, _DECORATOR), *self.functions.values()]
        return "\n\n\n".join([*functions, f"def program({arguments}):\n{head}{body}\n"])

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def value(self, e: Expr, depth: int) -> str:
        """An expression as text; what it needs is assigned first."""
        (e,) = substitute([e], self.same)
        done: dict[Expr, Expr] = {}
        for found in ordered([e]):
            name = self.function(found)
            if name is not None:
                result = var(self.temporary(), found.dtype)
                operands = ", ".join(self.plain(x, depth) for x in substitute(self.calls[found][1], {**self.same, **done}))
                self.put(depth, f"{result.attr} = {name}({operands})")
                done[found] = result
        return self.plain(substitute([e], done)[0], depth)

    def plain(self, e: Expr, depth: int) -> str:
        """An expression without functions as text."""
        self.expressions.append(e)
        text = inline(e) if e.dtype == "i64" or e.op == "var" else None
        if text is not None:
            return text
        name = self.temporary()
        *lines, last = source([e], [name], prefix=f"{name}_", width=_WIDTH)
        for line in lines:
            self.put(depth, line)
        text = last.removeprefix(f"{name} = ")
        if e.op in ("const", "var"):
            return text
        self.put(depth, last)
        return name

    def temporary(self) -> str:
        self._temporary += 1
        return f"v{self._temporary}"

    def function(self, e: Expr) -> str | None:
        """The name of the function that an expression is the value of, if it is worth one."""
        if e not in self.calls:
            return None
        word, operands = self.calls[e]
        if any(x.op == "const" for x in operands):
            return None
        parameters = [var(f"x{k}", x.dtype) for k, x in enumerate(operands)]
        template = self.find(word)(*parameters)
        if template.dtype != e.dtype or len(ordered([template])) < _LARGE:
            return None
        name = "_".join([word, *dict.fromkeys(x.dtype for x in operands)])
        if name not in self.functions:
            self.expressions.append(template)
            body = "".join(f"    {line}\n" for line in source([template], ["out"], width=_WIDTH))
            self.functions[name] = f"{_DECORATOR}\ndef {name}({', '.join(p.attr for p in parameters)}):\n{body}    return out"
        return name

    def node(self, node: Any, depth: int) -> None:
        kind = type(node).__name__
        if kind == "Loop":
            first, *others = self.program.variables(node)
            self.put(depth, f"for {first} in range({self.value(node.size, depth)}):")
            self.same.update((var(name, "i64"), var(first, "i64")) for name in others)
            self.nodes(node.body, depth + 1)
        elif kind == "While":
            self.put(depth, "while True:")
            self.nodes(node.bodies[0], depth + 1)
            self.put(depth + 1, f"if not {self.address(node.going, (), depth)}:")
            self.put(depth + 2, "break")
            self.nodes(node.bodies[1], depth + 1)
        elif kind == "Branch":
            self.branch(node, depth)
        elif kind == "Store":
            self.store(node, depth)
        elif kind in ("Host", "Lapack", "Foreign"):
            operands = ", ".join(self.part(b, depth) for b in node.buffers)
            self.put(depth, f"{node.equation.primitive.name}_{node.number}({operands})  # on the host")
        else:
            self.gemm(node, depth)

    def nodes(self, nodes: Sequence[Any], depth: int) -> None:
        for node in nodes:
            self.node(node, depth)
        if not nodes:
            self.put(depth, "pass")

    def branch(self, node: Any, depth: int) -> None:
        chosen = self.address(node.chosen, (), depth)
        for k, body in enumerate(node.bodies):
            last = k == len(node.bodies) - 1
            self.put(depth, "else:" if last and k else f"{'elif' if k else 'if'} {chosen} == {k}:")
            self.nodes(body, depth + 1)

    def address(self, buffer: Any, index: Sequence[Any], depth: int) -> str:
        if buffer.root.is_register:
            return str(buffer.root.name)
        total = self.program.offset(buffer, index)
        return f"{buffer.root.name}[{'0' if total is None else self.value(total, depth)}]"

    def store(self, s: Any, depth: int) -> None:
        for name, (buffer, index) in s.loads.items():
            self.put(depth, f"{name} = {self.address(buffer, index, depth)}")
        value = self.value(s.value, depth)
        where = self.address(s.buffer, s.index, depth)
        code = f"np.{DTYPES[s.buffer.code].name}"
        if s.combine in ("maximum", "minimum"):
            self.put(depth, f"{where} = np.{s.combine}({where}, {value})")
        elif s.combine:
            self.put(depth, f"{where} = {code}({where} {'+' if s.combine == 'add' else '*'} {value})")
        else:
            self.put(depth, f"{where} = {code}({value})" if s.buffer.root.is_register else f"{where} = {value}")

    def part(self, buffer: Any, depth: int) -> str:
        begin = "" if buffer.shift is None else f"{self.value(buffer.shift, depth)} :"
        return f"{buffer.root.name}[{begin}]" if begin else str(buffer.root.name)

    def gemm(self, g: Any, depth: int) -> None:
        batch, m, n, k = (self.value(x, depth) for x in g.numbers)
        self.put(depth, f"for batch in range({batch}):")

        def part(buffer: Any, rows: str, columns: str, transposed: bool, moves: bool) -> str:
            begin = self.value(buffer.shift, depth + 1) if buffer.shift is not None else "0"
            begin += f" + batch * {rows} * {columns}" if moves else ""
            shape = f"({columns}, {rows})" if transposed else f"({rows}, {columns})"
            return f"{buffer.root.name}[{begin} : {begin} + {rows} * {columns}].reshape({shape}){'.T' if transposed else ''}"

        (left, lt, lb), (right, rt, rb) = g.left, g.right
        a, b = part(left, m, k, lt, lb), part(right, k, n, rt, rb)
        out = part(g.out, m, n, False, True)
        self.put(depth + 1, f"{out}[:] = np.dot({a}, {b})")
        if any(g.guard):
            zeros = [f"({x} == 0){at}" for x, at, wins in ((a, "[:, :, None]", g.guard[0]), (b, "[None]", g.guard[1])) if wins]
            self.put(depth + 1, f"if np.isnan({out}).any():")
            self.put(depth + 2, f"{out}[:] = np.where({' | '.join(zeros)}, 0, {a}[:, :, None] * {b}[None]).sum(1)")
        if g.after:
            self.node(g.after, depth)
