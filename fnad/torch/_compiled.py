"""Backward passes that are compiled: a tape that looks like one before is not walked, but run as one program.

What a tape looks like is its key: operations, parameters, where each operand comes from, shapes and dtypes, which arrays are the same,
what is asked for. The arrays themselves are the arguments of the program, and so are Python floats, but for exponents. The program is
recorded by the very walk that it replaces (`_backward.Walk`), over copies of the nodes whose arrays are traced.

A tape is walked as before if it cannot be keyed: with hooks on its nodes, operations of `torch.autograd.Function` or made for one call,
or values of an outer transform; with `create_graph`; and when its key is met for the first time.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad._config import CHANGED
from fnad.core.aval import Aval
from fnad.core.graph import record
from fnad.core.primitive import REGISTRY
from fnad.core.tracer import Tracer
from fnad.errors import FnadError
from fnad.jit import compile_graph
from fnad.torch._backward import Walk, dense
from fnad.torch._fused import Fused
from fnad.torch._mode import STATE
from fnad.torch._tape import Node, pulls_of
from fnad.torch._tensor import make

_MOST = 256
"""How many keys are kept."""
_STRIDED = 1 << 16
"""Bytes from which on an array that is not contiguous is left to the walk, which does not copy it."""
_MOST_WORK = 1 << 26
"""Bytes of temporaries that a program may need; or as many as what the tape holds."""


_NEVER = -(1 << 62)
"""How often the key of a tape was met that has to be walked."""


class _NoKey(Exception):
    """A tape that cannot be keyed."""


class Outline:
    """What a tape looks like, and the arrays on it."""

    def __init__(self, targets: Sequence[tuple[Any, int]], grads: Sequence[Any], wanted: Sequence[tuple[Any, int]] | None) -> None:
        self.nodes = _nodes([t for t, _ in targets])
        self.number = {id(node): k for k, node in enumerate(self.nodes)}
        self.leaves: list[Any] = []
        self.arrays: list[Any] = []
        self.avals: list[Any] = []
        """Per argument of the program: shape and dtype, or None for a Python float."""
        self.place: dict[int, int] = {}
        self.rows: list[tuple[list[Any], Any]] = []
        """Per node: its operands and its output, as places in `arrays`, `_Unread` or numbers."""
        self.seeds = [(self.at(t, k), self.value(g, True)) for (t, k), g in zip(targets, grads, strict=True)]
        parts = [self.node(node) for node in self.nodes]
        self.wanted = None if wanted is None else [self.at(t, k) for t, k in wanted]
        self.key = (
            *(tuple(parts), tuple(self.avals), tuple(self.seeds)),
            *(None if self.wanted is None else tuple(self.wanted), tuple([t._data.dtype for t in self.leaves])),
        )

    def at(self, target: Any, k: int) -> tuple[int, int]:
        """A place that a cotangent goes to: the number of a node, or of a leaf, counted down from -1."""
        n = self.number.get(id(target))
        return (self.leaf(target) if n is None else n), k

    def leaf(self, target: Any) -> int:
        if isinstance(target._data, Tracer):
            raise _NoKey
        self.leaves.append(target)
        n = self.number[id(target)] = -len(self.leaves)
        return n

    def array(self, x: Any) -> int:
        """The argument that an array becomes."""
        if x.dtype.kind not in "biufc" or (not x.flags.c_contiguous and x.nbytes > _STRIDED):
            raise _NoKey
        k = self.place[id(x)] = len(self.arrays)
        self.arrays.append(x)
        self.avals.append((x.shape, x.dtype))
        return k

    def value(self, x: Any, baked: bool) -> Any:
        cls = x.__class__
        if cls is np.ndarray:
            k = self.place.get(id(x))
            return self.array(x) if k is None else k
        if cls is float and not baked:
            self.arrays.append(x)
            self.avals.append(None)
            return len(self.arrays) - 1
        if cls is tuple:
            return _Unread(x)
        if cls in (int, float, bool, complex):
            return _Number(x)
        if isinstance(x, np.generic):
            return self.array(np.asarray(x))
        raise _NoKey

    def node(self, node: Any) -> Any:
        primitive = node.primitive
        lasting = primitive.__class__ is Fused or bool(REGISTRY.get(primitive.name) is primitive)  # not made for one call
        if node.hooks or node.pulls is None or not lasting:
            raise _NoKey
        for counter, version in node.guards:
            if counter[0] != version:
                raise _NoKey
        place, number, baked = self.place, self.number, primitive.name == "power"
        values = []
        for v in node.saved[0]:
            k = place.get(id(v)) if v.__class__ is np.ndarray else None
            values.append(self.value(v, baked) if k is None else k)
        outs = node.outs
        several = outs.__class__ is list
        out = None if node.out is None else tuple([self.value(o, True) for o in node.out]) if several else self.value(node.out, True)
        self.rows.append((values, out))
        edges: list[Any] = []
        for e in node.edges:
            if e is not None:
                n = number.get(id(e[0]))
                edges += (self.leaf(e[0]) if n is None else n), e[1]
            else:
                edges.append(None)
        params = tuple([(k, v.__class__, repr(v) if v.__class__ is float else v) for k, v in node.params.items()]) if node.params else ()
        return primitive, params, tuple(values), out, tuple(outs) if several else outs, tuple(edges)


class _Unread(tuple[Any, ...]):
    """Shape and dtype of a value that is not read."""

    __slots__ = ()


class _Number:
    """A number that is part of the key; equal ones of different types, and zeros of different signs, are different."""

    __slots__ = ("text", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.text = value, repr(value)

    def __eq__(self, other: object) -> bool:
        return other.__class__ is _Number and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def _nodes(targets: list[Any]) -> list[Any]:
    """All nodes that targets depend on, the youngest first."""
    seen: set[int] = set()
    found: list[Any] = []
    while targets:
        node = targets.pop()
        if node.__class__ is Node and id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            targets += [e[0] for e in node.edges if e is not None]
    found.sort(key=_seq, reverse=True)
    return found


_seq = operator.attrgetter("seq")


class Program:
    """The compiled backward pass of one key."""

    def __init__(self, outline: Outline) -> None:
        self.results: list[int] = []
        """Where the results go: numbers of leaves, in the order in which the walk meets them; or positions among what is asked for."""
        self.uses = 0
        avals = [Aval((), np.dtype(np.float64), True) if a is None else Aval(*a) for a in outline.avals]
        before, STATE.recording = STATE.recording, False
        try:
            graph = record(lambda *given: self._walk(outline, given), avals, "backward")
        finally:
            STATE.recording = before
        self.executable = compile_graph(graph, frozenset())

    def _walk(self, outline: Outline, given: Sequence[Any]) -> list[Any]:
        def value(v: Any) -> Any:
            if v.__class__ is int:
                return given[v]
            return v.value if v.__class__ is _Number else np.broadcast_to(np.zeros((), v[1]), v[0])

        leaves = [make(np.broadcast_to(np.zeros((), t._data.dtype), t._data.shape)) for t in outline.leaves]
        nodes: list[Any] = [None] * len(outline.nodes)

        def target(place: tuple[int, int]) -> tuple[Any, int]:
            n, k = place
            return (nodes[n] if n >= 0 else leaves[-1 - n]), k

        for n in reversed(range(len(nodes))):  # the oldest first, so that they are numbered as before
            node, (values, out) = outline.nodes[n], outline.rows[n]
            edges = [None if e is None else target(outline.at(*e)) for e in node.edges]
            args = [value(v) for v in values]
            if out.__class__ is tuple:
                result: Any = tuple(map(value, out))
            elif out is None and node.outs.__class__ is list:
                result = tuple([np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in node.outs])
            else:
                result = None if out is None else value(out)
            nodes[n] = Node(node.primitive, node.params, edges, pulls_of(node.primitive, node.params, edges, args, result), node.outs)
        walk = Walk(True, False, None if outline.wanted is None else [target(w) for w in outline.wanted])
        for place, g in outline.seeds:
            walk.seed(*target(place), given[g])
        walk.run()
        if outline.wanted is not None:
            walk.finish()
            found = [dense(walk.found.get((id(t), k))) for t, k in map(target, outline.wanted)]
            self.results = [k for k, g in enumerate(found) if g is not None]
            return [g for g in found if g is not None]
        number = {id(x): k for k, x in enumerate(leaves)}
        self.results = [number[i] for i in walk.leaves]
        return [dense(g) for _, g in walk.leaves.values()]

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        self.uses += 1
        outs: list[Any] | None = self.executable.run(arrays)
        return self.executable.convert(arrays) if outs is None else outs


class _Cache:
    """Keys in the order of their last use, each with how often it was met, or its program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Any, Any] = OrderedDict()

    def find(self, outline: Outline) -> Program | None:
        """The program of a tape; None if it is to be walked."""
        key = outline.key
        with self._lock:
            found = self._known.get(key)
            if found.__class__ is Program:
                self._known.move_to_end(key)
                return found
            met = 1 if found is None else found + 1
            self._known[key] = met
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
            if met < self._often():
                return None
        program = _made(outline)
        with self._lock:
            self._known[key] = _NEVER if program is None else program
        return program

    def _often(self) -> int:
        """How often a key must be met: twice; more often while programs are made that are hardly used."""
        return 2 + sum(p.__class__ is Program and p.uses < 4 for p in self._known.values()) // 8


