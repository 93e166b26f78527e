"""Loops with a carry, and branches: nodes around the nodes of their bodies.

A body is scheduled on its own, into memory that was chosen outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fnad.compiler import program
from fnad.compiler.inplace import in_place
from fnad.compiler.program import Buffer, Loop, Store
from fnad.compiler.simplify import simplified
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Equation, Graph, Literal, Var
from fnad.core.lowering import Branch, Repeat, While
from fnad.kernels.codegen import expr as ex

if TYPE_CHECKING:
    from fnad.compiler.schedule import Schedule

Atom = Var | Literal


def repeat(outer: Schedule, homes: list[Buffer], e: Equation, word: Repeat) -> None:
    """Add a loop of so many steps to a schedule; the final carry and the collected results go to `homes`."""
    n, k = word.constants, word.carry
    (loop,) = outer._loops((word.length,))
    step = outer.numbers.size(word.length - 1) - loop.var if word.reverse else loop.var
    carry = _begin(outer, homes[:k], e.inputs[n : n + k])
    inner = _Body(outer, simplified(word.body))
    inner.closes_over(e.inputs[:n])
    inner.carries(carry)
    for v in e.inputs[n + k :]:
        if isinstance(v, Literal) or v in outer.uniform:
            inner.closes_over([v])
        else:
            inner.reads(_entry(outer, outer._in_memory(v), step))
    inner.compute(carry, [_entry(outer, home, step) for home in homes[k:]])
    outer.fuser.append(Loop(loop.var, loop.extent, loop.size, inner.nodes, sequential=True))
    _end(outer, carry, homes)


def while_loop(outer: Schedule, homes: list[Buffer], e: Equation, word: While) -> None:
    """Add a loop that goes on while a test holds; the final carry goes to `homes`."""
    n, m = word.test_constants, word.first
    carry = _begin(outer, homes, e.inputs[m:])
    test, body = _Body(outer, simplified(word.test)), _Body(outer, simplified(word.body))
    for inner, constants in ((test, e.inputs[:n]), (body, e.inputs[n:m])):
        inner.closes_over(constants)
        inner.carries(carry)
    going = outer._buffer(output_aval(test.graph.outputs[0]), "temp")
    test.compute([], [going])
    body.compute(carry, [])
    outer.fuser.append(program.While(test.nodes, going, body.nodes))
    _end(outer, carry, homes)


def branch(outer: Schedule, homes: list[Buffer], e: Equation, word: Branch) -> None:
    """Add a branch to a schedule; the results of the chosen body go to `homes`.

    Where that is the memory of an operand, the operand is to the bodies what a carry is to the body of a loop.
    """
    v, *operands = e.inputs
    if isinstance(v, Literal):
        chosen = outer._buffer(aval_of(v.value), "temp")
        outer._pointwise(chosen, v)
    else:
        chosen = outer._in_memory(v)
    lies = [None if isinstance(x, Literal) else outer.home.get(x) for x in operands]
    changed = {k: next(j for j, place in enumerate(lies) if place is home) for k, home in enumerate(homes) if home in lies}
    outs = [*changed, *(k for k in range(len(homes)) if k not in changed)]
    ins = [*changed.values(), *(k for k in range(len(operands)) if k not in changed.values())]
    carry, n = [homes[k] for k in changed], len(changed)
    bodies = []
    for graph in map(simplified, word.graphs):
        inputs, outputs = [graph.inputs[k] for k in ins], [graph.outputs[k] for k in outs]
        inner = _Body(outer, Graph(tuple(inputs), graph.constants, graph.equations, tuple(outputs)))
        inner.carries(carry)
        inner.closes_over([operands[k] for k in ins[n:]])
        inner.compute(carry, [homes[k] for k in outs[n:]])
        bodies.append(inner.nodes)
    outer.fuser.append(program.Branch(chosen, bodies))


def output_aval(v: Atom) -> Aval:
    return aval_of(v.value) if isinstance(v, Literal) else v.aval


def _begin(outer: Schedule, homes: Sequence[Buffer], values: Sequence[Atom]) -> list[Buffer]:
    """Where the values of a carry live, filled with the initial ones: scalars in registers, arrays where the last ones are wanted."""
    carry = []
    for home, v in zip(homes, values, strict=True):
        if not home.shape:
            home = outer._buffer(Aval((), home.dtype), "temp")
        elif home.kind == "temp":
            home.kind = "carry"
        if isinstance(v, Literal) or outer.home.get(v) is not home:
            outer._pointwise(home, v)
        carry.append(home)
    return carry


def _end(outer: Schedule, carry: Sequence[Buffer], homes: Sequence[Buffer]) -> None:
    """Move the last carry where it is wanted."""
    for place, home in zip(carry, homes, strict=False):
        if place is not home:
            outer.fuser.append(Store(home, (), ex.var("last", home.code), {"last": (place, ())}))


def _entry(outer: Schedule, whole: Buffer, step: Any) -> Buffer:
    """The part of an array that belongs to one step."""
    part = Buffer(whole.name, whole.shape[1:], whole.dtype, whole.kind, whole.position, whole)
    size = outer.numbers.size(max(1, part.bytes // part.dtype.itemsize))
    part.shift = step * size if whole.shift is None else whole.shift + step * size
    return part


class _Body:
    """A simplified graph that is scheduled inside of another schedule. Its inputs are told in order."""

    def __init__(self, outer: Schedule, graph: Graph) -> None:
        self.outer, self.graph = outer, graph
        self.inner = type(outer)(self.graph, outer)
        self._told = 0
        self._first = 0  # of the carry, among the inputs

    @property
    def nodes(self) -> list[program.Node]:
        return self.inner.nodes

    def closes_over(self, values: Sequence[Atom]) -> None:
        """The next inputs are values of the schedule outside."""
        for v in values:
            if isinstance(v, Literal) or v in self.outer.uniform:
                self.inner.uniform[self._next()] = v.value if isinstance(v, Literal) else self.outer.uniform[v]
            else:
                self.reads(self.outer._in_memory(v))

    def carries(self, places: Sequence[Buffer]) -> None:
        """The next inputs are the carry."""
        self._first = self._told
        for place in places:
            self.reads(place)

    def reads(self, place: Buffer) -> None:
        """The next input lies somewhere."""
        self.inner.home[self._next()] = place

    def _next(self) -> Var:
        self._told += 1
        return self.graph.inputs[self._told - 1]

    def compute(self, carry: Sequence[Buffer], results: Sequence[Buffer]) -> None:
        """The nodes that write the outputs: first the next carry, which replaces the old one when nothing reads that any more."""
        inner = self.inner
        inner.graph, changed, before = in_place(self.graph, self._first, len(carry))
        outs = inner.graph.outputs
        made = {v for e in inner.graph.equations for v in e.outputs}
        targets: dict[Any, Buffer] = {v: carry[k] for v, k in changed.items()}
        for v, place in zip(outs[len(carry) :], results, strict=True):
            if v in made:
                targets.setdefault(v, place)
        for v in outs[: len(carry)]:
            if v in made and v not in targets:
                targets[v] = inner._buffer(output_aval(v), "temp")
        inner.place_all(targets, before)
        for v, place in zip(outs[len(carry) :], results, strict=True):
            if not (isinstance(v, Var) and inner.home.get(v) is place):
                inner._pointwise(place, v)
        self._replace(carry, outs)
        self.outer.fuser.same.update(inner.fuser.same)

    def _replace(self, carry: Sequence[Buffer], outs: Sequence[Atom]) -> None:
        inner = self.inner
        roots = {place.root for place in carry}
        moved: list[tuple[Buffer, Any]] = []
        for v, place in zip(outs, carry, strict=False):
            home = inner.home.get(v) if isinstance(v, Var) else None
            if home is place:
                continue
            if isinstance(v, Var) and (home is None or home.root in roots):  # carries that change places, also under other shapes
                home = inner._buffer(v.aval, "temp")
                inner._pointwise(home, v)
            moved.append((place, home or v))
        for place, source in moved:
            if isinstance(source, Buffer):
                loops = inner._loops(place.shape)
                index = tuple(loop.var for loop in loops)
                inner._emit(loops, place, index, inner._load(source, index))
            else:
                inner._pointwise(place, source)
