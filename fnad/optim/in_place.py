"""A step of many leaves as one program that changes parameters and state where they lie.

It computes what `Rule.step` does, to the bit, and adds the updates. Leaves that `Rule.step` leaves to NumPy are computed without
fusing a product and a sum into one rounding, since NumPy cannot do that either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fnad.core.aval import Aval
from fnad.core.graph import Graph, Literal, record
from fnad.core.lowering import Scalar
from fnad.core.primitive import Primitive
from fnad.jit import compile_graph
from fnad.optim.rule import KERNEL_DTYPES, KERNEL_SIZE, Rule
from fnad.primitives import arithmetic


class _Rounded(Primitive):
    """A sum or difference that no product is fused with."""

    def __init__(self, of: Primitive) -> None:
        super().__init__(f"rounded_{of.name}", register=False)
        self.of = of

    def impl(self, x: Any, y: Any) -> Any:
        return self.of.impl(x, y)

    def infer(self, x: Aval, y: Aval) -> Aval:
        found: Aval = self.of.infer(x, y)
        return found

    def lower(self, x: Aval, y: Aval) -> Scalar:
        word: Scalar = self.of.lower(x, y)
        return word._replace(name=self.name)


_ROUNDED: dict[Primitive, Primitive] = {of: _Rounded(of) for of in (arithmetic.add, arithmetic.subtract)}
_EXACT = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "positive", "sqrt", "absolute", "sign", "maximum", "minimum", "where"),
        *("cast", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "static_index"),
    )
)
"""Primitives that programs and NumPy compute to the same bits, as long as sums are rounded."""


class Leaf(NamedTuple):
    """What a program depends on."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    arrays: tuple[bool, ...]
    """Which of the rule's arrays this leaf has."""
    numbers: int
    """Which numbers it takes; leaves at the same step share theirs."""


def program(rule: Rule, names: tuple[str, ...], leaves: Sequence[Leaf]) -> Any:
    """The program of a step; None if the rule, or a leaf, cannot be computed so.

    Its inputs are the numbers (float64, shape ()), then gradient, parameter and arrays of each leaf. It returns the new parameter and
    arrays of each leaf in turn, in the memory of the old ones where it can.
    """
    if not rule.elementwise or any(leaf.dtype not in KERNEL_DTYPES for leaf in leaves):
        return None
    body, small = rule.body, set[int]()

    def flat(*given: Any) -> list[Any]:
        out: list[Any] = []
        equations = given[0]._trace.equations
        rest = iter(given[scalars:])
        for leaf in leaves:
            numbers = {name: given[leaf.numbers * len(names) + i].astype(leaf.dtype) for i, name in enumerate(names)}
            first = len(equations)
            g, p = next(rest), next(rest)
            arrays = [next(rest) if there else None for there in leaf.arrays]
            u, *new = body(SimpleNamespace(**numbers, **dict(body.flags)), g, p if body.params else None, *arrays)
            new += arrays[len(new) :]
            if p.size < KERNEL_SIZE:
                small.update(range(first, len(equations)))
            out += [_ROUNDED[arithmetic.add](p, u), *(x for x, there in zip(new, leaf.arrays, strict=True) if there)]
        return out

    scalars = len(names) * (1 + max((leaf.numbers for leaf in leaves), default=0))
    avals = [Aval((), np.dtype(np.float64))] * scalars  # not one vector: loops that share an array would be merged
    donated: list[int] = []
    for leaf in leaves:
        donated += range(len(avals) + 1, len(avals) + 2 + sum(leaf.arrays))
        avals += [Aval(leaf.shape, leaf.dtype)] * (2 + sum(leaf.arrays))
    graph = record(flat, avals, body.formula)
    if not all(_is_exact(graph, k) for k in small):
        return None
    equations = tuple(
        replace(e, primitive=_ROUNDED.get(e.primitive, e.primitive)) if k in small else e for k, e in enumerate(graph.equations)
    )
    return compile_graph(Graph(graph.inputs, graph.constants, equations, graph.outputs), frozenset(donated))


def _is_exact(graph: Graph, k: int) -> bool:
    e = graph.equations[k]
    if e.primitive.name == "power":  # NumPy squares by a product
        return isinstance(e.inputs[1], Literal) and e.inputs[1].value == 2
    return e.primitive.name in _EXACT
