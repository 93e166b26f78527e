"""Prints matrix products (calls of the kernel, in parts where there are threads, and what follows each piece) and calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from fnad.kernels.codegen.counting import I64, each, steps
from fnad.kernels.codegen.llvm_expr import TYPES


def gemm(e: Any, g: Any) -> None:
    axis = 0 if g.batch != 1 else 2 if g.by_columns else 1

    def whole(inner: Any) -> ir.Value:
        return inner.value(g.numbers[axis])

    if g.parts is None:
        part_of_gemm(e, g, ir.Constant(I64, 0), whole(e))
    else:
        e.in_parts(g.parts, whole, lambda inner, low, high: part_of_gemm(inner, g, low, high))


def part_of_gemm(e: Any, g: Any, low: ir.Value, high: ir.Value) -> None:
    """Matrices of a stack, or columns or rows of one product, from `low` to `high`."""
    _, m, n, k = (e.value(x) for x in g.numbers)
    (left, lt, lb), (right, rt, rb) = g.left, g.right
    zero = ir.Constant(I64, 0)
    pa, pb, pc = start(e, left), start(e, right), start(e, g.out)
    a_strides, b_strides = strides(m, k, lt), strides(k, n, rt)
    rows, columns, first = m, n, (zero, zero)
    if g.batch == 1 and g.by_columns:
        columns, first = e.b.sub(high, low), (zero, low)
        pb, pc = e.b.gep(pb, [e.b.mul(low, b_strides[1])]), e.b.gep(pc, [low])
    elif g.batch == 1:
        rows, first = e.b.sub(high, low), (low, zero)
        pa, pc = e.b.gep(pa, [e.b.mul(low, a_strides[0])]), e.b.gep(pc, [e.b.mul(low, n)])
    function = product_function(e.module, g.out.code)
    followed = g.after or any(g.guard)
    after, context = follow(e, g, (*first, k, *a_strides, *b_strides, n)) if followed else (zero, zero)

    def call(i: ir.Value) -> None:
        def at(p: ir.Value, area: ir.Value, moves: bool) -> ir.Value:
            return e.b.ptrtoint(e.b.gep(p, [e.b.mul(i, area)]) if moves and g.batch != 1 else p, I64)

        a, b, c = at(pa, e.b.mul(m, k), lb), at(pb, e.b.mul(k, n), rb), at(pc, e.b.mul(m, n), True)
        if followed:
            for place, x in enumerate((i, a, b, c), 6):
                e.b.store(x, e.b.gep(e.b.inttoptr(context, I64.as_pointer()), [ir.Constant(I64, place)]))
        e.b.call(function, [rows, columns, k, a, *a_strides, b, *b_strides, c, n, after, context])

    if g.batch == 1:
        call(zero)
    else:
        each(e.b, e.b.sub(high, low), lambda i: call(e.b.add(low, i)))


def strides(rows: ir.Value, columns: ir.Value, transposed: bool) -> tuple[ir.Value, ir.Value]:
    one = ir.Constant(I64, 1)
    return (one, rows) if transposed else (columns, one)


def follow(e: Any, g: Any, numbers: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """What the kernel is to call for each finished piece, `(context, row, end, column, end)`, and the context.

    That begins with what all functions of nodes are called with. Then come the number of the matrix in its stack, the addresses that the
    kernel is called with, and which row and column of the matrix are the first there; then what a guard needs: how many terms are summed
    for each entry, and strides.
    """
    room = e.entry.alloca(ir.ArrayType(I64, 18))
    known = [e.arrays, e.sizes, e.literals, e.work, e.table, e.part or ir.Constant(I64, 0)]
    for k, x in zip((*range(6), *range(10, 18)), (*known, *numbers), strict=True):
        e.b.store(x, e.b.gep(room, [ir.Constant(I64, 0), ir.Constant(I64, k)]))
    guard = guard_function(e.module, g.out.code, g.guard) if any(g.guard) else None
    function = called_by_kernel(e.module, loops_function(e, g), guard) if g.after else guard
    return e.b.ptrtoint(function, I64), e.b.ptrtoint(room, I64)


def loops_function(e: Any, g: Any) -> ir.Function:
    """The loops of a product for a piece of the result: `(..., number of the matrix, row, end, column, end)`."""
    piece = e.new_function(11)
    inner = type(e)(piece, e.program, e.private, e.given, e.scopes)
    number, row, row_end, column, column_end = piece.args[6:]
    loops = [g.after]
    while len(loops) < len(g.out.shape):
        loops += loops[-1].body
    for loop in reversed(loops[:-2]):
        size = inner.value(loop.size)
        own = inner.b.srem(number, size)
        inner.limits[id(loop)] = own, inner.b.add(own, ir.Constant(I64, 1))
        number = inner.b.sdiv(number, size)
    inner.limits[id(loops[-2])], inner.limits[id(loops[-1])] = (row, row_end), (column, column_end)
    inner.loop(loops[0])
    inner.finish()
    return piece


def called_by_kernel(module: ir.Module, piece: ir.Function, guard: ir.Function | None) -> ir.Function:
    """A function of the context and bounds that are counted from the first row and column of the product that the kernel knows."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 5), f"{piece.name}_piece")
    function.linkage = "internal"
    b = ir.IRBuilder(function.append_basic_block("entry"))
    context = b.inttoptr(function.args[0], I64.as_pointer())
    if guard is not None:
        b.call(guard, function.args)
    *known, first_row, first_column = (b.load(b.gep(context, [ir.Constant(I64, k)])) for k in (*range(7), 10, 11))
    bounds = [b.add(x, first) for x, first in zip(function.args[1:], (first_row, first_row, first_column, first_column), strict=True)]
    b.call(piece, [*known, *bounds])
    b.ret_void()
    return function


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


