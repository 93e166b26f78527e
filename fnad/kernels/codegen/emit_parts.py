"""Prints calls of a function for each part of a loop, on several threads where there are some."""

from __future__ import annotations

from llvmlite import ir

from fnad.kernels.codegen.counting import I64

I32, I8 = ir.IntType(32), ir.IntType(8)


def spread_over_threads(
    b: ir.IRBuilder, entry: ir.IRBuilder, module: ir.Module, kernel: ir.Function, count: ir.Value, context: ir.Value, work: ir.Value
) -> None:
    """Call `kernel(*context, part)` for every part, through TBB if the workspace's header says that there are threads."""
    byte_pointer = I8.as_pointer()
    wrapper = range_function(module, kernel)
    threads = b.load(b.inttoptr(b.add(work, ir.Constant(I64, 8)), I64.as_pointer()))
    several, alone, after = (b.append_basic_block(name) for name in ("several", "alone", "after"))
    start, length, step = (entry.alloca(I64) for _ in range(3))
    b.store(ir.Constant(I64, 0), start)
    b.store(count, length)
    b.store(ir.Constant(I64, 1), step)
    data = b.bitcast(context, byte_pointer)
    first = b.bitcast(start, byte_pointer.as_pointer())
    b.cbranch(b.icmp_signed(">", threads, ir.Constant(I64, 1)), several, alone)
    b.position_at_end(several)
    word = I64.as_pointer()
    kinds = [byte_pointer, byte_pointer.as_pointer(), word, word, byte_pointer, I64, I64, I32]
    name = "fnad_parallel_for"
    run = module.globals.get(name) or ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
    one = ir.Constant(I64, 1)
    b.call(run, [b.bitcast(wrapper, byte_pointer), first, length, step, data, one, one, b.trunc(threads, I32)])
    b.branch(after)
    b.position_at_end(alone)
    b.call(wrapper, [first, length, step, data])
    b.branch(after)
    b.position_at_end(after)


def range_function(module: ir.Module, kernel: ir.Function) -> ir.Function:
    """What the thread pool calls: `(first, length, step, context)` runs the parts from *first on."""
    byte_pointer, word = I8.as_pointer(), I64.as_pointer()
    function = ir.Function(
        module, ir.FunctionType(ir.VoidType(), [byte_pointer.as_pointer(), word, word, byte_pointer]), f"{kernel.name}_range"
    )
    function.linkage = "internal"
    begin, body, end = (function.append_basic_block(name) for name in ("begin", "body", "end"))
    b = ir.IRBuilder(begin)
    first = b.load(b.bitcast(function.args[0], word))
    stop = b.add(first, b.load(function.args[1]))
    context = b.bitcast(function.args[3], word)
    values = [b.load(b.gep(context, [ir.Constant(I64, k)])) for k in range(5)]
    b.cbranch(b.icmp_signed("<", first, stop), body, end)
    b.position_at_end(body)
    i = b.phi(I64)
    i.add_incoming(first, begin)
    b.call(kernel, [*values, i])
    step = b.add(i, ir.Constant(I64, 1))
    i.add_incoming(step, body)
    b.cbranch(b.icmp_signed("<", step, stop), body, end)
    b.position_at_end(end)
    b.ret_void()
    return function
