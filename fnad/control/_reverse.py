"""Scans backwards: what the forward pass keeps, and the body of the scan that runs back.

The backward body computes a step again from the carry that went into it. Results of operations that cost more than their
memory (matrix products, reductions, inner loops) are kept instead, unless the scan was asked to keep the carry alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fnad.control._bodies import Body, Flags, floating, needs, output_avals, pulled, reached, tidy, trim, zeros
from fnad.control._products import Product, take_products
from fnad.core.aval import aval_of
from fnad.core.graph import Equation, Graph, Literal, Var, without_effects
from fnad.core.lowering import Gather, Place, Scalar, View
from fnad.errors import MissingRuleError
from fnad.primitives._families import Elementwise
from fnad.primitives.arithmetic import Where

_CHEAP = (Scalar, View, Gather, Place)
_FEW = 8
Spot = tuple[int, int]  # of a value inside a recording: number of its equation, of the output


def is_cheap(e: Equation) -> bool:
    """Whether computing an equation again costs about as much as reading its result."""
    if isinstance(e.primitive, Elementwise | Where):
        return True
    avals = [aval_of(v.value) if isinstance(v, Literal) else v.aval for v in e.inputs]
    try:
        return isinstance(e.primitive.lower(*avals, **e.params), _CHEAP)
    except MissingRuleError:
        return False


class Backward(NamedTuple):
    """The scan that runs back. Its body takes, in this order: as constants what it closes over and the body's own at `consts`;
    as carry the cotangents so far of the constants `sums` and the cotangents of the carry; per step, of `rows` those which it
    reads (`inside`). It returns the carry, the cotangents of `steps`, and what else `products` need.

    `rows` are labels: "carry", "xs" and "given" (cotangents) with a position, "kept" with a spot. `flows` says which of the
    carry, `given` which outputs have a cotangent. Positions in `products` are those in `rows` and what follows them.
    """

    body: Body
    consts: list[int]
    rows: list[tuple[str, Any]]
    inside: list[bool]
    sums: list[int]
    flows: Flags
    steps: list[int]
    given: Flags
    products: list[tuple[int, int, int, Product]]

    def reads(self) -> set[Any]:
        return {*self.consts, *(row for row in self.rows if row[0] != "given")}


class Reverse:
    """How one body runs back, for one choice of differentiated inputs."""

    def __init__(self, body: Graph, consts: int, carry: int, wanted: Flags, checkpoint: bool) -> None:
        self.body, self.consts, self.carry, self.checkpoint = body, consts, carry, checkpoint
        flags = list(wanted)
        able = floating(body)
        while True:  # a carry that depends on something differentiated is itself differentiated from the next step on
            self.active = reached(body, flags)
            grown = [flags[consts + k] or (self.active[k] and able[consts + k]) for k in range(carry)]
            if grown == flags[consts : consts + carry]:
                break
            flags[consts : consts + carry] = grown
        self.active[:carry] = grown  # a loop of no steps returns the carry as it came
        self.flags = tuple(flags)
        self._made: dict[Flags, Backward] = {}
        self.full, raw = self._make(tuple(self.active))
        self._made[tuple(self.active)] = self.full
        self.forward = self._forward(raw)

    def backward(self, given: Flags) -> Backward:
        """For cotangents of the given outputs."""
        if given not in self._made:
            made = self._make(given)[0]
            self._made[given] = made if made.reads() <= self.full.reads() else self.full
        return self._made[given]

    def _make(self, given: Flags) -> tuple[Backward, Graph]:
        body, n, m = self.body, self.consts, self.carry
        flows, rest = given[:m], given[m:]
        add = tuple(f and k < n for k, f in enumerate(self.flags))
        while True:
            force = (*(False,) * n, *flows, *(False,) * (len(body.inputs) - n - m))
            raw, found = pulled(body, self.flags, (*flows, *rest), add, force)
            grown = tuple(a or b for a, b in zip(flows, found[n : n + m], strict=True))
            if grown == flows:
                break
            flows = grown
        count = len(body.inputs)
        equations, kept = self._cut(raw)
        own, cotangents = raw.inputs[:count], raw.inputs[count : count + sum(flows) + sum(rest)]
        so_far = dict(zip([k for k in range(n) if add[k]], raw.inputs[count + len(cotangents) :], strict=True))
        sums = [k for k in range(n) if found[k]]
        sources = {v: ("carry" if k < n + m else "xs", k) for k, v in enumerate(own) if k >= n}
        sources.update((raw.equations[i].outputs[k], ("kept", (i, k))) for i, k in kept)  # type: ignore[misc]
        sources.update(zip(cotangents[sum(flows) :], (("given", m + k) for k, f in enumerate(rest) if f), strict=True))
        state = [*(so_far[k] for k in sums), *cotangents[: sum(flows)]]
        inputs = (*own[:n], *state, *sources)
        graph, closed = tidy(without_effects(Graph(inputs, raw.constants, equations, raw.outputs[len(body.outputs) :])))
        apart = take_products(graph, [so_far[k] for k in sums], set(sources))
        graph = trim(apart.graph)
        read = {v for v, f in zip(graph.inputs, needs(graph, (True,) * len(graph.outputs)), strict=True) if f}
        asked = {v for p in apart.products for v in (p.left, p.right)}
        rows = [v for v in sources if v in read or v in asked]
        dropped = {v for v in (*own[:n], *sources) if v not in read}
        graph = Graph(tuple(v for v in graph.inputs if v not in dropped), (), graph.equations, graph.outputs)
        place = {v: k for k, v in enumerate([*rows, *apart.extra])}
        return Backward(
            body=Body(graph, closed),
            consts=[k for k in range(n) if own[k] in read],
            rows=[sources[v] for v in rows],
            inside=[v in read for v in rows],
            sums=[k for k, f in zip(sums, apart.stays, strict=True) if f],
            flows=flows,
            steps=[k for k in range(n + m, count) if found[k]],
            given=given,
            products=[(sums[p.total], place[p.left], place[p.right], p) for p in apart.products],
        ), raw

    def _cut(self, raw: Graph) -> tuple[tuple[Equation, ...], list[Spot]]:
        """The equations that the cotangents need, and the results that are kept rather than computed again."""
        n, count = self.consts, len(self.body.inputs)
        later, moving = set(raw.inputs[count:]), set(raw.inputs[n:count])
        for e in raw.equations:
            for group in (later, moving):
                if any(isinstance(v, Var) and v in group for v in e.inputs):
                    group.update(e.outputs)
        needed = {v for v in raw.outputs[len(self.body.outputs) :] if isinstance(v, Var)}
        equations: list[Equation] = []
        kept: list[Spot] = []
        for i in reversed(range(len(raw.equations))):
            e = raw.equations[i]
            hit = [k for k, o in enumerate(e.outputs) if o in needed]
            if not hit:
                continue
            again = is_cheap(e) and not self._few(raw, e)
            if not self.checkpoint and e.outputs[0] in moving and e.outputs[0] not in later and not again:
                kept += [(i, k) for k in hit]
                continue
            equations.append(e)
            needed.update(v for v in e.inputs if isinstance(v, Var))
        return tuple(reversed(equations)), kept

    def _few(self, raw: Graph, e: Equation) -> bool:
        """Whether an equation takes a few entries out of a carry: keeping them may spare keeping the carry."""
        v = e.inputs[0] if e.inputs else None
        return v in raw.inputs[self.consts : self.consts + self.carry] and e.outputs[0].aval.size * _FEW <= v.aval.size

    def _forward(self, raw: Graph) -> Body:
        """The body that also puts out, per step, what the way back needs."""
        saved: list[Var | Literal] = []
        for kind, at in self.full.rows:
            if kind == "carry":
                saved.append(raw.inputs[at])
            elif kind == "kept":
                saved.append(raw.equations[at[0]].outputs[at[1]])
        outputs = (*raw.outputs[: len(self.body.outputs)], *saved)
        return tidy(Graph(raw.inputs[: len(self.body.inputs)], raw.constants, raw.equations, outputs))


class Saved:
    """What the forward pass of a scan leaves for the way back: no more than is read there."""

    def __init__(self, plan: Reverse, args: Sequence[Any], saved: Sequence[Any]) -> None:
        full = plan.full
        self.plan, self.count = plan, len(args)
        self.consts = {k: args[k] for k in full.consts}
        self.rows = {row: args[row[1]] for row in full.rows if row[0] == "xs"}
        self.rows.update(zip([row for row in full.rows if row[0] in ("carry", "kept")], saved, strict=True))

    def pull(self, g: Sequence[Any], scan: Callable[..., Any], params: dict[str, Any]) -> list[Any]:
        plan = self.plan
        n, m = plan.consts, plan.carry
        out, g = [None] * self.count, list(g)
        given = tuple(a and c is not None for a, c in zip(plan.active, g, strict=True))
        if not any(given):
            return out
        back = plan.backward(given)
        for k, aval in enumerate(output_avals(plan.body)):
            if back.given[k] and not given[k]:
                g[k] = zeros((params["length"], *aval.shape) if k >= m else aval.shape, aval.dtype)
        outer = [*back.body.consts, *(self.consts[k] for k in back.consts)]
        ins = [v.aval for v in plan.body.inputs]
        carry = [zeros(ins[k].shape, ins[k].dtype) for k in back.sums]
        carry += [zeros(ins[n + k].shape, ins[n + k].dtype) if g[k] is None else g[k] for k in range(m) if back.flows[k]]
        rows = [g[at] if kind == "given" else self.rows[kind, at] for kind, at in back.rows]
        steps = itertools.compress(rows, back.inside)
        params = {**params, "body": back.body.graph, "consts": len(outer), "carry": len(carry), "reverse": not params["reverse"]}
        answers = iter(scan(*outer, *carry, *steps, **params))
        flows = [n + k for k in range(m) if back.flows[k]]
        for k in (*back.sums, *flows, *back.steps):
            out[k] = next(answers)
        rows += answers
        for k, left, right, product in back.products:
            more = product.of(rows[left], rows[right])
            out[k] = more if out[k] is None else out[k] + more
        return out
