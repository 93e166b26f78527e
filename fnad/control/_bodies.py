"""Bodies of loops and branches: graphs without constants, and the bodies that transforms make of them.

What a body closes over comes first among its inputs, and among the arguments of the primitive that holds it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fnad.compiler.simplify import simplify
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.graph import Equation, Graph, Literal, RecordTracer, Var, evaluate, record
from fnad.core.tracer import Tracer
from fnad.primitives.shape import cast
from fnad.transforms.jvp import push_forward
from fnad.transforms.vjp import VJPTrace, VJPTracer
from fnad.transforms.vmap import run_batched, spread

Flags = tuple[bool, ...]
T = TypeVar("T")


class Body(NamedTuple):
    """A graph without constants; `consts` are the values of its first inputs."""

    graph: Graph
    consts: tuple[Any, ...]


def close(graph: Graph) -> Body:
    """Make inputs of the constants of a graph, those that it needs."""
    used = {v for e in graph.equations for v in e.inputs if isinstance(v, Var)} | {v for v in graph.outputs if isinstance(v, Var)}
    constants = [(v, x) for v, x in graph.constants if v in used]
    inputs = (*(v for v, _ in constants), *graph.inputs)
    return Body(Graph(inputs, (), graph.equations, graph.outputs), tuple(x for _, x in constants))


def unify(bodies: Sequence[Body]) -> tuple[tuple[Graph, ...], tuple[Any, ...]]:
    """Bodies with equal further inputs as graphs that take the constants of all of them first; and these constants."""
    total = {id(x): x for b in bodies for x in b.consts}
    graphs = []
    for graph, consts in bodies:
        own = dict(zip(map(id, consts), graph.inputs, strict=False))
        inputs = (*(own.get(k) or Var(aval_of(x), -1) for k, x in total.items()), *graph.inputs[len(consts) :])
        graphs.append(Graph(inputs, (), graph.equations, graph.outputs))
    return tuple(graphs), tuple(total.values())


def trim(graph: Graph) -> Graph:
    """A graph without the equations that its outputs do not need, and without the parts of loops and branches that they do not."""
    needed = {v for v in graph.outputs if isinstance(v, Var)}
    kept = []
    for e in reversed(graph.equations):
        used = tuple(o in needed for o in e.outputs)
        if any(used) or e.has_effect:
            prune = getattr(e.primitive, "prune", None)
            if prune is not None and not all(used):
                e = pruned(e, *prune(used, **e.params))
            needed.update(v for v in e.inputs if isinstance(v, Var))
            kept.append(e)
    return Graph(graph.inputs, graph.constants, tuple(reversed(kept)), graph.outputs)


def pruned(e: Equation, params: dict[str, Any], inputs: Sequence[int], outputs: Sequence[int]) -> Equation:
    """What is left of an equation: its inputs and outputs at the given positions."""
    return Equation(e.primitive, tuple(e.inputs[k] for k in inputs), params, tuple(e.outputs[k] for k in outputs), e.where)


def needs(graph: Graph, outputs: Flags) -> Flags:
    """Which inputs the flagged outputs need."""
    slim = trim(Graph(graph.inputs, (), graph.equations, tuple(itertools.compress(graph.outputs, outputs))))
    used = {v for e in slim.equations for v in e.inputs if isinstance(v, Var)} | {v for v in slim.outputs if isinstance(v, Var)}
    return tuple(v in used for v in graph.inputs)


def restrict(graph: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """A graph from some of the inputs to some of the outputs, which need no others."""
    return trim(Graph(tuple(graph.inputs[k] for k in inputs), (), graph.equations, tuple(graph.outputs[k] for k in outputs)))


def carried(body: Graph, consts: int, carry: int, used: Flags) -> tuple[list[int], list[int]]:
    """The inputs and outputs of a loop's body that its used outputs need, in all steps."""
    outs = list(used)
    while True:
        ins = needs(body, tuple(outs))
        grown = [f or (k < carry and ins[consts + k]) for k, f in enumerate(outs)]
        if grown == outs:
            break
        outs = grown
    kept = [f or (0 <= k - consts < carry and outs[k - consts]) for k, f in enumerate(ins)]
    return [k for k, f in enumerate(kept) if f], [k for k, f in enumerate(outs) if f]


