"""Graph to graph: the same numbers from fewer equations.

Only rules that are exact in floating point: common subexpressions, dead code, constant folding of scalars, views of views,
multiplication by one. A product that is transposed becomes the product of the transposes, which BLAS reads in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fnad.compiler.program import CODES
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Equation, Graph, Literal, Var, record
from fnad.core.place import at
from fnad.core.primitive import REGISTRY
from fnad.primitives._families import Guarded
from fnad.primitives.products import Matmul

Atom = Var | Literal


class Simplifier:
    """One walk over a graph in order, then one backwards for dead code."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.same: dict[Var, Atom] = {}
        self.known: dict[Any, tuple[Var, ...]] = {}
        self.maker: dict[Var, Equation] = {}
        self.uniform = {v: x for v, x in graph.constants if is_uniform(x)}
        self.equations: list[Equation] = []
        self.uses = Counter(v for e in graph.equations for v in e.inputs if isinstance(v, Var))
        self.uses.update(v for v in graph.outputs if isinstance(v, Var))
        self.constants = list(graph.constants)

    def run(self) -> Graph:
        for e in self.graph.equations:
            self.visit(e)
        outputs = tuple(self.atom(v) for v in self.graph.outputs)
        alive = {v for v in outputs if isinstance(v, Var)}
        kept = []
        for e in reversed(self.equations):
            if e.has_effect or any(o in alive for o in e.outputs):
                alive.update(v for v in e.inputs if isinstance(v, Var))
                kept.append(e)
        constants = tuple((v, x) for v, x in self.constants if v in alive)
        return Graph(self.graph.inputs, constants, tuple(reversed(kept)), outputs)

    def insert(self, function: Callable[..., Any], inputs: tuple[Atom, ...], e: Equation) -> Atom:
        """What a function of some values is, by equations in the place of another one."""
        with at(e.where):
            inner = record(lambda *xs: [function(*xs)], [aval_of_atom(v) for v in inputs])
        self.same.update(zip(inner.inputs, inputs, strict=True))
        for sub in inner.equations:
            self.visit(replace(sub, where=e.where))
        return self.atom(inner.outputs[0])

    def atom(self, v: Atom) -> Atom:
        while isinstance(v, Var) and v in self.same:
            v = self.same[v]
        return v

    def visit(self, e: Equation) -> None:
        compose = getattr(e.primitive, "compose", None)
        if compose is not None and self.inline(e, compose):
            return
        inputs = tuple(self.atom(v) for v in e.inputs)
        if len(e.outputs) == 1:
            p = e.primitive
            if isinstance(p, Guarded) and self.nonzero(inputs[0]) and (not p.either or self.nonzero(inputs[1])):
                e = Equation(REGISTRY["multiply"], inputs, e.params, e.outputs, e.where)  # nothing to guard
            rule = RULES.get(e.primitive.name)
            found = rule(self, inputs, e) if rule else None
            if found is None and inputs and not p.effect and all(isinstance(v, Literal) for v in inputs) and not e.outputs[0].aval.shape:
                found = fold(e, inputs)
            if found is not None and fits(found, e.outputs[0]):
                self.same[e.outputs[0]] = found
                return
        key = e.primitive, inputs_key(inputs), tuple(sorted(e.params.items()))
        try:
            twin = None if e.has_effect else self.known.get(key)
        except TypeError:  # a parameter that cannot be hashed
            twin = None
        else:
            self.known.setdefault(key, e.outputs)
        if twin is not None:
            self.same.update(zip(e.outputs, twin, strict=True))
            return
        new = Equation(e.primitive, inputs, e.params, e.outputs, e.where)
        self.equations.append(new)
        for o in e.outputs:
            self.maker[o] = new

    def inline(self, e: Equation, compose: Callable[..., Any]) -> bool:
        """Replace an equation by the ones it is made of, unless its primitive declines by answering None."""
        avals = [aval_of_atom(v) for v in e.inputs]

        def parts(*xs: Any) -> Any:
            found = compose(*xs, **e.params)
            return [] if found is None else found if e.primitive.multiple else [found]

        with at(e.where):
            inner = record(parts, avals)
        if not inner.outputs:
            return False
        self.same.update(zip(inner.inputs, e.inputs, strict=True))
        self.uniform.update({v: x for v, x in inner.constants if is_uniform(x)})
        self.constants.extend(inner.constants)
        for sub in inner.equations:
            self.visit(replace(sub, where=e.where))
        self.same.update(zip(e.outputs, inner.outputs, strict=True))
        return True

    def is_number(self, v: Atom, number: float) -> bool:
        if isinstance(v, Literal):
            return bool(v.value == number)
        return v in self.uniform and bool(self.uniform[v].flat[0] == number)

    def nonzero(self, v: Atom) -> bool:
        value = v.value if isinstance(v, Literal) else self.uniform[v].flat[0] if v in self.uniform else 0
        return bool(value != 0 and np.isfinite(value))

    def made_by(self, v: Atom, name: str) -> Equation | None:
        e = self.maker.get(v) if isinstance(v, Var) else None
        return e if e is not None and e.primitive.name == name else None


