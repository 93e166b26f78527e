"""Prints matrix products (calls of the kernel, in parts where there are threads, and what a guard adds) and calls of LAPACK and other functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from fnad.kernels.codegen.counting import I64, each
from fnad.kernels.codegen.llvm_expr import TYPES


def gemm(e: Any, g: Any) -> None:
    batch, m, n, _ = (e.value(x) for x in g.numbers)
    whole = batch if g.batch > 1 else n if g.by_columns else m
    if g.parts is None:
        part_of_gemm(e, g, ir.Constant(I64, 0), whole)
        return
    size = e.value(g.parts.size)
    count = e.b.sdiv(e.b.add(whole, e.b.sub(size, ir.Constant(I64, 1))), size)

    def block(inner: Any, low: ir.Value, high: ir.Value) -> None:
        part_of_gemm(inner, g, low, high)

    axis = 0 if g.batch > 1 else 2 if g.by_columns else 1
    e.spread(e.outline(g.parts, lambda inner: inner.value(g.numbers[axis]), block, set()), count)


def part_of_gemm(e: Any, g: Any, low: ir.Value, high: ir.Value) -> None:
    """Matrices of a stack, or columns or rows of one product, from `low` to `high`."""
    _, m, n, k = (e.value(x) for x in g.numbers)
    (left, lt, lb), (right, rt, rb) = g.left, g.right
    one = ir.Constant(I64, 1)
    pa, pb, pc = start(e, left), start(e, right), start(e, g.out)
    a_strides, b_strides = ((one, m) if lt else (k, one)), ((one, k) if rt else (n, one))
    rows, columns = m, n
    if g.batch == 1 and g.by_columns:
        columns = e.b.sub(high, low)
        pb, pc = e.b.gep(pb, [e.b.mul(low, b_strides[1])]), e.b.gep(pc, [low])
    elif g.batch == 1:
        rows = e.b.sub(high, low)
        pa, pc = e.b.gep(pa, [e.b.mul(low, a_strides[0])]), e.b.gep(pc, [e.b.mul(low, n)])
    function = product_function(e.module, g.out.code)

    def call(i: ir.Value | None) -> None:
        def at(p: ir.Value, area: ir.Value, moves: bool) -> ir.Value:
            return e.b.gep(p, [e.b.mul(i, area)]) if moves and i is not None else p

        a, b, c = at(pa, e.b.mul(m, k), lb), at(pb, e.b.mul(k, n), rb), at(pc, e.b.mul(m, n), True)
        addresses = [e.b.ptrtoint(p, I64) for p in (a, b, c)]
        e.b.call(function, [rows, columns, k, addresses[0], *a_strides, addresses[1], *b_strides, addresses[2], n])
        if any(g.guard):
            repair(e, g, (c, n), (a, a_strides), (b, b_strides), (rows, columns, k))

    if g.batch == 1:
        call(None)
    else:
        each(e.b, e.b.sub(high, low), lambda i: call(e.b.add(low, i)))


def lapack(e: Any, node: Any) -> None:
    """Call the function of `emit_lapack`; if it fails, let Python say why."""
    name = f"fnad_{node.kernel}"
    function = e.module.globals.get(name) or ir.Function(e.module, ir.FunctionType(I64, [I64] * 8), name)
    places = [e.b.ptrtoint(start(e, b), I64) for b in (*node.inputs, *node.outputs)]
    a, b, out = places if len(places) == 3 else (places[0], ir.Constant(I64, 0), places[1])
    failed = e.b.icmp_signed("!=", e.b.call(function, [*map(e.value, node.numbers), a, b, out]), ir.Constant(I64, 0))
    with e.b.if_then(failed, likely=False):
        e.host(node)


def foreign(e: Any, node: Any) -> None:
    """Call a function that somebody else compiled; if it fails, let Python say why."""
    places = vector(e, [e.b.ptrtoint(start(e, b), I64) for b in (*node.inputs, *node.outputs)])
    function = e.b.inttoptr(e.value(node.address), ir.FunctionType(I64, [I64] * 2).as_pointer())
    status = e.b.call(function, [places, vector(e, [e.value(n) for n in node.numbers])])
    with e.b.if_then(e.b.icmp_signed("!=", status, ir.Constant(I64, 0)), likely=False):
        e.host(node)


def vector(e: Any, words: Sequence[ir.Value]) -> ir.Value:
    """The address of integers in a row on the stack."""
    places = e.entry.alloca(ir.ArrayType(I64, max(1, len(words))))
    for k, word in enumerate(words):
        e.b.store(word, e.b.gep(places, [ir.Constant(I64, 0), ir.Constant(I64, k)]))
    return e.b.ptrtoint(places, I64)


def start(e: Any, buffer: Any) -> ir.Value:
    p = e.pointer(buffer)
    return p if buffer.shift is None else e.b.gep(p, [e.value(buffer.shift)])


def repair(e: Any, g: Any, out: tuple[Any, ...], left: tuple[Any, ...], right: tuple[Any, ...], dims: tuple[ir.Value, ...]) -> None:
    """Where a product has a nan, compute it again, with the zeros of the guarded operands winning."""
    rows, columns, k = dims
    kind = TYPES[g.out.code]
    zero, bad, total = ir.Constant(kind, 0.0), e.entry.alloca(I64), e.entry.alloca(kind)
    e.b.store(ir.Constant(I64, 0), bad)
    matrix = out[0], (out[1], ir.Constant(I64, 1))

    def place(matrix: tuple[Any, ...], i: ir.Value, j: ir.Value) -> ir.Value:
        start, (row, column) = matrix
        return e.b.gep(start, [e.b.add(e.b.mul(i, row), e.b.mul(j, column))])

    def look(i: ir.Value, j: ir.Value) -> None:
        x = e.b.load(place(matrix, i, j))
        e.b.store(e.b.or_(e.b.load(bad), e.b.zext(e.b.fcmp_unordered("uno", x, x), I64)), bad)

    def dot(i: ir.Value, j: ir.Value) -> None:
        e.b.store(zero, total)

        def term(t: ir.Value) -> None:
            x, y = e.b.load(place(left, i, t)), e.b.load(place(right, t, j))
            product = e.b.fmul(x, y)
            for v, wins in zip((x, y), g.guard, strict=True):
                product = e.b.select(e.b.fcmp_ordered("==", v, zero), zero, product) if wins else product
            e.b.store(e.b.fadd(e.b.load(total), product), total)

        each(e.b, k, term)
        e.b.store(e.b.load(total), place(matrix, i, j))

    def each_entry(body: Any) -> None:
        each(e.b, rows, lambda i: each(e.b, columns, lambda j: body(i, j)))

    each_entry(look)
    with e.b.if_then(e.b.icmp_signed("!=", e.b.load(bad), ir.Constant(I64, 0)), likely=False):
        each_entry(dot)


def product_function(module: ir.Module, code: str) -> ir.Function:
    """What `emit_matrix.print_gemm` prints."""
    name = f"fnad_gemm_{code}"
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 11), name)