def tidy(graph: Graph) -> Body:
    """A derived graph, simplified and closed."""
    return close(trim(simplify(graph)))


def output_avals(graph: Graph) -> list[Aval]:
    return [aval_of(v.value) if isinstance(v, Literal) else v.aval for v in graph.outputs]


def floating(graph: Graph) -> list[bool]:
    """Which inputs can be differentiated."""
    return [v.aval.dtype.kind in "fc" for v in graph.inputs]


def derived(graph: Graph, key: Any, make: Callable[[], T]) -> T:
    """What `make` makes of a graph, made once."""
    found = graph.derived.get(key)
    if found is None:
        found = graph.derived[key] = make()
    return found


def reached(graph: Graph, flags: Sequence[bool]) -> list[bool]:
    """Which outputs may depend differentiably on the flagged inputs."""
    alive = {v for v, f in zip(graph.inputs, flags, strict=True) if f}
    for e in graph.equations:
        if not e.primitive.constant and any(isinstance(v, Var) and v in alive for v in e.inputs):
            alive.update(o for o in e.outputs if o.aval.dtype.kind in "fc")
    return [isinstance(v, Var) and v in alive for v in graph.outputs]


@lru_cache(1024)
def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Zeros without memory of their own."""
    return np.broadcast_to(np.zeros((), dtype), shape) if shape else dtype.type(0)


def zeros_like(x: Any) -> Any:
    aval = aval_of(x)
    return zeros(aval.shape, aval.dtype)


def conform(x: Any, like: Aval) -> Any:
    """A derivative with the shape and dtype of what it belongs to, never weak."""
    found = aval_of(x)
    if found.dtype != like.dtype or found.weak:
        x = cast(np.real(x) if found.dtype.kind == "c" and like.dtype.kind != "c" else x, dtype=like.dtype)
    return x if found.shape == like.shape else np.broadcast_to(x, like.shape)


def strong(aval: Aval) -> Aval:
    return Aval(aval.shape, aval.dtype)


def is_abstract(x: Any) -> bool:
    """Whether nothing but shape and dtype is known of a value: it is being recorded, be it inside other tracers."""
    while isinstance(x, Tracer):
        if isinstance(x, RecordTracer):
            return True
        x = getattr(x, "value", None)
    return False


def known_before(args: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Whether the values are known, but the tangents recorded (as by `linearize`): the values must stay known."""
    return any(is_abstract(t) for t in tangents) and not any(is_abstract(x) for x in args)


# -- forward mode ----------------------------------------------------------------------------------------------------


class Pushed(NamedTuple):
    """Inputs: the body's, then the tangents of the flagged ones. Outputs: the body's, then the tangents of the `found` ones."""

    graph: Graph
    found: Flags


def pushed(body: Graph, flags: Flags, force: Flags) -> Pushed:
    """A body together with its tangents; outputs in `force` get a tangent, be it zero."""
    found: list[bool] = []
    n = len(body.inputs)

    def flat(*xs: Any) -> list[Any]:
        given = iter(xs[n:])
        tangents = [next(given) if f else None for f in flags]
        outs, dots = push_forward(lambda *ys: evaluate(body, ys), list(xs[:n]), tangents, body)
        avals = [aval_of(o) for o in outs]
        dots = [zeros_like(a) if t is None and f else t for t, f, a in zip(dots, force, avals, strict=True)]
        found[:] = [t is not None for t in dots]
        return [*outs, *(conform(t, a) for t, a in zip(dots, avals, strict=True) if t is not None)]

    avals = [v.aval for v in body.inputs]
    graph = record(flat, [*avals, *(strong(a) for a, f in zip(avals, flags, strict=True) if f)], body)
    return Pushed(graph, tuple(found))


