"""What a loop function's values depend on: which arrays share memory, and which values carry a derivative.

An array's *roots* are the arguments and allocations whose memory it may show; a binding that a loop or a branch joins has
several. Roots that are joined somewhere form one *group*: if one of them carries a derivative, all of them do, so that the
shadows of arrays can be bound, swapped and viewed exactly as the arrays are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fnad.errors import UnsupportedError
from fnad.loops.ir import Array, Block, Const, For, Function, If, Item, Op, Operand, Value, While, blocks, walk
from fnad.loops.scalars import rule

FRESH = frozenset({"alloc", "copy", "dot"})
VIEWS = frozenset({"view", "transpose", "reshape", "field"})


class Join(NamedTuple):
    """One name that a region rebinds: every operand of `sources` may become every value of `targets`."""

    sources: tuple[Operand, ...]
    targets: tuple[Value, ...]


def joins(item: Item) -> Iterator[Join]:
    """What a region joins."""
    if isinstance(item, If):
        for a, b, r in zip(item.then_yields, item.else_yields, item.results, strict=True):
            yield Join((a, b), (r,))
    elif isinstance(item, For | While):
        for p, i, y, r in zip(item.params, item.inits, item.yields, item.results, strict=True):
            yield Join((i, y), (p, r))


def is_array(x: Operand | None) -> bool:
    return isinstance(x, Value) and isinstance(x.type, Array)


def is_float(x: Operand | None) -> bool:
    return isinstance(x, Value) and x.type.dtype.kind in "fc"


class Memory:
    """The roots of every array, whether it reaches its root without passing a join, and the groups of roots."""

    def __init__(self, fn: Function) -> None:
        self.roots: dict[Value, frozenset[Value]] = {a: frozenset({a}) for a in fn.args if is_array(a)}
        for value, _ in fn.captured:
            self.roots[value] = frozenset({value})
        self.direct: set[Value] = set(self.roots)
        self.items = list(walk(fn.body))
        self._base: dict[Value, Value] = {
            i.out: i.args[0]  # type: ignore[misc]
            for i in self.items
            if isinstance(i, Op) and i.kind in VIEWS
        }
        while self._spread():
            pass
        self.group = self._groups()
        self.contiguous = set(self.roots) - self._views()
        self.apart: set[frozenset[Value]] = set()
        self._twins()

    def _views(self) -> set[Value]:
        """The arrays that may not be stored as a whole, entry after entry."""
        found = {i.out for i in self.items if isinstance(i, Op) and i.kind in ("view", "transpose", "field") and i.out is not None}
        size = -1
        while len(found) != size:
            size = len(found)
            for item in self.items:
                for join in () if isinstance(item, Op) else joins(item):
                    if any(s in found for s in join.sources):
                        found.update(join.targets)
        return found

    def _spread(self) -> bool:
        changed = False
        for item in self.items:
            if isinstance(item, Op):
                if not is_array(item.out):
                    continue
                assert item.out is not None
                if item.kind in VIEWS:
                    base = item.args[0]
                    assert isinstance(base, Value)
                    changed |= self._put(item.out, self.roots.get(base, frozenset()))
                    if base in self.direct:
                        self.direct.add(item.out)
                else:
                    changed |= self._put(item.out, frozenset({item.out}))
                    self.direct.add(item.out)
                continue
            for join in joins(item):
                if is_array(join.targets[0]):
                    union = frozenset[Value]().union(*(self.roots.get(s, frozenset()) for s in join.sources if isinstance(s, Value)))
                    for target in join.targets:
                        changed |= self._put(target, union)
        return changed

    def _put(self, value: Value, roots: frozenset[Value]) -> bool:
        old = self.roots.get(value, frozenset())
        self.roots[value] = old | roots
        return self.roots[value] != old

    def _groups(self) -> dict[Value, Value]:
        """Array -> the first root of its group."""
        leader: dict[Value, Value] = {}

        def find(root: Value) -> Value:
            while leader.setdefault(root, root) is not root:
                root = leader[root]
            return root

        for roots in self.roots.values():
            ordered = sorted(roots, key=lambda r: r.name)
            for other in ordered[1:]:
                leader[find(other)] = find(ordered[0])
        return {value: find(min(roots, key=lambda r: r.name)) for value, roots in self.roots.items() if roots}

    def _twins(self) -> None:
        """Pairs of a loop's array bindings that never show the same array at one time, as in `u, new = new, u`."""
        loops = [(i, [k for k, p in enumerate(i.params) if is_array(p)]) for i in self.items if isinstance(i, For | While)]
        self.apart = {
            frozenset(pair)
            for loop, arrays in loops
            for n, j in enumerate(arrays)
            for k in arrays[n + 1 :]
            for pair in ((loop.params[j], loop.params[k]), (loop.results[j], loop.results[k]))
        }
        size = -1
        while size != len(self.apart):
            size = len(self.apart)
            for loop, arrays in loops:
                for n, j in enumerate(arrays):
                    for k in arrays[n + 1 :]:
                        if any(self.alias(x[j], x[k]) for x in (loop.inits, loop.yields)):
                            self.apart.discard(frozenset((loop.params[j], loop.params[k])))
                            self.apart.discard(frozenset((loop.results[j], loop.results[k])))

    def binding(self, a: Value) -> Value:
        """The array of which this is a view, and a view of a view."""
        while a in self._base:
            a = self._base[a]
        return a

    def alias(self, a: Operand | None, b: Operand | None) -> bool:
        """Whether two arrays may share memory at one time."""
        assert isinstance(a, Value)
        assert isinstance(b, Value)
        if self.roots[a].isdisjoint(self.roots[b]):
            return False
        return frozenset((self.binding(a), self.binding(b))) not in self.apart


