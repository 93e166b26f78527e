"""How programs look for signals, and how Python runs parts of programs: functions that call CPython.

A signal's handler is run by Python's main thread, when it is asked to. A long loop asks every few milliseconds. What the handler raises
stays with the thread: the program ends, and whoever called it finds the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from fnad.kernels.codegen.counting import I64, word

I32 = ir.IntType(32)


def print_pause(name: str) -> ir.Module:
    """The module of a function `() -> int`: not 0 if a signal's handler has raised."""
    module = ir.Module(name)
    b = ir.IRBuilder(ir.Function(module, ir.FunctionType(I64, []), name).append_basic_block("start"))
    state = b.call(ir.Function(module, ir.FunctionType(I32, []), "PyGILState_Ensure"), [])
    found = b.call(ir.Function(module, ir.FunctionType(I32, []), "PyErr_CheckSignals"), [])
    b.call(ir.Function(module, ir.FunctionType(ir.VoidType(), [I32]), "PyGILState_Release"), [state])
    b.ret(b.zext(found, I64))
    return module


def print_step(name: str) -> ir.Module:
    """The module of a function `(code, *its four arguments)`, which runs code without the lock on the interpreter."""
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(I64, [I64] * 5), name)
    b = ir.IRBuilder(function.append_basic_block("start"))
    state = b.call(ir.Function(module, ir.FunctionType(I64, []), "PyEval_SaveThread"), [])
    code, *arguments = function.args
    b.call(b.inttoptr(code, ir.FunctionType(ir.VoidType(), [I64] * 4).as_pointer()), arguments)
    b.call(ir.Function(module, ir.FunctionType(ir.VoidType(), [I64]), "PyEval_RestoreThread"), [state])
    b.ret(word(0))
    return module


def pause(e: Any, then: ir.Block) -> None:
    """Look for signals; end the program if a handler has raised."""
    call = e.module.globals.get("fnad_pause") or ir.Function(e.module, ir.FunctionType(I64, []), "fnad_pause")
    raised = e.b.append_basic_block("raised")
    e.b.cbranch(e.b.icmp_signed("==", e.b.call(call, []), word(0)), then, raised)
    e.b.position_at_end(raised)
    e.b.ret_void()


def repeat(e: Any, header: ir.Block, every: Any) -> None:
    """Go back to the header of a loop with no known end, after so many steps by way of a look. Two loops: the inner one has no calls."""
    interval = e.value_in_entry(every)
    left = e.entry.alloca(I64)
    e.entry.store(interval, left)
    look = e.b.append_basic_block("look")
    rest = e.b.sub(e.b.load(left), word(1))
    e.b.store(rest, left)
    e.b.cbranch(e.b.icmp_signed(">", rest, word(0)), header, look)
    e.b.position_at_end(look)
    e.b.store(interval, left)
    again = e.b.append_basic_block("again")
    pause(e, again)
    e.b.position_at_end(again)


def in_pieces(e: Any, low: ir.Value, n: ir.Value, every: Any, run: Callable[[ir.Value, ir.Value], None]) -> None:
    """Run a loop `run(low, n)` in pieces of so many steps, with a look after each."""
    interval = e.value_in_entry(every)
    before, piece, after = e.b.block, e.b.append_basic_block("piece"), e.b.append_basic_block("after")
    e.b.cbranch(e.b.icmp_signed("<", low, n), piece, after)
    e.b.position_at_end(piece)
    begin = e.b.phi(I64)
    begin.add_incoming(low, before)
    end = e.b.add(begin, interval)
    end = e.b.select(e.b.icmp_signed("<", end, n), end, n)
    run(begin, end)
    following = e.b.append_basic_block("following")
    pause(e, following)
    e.b.position_at_end(following)
    begin.add_incoming(end, following)
    e.b.cbranch(e.b.icmp_signed("<", end, n), piece, after)
    e.b.position_at_end(after)
