"""Counting loops in LLVM's language, as all printers of modules write them."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

I64 = ir.IntType(64)


def word(n: int) -> ir.Constant:
    """A 64-bit number."""
    return ir.Constant(I64, n)


def steps(b: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: ir.Value, body: Callable[..., None]) -> None:
    """`for i in range(start, stop, step): body(i)`, with a positive step."""
    before, inside, after = b.block, b.append_basic_block("each"), b.append_basic_block("after")
    b.cbranch(b.icmp_signed("<", start, stop), inside, after)
    b.position_at_end(inside)
    i = b.phi(I64)
    i.add_incoming(start, before)
    body(i)
    following = b.add(i, step, flags=("nsw",))
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, stop), inside, after)
    b.position_at_end(after)


def each(b: ir.IRBuilder, count: ir.Value, body: Callable[..., None]) -> None:
    """`for i in range(count): body(i)`."""
    steps(b, word(0), count, word(1), body)