def _made(outline: Outline) -> Program | None:
    """The program of a tape; None if its pullbacks look at values, or if it needs much more memory than the walk."""
    try:
        program = Program(outline)
    except FnadError:
        return None
    held = sum(x.nbytes for x in outline.arrays if x.__class__ is np.ndarray)
    return program if program.executable.work_bytes <= max(_MOST_WORK, held) else None


_cache = _Cache()


def attempt(targets: Sequence[tuple[Any, int]], grads: Sequence[Any], retain: bool, wanted: Sequence[tuple[Any, int]] | None) -> Any:
    """Run a backward pass as a program.

    Args:
        targets: Where it begins.
        grads: The cotangents there.
        retain: Whether nodes can be used again afterwards.
        wanted: What is asked for; None for all leaves.

    Returns:
        Pairs of a leaf and its gradient, in the order in which they are known; or of what is asked for, None where there is none. None if
        the tape is to be walked.
    """
    if CHANGED.get():
        return None
    try:
        outline = Outline(targets, grads, wanted)
        program = _cache.find(outline)
    except (_NoKey, TypeError):  # TypeError: a parameter that cannot be hashed
        return None
    if program is None:
        return None
    outs = [x if x.__class__ is np.ndarray else np.asarray(x) for x in program.run(outline.arrays)]
    if not retain:
        for node in outline.nodes:
            node.release()
    if wanted is None:
        return [(outline.leaves[k], g) for k, g in zip(program.results, outs, strict=True)]
    found: list[Any] = [None] * len(wanted)
    for k, g in zip(program.results, outs, strict=True):
        found[k] = g
    return found
