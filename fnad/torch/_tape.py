"""Define by run: each operation on tensors that require gradients leaves a node, and `backward` walks the nodes.

A node holds the pullbacks of one primitive, the same that `fnad.vjp` drives. It refers to the nodes its operands came from, so a graph
lives as long as a tensor that came out of it. Nodes are numbered in the order of their creation: the walk takes the youngest first, and
needs no search before it.

For derivatives of derivatives (`create_graph`) a node also keeps what its pullbacks read. They are then made anew from these values,
traced, so that the walk itself is recorded. What a node keeps is compared with the counters of changes in place.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.primitive import REGISTRY, Joint, Primitive
from fnad.core.tracer import Trace, Tracer, ValueTracer
from fnad.torch import _views
from fnad.torch._tensor import Tensor, make

_number = itertools.count().__next__
_NAMES = {
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "negative": "Neg",
    "power": "Pow",
    "absolute": "Abs",
    "static_index": "Select",
    "guarded_multiply": "Mul",
    "matmul": "Mm",
}

Edge = tuple[Any, int] | None
"""Where a cotangent goes: a node and the number of its output, or a leaf and 0."""


class Node:
    """One operation on the tape."""

    __slots__ = ("__weakref__", "edges", "guards", "hooks", "keeps", "out", "outs", "params", "primitive", "pulls", "saved", "seq")

    outs: Any
    """The dtype of the only output; or, of several, a list of their abstract values."""

    def __init__(self, primitive: Any, params: dict[str, Any], edges: list[Edge], pulls: Any, outs: Any) -> None:
        self.primitive, self.params, self.edges, self.pulls, self.outs = primitive, params, edges, pulls, outs
        self.saved: Any = None
        """The operands, with shape and dtype in place of those that the pullbacks do not read; and their counters."""
        self.out: Any = None
        self.keeps = False
        """Whether there is something to let go after the backward pass."""
        self.guards: Any = ()
        self.hooks: Any = None
        self.seq = _number()

    def name(self) -> str:
        name = self.primitive.name
        return f"{_NAMES.get(name) or ''.join(part.capitalize() for part in name.split('_'))}Backward0"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        return tuple((None, 0) if e is None else (e[0] if e[0].__class__ is Node else _AccumulateGrad(e[0]), e[1]) for e in self.edges)

    def __repr__(self) -> str:
        return f"<{self.name()} object>"

    def check(self) -> None:
        """Raise if something that the pullbacks read has been changed, or let go."""
        for counter, version in self.guards:
            if counter[0] != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: it was an operand or "
                    f"the output of {self.primitive.name}, is at version {counter[0]}; expected version {version} instead. Hint: clone the "
                    "tensor before it is changed, or write x = x + 1 instead of x += 1."
                )
        if self.pulls is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
                "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
                "if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
            )

    def release(self) -> None:
        if self.keeps:
            self.pulls = self.saved = self.out = None
            self.guards = ()

    def traced_pulls(self, call: Call) -> Any:
        """Pullbacks whose values are traced, so that what they compute is recorded."""
        if not self.keeps:
            return self.pulls
        values, counters = self.saved
        args = []
        for v, e, counter in zip(values, self.edges, counters, strict=True):
            x = np.broadcast_to(np.zeros((), v[1]), v[0]) if v.__class__ is tuple else v
            if counter is not None:
                call.counters[id(_root(x))] = counter
            args.append(x if e is None else TapeTracer(call, x, *e))
        return pulls_of(self.primitive, self.params, self.edges, args, self._traced_output(call))

    def _traced_output(self, call: Call) -> Any:
        if self.outs.__class__ is list:
            if self.out is None:
                return tuple(np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in self.outs)
            return tuple(TapeTracer(call, o, self, k) for k, o in enumerate(self.out))
        out = self.out
        if out.__class__ is tuple:
            return np.broadcast_to(np.zeros((), out[1]), out[0])
        return TapeTracer(call, out, self, 0)


def pulls_of(primitive: Any, params: dict[str, Any], edges: list[Edge], args: list[Any], out: Any) -> Any:
    """The pullbacks of an operation anew, from its operands and its output."""
    if type(primitive).forward is not Primitive.forward and not primitive.has_rule("vjp"):
        asked = [e is not None for e in edges]
        return (primitive.forward(args, params, asked) if primitive.selective else primitive.forward(args, params))[1]
    return primitive.vjp(out, *args, **params)


class Own(Primitive):
    """The operation of a `torch.autograd.Function`; its node's `pulls` is one function `(walk, cotangents) -> cotangents`."""

    multiple = True

    def __init__(self, name: str, zeros: bool = True) -> None:
        super().__init__(name, register=False)
        self.selective = not zeros


