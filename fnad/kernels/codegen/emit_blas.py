"""The printer of the matrix product that calls BLAS, with the arguments of `emit_matrix.print_gemm`."""

from __future__ import annotations

from llvmlite import ir

from fnad.kernels.codegen.emit_matrix import call_after
from fnad.kernels.codegen.llvm_expr import TYPES

I64, I32, I8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)


def print_gemm(name: str, code: str) -> ir.Module:
    """Row-major C = A @ B is column-major C.T = B.T @ A.T; each operand has stride 1 along one axis."""
    module = ir.Module(name)
    real, char, integer = TYPES[code].as_pointer(), I8.as_pointer(), I32.as_pointer()
    kinds = [char, char, integer, integer, integer, real, real, integer, real, integer, real, real, integer]
    blas = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), f"fnad_blas_{code}")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 13), name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    m, n, k, left, left_row, left_column, right, right_row, right_column, out, out_row, *_ = function.args
    one = ir.Constant(I64, 1)

    def number(x: ir.Value) -> ir.Value:
        p = b.alloca(I32)
        b.store(b.trunc(x, I32), p)
        return p

    def real_number(x: float) -> ir.Value:
        p = b.alloca(TYPES[code])
        b.store(ir.Constant(TYPES[code], x), p)
        return p

    def most(x: ir.Value, y: ir.Value) -> ir.Value:
        return b.select(b.icmp_signed(">", x, y), x, y)

    def operand(start: ir.Value, row: ir.Value, column: ir.Value, rows: ir.Value, columns: ir.Value) -> tuple[ir.Value, ...]:
        """Its letter, its address, and the step from line to line, which BLAS wants to be a line at least."""
        plain = b.icmp_signed("==", column, one)
        letter = b.alloca(I8)
        b.store(b.select(plain, ir.Constant(I8, ord("N")), ir.Constant(I8, ord("T"))), letter)
        step = b.select(plain, most(row, columns), most(column, rows))
        return letter, b.inttoptr(start, real), number(most(step, one))

    lt, pa, lda = operand(left, left_row, left_column, m, k)
    rt, pb, ldb = operand(right, right_row, right_column, k, n)
    sizes = number(n), number(m), number(k)
    b.call(blas, [rt, lt, *sizes, real_number(1), pb, ldb, pa, lda, real_number(0), b.inttoptr(out, real), number(most(out_row, one))])
    call_after(b, function, ir.Constant(I64, 0), m, ir.Constant(I64, 0), n)
    b.ret_void()
    return module
