"""Batches whose examples go different ways: what is computed for an example that does not need it must do no harm.

A branch, or a step of a loop, runs for all examples of a batch, also for those that took another branch or are done. Where the
branch is made of arithmetic that gives garbage, which is not looked at. But an index may be out of bounds there, a matrix singular, a
loop without end, a slope nan. So these examples borrow the operands of one that does need the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.control._bodies import Flags, close, derived, output_avals, per_example, unify, zeros
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.graph import Equation, Graph, Literal, evaluate, record
from fnad.core.lowering import Branch, Call, Iota, Place, Reduce, Repeat, Scalar, View
from fnad.errors import MissingRuleError
from fnad.primitives.indexing import gather
from fnad.transforms.stop import stop_gradient
from fnad.transforms.vmap import run_batched, spread

_HARMLESS = (Scalar, Reduce, View, Iota, Place, Call)


def harmless(graph: Graph) -> bool:
    """Whether a graph has results and gradients for whatever it is given: it neither raises nor goes on for ever."""
    return derived(graph, "harmless", lambda: all(map(_is_harmless, graph.equations)))


def _is_harmless(e: Equation) -> bool:
    avals = [aval_of(v.value) if isinstance(v, Literal) else v.aval for v in e.inputs]
    try:
        word = e.primitive.lower(*avals, **e.params)
    except MissingRuleError:
        return False
    if isinstance(word, Repeat | Branch):
        return all(map(harmless, word.graphs))
    whole_power = e.primitive.name == "power" and e.outputs[0].aval.dtype.kind in "iu"  # NumPy raises for negative exponents
    return isinstance(word, _HARMLESS) and not whole_power


def lend(mask: Any, values: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Values for a batch in which examples outside of the mask have, as constants, what the first one inside it has."""
    if not shape_of(mask)[0]:
        return list(values)
    lender = np.argmax(mask)
    return [
        np.where(per_example(mask, x), x, stop_gradient(gather(x, lender, axis=0))) if b else x
        for x, b in zip(values, batched, strict=True)
    ]


def where(mask: Any, yes: Any, no: Any) -> Any:
    """A result for a batch, chosen by example."""
    return yes if yes is no else np.where(per_example(mask, yes), yes, no)


def outputs(graph: Graph, values: Sequence[Any], batched: Sequence[bool]) -> tuple[list[Any], list[bool]]:
    """The outputs of a graph for a batch, and which of them have the batch axis."""
    if not any(batched):
        return evaluate(graph, values), [False] * len(graph.outputs)
    return run_batched(lambda *xs: evaluate(graph, xs), values, batched)


def for_all(graph: Graph, values: Sequence[Any], batched: Flags, size: int) -> list[Any]:
    """The outputs of a graph for a batch, all of them with the batch axis."""
    return [o if m else spread(o, size) for o, m in zip(*outputs(graph, values, batched), strict=True)]


def for_some(graph: Graph, batched: Flags, size: int) -> tuple[tuple[Graph, ...], tuple[Any, ...]]:
    """Two graphs, and their constants: from a mask and values to zeros, and to the outputs for the examples in the mask."""

    def none(*_: Any) -> list[Any]:
        return [zeros((size, *a.shape), a.dtype) for a in output_avals(graph)]

    def some(mask: Any, *values: Any) -> list[Any]:
        return for_all(graph, lend(mask, values, batched), batched, size)

    avals = [Aval((size,), np.dtype(bool))]
    avals += [Aval((size, *v.aval.shape), v.aval.dtype) if b else v.aval for v, b in zip(graph.inputs, batched, strict=True)]
    return unify([close(record(f, avals, graph)) for f in (none, some)])