class Activity:
    """The values whose derivative matters: they vary with a wanted argument, and a float result varies with them."""

    def __init__(self, fn: Function, memory: Memory, wanted: Sequence[bool]) -> None:
        self.memory = memory
        self.items = memory.items
        seeds = {self._key(a) for a, w in zip(fn.args, wanted, strict=True) if w}
        varied = self._closure(seeds, forwards=True)
        ends = {self._key(r) for r in fn.returns if is_float(r)}
        self._active = varied & self._closure(ends, forwards=False)
        for v in self._active:
            if v.type.dtype.kind == "c":
                raise UnsupportedError(
                    "loop functions are not differentiated through complex numbers",
                    got={"value": f"{v.name} ({v.type})", "at": f"{fn.source[0]}:{v.line}" if v.line else fn.name},
                    fix="compute with real and imaginary parts in two float variables, or write it as array code for fnad.jit",
                )

    def __contains__(self, x: Operand | None) -> bool:
        return is_float(x) and self._key(x) in self._active

    def _key(self, x: Operand | None) -> Value:
        """Arrays count by the group that they belong to."""
        assert isinstance(x, Value)
        return self.memory.group.get(x, x) if isinstance(x.type, Array) else x

    def _closure(self, seeds: set[Value], forwards: bool) -> set[Value]:
        edges: dict[Value, list[Value]] = {}
        for source, target in self._edges():
            a, b = (source, target) if forwards else (target, source)
            edges.setdefault(self._key(a), []).append(self._key(b))
        found, stack = set(seeds), list(seeds)
        while stack:
            for target in edges.get(stack.pop(), ()):
                if target not in found:
                    found.add(target)
                    stack.append(target)
        return found

    def _edges(self) -> Iterator[tuple[Value, Value]]:
        """(source, target) for every way in which a float enters another one differentiably."""
        for item in self.items:
            if isinstance(item, Op):
                yield from self._of(item)
                continue
            for join in joins(item):
                for source in join.sources:
                    for target in join.targets:
                        if is_float(source) and is_float(target):
                            yield source, target  # type: ignore[misc]

    def _of(self, op: Op) -> Iterator[tuple[Value, Value]]:
        if op.kind == "store":
            array, value = op.args[0], op.args[-1]
            if is_float(value) and is_float(array):
                yield value, array  # type: ignore[misc]
        elif is_float(op.out) and op.kind not in ("alloc", "dim"):
            known = rule(op.kind)
            if known is not None and known.slopes is None:
                return
            for arg in op.args[:1] if op.kind == "load" or op.kind in VIEWS else op.args:
                if is_float(arg):
                    yield arg, op.out  # type: ignore[misc]


