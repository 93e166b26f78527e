"""The Python printer of the loop IR: the same loops as numba source, for people to read and to run elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad.kernels.codegen.expr import DTYPES, Expr
from fnad.kernels.codegen.graph import variables
from fnad.kernels.codegen.python_expr import helpers, source
from fnad.kernels.codegen.text import inline


class Printer:
    """Prints the nodes of a program as the body of a function of its buffers, each flattened to one axis."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.lines: list[str] = []
        self.expressions: list[Expr] = []
        self._temporary = 0

    def run(self) -> str:
        """`def program(buffers..., s, l)` with everything it calls."""
        for node in self.program.nodes:
            self.node(node, 1)
        memory = [b for b in self.program.roots if not b.is_register]
        body = "\n".join(self.lines)
        wanted = {v.attr for v in variables(self.expressions) if v.attr[0] in "sl" and v.attr[1:].isdigit()}
        numbers = "".join(f"    {name} = {name[0]}[{name[1:]}]\n" for name in sorted(wanted, key=lambda n: (n[0], int(n[1:]))))
        arguments = ", ".join([*(b.name for b in memory), "s", "l"])
        return "\n".join(helpers(self.expressions, "@numba.njit")) + f"\n\ndef program({arguments}):\n{numbers}{body}\n"

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def value(self, e: Expr, depth: int) -> str:
        """An expression as text; what it needs is assigned first."""
        self.expressions.append(e)
        plain = inline(e) if e.dtype == "i64" or e.op == "var" else None
        if plain is not None:
            return plain
        self._temporary += 1
        name = f"v{self._temporary}"
        for line in source([e], [name], prefix=f"{name}_"):
            self.put(depth, line)
        return name

    def node(self, node: Any, depth: int) -> None:
        kind = type(node).__name__
        if kind == "Loop":
            first, *others = self.program.variables(node)
            self.put(depth, f"for {first} in range({self.value(node.size, depth)}):")
            for name in others:
                self.put(depth + 1, f"{name} = {first}")
            for child in node.body:
                self.node(child, depth + 1)
            if not node.body:
                self.put(depth + 1, "pass")
        elif kind == "Store":
            self.store(node, depth)
        else:
            self.gemm(node, depth)

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