def inputs_key(inputs: tuple[Atom, ...]) -> tuple[Any, ...]:
    """Literals by type and bits (0.0 and -0.0 differ), variables by identity."""
    return tuple((type(v.value), repr(v.value)) if isinstance(v, Literal) else v for v in inputs)


def aval_of_atom(v: Atom) -> Aval:
    return v.aval if isinstance(v, Var) else aval_of(v.value)


def fits(found: Atom, out: Var) -> bool:
    aval = aval_of_atom(found)
    return aval.shape == out.aval.shape and aval.dtype == out.aval.dtype and aval.weak == out.aval.weak


def fold(e: Equation, inputs: tuple[Atom, ...]) -> Atom | None:
    with np.errstate(all="ignore"):
        value = e.primitive(*(v.value for v in inputs), **e.params)  # type: ignore[union-attr]
    if isinstance(value, np.ndarray):
        value = value[()]
    return Literal(value)


def is_uniform(x: Any) -> bool:
    """Whether an array repeats one number that never changes without storing it more than once, one that native code can hold."""
    if not (isinstance(x, np.ndarray) and x.size > 0 and x.ndim > 0 and not any(x.strides) and x.dtype in CODES):
        return False
    return isinstance(x.base, np.ndarray) and not x.base.flags.writeable


def _multiply(s: Simplifier, inputs: tuple[Atom, ...], e: Equation) -> Atom | None:
    a, b = inputs
    return a if s.is_number(b, 1) else b if s.is_number(a, 1) else None


def _divide(s: Simplifier, inputs: tuple[Atom, ...], e: Equation) -> Atom | None:
    return inputs[0] if s.is_number(inputs[1], 1) else None


def _first(s: Simplifier, inputs: tuple[Atom, ...], e: Equation) -> Atom | None:
    """Casts and reshapes to what it already is, and sums over no axis."""
    return inputs[0]


def _sum(s: Simplifier, inputs: tuple[Atom, ...], e: Equation) -> Atom | None:
    return inputs[0] if e.params["axis"] == () else None


def _transpose(s: Simplifier, inputs: tuple[Atom, ...], e: Equation) -> Atom | None:
    axes = e.params["axes"]
    if axes == tuple(range(len(axes))):
        return inputs[0]
    before = s.made_by(inputs[0], "transpose")
    if before is not None and tuple(before.params["axes"][a] for a in axes) == tuple(range(len(axes))):
        return before.inputs[0]
    product = s.maker.get(inputs[0]) if isinstance(inputs[0], Var) and s.uses.get(inputs[0]) == 1 else None
    if product is not None and isinstance(product.primitive, Matmul) and all(aval_of_atom(v).ndim == 2 for v in product.inputs):
        return s.insert(product.primitive.transposed, product.inputs, e)
    return None


def _negative(s: Simplifier, inputs: tuple[Atom, ...], e: Equation) -> Atom | None:
    before = s.made_by(inputs[0], "negative")
    return None if before is None else before.inputs[0]


RULES: dict[str, Callable[[Simplifier, tuple[Atom, ...], Equation], Atom | None]] = {
    "multiply": _multiply, "guarded_multiply": _multiply, "divide": _divide, "cast": _first, "reshape": _first,
    "broadcast_to": _first, "sum": _sum, "transpose": _transpose, "negative": _negative, "stop_gradient": _first, "positive": _first,
}  # fmt: skip


def simplify(graph: Graph) -> Graph:
    """An equivalent graph with fewer equations."""
    return Simplifier(graph).run()


def simplified(body: Graph) -> Graph:
    """The body of a loop or branch, simplified once."""
    if "simplified" not in body.derived:
        body.derived["simplified"] = simplify(body)
    found: Graph = body.derived["simplified"]
    return found
