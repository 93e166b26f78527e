"""Which operations are written inside of the expression that uses them, and which values share one Python variable.

A scalar that is used once, on the user's line that made it, needs no name. The versions of a name around a loop or a branch
(`ir.For.params`, `yields`, `results`) become one variable again where none of them is needed while another is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fnad.loops.ir import Block, Const, For, Function, If, Item, Op, Operand, Scalar, Value, While, blocks, walk
from fnad.loops.spelling import PURE

_LONGEST = 14  # operations in one expression
_WRITES = frozenset({"store", "raise", "acc_at", "call"})
_CHANGES = frozenset({"set", "acc"})


def ends(item: For | While | If) -> tuple[tuple[Operand, ...], ...]:
    """What each block of a region computes for the region, apart from `stop`."""
    if isinstance(item, For):
        return (tuple(item.yields),)
    if isinstance(item, While):
        return ((item.condition,), tuple(item.yields))
    return tuple(item.then_yields), tuple(item.else_yields)


def starts(item: Item) -> tuple[Operand | None, ...]:
    """What an item reads before anything in its blocks runs."""
    if isinstance(item, Op):
        return item.args
    if isinstance(item, For):
        return (item.lo, item.hi, item.step, *item.inits)
    return tuple(item.inits) if isinstance(item, While) else (item.condition,)


def _values(operands: Iterable[Operand | None]) -> Iterator[Value]:
    return (o for o in operands if isinstance(o, Value))


class Folding:
    """The operations of a function that are written inside of others (`folded`) or not at all (`dead`)."""

    def __init__(self, fn: Function) -> None:
        self.uses: Counter[Value] = Counter(_values(fn.returns))
        for item in walk(fn.body):
            self.uses.update(_values(starts(item)))
            if not isinstance(item, Op):
                self.uses.update(_values(o for end in ends(item) for o in end))
                stop = getattr(item, "stop", None)
                self.uses.update(_values((stop,)))
        self.folded: dict[Value, Op] = {}
        self.dead: set[Value] = set()
        self._size: dict[Value, int] = {}
        self._block(fn.body, fn.returns)

    def leaves(self, operands: Iterable[Operand | None]) -> Iterator[Value]:
        """The variables that the text of these operands reads."""
        for v in _values(operands):
            op = self.folded.get(v)
            if op is None:
                yield v
            else:
                yield from self.leaves(op.args)

    def _block(self, block: Block, last: Sequence[Operand]) -> None:
        """`last` is what is written after the block and may hold operations of it: a condition, or what is returned."""
        items = block.items
        user: dict[Value, int] = {}
        for j, operands in enumerate([*map(starts, items), tuple(last)]):
            user.update((v, j) for v in _values(operands))
        at = list(range(len(items) + 1))  # where the text of each item ends up
        for i in range(len(items) - 1, -1, -1):
            item = items[i]
            if not isinstance(item, Op):
                for inner in blocks(item):
                    self._block(inner, (item.condition,) if isinstance(item, While) and inner is item.head else ())
                continue
            out = item.out
            if out is None or not (item.kind in PURE or item.kind == "load") or not isinstance(out.type, Scalar):
                continue
            if not self.uses[out]:
                self.dead.add(out)
                self.uses.subtract(_values(item.args))
            elif self.uses[out] == 1 and out in user and self._fits(items, i, user[out], at):
                self.folded[out] = item
                at[i] = at[user[out]]
        self._limit(items)

    def _fits(self, items: list[Item], i: int, j: int, at: list[int]) -> bool:
        """Whether item `i` can be computed where `j`, its only user, is written."""
        item = items[i]
        if j < len(items) and items[j].line != item.line:
            return False
        if isinstance(item, Op) and item.attrs.get("checked"):
            return False
        if isinstance(item, Op) and item.kind == "load":
            return not any(_may_write(x) for x in items[i + 1 : at[j]])
        reads = set(self.leaves(starts(item)))
        return not any(_changes(x, reads) for x in items[i + 1 : at[j]])

    def _limit(self, items: list[Item]) -> None:
        """Long expressions are broken."""
        for item in items:
            if isinstance(item, Op) and item.out is not None:
                size = 1 + sum(self._size.get(v, 0) for v in _values(item.args) if v in self.folded)
                if size > _LONGEST:
                    self.folded.pop(item.out, None)
                self._size[item.out] = size


def _may_write(item: Item) -> bool:
    return item.kind in _WRITES if isinstance(item, Op) else any(_may_write(x) for b in blocks(item) for x in b.items)


def _changes(item: Item, variables: set[Value]) -> bool:
    """Whether an item of an adjoint sweep changes one of the variables."""
    if isinstance(item, Op):
        return item.kind in _CHANGES and item.args[0] in variables
    return any(_changes(x, variables) for b in blocks(item) for x in b.items)


class Sharing:
    """The variables of a function: `name[value]` for every value that has one."""

    def __init__(self, fn: Function, folding: Folding) -> None:
        self._folding = folding
        self._args = frozenset(fn.args)
        self._near: dict[Value, set[Value]] = {}
        self._parent: dict[Value, Value] = {}
        self._members: dict[Value, list[Value]] = {}
        self._versions: set[Value] = set()
        live = self._live(fn.body, set(folding.leaves(fn.returns)))
        for a in fn.args:
            self._clash(a, live | self._args)
        self._share(fn.body)

    def root(self, value: Value) -> Value:
        while value in self._parent:
            value = self._parent[value]
        return value

    def name(self, value: Value) -> str:
        """The variable in which a value is kept: the shortest of the names that the loop's or branch's versions have."""
        members = self._members.get(self.root(value), [value])
        stems = {_stem(m) for m in members if m in self._versions}
        return min((m.name for m in members if not stems or _stem(m) in stems), key=len)

    # -- which values must not share --------------------------------------------------------------------------------

    def _clash(self, value: Value, others: Iterable[Value]) -> None:
        near = self._near.setdefault(value, set())
        for other in others:
            if other is not value:
                near.add(other)
                self._near.setdefault(other, set()).add(value)

    def _live(self, block: Block, live: set[Value]) -> set[Value]:
        """The values that are needed before a block, given those that are needed after it."""
        leaves = self._folding.leaves
        for item in reversed(block.items):
            if isinstance(item, Op):
                if item.out is not None:
                    if item.out in self._folding.folded or item.out in self._folding.dead:
                        continue
                    self._clash(item.out, live)
                live = (live - {item.out}) | set(leaves(item.args))
            elif isinstance(item, If):
                live = self._live_if(item, live)
            else:
                live = self._live_loop(item, live)
        return live

    def _live_if(self, item: If, live: set[Value]) -> set[Value]:
        leaves = self._folding.leaves
        for r in item.results:
            self._clash(r, live | set(item.results))
        rest = live - set(item.results)
        before = [self._live(b, rest | set(leaves(end))) for b, end in zip(blocks(item), ends(item), strict=True)]
        return before[0] | before[1] | set(leaves((item.condition,)))

    def _live_loop(self, item: For | While, live: set[Value]) -> set[Value]:
        leaves = self._folding.leaves
        count = set() if item.count is None else {item.count}
        inside = self._free(item)
        through = (live - set(item.results) - count) | inside
        stop = set(leaves((item.stop,)))
        for p in (*item.params, *count):
            self._clash(p, through | set(item.params) | count | stop)
        for r in item.results:
            self._clash(r, live | set(item.results))
        after = through | set(leaves(item.yields)) | stop | count
        before = self._live(item.body, after)
        if isinstance(item, While):
            before = self._live(item.head, before | through | set(item.params) | count | set(leaves((item.condition,))))
        else:
            self._clash(item.iv, before | through | set(item.params) | count)
        return (through - set(item.params)) | set(leaves(starts(item)))

    def _free(self, item: Item) -> set[Value]:
        """The values from outside that a loop's text reads in its blocks."""
        if isinstance(item, Op):
            hidden = item.out is not None and (item.out in self._folding.folded or item.out in self._folding.dead)
            return set() if hidden else set(self._folding.leaves(item.args))
        found: set[Value] = set()
        made: set[Value] = set()
        for block, end in zip(blocks(item), ends(item), strict=True):
            found.update(self._folding.leaves(end))
            for x in block.items:
                found |= self._free(x)
                if not isinstance(x, Op):
                    found.update(self._folding.leaves(starts(x)))
                made.update(_made(x))
        if not isinstance(item, If):
            found.update(self._folding.leaves((item.stop,)))
            made.update(item.params)
            if isinstance(item, For):
                made.add(item.iv)
        return found - made

    # -- which values do share ---------------------------------------------------------------------------------------

    def _share(self, block: Block) -> None:
        for item in block.items:
            if not isinstance(item, Op):
                self._versions.update(item.results, getattr(item, "params", ()))
            if isinstance(item, For | While):
                for p, r in zip(item.params, item.results, strict=True):
                    self._unite(p, r, force=True)
                for inner in blocks(item):
                    self._share(inner)
                for p, y, init in zip(item.params, item.yields, item.inits, strict=True):
                    self._unite(p, y)
                    self._unite(p, init)
            elif isinstance(item, If):
                for inner in blocks(item):
                    self._share(inner)
                for r, x, y in zip(item.results, item.then_yields, item.else_yields, strict=True):
                    self._unite(r, x)
                    self._unite(r, y)

    def _unite(self, a: Value, b: Operand, force: bool = False) -> None:
        if isinstance(b, Const) or b in self._args or b in self._folding.folded or a.type != b.type:
            return
        one, other = self.root(a), self.root(b)
        if one is other:
            return
        mine, theirs = self._members.get(one, [one]), self._members.get(other, [other])
        if not force and any(m in self._near and not self._near[m].isdisjoint(theirs) for m in mine):
            return
        self._parent[other] = one
        self._members[one] = mine + theirs


def _stem(value: Value) -> str:
    """The name without the number of a version."""
    return value.name.rstrip("0123456789").rstrip("_") or value.name


def _made(item: Item) -> list[Value]:
    if isinstance(item, Op):
        return [] if item.out is None else [item.out]
    count = getattr(item, "count", None)
    return [*item.results, *([] if count is None else [count])]
