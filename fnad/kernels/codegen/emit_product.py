"""Prints matrix products (calls of the kernel, in parts where there are threads, and what follows each piece) and calls of LAPACK."""

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
    starts = pa, pb, pc
    rows, columns, first = m, n, (zero, zero)
    if g.batch == 1 and g.by_columns:
        columns, first = e.b.sub(high, low), (zero, low)
        pb, pc = e.b.gep(pb, [e.b.mul(low, b_strides[1])]), e.b.gep(pc, [low])
    elif g.batch == 1:
        rows, first = e.b.sub(high, low), (low, zero)
        pa, pc = e.b.gep(pa, [e.b.mul(low, a_strides[0])]), e.b.gep(pc, [e.b.mul(low, n)])
    function = product_function(e.module, g.out.code)
    followed = g.after or any(g.guard)
    after, context = follow(e, g, first) if followed else (zero, zero)

    def call(i: ir.Value) -> None:
        def at(p: ir.Value, area: ir.Value, moves: bool) -> ir.Value:
            return e.b.ptrtoint(e.b.gep(p, [e.b.mul(i, area)]) if moves and g.batch != 1 else p, I64)

        def matrices(a: ir.Value, b: ir.Value, c: ir.Value) -> tuple[ir.Value, ...]:
            return at(a, e.b.mul(m, k), lb), at(b, e.b.mul(k, n), rb), at(c, e.b.mul(m, n), True)

        a, b, c = matrices(pa, pb, pc)
        if followed:
            for place, x in enumerate((i, *matrices(*starts)), 6):
                e.b.store(x, e.b.gep(e.b.inttoptr(context, I64.as_pointer()), [ir.Constant(I64, place)]))
        e.b.call(function, [rows, columns, k, a, *a_strides, b, *b_strides, c, n, after, context])

    if g.batch == 1:
        call(zero)
    else:
        each(e.b, e.b.sub(high, low), lambda i: call(e.b.add(low, i)))


def strides(rows: ir.Value, columns: ir.Value, transposed: bool) -> tuple[ir.Value, ir.Value]:
    one = ir.Constant(I64, 1)
    return (one, rows) if transposed else (columns, one)


def follow(e: Any, g: Any, first: tuple[ir.Value, ir.Value]) -> tuple[ir.Value, ir.Value]:
    """What the kernel is to call for each finished piece, `(context, row, end, column, end)`, and the context.

    That begins with what all functions of nodes are called with. Then come the number of the matrix in its stack, where it and its
    factors begin, and which of its rows and columns are the first that the kernel knows.
    """
    room = e.entry.alloca(ir.ArrayType(I64, 12))
    known = [e.arrays, e.sizes, e.literals, e.work, e.table, e.part or ir.Constant(I64, 0)]
    for k, x in zip((*range(6), 10, 11), (*known, *first), strict=True):
        e.b.store(x, e.b.gep(room, [ir.Constant(I64, 0), ir.Constant(I64, k)]))
    piece = e.new_function(14)
    inner = type(e)(piece, e.program, e.private, e.given, e.scopes)
    number, *starts, row, row_end, column, column_end = piece.args[6:]
    if any(g.guard):
        repair(inner, g, starts, (row, row_end), (column, column_end))
    if g.after:
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
    return e.b.ptrtoint(called_by_kernel(e.module, piece), I64), e.b.ptrtoint(room, I64)


def called_by_kernel(module: ir.Module, piece: ir.Function) -> ir.Function:
    """A function of the context and bounds that are counted from the first row and column of the product that the kernel knows."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 5), f"{piece.name}_piece")
    function.linkage = "internal"
    b = ir.IRBuilder(function.append_basic_block("entry"))
    context = b.inttoptr(function.args[0], I64.as_pointer())
    *known, first_row, first_column = (b.load(b.gep(context, [ir.Constant(I64, k)])) for k in range(12))
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


def start(e: Any, buffer: Any) -> ir.Value:
    p = e.pointer(buffer)
    return p if buffer.shift is None else e.b.gep(p, [e.value(buffer.shift)])


def repair(e: Any, g: Any, starts: Sequence[ir.Value], rows: tuple[ir.Value, ir.Value], columns: tuple[ir.Value, ir.Value]) -> None:
    """Where a piece of a product has a nan, compute it again, with the zeros of the guarded operands winning."""
    _, m, n, k = (e.value(x) for x in g.numbers)
    kind = TYPES[g.out.code]
    zero, bad, total = ir.Constant(kind, 0.0), e.entry.alloca(I64), e.entry.alloca(kind)
    e.b.store(ir.Constant(I64, 0), bad)

    steps_of = strides(m, k, g.left[1]), strides(k, n, g.right[1]), strides(m, n, False)
    a, b, out = zip((e.b.inttoptr(p, kind.as_pointer()) for p in starts), steps_of, strict=True)

    def place(matrix: tuple[Any, ...], i: ir.Value, j: ir.Value) -> ir.Value:
        p, (row, column) = matrix
        return e.b.gep(p, [e.b.add(e.b.mul(i, row), e.b.mul(j, column))])

    def look(i: ir.Value, j: ir.Value) -> None:
        x = e.b.load(place(out, i, j))
        e.b.store(e.b.or_(e.b.load(bad), e.b.zext(e.b.fcmp_unordered("uno", x, x), I64)), bad)

    def dot(i: ir.Value, j: ir.Value) -> None:
        e.b.store(zero, total)

        def term(t: ir.Value) -> None:
            x, y = e.b.load(place(a, i, t)), e.b.load(place(b, t, j))
            product = e.b.fmul(x, y)
            for v, wins in zip((x, y), g.guard, strict=True):
                product = e.b.select(e.b.fcmp_ordered("==", v, zero), zero, product) if wins else product
            e.b.store(e.b.fadd(e.b.load(total), product), total)

        each(e.b, k, term)
        e.b.store(e.b.load(total), place(out, i, j))

    def each_entry(body: Any) -> None:
        one = ir.Constant(I64, 1)
        steps(e.b, *rows, one, lambda i: steps(e.b, *columns, one, lambda j: body(i, j)))

    each_entry(look)
    with e.b.if_then(e.b.icmp_signed("!=", e.b.load(bad), ir.Constant(I64, 0)), likely=False):
        each_entry(dot)


def product_function(module: ir.Module, code: str) -> ir.Function:
    """What `emit_matrix.print_gemm` prints."""
    name = f"fnad_gemm_{code}"
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 13), name)
