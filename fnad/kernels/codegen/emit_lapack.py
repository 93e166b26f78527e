"""Printers of functions that call LAPACK for stacks of small matrices: `(count, n, m, a step, b step, a, b, out) -> info`.

Matrices are C-contiguous. Steps are in entries from one matrix of a stack to the next, 0 if there is one for all. Not 0 is
answered if a matrix is singular, not positive definite, or there is no memory; what `out` holds then means nothing.
"""

from __future__ import annotations

from llvmlite import ir

from fnad.kernels.codegen.counting import I64, each, word
from fnad.kernels.codegen.llvm_expr import TYPES

I32, I8 = ir.IntType(32), ir.IntType(8)
ROUTINES = {"solve": "gesv", "inv": "gesv", "cholesky": "potrf"}


def print_lapack(symbol: str, name: str, code: str) -> ir.Module:
    module = ir.Module(symbol)
    _Lapack(module, symbol, name, code).run()
    return module


class _Lapack:
    def __init__(self, module: ir.Module, symbol: str, name: str, code: str) -> None:
        self.module, self.name, self.code = module, name, code
        self.real, self.size = TYPES[code], 4 if code == "f32" else 8
        self.function = ir.Function(module, ir.FunctionType(I64, [I64] * 8), symbol)
        self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.numbers = {k: self.b.alloca(I32) for k in ("n", "m", "info")}
        self.count, self.n, m, *_ = self.function.args
        self.m = self.n if name == "inv" else m

    def run(self) -> None:
        """The matrices are turned to columns, as LAPACK wants them, and what it leaves is turned back."""
        _, _, _, a_step, b_step, a, b, out = self.function.args
        square, right = self.b.mul(self.n, self.n), self.b.mul(self.n, self.m)
        room = self.b.add(self.b.mul(self.b.add(square, right), word(self.size)), self.b.mul(self.n, word(4)))
        memory = self.library("malloc", [self.b.add(room, word(1))])
        failed = self.b.append_basic_block("failed")
        self.check(memory, failed)
        self.store32(self.n, "n")
        self.store32(self.m, "m")
        matrix = self.b.inttoptr(memory, self.real.as_pointer())
        other = self.b.gep(matrix, [square])
        pivots = self.b.bitcast(self.b.gep(other, [right]), I32.as_pointer())
        bad = self.b.append_basic_block("bad")
        entries = square if self.name != "solve" else right

        def one(k: ir.Value) -> None:
            left = self.at(a, self.b.mul(k, a_step))
            result = self.at(out, self.b.mul(k, entries))
            self.turn(left, matrix, self.n, self.n)
            if self.name == "cholesky":
                letter = self.b.alloca(I8)
                self.b.store(ir.Constant(I8, ord("L")), letter)
                self.lapack([letter, self.numbers["n"], matrix, self.numbers["n"], self.numbers["info"]])
            else:
                if self.name == "inv":
                    self.identity(other)
                else:
                    self.turn(self.at(b, self.b.mul(k, b_step)), other, self.n, self.m)
                n, m, info = (self.numbers[x] for x in ("n", "m", "info"))
                self.lapack([n, m, matrix, n, pivots, other, n, info])
            fine = self.b.append_basic_block("fine")
            self.b.cbranch(self.b.icmp_signed("==", self.b.load(self.numbers["info"]), ir.Constant(I32, 0)), fine, bad)
            self.b.position_at_end(fine)
            if self.name == "cholesky":
                self.lower(matrix, result)
            else:
                self.turn(other, result, self.m, self.n)

        each(self.b, self.count, one)
        self.library("free", [memory])
        self.b.ret(word(0))
        self.b.position_at_end(bad)
        self.library("free", [memory])
        self.b.branch(failed)
        self.b.position_at_end(failed)
        self.b.ret(word(1))

    def store32(self, x: ir.Value, name: str) -> None:
        self.b.store(self.b.trunc(x, I32), self.numbers[name])

    def at(self, base: ir.Value, entries: ir.Value) -> ir.Value:
        return self.b.gep(self.b.inttoptr(base, self.real.as_pointer()), [entries])

    def check(self, value: ir.Value, otherwise: ir.Block) -> None:
        fine = self.b.append_basic_block("fine")
        self.b.cbranch(self.b.icmp_signed("!=", value, word(0)), fine, otherwise)
        self.b.position_at_end(fine)

    def library(self, name: str, arguments: list[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(I64 if name == "malloc" else ir.VoidType(), [I64])
        return self.b.call(self.module.globals.get(name) or ir.Function(self.module, kind, name), arguments)

    def lapack(self, arguments: list[ir.Value]) -> None:
        name = f"fnad_{ROUTINES[self.name]}_{self.code}"
        kind = ir.FunctionType(ir.VoidType(), [x.type for x in arguments])
        self.b.call(self.module.globals.get(name) or ir.Function(self.module, kind, name), arguments)

    def entry(self, p: ir.Value, row: ir.Value, width: ir.Value, column: ir.Value) -> ir.Value:
        return self.b.gep(p, [self.b.add(self.b.mul(row, width), column)])

    def turn(self, source: ir.Value, target: ir.Value, rows: ir.Value, columns: ir.Value) -> None:
        """Transpose `source`, of so many rows and columns."""

        def copy(i: ir.Value, j: ir.Value) -> None:
            self.b.store(self.b.load(self.entry(source, i, columns, j)), self.entry(target, j, rows, i))

        each(self.b, rows, lambda i: each(self.b, columns, lambda j: copy(i, j)))

    def identity(self, target: ir.Value) -> None:
        zero, one = ir.Constant(self.real, 0.0), ir.Constant(self.real, 1.0)

        def put(i: ir.Value, j: ir.Value) -> None:
            self.b.store(self.b.select(self.b.icmp_signed("==", i, j), one, zero), self.entry(target, i, self.n, j))

        each(self.b, self.n, lambda i: each(self.b, self.n, lambda j: put(i, j)))

    def lower(self, source: ir.Value, target: ir.Value) -> None:
        """The lower triangle, turned back, with zeros above."""

        def put(i: ir.Value, j: ir.Value) -> None:
            value = self.b.load(self.entry(source, j, self.n, i))
            kept = self.b.select(self.b.icmp_signed("<=", j, i), value, ir.Constant(self.real, 0.0))
            self.b.store(kept, self.entry(target, i, self.n, j))

        each(self.b, self.n, lambda i: each(self.b, self.n, lambda j: put(i, j)))
