"""A loop with a carry as one sequential loop around the nodes of its body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fnad.compiler.program import Buffer, Loop, Store
from fnad.compiler.simplify import simplified
from fnad.core.aval import Aval
from fnad.core.graph import Equation, Graph, Literal, Var
from fnad.core.lowering import Repeat
from fnad.kernels.codegen import expr as ex

if TYPE_CHECKING:
    from fnad.compiler.schedule import Schedule


def repeat(outer: Schedule, homes: list[Buffer], e: Equation, word: Repeat) -> None:
    """Add a carried loop to a schedule; the final carry and the collected results go to `homes`."""
    body: Graph = simplified(word.body)
    n, k = word.constants, word.carry
    (loop,) = outer._loops((word.length,))
    loop.sequential = True
    step = outer.numbers.size(word.length - 1) - loop.var if word.reverse else loop.var
    carry = [_carry(outer, home) for home in homes[:k]]
    for place, v in zip(carry, e.inputs[n : n + k], strict=True):
        outer._pointwise(place, v)
    inner = type(outer)(body, outer)
    for var, v in zip(body.inputs[:n], e.inputs[:n], strict=True):
        _constant(outer, inner, var, v)
    inner.home.update(zip(body.inputs[n : n + k], carry, strict=True))
    for var, v in zip(body.inputs[n + k :], e.inputs[n + k :], strict=True):
        if isinstance(v, Literal) or v in outer.uniform:
            _constant(outer, inner, var, v)
        else:
            inner.home[var] = _entry(outer, outer._in_memory(v), step)
    results = [_entry(outer, home, step) for home in homes[k:]]
    _finish(inner, body, carry, results)
    inner.fuser.contract(outer.buffers[:])
    outer.fuser.same.update(inner.fuser.same)
    outer.fuser.append(Loop(loop.var, loop.extent, loop.size, inner.nodes, sequential=True))
    for place, home in zip(carry, homes[:k], strict=True):
        if place is not home:
            index = tuple(x.var for x in outer._loops(home.shape))
            outer.fuser.append(Store(home, index, ex.var("last", home.code), {"last": (place, ())}))


def _carry(outer: Schedule, home: Buffer) -> Buffer:
    """Where a carry lives: scalars in a register, arrays where their last value is wanted."""
    if not home.shape:
        return outer._buffer(Aval((), home.dtype), "temp")
    if home.kind == "temp":
        home.kind = "carry"
    return home


def _constant(outer: Schedule, inner: Schedule, var: Var, v: Any) -> None:
    if isinstance(v, Literal):
        inner.uniform[var] = v.value
    elif v in outer.uniform:
        inner.uniform[var] = outer.uniform[v]
    else:
        inner.home[var] = outer._in_memory(v)


def _entry(outer: Schedule, whole: Buffer, step: Any) -> Buffer:
    """The part of an array that belongs to one step."""
    part = Buffer(whole.name, whole.shape[1:], whole.dtype, whole.kind, whole.position, whole)
    size = outer.numbers.size(max(1, part.bytes // part.dtype.itemsize))
    part.shift = step * size if whole.shift is None else whole.shift + step * size
    return part


def _finish(inner: Schedule, body: Graph, carry: list[Buffer], results: list[Buffer]) -> None:
    """Compute the body; the new carry replaces the old one when nothing reads that any more."""
    outs = body.outputs
    k = len(carry)
    targets: dict[Var, Buffer] = {}
    for v, place in zip(outs[k:], results, strict=True):
        if isinstance(v, Var) and v in inner_equations(body) and v not in targets:
            targets[v] = place
    fresh = {v: inner._buffer(v.aval, "temp") for v in outs[:k] if isinstance(v, Var) and v in inner_equations(body) and v not in targets}
    inner.place_all({**targets, **fresh})
    for v, place in zip(outs[k:], results, strict=True):
        if not (isinstance(v, Var) and inner.home.get(v) is place):
            inner._pointwise(place, v)
    roots = {place.root for place in carry}
    moved: list[tuple[Buffer, Any]] = []
    for v, place in zip(outs[:k], carry, strict=True):
        if isinstance(v, Var) and inner.home.get(v) is place:
            continue
        home = inner.home.get(v) if isinstance(v, Var) else None
        if isinstance(v, Var) and (home is None or home.root in roots):  # carries that change places, also under other shapes
            spare = inner._buffer(v.aval, "temp")
            inner._pointwise(spare, v)
            moved.append((place, spare))
        else:
            moved.append((place, v))
    for place, source in moved:
        if isinstance(source, Buffer):
            loops = inner._loops(place.shape)
            index = tuple(loop.var for loop in loops)
            value = inner._load(source, index)
            inner._emit(loops, place, index, value)
        else:
            inner._pointwise(place, source)


def inner_equations(body: Graph) -> set[Var]:
    return {v for e in body.equations for v in e.outputs}