# -- reverse mode ----------------------------------------------------------------------------------------------------


class Pulled(NamedTuple):
    """Inputs: the body's, the cotangents of the given outputs, the sums so far of the flagged inputs in `add`.

    Outputs: the body's, then the cotangents of the `found` inputs.
    """

    graph: Graph
    found: Flags


def pulled(body: Graph, flags: Flags, given: Flags, add: Flags, force: Flags) -> Pulled:
    """A body together with the cotangents of its flagged inputs; those in `force` get one, be it zero.

    Those in `add` are added to what is passed in.
    """
    found: list[bool] = []
    n, m = len(body.inputs), sum(given)

    def flat(*xs: Any) -> list[Any]:
        cotangents, sums = iter(xs[n : n + m]), iter(xs[n + m :])
        values, answers = _pull(body, xs[:n], flags, [next(cotangents) if g else None for g in given])
        out = []
        for k, v in enumerate(body.inputs):
            before = next(sums) if add[k] else None
            g = zeros_like(v.aval) if answers[k] is None and force[k] else answers[k]
            answers[k] = g
            if g is not None:
                g = conform(g, v.aval)
                out.append(g if before is None else before + g)
        found[:] = [g is not None for g in answers]
        return [*values, *out]

    avals = [v.aval for v in body.inputs]
    outs = [strong(a) for a, g in zip(output_avals(body), given, strict=True) if g]
    graph = record(flat, [*avals, *outs, *(strong(a) for a, f in zip(avals, add, strict=True) if f)], body)
    return Pulled(graph, tuple(found))


def _pull(body: Graph, xs: Sequence[Any], flags: Flags, cotangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs of a body, and the cotangents of its inputs (None where there is none)."""
    trace = VJPTrace("vjp", body)
    try:
        outs = evaluate(body, [trace.slot(x, None) if f else x for x, f in zip(xs, flags, strict=True)])
        mine = [o.__class__ is VJPTracer and o._trace is trace for o in outs]
        seeds = [(o.index, g) for o, m, g in zip(outs, mine, cotangents, strict=True) if m and g is not None]
        answers = iter(trace.backward(seeds, sum(flags), keep=False))
    finally:
        trace.close()
    return [o.value if m else o for o, m in zip(outs, mine, strict=True)], [next(answers) if f else None for f in flags]


# -- batching ----------------------------------------------------------------------------------------------------------


class Batched(NamedTuple):
    """A body for a batch, and its constants; `flags` says which outputs have the batch axis."""

    graph: Graph
    consts: tuple[Any, ...]
    flags: Flags


def batched_body(body: Graph, flags: Flags, size: int, force: Flags | None = None) -> Batched:
    """A body for a batch; outputs in `force` get the batch axis in any case."""
    return batched_function(lambda *xs: evaluate(body, xs), [v.aval for v in body.inputs], flags, size, force)


def batched_function(f: Callable[..., list[Any]], avals: Sequence[Aval], flags: Flags, size: int, force: Flags | None = None) -> Batched:
    """A function of flat values as a body for a batch."""
    found: list[bool] = []

    def flat(*xs: Any) -> list[Any]:
        outs, mine = run_batched(f, xs, flags)
        found[:] = [m or w for m, w in zip(mine, force or mine, strict=True)]
        return [spread(o, size) if w and not m else o for o, m, w in zip(outs, mine, found, strict=True)]

    graph = record(flat, [Aval((size, *a.shape), a.dtype) if b else a for a, b in zip(avals, flags, strict=True)], f)
    return Batched(*close(graph), tuple(found))


def per_example(mask: Any, x: Any) -> Any:
    """A mask (batch,) in a shape that broadcasts against a batch."""
    return np.reshape(mask, (*shape_of(mask), *(1,) * (len(shape_of(x)) - 1)))
