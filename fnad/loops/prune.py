"""Removing what nobody needs from a program of the loop language: operations, versions of names, stores, whole loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from fnad.loops.ir import Array, Block, For, If, Item, Op, Operand, Value, While, blocks

_VARIABLES = frozenset({"set", "acc"})
_CHANGES = frozenset({"acc_at", "call", "keep", "push", "rewind"})


class Pruner:
    """Finds what the results of a program depend on.

    Args:
        roots: The memory that an array may show. Stores to memory that nothing needed reads are not needed; an array
            without roots (a shadow) is read by the caller.
        raises: Whether the user's own errors are an effect.
    """

    def __init__(self, block: Block, returns: Iterable[Operand], roots: Callable[[Value], frozenset[Value]], raises: bool) -> None:
        self.block, self.roots, self.raises = block, roots, raises
        self.makers: dict[Value, list[Item]] = defaultdict(list)
        self.around: dict[int, Item | None] = {}
        self.writers: dict[Value, list[Op]] = defaultdict(list)
        self.values: set[Value] = set()
        self.items: set[int] = set()
        self.memory: set[Value] = set()
        self._todo: list[Value] = []
        first: list[Item] = []
        self._collect(block, None, first)
        for r in returns:
            self._need(r)
            self._look(r)
        for item in first:
            self._keep(item)
        while self._todo:
            v = self._todo.pop()
            for item in self.makers.get(v, ()):
                self._make(item, v)

    def prune(self) -> None:
        self._sweep(self.block)

    def _collect(self, block: Block, around: Item | None, first: list[Item]) -> None:
        for item in block.items:
            self.around[id(item)] = around
            if isinstance(item, Op):
                self._collect_op(item, first)
                continue
            for v in (*item.results, *getattr(item, "params", ()), getattr(item, "count", None), getattr(item, "iv", None)):
                if v is not None:
                    self.makers[v].append(item)
            for inner in blocks(item):
                self._collect(inner, item, first)
            if isinstance(item, While) and around is None and self.raises:
                first.append(item)

    def _collect_op(self, op: Op, first: list[Item]) -> None:
        if op.out is not None:
            self.makers[op.out].append(op)
        for v in op.attrs.get("values", ()) if op.kind == "pop" else ():
            self.makers[v].append(op)
        if op.kind in _VARIABLES:
            self.makers[op.args[0]].append(op)  # type: ignore[index]
        elif op.kind in _CHANGES or (op.kind == "raise" and self.raises):
            first.append(op)
        elif op.kind == "store":
            roots = self.roots(op.args[0])  # type: ignore[arg-type]
            for root in roots:
                self.writers[root].append(op)
            if not roots:
                first.append(op)

    def _need(self, x: Operand | None) -> None:
        if isinstance(x, Value) and x not in self.values:
            self.values.add(x)
            self._todo.append(x)

    def _look(self, x: Operand | None) -> None:
        """The contents of an array are needed."""
        if isinstance(x, Value) and isinstance(x.type, Array):
            for root in self.roots(x):
                if root not in self.memory:
                    self.memory.add(root)
                    for op in self.writers[root]:
                        self._keep(op)

    def _keep(self, item: Item) -> None:
        """The item runs, and so does what is around it."""
        if id(item) in self.items:
            return
        self.items.add(id(item))
        if isinstance(item, Op):
            for x in item.args:
                self._need(x)
                if item.kind not in ("view", "transpose", "reshape", "dim", "store"):
                    self._look(x)
        elif isinstance(item, If):
            self._need(item.condition)
        else:
            bounds = (item.lo, item.hi, item.step) if isinstance(item, For) else (item.condition,)
            for x in (*bounds, item.stop):
                self._need(x)
        around = self.around[id(item)]
        if around is not None:
            self._keep(around)

    def _make(self, item: Item, v: Value) -> None:
        self._keep(item)
        if isinstance(item, If):
            k = item.results.index(v)
            self._need(item.then_yields[k])
            self._need(item.else_yields[k])
        elif isinstance(item, For | While):
            for k, (p, r) in enumerate(zip(item.params, item.results, strict=True)):
                if v is p or v is r:
                    for x in (p, r, item.inits[k], item.yields[k]):
                        self._need(x)

    def _sweep(self, block: Block) -> None:
        block.items[:] = [i for i in block.items if id(i) in self.items]
        for item in block.items:
            if isinstance(item, Op):
                continue
            keep = [k for k, r in enumerate(item.results) if r in self.values]
            for part in ("results", "params", "inits", "yields", "then_yields", "else_yields"):
                if hasattr(item, part):
                    setattr(item, part, [getattr(item, part)[k] for k in keep])
            for inner in blocks(item):
                self._sweep(inner)
