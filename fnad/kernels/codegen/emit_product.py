"""Prints matrix products: calls of BLAS, in parts where there are threads, and what a guard adds."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from fnad.kernels.codegen.llvm_expr import TYPES

I64, I32, I8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)


def gemm(e: Any, g: Any) -> None:
    batch, m, _, _ = (e.value(x) for x in g.numbers)
    whole = batch if g.batch > 1 else m
    if g.parts is None:
        gemm_rows(e, g, ir.Constant(I64, 0), whole)
        return
    size = e.value(g.parts.size)
    count = e.b.sdiv(e.b.add(whole, e.b.sub(size, ir.Constant(I64, 1))), size)

    def block(inner: Any, low: ir.Value, high: ir.Value) -> None:
        gemm_rows(inner, g, low, high)

    kernel = e.outline(g.parts, lambda inner: inner.value(g.numbers[0 if g.batch > 1 else 1]), block, set())
    e.spread(kernel, count)


def gemm_rows(e: Any, g: Any, low: ir.Value, high: ir.Value) -> None:
    """Rows (of a stack: matrices) from `low` to `high`. Row-major out = left @ right is column-major out.T = right.T @ left.T."""
    _, m, n, k = (e.value(x) for x in g.numbers)
    (left, lt, lb), (right, rt, rb) = g.left, g.right
    pa, pb, pc = start(e, left), start(e, right), start(e, g.out)
    if g.batch == 1:
        pa = e.b.gep(pa, [low if lt else e.b.mul(low, k)])
        pc = e.b.gep(pc, [e.b.mul(low, n)])
    rows = e.b.sub(high, low) if g.batch == 1 else m
    function = blas_function(e.module, g.out.code)
    one, zero = scalar(e, 1.0, g.out.code), scalar(e, 0.0, g.out.code)
    lda, ldb = (m if lt else k), (k if rt else n)
    fixed = [letter(e, "T" if rt else "N"), letter(e, "T" if lt else "N"), i32(e, n), i32(e, rows), i32(e, k), one]
    tail = (i32(e, atleast1(e, ldb)), i32(e, atleast1(e, lda)), i32(e, atleast1(e, n)))

    def call(i: ir.Value | None) -> None:
        def at(p: ir.Value, area: ir.Value, moves: bool) -> ir.Value:
            return e.b.gep(p, [e.b.mul(i, area)]) if moves and i is not None else p

        a, b = at(pa, e.b.mul(m, k), lb), at(pb, e.b.mul(k, n), rb)
        c = at(pc, e.b.mul(m, n), True)
        e.b.call(function, [*fixed, b, tail[0], a, tail[1], zero, c, tail[2]])
        if any(g.guard):
            repair(e, g, c, (a, lda, lt), (b, ldb, rt), (rows, n, k))

    if g.batch == 1:
        call(None)
    else:
        e.each(e.b.sub(high, low), lambda i: call(e.b.add(low, i)))


def start(e: Any, buffer: Any) -> ir.Value:
    p = e.pointer(buffer)
    return p if buffer.shift is None else e.b.gep(p, [e.value(buffer.shift)])


def repair(e: Any, g: Any, out: ir.Value, left: tuple[Any, ...], right: tuple[Any, ...], dims: tuple[ir.Value, ...]) -> None:
    """Where a product has a nan, compute it again, with the zeros of the guarded operands winning."""
    rows, n, k = dims
    kind = TYPES[g.out.code]
    zero, bad, total = ir.Constant(kind, 0.0), e.entry.alloca(I64), e.entry.alloca(kind)
    e.b.store(ir.Constant(I64, 0), bad)

    def look(i: ir.Value) -> None:
        x = e.b.load(e.b.gep(out, [i]))
        e.b.store(e.b.or_(e.b.load(bad), e.b.zext(e.b.fcmp_unordered("uno", x, x), I64)), bad)

    def entry(matrix: tuple[Any, ...], i: ir.Value, j: ir.Value) -> ir.Value:
        start, stride, transposed = matrix
        major, minor = (j, i) if transposed else (i, j)
        return e.b.load(e.b.gep(start, [e.b.add(e.b.mul(major, stride), minor)]))

    def dot(i: ir.Value, j: ir.Value) -> None:
        e.b.store(zero, total)

        def term(t: ir.Value) -> None:
            x, y = entry(left, i, t), entry(right, t, j)
            product = e.b.fmul(x, y)
            for v, wins in zip((x, y), g.guard, strict=True):
                product = e.b.select(e.b.fcmp_ordered("==", v, zero), zero, product) if wins else product
            e.b.store(e.b.fadd(e.b.load(total), product), total)

        e.each(k, term)
        e.b.store(e.b.load(total), e.b.gep(out, [e.b.add(e.b.mul(i, n), j)]))

    e.each(e.b.mul(rows, n), look)
    with e.b.if_then(e.b.icmp_signed("!=", e.b.load(bad), ir.Constant(I64, 0)), likely=False):
        e.each(rows, lambda i: e.each(n, lambda j: dot(i, j)))


def scalar(e: Any, x: float, code: str) -> ir.Value:
    kind = TYPES[code]
    p = e.entry.alloca(kind)
    e.entry.store(ir.Constant(kind, x), p)
    return p


def letter(e: Any, c: str) -> ir.Value:
    p = e.entry.alloca(I8)
    e.entry.store(ir.Constant(I8, ord(c)), p)
    return p


def atleast1(e: Any, n: ir.Value) -> ir.Value:
    return e.b.select(e.b.icmp_signed(">", n, ir.Constant(I64, 1)), n, ir.Constant(I64, 1))


def i32(e: Any, n: ir.Value) -> ir.Value:
    p = e.entry.alloca(I32)
    e.b.store(e.b.trunc(n, I32), p)
    return p


def blas_function(module: ir.Module, code: str) -> ir.Function:
    name = {"f32": "fnad_sgemm", "f64": "fnad_dgemm"}[code]
    if name in module.globals:
        return module.globals[name]
    real, char, integer = TYPES[code].as_pointer(), I8.as_pointer(), I32.as_pointer()
    parameters = [char, char, integer, integer, integer, real, real, integer, real, integer, real, real, integer]
    return ir.Function(module, ir.FunctionType(ir.VoidType(), parameters), name)
