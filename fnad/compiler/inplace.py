"""Carries of which a step changes some entries only: these are written where the array lies, and the rest is not copied.

`c = at(c)[i].set(v)` in a body is such a change, and so is `c = c + z` where `z` is zero but for some entries, the form in which
cotangents of an array that is read entry by entry add up. So are loops and branches inside the body from `c` to `c`. A change can
be made in place if everything else that reads the old carry can be computed before.
"""

from __future__ import annotations

from typing import Any

from fnad.compiler.words import lowering
from fnad.core.graph import Equation, Graph, Literal, Var
from fnad.core.lowering import Branch, Place, Repeat, Scatter, View, While
from fnad.core.primitive import REGISTRY


def in_place(graph: Graph, first: int, count: int) -> tuple[Graph, dict[Var, int], set[Var]]:
    """An equivalent body whose carry is `graph.inputs[first : first + count]` and `graph.outputs[:count]`.

    Also the values that are a carry, changed, with the number of it; and the values that must be computed where they stand,
    because they read a carry before it changes.
    """
    graph = _sums(graph)
    changed: dict[Var, int] = {}
    before: set[Var] = set()
    accepted: list[_Change] = []
    for k in range(count):
        change = _Change(graph, graph.inputs[first + k], graph.outputs[k])
        if not change.possible():
            continue
        moved = change.last(graph)
        if all(c.in_order(moved) for c in (*accepted, change)):
            graph = moved
            accepted.append(change)
            changed.update((v, k) for v in change.values)
            before.update(o for e in change.readers for o in e.outputs)
    return graph, changed, before


class _Change:
    """A chain of equations from a carry that comes in to the one that goes out, each of which changes one array."""

    def __init__(self, graph: Graph, old: Var, new: Var | Literal) -> None:
        self.old, self.new = old, new
        self.uses: dict[Any, list[Equation]] = {}
        maker: dict[Any, Equation] = {}
        for e in graph.equations:
            maker.update((o, e) for o in e.outputs)
            for x in dict.fromkeys(e.inputs):
                self.uses.setdefault(x, []).append(e)
        self.outputs = graph.outputs
        self.chain: list[Equation] = []
        self.values: list[Var] = []  # the array after each change
        v: Any = new
        while v is not None and v is not old:
            made = maker.get(v)
            if made is not None:
                self.chain.insert(0, made)
                self.values.insert(0, v)
            v = None if made is None else _base(made, v, old)
        self.whole = v is old and bool(self.chain)
        self.readers = [e for e in self.uses.get(old, ()) if all(e is not c for c in self.chain)]

    def possible(self) -> bool:
        """Whether nothing keeps the old array, and nothing but the chain reads what is between old and new."""
        if not self.whole or any(v is self.old for v in self.outputs):
            return False
        if any(len(self.uses[v]) > 1 or any(v is o for o in self.outputs) for v in self.values[:-1]):
            return False
        return not any(isinstance(w, View) and w.alias for w in map(lowering, self.readers))

    def last(self, graph: Graph) -> Graph:
        """The graph with the change at its end, if nothing else reads its results."""
        users = [q for e in self.chain for v in e.outputs for q in self.uses.get(v, ())]
        if any(all(q is not e for e in self.chain) for q in users):
            return graph
        others = [e for e in graph.equations if all(e is not c for c in self.chain)]
        return Graph(graph.inputs, graph.constants, (*others, *self.chain), graph.outputs)

    def in_order(self, graph: Graph) -> bool:
        """Whether everything that reads the old array comes before the change."""
        place = {id(e): k for k, e in enumerate(graph.equations)}
        return all(place[id(e)] < place[id(self.chain[0])] for e in self.readers)


def _base(e: Equation, out: Var, old: Var) -> Var | None:
    """What an equation makes one of its results of, if it can do so in place and reads it for nothing else."""
    word, at = lowering(e), None
    number = next(k for k, o in enumerate(e.outputs) if o is out)
    if isinstance(word, Place):
        at = word.base
    elif isinstance(word, Scatter):
        at = 0 if word.base else None
    elif isinstance(word, Branch):
        at = next((k for k, v in enumerate(e.inputs) if k and v is old), None)
    elif isinstance(word, Repeat | While) and number < word.carry:
        at = word.first + number
    v = None if at is None else e.inputs[at]
    return v if isinstance(v, Var) and v.aval == out.aval and sum(v is x for x in e.inputs) == 1 else None


def _sums(graph: Graph) -> Graph:
    """Sums with what is zero but for some entries, as changes of these entries."""
    uses: dict[Any, int] = {}
    for v in (*(v for e in graph.equations for v in e.inputs), *graph.outputs):
        uses[v] = uses.get(v, 0) + 1
    maker = {o: e for e in graph.equations for o in e.outputs}
    equations: list[Equation] = []
    for e in graph.equations:
        whole, part = e.inputs if e.primitive.name == "add" else (None, None)
        if isinstance(whole, Var) and isinstance(part, Var):
            made = maker.get(part)
            if made is not None and made.primitive.name == "scatter_add" and uses[part] == 1 and whole.aval == part.aval:
                params = {"axis": made.params["axis"]}
                equations = [q for q in equations if q is not made]
                e = Equation(REGISTRY["add_at"], (whole, *made.inputs), params, e.outputs, e.where)
        equations.append(e)
    return Graph(graph.inputs, graph.constants, tuple(equations), graph.outputs)
