"""Indices, nests and products that the scheduler builds from the compiler's expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad.compiler.program import Index, Loop, Node
from fnad.kernels.codegen import expr as ex


def aligned(shape: Sequence[int], out: Sequence[int], index: Index) -> Index:
    """The index of a broadcast operand."""
    tail = index[len(out) - len(shape) :]
    return tuple(ex.const(0, "i64") if n == 1 and m != 1 else i for n, m, i in zip(shape, out[len(out) - len(shape) :], tail, strict=True))


def nest(loops: Sequence[Loop], body: list[Node]) -> list[Node]:
    """Loops around a body."""
    for loop in reversed(loops):
        body = [Loop(loop.var, loop.extent, loop.size, body)]
    return body


def guarded_product(left: Any, right: Any, guard: tuple[bool, bool]) -> Any:
    product = left * right
    for x, wins in zip((left, right), guard, strict=True):
        product = ex.select(ex.eq(x, 0), x, product) if wins else product
    return product
