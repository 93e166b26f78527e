"""Forward mode: a loop function -> the loop function that also computes the tangents of its results.

Each operation is followed by its tangent; arrays have shadows that are allocated, viewed, swapped and written as they are.
The result is an ordinary loop function, so it can be transformed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.loops.analysis import VIEWS, Activity, Memory, is_array, is_float
from fnad.loops.derivatives import rule_of
from fnad.loops.emit import Builder, Names, is_number
from fnad.loops.ir import INT, Array, Block, Const, For, Function, If, Item, Op, Operand, Scalar, Value, While, defined, walk
from fnad.loops.scalars import guarded, rule


def names_of(fn: Function) -> Names:
    """Every name that a function uses."""
    taken = [a.name for a in fn.args] + [value.name for value, _ in fn.captured]
    for item in walk(fn.body):
        taken += [v.name for v in defined(item)]
        if isinstance(item, For | While):
            taken += [p.name for p in item.params] + ([item.iv.name] if isinstance(item, For) else [])
    return Names(taken)


def tangent(fn: Function, active: Sequence[bool]) -> Function:
    """The function of `fn.args` and one tangent per active argument that returns the results and one tangent per float result."""
    return _Tangent(fn, active).function


class _Tangent:
    def __init__(self, fn: Function, active: Sequence[bool]) -> None:
        memory = Memory(fn)
        self.names, self.active = names_of(fn), Activity(fn, memory, active)
        self.of: dict[Value, Operand] = {}
        extra = [self._twin(a) for a, wanted in zip(fn.args, active, strict=True) if wanted]
        for (a, wanted), twin in zip([p for p in zip(fn.args, active, strict=True) if p[1]], extra, strict=True):
            if wanted and a in self.active:
                self.of[a] = twin
        b = Builder(self.names)
        for value in (*fn.args, *(v for v, _ in fn.captured)):
            if is_array(value) and value in self.active and value not in self.of:
                self.of[value] = b.like(value, f"{value.name}_d")
        self._block(fn.body, b)
        returns = [self._result(r, b) for r in fn.returns if r.type.dtype.kind in "fc"]
        written = fn.written | {t for a, t in self.of.items() if a in fn.written and isinstance(t, Value)}
        every = [*fn.returns, *returns]
        self.function = Function(
            f"{fn.name}_tangent",
            [*fn.args, *extra],
            b.block,
            every,
            tuple(range(len(every))),
            written & frozenset([*fn.args, *extra]),
            fn.source,
            fn.captured,
        )

    def _twin(self, value: Value) -> Value:
        return Value(self.names.fresh(f"{value.name}_d"), value.type, value.line)

    def _result(self, x: Operand, b: Builder) -> Operand:
        found = self.of.get(x) if isinstance(x, Value) else None
        if found is not None:
            return found
        return b.like(x, f"{x.name}_d") if isinstance(x, Value) and is_array(x) else b.const(0.0, x)

    def _tangent(self, x: Operand | None) -> Operand | None:
        """The tangent of an operand, None where it is zero."""
        found = self.of.get(x) if isinstance(x, Value) else None
        return None if found is None or is_number(found, 0) else found

    def _block(self, block: Block, b: Builder) -> None:
        for item in block.items:
            b.line = item.line
            if isinstance(item, Op):
                b.block.items.append(item)
                self._op(item, b)
            else:
                b.block.items.append(self._region(item))

    def _inner(self, block: Block) -> Block:
        b = Builder(self.names)
        self._block(block, b)
        return b.block

    def _op(self, op: Op, b: Builder) -> None:
        out, args = op.out, op.args
        if op.kind == "store":
            if args[0] in self.active:
                assert isinstance(args[0], Value)
                t = self._tangent(args[-1]) or b.const(0.0, Scalar(args[0].type.dtype))
                b.do("store", self.of[args[0]], *args[1:-1], t)
        elif out is None or out not in self.active:
            return
        elif is_array(out):
            self._array(op, b)
        elif op.kind == "load":
            shadow = self._tangent(args[0])
            assert shadow is not None
            self.of[out] = b.op("load", shadow, *args[1:], type=out.type, name=f"{out.name}_d")
        elif op.kind == "dot":
            terms = [b.op("dot", *pair, type=out.type) for pair in self._products(op)]
            self.of[out] = terms[0] if len(terms) == 1 else b.add(*terms)
        else:
            self._number(op, b)

    def _products(self, op: Op) -> list[tuple[Operand, Operand]]:
        x, y = op.args
        dx, dy = (self.of.get(a) if isinstance(a, Value) and a in self.active else None for a in (x, y))
        pairs = ((dx, y), (x, dy))
        return [(p, q) for p, q in pairs if p is not None and q is not None]

    def _array(self, op: Op, b: Builder) -> None:
        out = op.out
        assert out is not None
        name = f"{out.name}_d"
        if op.kind in VIEWS:
            shadow = self.of[op.args[0]]  # type: ignore[index]
            self.of[out] = b.op(op.kind, shadow, *op.args[1:], type=out.type, name=name, **op.attrs)
        elif op.kind == "alloc":
            self.of[out] = b.op("alloc", *op.args, type=out.type, name=name, fill=0.0)
        elif op.kind == "copy":
            found = self._tangent(op.args[0])
            self.of[out] = b.op("copy", found, type=out.type, name=name) if found is not None else b.like(out, name)
        else:
            terms = [b.op("dot", *pair, type=out.type, name=name) for pair in self._products(op)]
            for other in terms[1:]:
                add_into(b, terms[0], other)
            self.of[out] = terms[0]

    def _number(self, op: Op, b: Builder) -> None:
        out, args = op.out, op.args
        assert out is not None
        assert isinstance(out.type, Scalar)
        if op.kind == "cast":
            t = self._tangent(args[0])
            self.of[out] = b.const(0.0, out) if t is None else b.cast(t, out.type)
            return
        if op.kind == "select":
            pair = [self._tangent(a) or b.const(0.0, out) for a in args[1:]]
            self.of[out] = b.op("select", args[0], *pair, type=out.type, name=f"{out.name}_d")
            return
        total: Operand = b.const(0.0, out)
        for t, slope, guard in self._terms(op, b):
            term = b.mul(slope, t)
            if guard:
                term = b.unless_lost(term, t)
            total = b.add(total, term)
        self.of[out] = b.cast(total, out.type)

    def _terms(self, op: Op, b: Builder) -> list[tuple[Operand, Operand, bool]]:
        """(tangent, slope, whether the slope may be infinite) of every argument that has a tangent."""
        known = rule_of(op.attrs["function"]) if op.kind == "opaque" else rule(op.kind)
        assert known is not None
        assert known.slopes is not None
        assert op.out is not None
        args = [a for a in op.args if a is not None]
        tangents = [self._tangent(a) if is_float(a) else None for a in args]
        if all(t is None for t in tangents):
            return []
        slopes = known.slopes(b, args, op.out)
        guard = guarded(op, known)
        return [(t, s, guard) for t, s in zip(tangents, slopes, strict=True) if t is not None]

    def _region(self, item: Item) -> Item:
        if isinstance(item, If):
            then, orelse = self._inner(item.then), self._inner(item.orelse)
            new = If(item.condition, then, orelse, [*item.then_yields], [*item.else_yields], [*item.results], item.line)
            for a, c, r in zip(item.then_yields, item.else_yields, item.results, strict=True):
                if r in self.active:
                    self._append(new.then_yields, a)
                    self._append(new.else_yields, c)
                    new.results.append(self._bind(r))
            return new
        assert isinstance(item, For | While)
        carried = [k for k, p in enumerate(item.params) if p in self.active or item.results[k] in self.active]
        params, inits = [*item.params], [*item.inits]
        for k in carried:
            self._append(inits, item.inits[k])
            params.append(self._bind(item.params[k]))
        head = self._inner(item.head) if isinstance(item, While) else Block()
        body = self._inner(item.body)
        yields, results = [*item.yields], [*item.results]
        for k in carried:
            self._append(yields, item.yields[k])
            results.append(self._bind(item.results[k]))
        if isinstance(item, While):
            return While(head, item.condition, body, params, inits, yields, results, item.count, item.stop, item.line)
        return For(
            item.iv, item.lo, item.hi, item.step, body, params, inits, yields, results, item.stop, item.count, item.parallel, item.line
        )

    def _bind(self, value: Value) -> Value:
        twin = self._twin(value)
        self.of[value] = twin
        return twin

    def _append(self, operands: list[Operand], x: Operand) -> None:
        found = self.of.get(x) if isinstance(x, Value) else None
        operands.append(Builder.const(0.0, x) if found is None else found)


def add_into(b: Builder, target: Value, other: Value) -> None:
    """`target += other`, element by element, for two arrays of one shape."""
    assert isinstance(target.type, Array)
    outer, index = b.block, []
    for axis in range(target.type.ndim):
        iv = Value(b.names.fresh("i"), INT)
        index.append(iv)
        size = b.dim(target, axis)
        body = Block()
        b.block.items.append(For(iv, Const(0, INT), size, Const(1, INT), body))
        b.block = body
    b.store(target, tuple(index), b.add(b.load(target, *index), b.load(other, *index)))
    b.block = outer