def guard_function(module: ir.Module, code: str, guard: tuple[bool, bool]) -> ir.Function:
    """Where a piece of a product has a nan, it is computed again, with the zeros of the guarded operands winning."""
    name = f"guard_{code}_{guard[0]:d}{guard[1]:d}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 5), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    context = b.inttoptr(function.args[0], I64.as_pointer())
    rows, columns = function.args[1:3], function.args[3:]
    kind, one = TYPES[code], ir.Constant(I64, 1)
    found = [b.load(b.gep(context, [ir.Constant(I64, k)])) for k in (7, 8, 9, *range(12, 18))]
    starts, (terms, *steps_of, out_row) = [b.inttoptr(p, kind.as_pointer()) for p in found[:3]], found[3:]
    left, right, out = zip(starts, (steps_of[:2], steps_of[2:], (out_row, one)), strict=True)
    zero, bad, total = ir.Constant(kind, 0.0), b.alloca(I64), b.alloca(kind)
    b.store(ir.Constant(I64, 0), bad)

    def place(matrix: tuple[Any, ...], i: ir.Value, j: ir.Value) -> ir.Value:
        p, (row, column) = matrix
        return b.gep(p, [b.add(b.mul(i, row), b.mul(j, column))])

    def look(i: ir.Value, j: ir.Value) -> None:
        x = b.load(place(out, i, j))
        b.store(b.or_(b.load(bad), b.zext(b.fcmp_unordered("uno", x, x), I64)), bad)

    def dot(i: ir.Value, j: ir.Value) -> None:
        b.store(zero, total)

        def term(t: ir.Value) -> None:
            x, y = b.load(place(left, i, t)), b.load(place(right, t, j))
            product = b.fmul(x, y)
            for v, wins in zip((x, y), guard, strict=True):
                product = b.select(b.fcmp_ordered("==", v, zero), zero, product) if wins else product
            b.store(b.fadd(b.load(total), product), total)

        each(b, terms, term)
        b.store(b.load(total), place(out, i, j))

    def each_entry(body: Any) -> None:
        steps(b, rows[0], rows[1], one, lambda i: steps(b, columns[0], columns[1], one, lambda j: body(i, j)))

    each_entry(look)
    with b.if_then(b.icmp_signed("!=", b.load(bad), ir.Constant(I64, 0)), likely=False):
        each_entry(dot)
    b.ret_void()
    return function


def product_function(module: ir.Module, code: str) -> ir.Function:
    """What `emit_matrix.print_gemm` prints."""
    name = f"fnad_gemm_{code}"
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 13), name)
