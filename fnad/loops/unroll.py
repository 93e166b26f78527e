"""Short loops of known length written out, so that the iteration around them keeps nothing for the backward sweep."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from fnad.loops.emit import Names
from fnad.loops.ir import BOOL, Block, Const, For, Function, If, Item, Op, Operand, Value, While

_TRIPS, _OPERATIONS = 8, 120

_FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def unrolled(fn: Function, names: Names) -> Function:
    """A copy of the function without loops of few iterations whose number is known; arguments and captured arrays stay."""
    copier = Copier(names)
    body = copier.block(fn.body)
    returns = [copier.get(r) for r in fn.returns]
    return Function(fn.name, fn.args, body, returns, fn.template, fn.written, fn.source, fn.captured)


def _trips(loop: For) -> range | None:
    bounds = (loop.lo, loop.hi, loop.step)
    if loop.stop is not None or not all(isinstance(x, Const) for x in bounds):
        return None
    lo, hi, step = (x.value for x in bounds)  # type: ignore[union-attr]
    return range(lo, hi, step) if step else None


def _short(loop: For) -> bool:
    trips = _trips(loop)
    if trips is None or len(trips) > _TRIPS:
        return False
    return len(trips) * _size(loop.body) <= _OPERATIONS


def _size(block: Block) -> int:
    total = 0
    for item in block.items:
        if isinstance(item, For):
            trips = _trips(item)
            total += (len(trips) if trips is not None else 1000) * _size(item.body)
        elif isinstance(item, While):
            total += 1000
        elif isinstance(item, If):
            total += 1 + _size(item.then) + _size(item.orelse)
        else:
            total += 1
    return total


class Copier:
    """Copies items; every copy of a value has a name of its own."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.new: dict[Value, Operand] = {}
        self.inside = 0

    def get(self, x: Any) -> Any:
        return self.new.get(x, x) if isinstance(x, Value) else x

    def _copy(self, v: Value) -> Value:
        if not self.inside:
            self.new.pop(v, None)
            return v
        twin = Value(self.names.fresh(v.name), v.type, v.line)
        self.new[v] = twin
        return twin

    def block(self, block: Block) -> Block:
        items: list[Item] = []
        for item in block.items:
            self._item(item, items)
        return Block(items)

    def _item(self, item: Item, items: list[Item]) -> None:
        if isinstance(item, Op):
            self._op(item, items)
        elif isinstance(item, If):
            self._if(item, items)
        elif isinstance(item, For) and _short(item):
            self._unroll(item, items)
        else:
            items.append(self._loop(item))

    def _op(self, op: Op, items: list[Item]) -> None:
        args = tuple(map(self.get, op.args))
        fold = _FOLDS.get(op.kind)
        whole = all(isinstance(a, Const) and a.type.dtype.kind in "biu" for a in args)
        if fold is not None and op.out is not None and whole and not (op.kind in ("floordiv", "mod") and not args[1].value):
            value = fold(args[0].value, args[1].value)
            self.new[op.out] = Const(value, BOOL if isinstance(value, bool) else op.out.type)  # type: ignore[arg-type]
            return
        items.append(Op(op.kind, args, None if op.out is None else self._copy(op.out), op.attrs, op.line))

    def _if(self, item: If, items: list[Item]) -> None:
        condition = self.get(item.condition)
        if isinstance(condition, Const):
            chosen, yields = (item.then, item.then_yields) if condition.value else (item.orelse, item.else_yields)
            for inner in chosen.items:
                self._item(inner, items)
            for y, r in zip(yields, item.results, strict=True):
                self.new[r] = self.get(y)
            return
        then, orelse = self.block(item.then), self.block(item.orelse)
        ends = [*map(self.get, item.then_yields)], [*map(self.get, item.else_yields)]
        items.append(If(condition, then, orelse, ends[0], ends[1], [*map(self._copy, item.results)], item.line))

    def _unroll(self, loop: For, items: list[Item]) -> None:
        current = [self.get(i) for i in loop.inits]
        self.inside += 1
        for k in _trips(loop) or ():
            self.new[loop.iv] = Const(k, loop.iv.type)  # type: ignore[arg-type]
            self.new.update(zip(loop.params, current, strict=True))
            for item in loop.body.items:
                self._item(item, items)
            current = [self.get(y) for y in loop.yields]
        self.inside -= 1
        self.new.update(zip(loop.results, current, strict=True))

    def apart(self, loop: For) -> For:
        """A copy of a loop in which every value has a name of its own, its results too."""
        self.inside += 1
        copy = self._loop(loop)
        self.inside -= 1
        assert isinstance(copy, For)
        return copy

    def _loop(self, item: For | While) -> Item:
        inits = [self.get(i) for i in item.inits]
        if isinstance(item, For):
            lo, hi, step = (self.get(x) for x in (item.lo, item.hi, item.step))
            iv = self._copy(item.iv)
        params = [self._copy(p) for p in item.params]
        head = self.block(item.head) if isinstance(item, While) else Block()
        body = self.block(item.body)
        yields, stop = [self.get(y) for y in item.yields], self.get(item.stop)
        condition = self.get(item.condition) if isinstance(item, While) else None
        results = [self._copy(r) for r in item.results]
        count = None if item.count is None else self._copy(item.count)
        if isinstance(item, While):
            assert count is not None
            return While(head, condition, body, params, inits, yields, results, count, stop, item.line)  # type: ignore[arg-type]
        return For(iv, lo, hi, step, body, params, inits, yields, results, stop, count, item.parallel, item.line)