class _AccumulateGrad:
    """Stands for a leaf among `next_functions`."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable


_needs: dict[Any, tuple[tuple[int, ...], bool]] = {}


def _keeps(primitive: Primitive, asked: tuple[bool, ...]) -> tuple[tuple[int, ...], bool]:
    found = _needs.get((primitive, asked))
    if found is None:
        found = primitive.keeps(asked, len(asked))
        if type(primitive).forward is not Primitive.forward and not primitive.has_rule("vjp"):
            found = tuple(range(len(asked))), found[1]
        if REGISTRY.get(primitive.name) is primitive:  # others are made for one call
            _needs[primitive, asked] = found
    return found


def record(
    primitive: Primitive, values: Sequence[Any], params: dict[str, Any], edges: list[Edge], counters: Sequence[Any], fresh: list[int]
) -> tuple[Any, Node | None]:
    """Compute, and leave a node.

    Args:
        primitive: The operation.
        values: Plain operands.
        params: Its parameters.
        edges: For each operand, where its cotangent goes; None if it is not asked for.
        counters: For each operand, the counter of its changes in place; None if nobody can change it.
        fresh: The counter of the output.
    """
    if primitive.selective:
        out, pulls = primitive.forward(values, params, [e is not None for e in edges])  # type: ignore[call-arg]
    else:
        out, pulls = primitive.forward(values, params)
    if pulls.__class__ is not Joint and all(e is None or p is None for e, p in zip(edges, pulls, strict=True)):
        return out, None
    several = primitive.multiple
    node = Node(primitive, params, edges, pulls, [aval_of(o) for o in out] if several else aval_of(out).dtype)
    positions, reads_out = _keeps(primitive, tuple([e is not None for e in edges]))
    if positions or reads_out:
        guards = [(counters[k], counters[k][0]) for k in positions if counters[k] is not None]
        if reads_out:
            guards.append((fresh, 0))
            node.out = out
        node.guards = guards
        node.keeps = True
    if not reads_out and not several:
        node.out = (aval_of(out).shape, node.outs)
    saved = values
    if len(positions) < len(values):
        saved = [v if k in positions or not hasattr(v, "shape") else (v.shape, v.dtype) for k, v in enumerate(values)]
    node.saved = saved, counters
    return out, node


class TapeTracer(ValueTracer):
    """A tensor that requires gradients, inside of a function of fnad."""

    __slots__ = ("k", "target")

    def __init__(self, trace: Call, value: Any, target: Any, k: int) -> None:
        self._trace, self.value, self.target, self.k = trace, value, target, k


def _root(a: Any) -> Any:
    """The array that owns the memory."""
    return a if a.__class__ is not np.ndarray or a.base is None else a.base


class Call(Trace):
    """One call of a function of fnad with tensors: operations on them leave nodes."""

    __slots__ = ("counters", "given", "tracing")

    def __init__(self, name: str, function: Any = None, tracing: bool = True) -> None:
        super().__init__(name, function)
        self.tracing = tracing
        self.counters: dict[int, list[int]] = {}
        self.given: dict[int, Any] = {}

    def enter(self, x: Any) -> Any:
        """What a function receives in place of an argument: a tracer if it requires gradients, otherwise the array."""
        if isinstance(x, Tensor):
            if x._view is not None:
                _views.refresh(x)
            data = x._data
            if data.__class__ is np.ndarray:
                self.counters[id(_root(data))] = x._counter
                self.given[id(data)] = x
            return TapeTracer(self, data, x if x._node is None else x._node, x._k) if x._req and self.tracing else data
        if x.__class__ in (tuple, list):
            return x.__class__([self.enter(y) for y in x])
        return x

    def leave(self, x: Any) -> Any:
        """A result as a tensor; one that was an argument comes back as that tensor."""
        if x.__class__ is TapeTracer and x._trace is self:
            have = self.given.get(id(x.value))
            if have is not None and have._req:
                return have
            if x.target.__class__ is not Node:
                return x.target
            t = self._fresh(x.value)
            t._node, t._k, t._req = x.target, x.k, True
            return t
        if isinstance(x, np.ndarray | np.generic | Tracer):
            have = self.given.get(id(x))
            return self._fresh(x) if have is None else have
        if x.__class__ in (tuple, list):
            return x.__class__([self.leave(y) for y in x])
        return tuple(self.leave(y) for y in x) if isinstance(x, tuple) else x

    def _fresh(self, value: Any) -> Any:
        if isinstance(value, Tracer):
            return make(value)
        value = np.asarray(value)
        root = id(_root(value))
        counter = self.counters.get(root)
        if counter is not None and any(id(_root(t._data)) == root for t in self.given.values()):  # a view of an argument
            return make(value.copy())
        if not value.flags.writeable:
            value = value.copy()
        return make(value, counter)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise self.leaked()
        values = [a.value if a.__class__ is TapeTracer else a for a in args]
        if primitive.constant:
            return primitive(*values, **params)
        edges = [(a.target, a.k) if a.__class__ is TapeTracer else None for a in args]
        counters = [self.counter(v) if v.__class__ is np.ndarray else None for v in values]
        fresh = [0]
        out, node = record(primitive, values, params, edges, counters, fresh)
        if node is None:
            return out
        if primitive.multiple:
            return tuple(TapeTracer(self, o, node, k) for k, o in enumerate(out))
        if node.guards and out.__class__ is np.ndarray:
            self.counters.setdefault(id(_root(out)), fresh)
        return TapeTracer(self, out, node, 0)

    def counter(self, a: Any) -> list[int]:
        """The counter of an array; of one that was made inside, which may yet leave, a new one."""
        return self.counters.setdefault(id(_root(a)), [0])


def apply(primitive: Primitive, args: Sequence[Any], params: dict[str, Any], record_it: bool) -> Any:
    """One primitive on tensors and numbers: the short way, without a trace."""
    values: list[Any] = []
    counters: list[Any] = []
    edges: list[Edge] = []
    for a in args:
        if isinstance(a, Tensor):
            if a._view is not None:
                _views.refresh(a)
            values.append(a._data)
            counters.append(a._counter)
            edges.append(((a, 0) if a._node is None else (a._node, a._k)) if a._req else None)
        else:
            values.append(a)
            counters.append(None)
            edges.append(None)
    if not record_it or primitive.constant or edges.count(None) == len(edges):
        out = primitive(*values, **params)
        return make(out if out.__class__ is np.ndarray or isinstance(out, Tracer) else np.asarray(out))
    fresh = [0]
    out, node = record(primitive, values, params, edges, counters, fresh)
    t = make(out if out.__class__ is np.ndarray or isinstance(out, Tracer) else np.asarray(out), fresh)
    if node is not None:
        t._node, t._req = node, True
    return t


def push(heap: list[Any], node: Node) -> None:
    heapq.heappush(heap, (-node.seq, node))


def pop(heap: list[Any]) -> Node:
    return heapq.heappop(heap)[1]
