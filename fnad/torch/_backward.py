"""The walk over the tape."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.cotangent import Scattered
from fnad.core.primitive import Joint
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError
from fnad.torch._mode import STATE
from fnad.torch._tape import Call, Node, Own, pop, push
from fnad.torch._tensor import make
from fnad.transforms.vjp import conform


class Walk:
    """One backward pass.

    Args:
        retain: Whether nodes can be used again afterwards.
        create: Whether the pass is recorded itself.
        wanted: The (target, number of output) pairs whose cotangents are asked for; None for all leaves.
    """

    def __init__(self, retain: bool, create: bool, wanted: Sequence[tuple[Any, int]] | None) -> None:
        self.retain = retain
        self.call = Call("backward") if create else None
        self.wanted = None if wanted is None else {(id(t), k) for t, k in wanted}
        self.needed: set[int] | None = None
        self.heap: list[Any] = []
        self.cotangents: dict[Any, Any] = {}
        self.found: dict[tuple[int, int], Any] = {}
        self.leaves: dict[int, list[Any]] = {}
        self.owned: set[Any] = set()
        """Places whose cotangent is an array that only this pass holds."""

    def seed(self, target: Any, k: int, g: Any) -> None:
        if self.wanted is not None:
            self.needed = _on_the_way(target, self.wanted, self.needed or set())
        self.add(target, k, g)

    def add(self, target: Any, k: int, g: Any) -> None:
        if g is None:
            return
        if target.__class__ is Node:
            if self.needed is not None and id(target) not in self.needed:
                return
            outs = target.outs
            if outs.__class__ is list:
                have = self.cotangents.get(target)
                if have is None:
                    self.cotangents[target] = have = [None] * len(outs)
                    push(self.heap, target)
                have[k] = _sum(have[k], g, outs[k].dtype, None)
                return
            have = self.cotangents.get(target)
            if have is None:
                push(self.heap, target)
            self.cotangents[target] = _sum(have, g, outs, self.owned, target)
        elif self.wanted is None or (id(target), 0) in self.wanted:
            entry = self.leaves.get(id(target))
            if entry is None:
                entry = self.leaves[id(target)] = [target, None]
            entry[1] = _sum(entry[1], g, target._data.dtype, self.owned, target)

    def run(self) -> None:
        with np.errstate(all="ignore"):
            while self.heap:
                self.step(pop(self.heap))

    def step(self, node: Node) -> None:
        g = self.cotangents.pop(node)
        several = node.outs.__class__ is list
        if several:
            g = [dense(x) for x in g]
        elif g.__class__ is Scattered:
            g = g.dense()
        if node.hooks is not None:
            g = self.call_hooks(node, g, several)
        if self.wanted is not None:
            for k in range(len(node.outs)) if several else (0,):
                if (id(node), k) in self.wanted:
                    self.found[id(node), k] = g[k] if several else g
            if node.pulls is None and not any(e is not None and self.wants(e) for e in node.edges):
                return
        node.check()
        own = node.primitive.__class__ is Own
        pulls = node.pulls if self.call is None or own else node.traced_pulls(self.call)
        if several and not node.primitive.selective:
            g = [np.zeros(a.shape, a.dtype) if x is None else x for x, a in zip(g, node.outs, strict=True)]
        if several:
            g = tuple(g)
        if own or pulls.__class__ is Joint:
            answers = pulls(self, g) if own else pulls.pull(g)
            for k, e in enumerate(node.edges):
                if e is not None:
                    self.add(e[0], e[1], answers[k])
        else:
            for e, pull in zip(node.edges, pulls, strict=True):
                if e is not None and pull is not None and (self.needed is None or self.wants(e)):
                    self.add(e[0], e[1], pull(g))
        if not self.retain:
            node.release()

    def wants(self, e: tuple[Any, int]) -> bool:
        target = e[0]
        if target.__class__ is Node:
            return self.needed is None or id(target) in self.needed
        return self.wanted is None or (id(target), 0) in self.wanted

    def call_hooks(self, node: Node, g: Any, several: bool) -> Any:
        for k, hook in list(node.hooks.values()):
            x = g[k] if several else g
            if x is None:
                continue
            answer = hook(self.leave(x))
            if answer is not None:
                x = answer._data if self.call is None else self.call.enter(answer)
                if several:
                    g = [*g[:k], x, *g[k + 1 :]]
                else:
                    g = x
        return g

    def leave(self, g: Any) -> Any:
        """A cotangent as a tensor."""
        if self.call is not None:
            return self.call.leave(g)
        return make(np.asarray(g) if not isinstance(g, Tracer) else g)

    def finish(self) -> None:
        """Give every leaf what has come to it."""
        for target, g in self.leaves.values():
            if self.wanted is None:
                self.accumulate(target, _own(dense(g)))
            else:
                self.found[id(target), 0] = self.hooked(target, dense(g))

    def hooked(self, target: Any, g: Any) -> Any:
        for hook in list((target._hooks or {}).values()):
            answer = hook(self.leave(g))
            if answer is not None:
                g = answer._data if self.call is None else self.call.enter(answer)
        return g

    def accumulate(self, target: Any, g: Any) -> None:
        """Add to the gradient of a leaf an array that nobody else holds."""
        if STATE.known is not None and id(target) not in STATE.known and not isinstance(target._data, Tracer):
            raise ArgumentError(
                "torch.compile: the function reaches a tensor that requires gradients in a way that is not seen",
                got={"tensor": f"{target._data.dtype}{list(target._data.shape)}"},
                fix="hold it in a module, in a variable that the function names, or pass it as an argument",
            )
        if target._hooks:
            g = np.array(self.hooked(target, g)) if self.call is None else self.hooked(target, g)
        have = target._grad
        if self.call is not None:
            new = self.call.leave(g)
            target._grad = new if have is None and new._req else _private(new) if have is None else have + new
        elif have is None:
            target._grad = make(g)
        elif have._req and STATE.recording:
            target._grad = have + make(np.asarray(g))
        else:
            if isinstance(g, Tracer) or isinstance(have._data, Tracer):
                have._data = have._data + g
            else:
                np.add(have._data, g, out=have._data)
            have._counter[0] += 1
        for hook in list((target._after or {}).values()):
            hook(target)


def _private(t: Any) -> Any:
    return make(_own(t._data))


def dense(g: Any) -> Any:
    return g.dense() if g.__class__ is Scattered else g


def _sum(have: Any, g: Any, dtype: Any, owned: set[Any] | None, place: Any = None) -> Any:
    """The sum of two cotangents of one value; the first may be None."""
    try:
        if g.dtype is not dtype and g.dtype != dtype:
            g = conform(g, dtype)
    except AttributeError:  # a Python scalar
        g = dtype.type(g)
    if have is None:
        return g
    if g.__class__ is Scattered and not isinstance(have, Tracer):
        if owned is None or place not in owned:
            have = have.dense() if have.__class__ is Scattered else np.array(have, order="C")
            if owned is not None:
                owned.add(place)
        g.add_into(have)
        return have
    if owned is not None:
        owned.discard(place)
    return dense(have) + dense(g)


_FRESH = 4  # the names on the way from the walk to here, and nothing else


def _own(g: Any) -> Any:
    """An array that shares memory with nothing."""
    if g.__class__ is np.ndarray and g.flags.owndata and g.flags.writeable and g.flags.c_contiguous and sys.getrefcount(g) <= _FRESH:
        return g
    return np.array(g, order="C") if not isinstance(g, Tracer) else g


def _on_the_way(target: Any, wanted: set[tuple[int, int]], known: set[int]) -> set[int]:
    """The nodes through which cotangents come to what is wanted (by identity)."""
    seen: dict[int, Node] = {}
    stack = [target]
    while stack:
        node = stack.pop()
        if node.__class__ is not Node or id(node) in seen:
            continue
        seen[id(node)] = node
        stack.extend(e[0] for e in node.edges if e is not None)
    for node in sorted(seen.values(), key=lambda n: n.seq):
        mine = any((id(node), k) in wanted for k in range(len(node.outs) if node.outs.__class__ is list else 1))
        if mine or any(e is not None and (id(e[0]) in known or (id(e[0]), e[1]) in wanted) for e in node.edges):
            known.add(id(node))
    return known