class Places:
    """Where each operation stands: its number in the text, and the loops around it, outermost first."""

    def __init__(self, block: Block) -> None:
        self.number: dict[int, int] = {}
        self.loops: dict[int, tuple[int, ...]] = {}
        self.home: dict[Value, tuple[int, ...]] = {}
        self.born: dict[Value, int] = {}
        self.ranges: dict[Value, For] = {}
        self.definition: dict[Value, Op] = {}
        self._visit(block, ())

    def _visit(self, block: Block, loops: tuple[int, ...]) -> None:
        for item in block.items:
            self.number[id(item)] = len(self.number)
            self.loops[id(item)] = loops
            if isinstance(item, Op) and item.out is not None:
                self.home[item.out], self.born[item.out] = loops, self.number[id(item)]
                self.definition[item.out] = item
            if isinstance(item, For):
                self.ranges[item.iv] = item
            inside = loops if isinstance(item, If | Op) else (*loops, id(item))
            for inner in blocks(item):
                self._visit(inner, inside)

    def may_precede(self, read: Op, array: Value, store: Op, memory: Memory) -> bool:
        """Whether `read` can see an element of `array` before `store` overwrites that same one."""
        target = store.args[0]
        assert isinstance(target, Value)
        common = memory.roots[array] & memory.roots[target]
        if not common:
            return False
        before = self.number[id(read)] < self.number[id(store)]
        shared = [x for x, y in zip(self.loops[id(read)], self.loops[id(store)], strict=False) if x == y]
        if target in memory.direct:  # only what happens to one allocation counts, not its predecessors
            (root,) = memory.roots[target]
            outside = self.home.get(root, ())
            before = before and self.number[id(read)] > self.born.get(root, -1)
            return before or any(loop not in outside for loop in shared)
        return before or bool(shared)

    def affine(self, x: Operand | None) -> tuple[Value | None, int] | None:
        """An index as (value, offset)."""
        if isinstance(x, Const):
            return None, int(x.value)
        op = self.definition.get(x) if isinstance(x, Value) else None
        if op is not None and op.kind in ("add", "sub") and isinstance(op.args[1], Const):
            inner = self.affine(op.args[0])
            sign = 1 if op.kind == "add" else -1
            return None if inner is None else (inner[0], inner[1] + sign * int(op.args[1].value))
        return (x, 0) if isinstance(x, Value) else None

    def distinct(self, a: Op, b: Op) -> bool:
        """Whether two accesses of one iteration, through the same binding, certainly touch different elements."""
        if a.args[0] is not b.args[0]:
            return False
        rank = a.args[0].type.ndim  # type: ignore[union-attr]
        for x, y in zip(a.args[1 : rank + 1], b.args[1 : rank + 1], strict=True):
            p, q = self.affine(x), self.affine(y)
            if p and q and p[0] is q[0] and p[1] != q[1] and self.not_negative(p) and self.not_negative(q):
                return True
        return False

    def not_negative(self, index: tuple[Value | None, int]) -> bool:
        base, offset = index
        if base is None:
            return offset >= 0
        loop = self.ranges.get(base)
        if loop is None or not isinstance(loop.step, Const):
            return False
        least = loop.lo if loop.step.value > 0 else loop.hi
        return isinstance(least, Const) and least.value + (loop.step.value < 0) + offset >= 0
