"""The primitive behind all loops with a known number of steps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.control._bodies import (
    Flags,
    batched_body,
    carried,
    derived,
    floating,
    known_before,
    output_avals,
    pushed,
    restrict,
    tidy,
    zeros_like,
)
from fnad.control._reverse import Reverse, Saved
from fnad.core.aval import Aval
from fnad.core.graph import Graph, evaluate
from fnad.core.lowering import Repeat
from fnad.core.primitive import Joint, Primitive
from fnad.errors import NonFiniteError
from fnad.transforms._opaque import batch_size
from fnad.transforms.vmap import Same, spread


class Scan(Primitive):
    """`(*consts, *carry, *xs) -> (*carry, *ys)`: a body applied `length` times.

    The body takes the constants, the carry and one slice of each of `xs` along axis 0; it returns the next carry and what is
    stacked to `ys`. It is a graph without constants.

    Params:
        body: The graph.
        consts: Number of constants.
        carry: Number of values carried.
        length: Number of steps.
        reverse: Whether the last slice comes first.
        unroll: Steps per iteration of the compiled loop; a matter of speed only.
        checkpoint: Whether the backward pass finds the carry of each step saved, and nothing else.
    """

    multiple = True
    selective = True

    def __init__(self) -> None:
        super().__init__("scan", register=False)

    def infer(self, *avals: Aval, body: Graph, consts: int, carry: int, length: int, **_: Any) -> tuple[Aval, ...]:
        outs = output_avals(body)
        return (*(v.aval for v in body.inputs[consts : consts + carry]), *(Aval((length, *a.shape), a.dtype) for a in outs[carry:]))

    def impl(self, *args: Any, body: Graph, consts: int, carry: int, length: int, reverse: bool, **_: Any) -> tuple[Any, ...]:
        weak = [v.aval.weak for v in body.inputs]
        values = [_python(x) if w else x for x, w in zip(args, weak[: consts + carry], strict=False)]
        outer, state, xs = values[:consts], values[consts:], args[consts + carry :]
        soft = [k for k in range(carry) if weak[consts + k]]
        soft_xs = [k for k in range(len(xs)) if weak[consts + carry + k]]
        rows = [np.empty((length, *a.shape), a.dtype) for a in output_avals(body)[carry:]]
        for i in reversed(range(length)) if reverse else range(length):
            slices = [x[i] for x in xs]
            for k in soft_xs:
                slices[k] = _python(slices[k])
            try:
                outs = evaluate(body, [*outer, *state, *slices])
            except NonFiniteError as error:
                raise error.inside(f"step {i} of scan") from None
            state = outs[:carry]
            for k in soft:
                state[k] = _python(state[k])
            for row, y in zip(rows, outs[carry:], strict=True):
                row[i] = y
        return (*state, *rows)

    def lower(self, *avals: Aval, body: Graph, consts: int, carry: int, length: int, reverse: bool, **_: Any) -> Repeat:
        return Repeat(body, consts, carry, length, reverse)

    def prune(self, used: Flags, **params: Any) -> tuple[dict[str, Any], list[int], list[int]]:
        """Params for the used outputs alone, and the positions of the arguments and outputs that are left."""
        body, n, m = params["body"], params["consts"], params["carry"]
        ins, outs = carried(body, n, m, used)
        graph = derived(body, ("prune", n, m, used), lambda: restrict(body, ins, outs))
        return {**params, "body": graph, "consts": sum(k < n for k in ins), "carry": sum(k < m for k in outs)}, ins, outs

    # -- reverse mode ------------------------------------------------------------------------------------------------

    def forward(self, args: Sequence[Any], params: dict[str, Any], active: Sequence[bool] | None = None) -> tuple[Any, Joint]:
        body, n, m, checkpoint = params["body"], params["consts"], params["carry"], params["checkpoint"]
        wanted = tuple(f and (active is None or active[k]) for k, f in enumerate(floating(body)))
        if not any(wanted):
            return self(*args, **params), Joint(lambda g: [None] * len(args))
        plan = derived(body, ("reverse", n, m, wanted, checkpoint), lambda: Reverse(body, n, m, wanted, checkpoint))
        graph, consts = plan.forward
        outs = self(*consts, *args, **{**params, "body": graph, "consts": n + len(consts)})
        count = len(body.outputs)
        saved = Saved(plan, args, outs[count:])
        rest = {k: v for k, v in params.items() if k != "body"}
        return outs[:count], Joint(lambda g: saved.pull(g, self, rest))

    # -- forward mode ------------------------------------------------------------------------------------------------

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        body, n, m = params["body"], params["consts"], params["carry"]
        flags = [t is not None and f for t, f in zip(tangents, floating(body), strict=True)]
        while True:  # a carry that gets a tangent has one from the next step on
            key = tuple(flags)
            found = derived(body, ("push", n, m, key), lambda: _pushed(body, n, m, key))  # noqa: B023
            if found.flags[:m] == key[n : n + m]:
                break
            flags[n : n + m] = found.flags[:m]
        dots = [zeros_like(v.aval) if t is None else t for v, t in zip(body.inputs, tangents, strict=True)]
        given: list[Any] = []
        for group in (slice(n), slice(n, n + m), slice(n + m, None)):
            given += [*args[group], *itertools.compress(dots[group], flags[group])]
        consts, carry = len(found.consts) + n + sum(flags[:n]), m + sum(flags[n : n + m])
        outs = iter(self(*found.consts, *given, **{**params, "body": found.graph, "consts": consts, "carry": carry}))
        values: list[Any] = []
        answers: list[Any] = []
        for group in (slice(m), slice(m, None)):
            some = found.flags[group]
            values += itertools.islice(outs, len(some))
            answers += [next(outs) if f else None for f in some]
        return self(*args, **params) if known_before(args, tangents) else tuple(values), answers

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.push(args, tangents, params)[1]

    # -- batching ----------------------------------------------------------------------------------------------------

    def batch(self, args: Sequence[Any], batched: Sequence[bool], **params: Any) -> tuple[Any, ...]:
        body, n, m = params["body"], params["consts"], params["carry"]
        size = batch_size(args, batched)
        flags = list(batched)
        while True:  # likewise: a carry that differs among the examples once does so from there on
            key = tuple(flags)
            force = (*flags[n : n + m], *(False,) * (len(body.outputs) - m))
            found = derived(body, ("batch", n, m, key, size), lambda: batched_body(body, key, size, force))  # noqa: B023
            if found.flags[:m] == key[n : n + m]:
                break
            flags[n : n + m] = found.flags[:m]
        given = list(args)
        for k, (b, f) in enumerate(zip(batched, flags, strict=True)):
            if f and not b:
                given[k] = spread(args[k], size)
            elif f and k >= n + m:
                given[k] = np.swapaxes(args[k], 0, 1)
        outs = self(*found.consts, *given, **{**params, "body": found.graph, "consts": n + len(found.consts)})
        answers = [np.swapaxes(o, 0, 1) if f and k >= m else o for k, (o, f) in enumerate(zip(outs, found.flags, strict=True))]
        return tuple(o if f else Same(o) for o, f in zip(answers, found.flags, strict=True))


class Tangents(NamedTuple):
    """A body with tangents behind the values in each group of inputs and outputs; `flags` says which outputs have one."""

    graph: Graph
    consts: tuple[Any, ...]
    flags: Flags


def _pushed(body: Graph, n: int, m: int, flags: Flags) -> Tangents:
    graph, found = pushed(body, flags, (*flags[n : n + m], *(False,) * (len(body.outputs) - m)))
    inputs = _grouped(graph.inputs, flags, (n, n + m))
    outputs = _grouped(graph.outputs, found, (m,))
    return Tangents(*tidy(Graph(inputs, graph.constants, graph.equations, outputs)), found)


def _grouped(values: Sequence[Any], flags: Flags, stops: tuple[int, ...]) -> tuple[Any, ...]:
    """`(*values, *those of the flagged ones)` regrouped: in each group between stops the values, then theirs."""
    more = iter(values[len(flags) :])
    theirs = [next(more) if f else None for f in flags]
    out: list[Any] = []
    for start, stop in itertools.pairwise((0, *stops, len(flags))):
        out += [*values[start:stop], *itertools.compress(theirs[start:stop], flags[start:stop])]
    return tuple(out)


def _python(x: Any) -> Any:
    """A weak value: as a Python scalar, where it is plain."""
    return x.item() if isinstance(x, np.ndarray | np.generic) else x


scan = Scan()
