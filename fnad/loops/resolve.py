"""Where the backward sweep of an iteration finds the numbers of the forward sweep: recomputed, or kept on the tape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fnad.loops.analysis import is_array
from fnad.loops.ir import Block, For, If, Item, Op, Operand, Value, blocks, defined, walk

if TYPE_CHECKING:
    from fnad.loops.adjoint import Program


def operands(item: Item) -> tuple[Operand | None, ...]:
    """What an item itself reads, not what the blocks inside it read."""
    if isinstance(item, Op):
        return item.args
    if isinstance(item, If):
        return (item.condition, *item.then_yields, *item.else_yields)
    stop = () if item.stop is None else (item.stop,)
    bounds = (item.lo, item.hi, item.step) if isinstance(item, For) else (item.condition,)
    return (*bounds, *item.inits, *item.yields, *stop)


def used(block: Block) -> set[Value]:
    """Every value that is read somewhere in a block."""
    return {x for item in walk(block) for x in operands(item) if isinstance(x, Value)}


def substitute(block: Block, new: Mapping[Value, Value]) -> None:
    """Read other values instead, in the block and in those inside it."""

    def swap(x: Operand | None) -> Operand | None:
        return new.get(x, x) if isinstance(x, Value) else x

    for item in walk(block):
        if isinstance(item, Op):
            item.args = tuple(map(swap, item.args))
            continue
        for slot in ("lo", "hi", "step", "condition", "stop"):
            if hasattr(item, slot):
                setattr(item, slot, swap(getattr(item, slot)))
        for slot in ("inits", "yields", "then_yields", "else_yields"):
            if hasattr(item, slot):
                setattr(item, slot, list(map(swap, getattr(item, slot))))


def is_simple(item: Item) -> bool:
    """Whether an item can be run again at will: no loops, no new arrays."""
    if isinstance(item, Op):
        return item.kind not in ("alloc", "copy", "dot", "raise", "opaque")
    return isinstance(item, If) and not any(map(is_array, item.results)) and all(is_simple(i) for b in blocks(item) for i in b.items)


class Scope:
    """The values that one run of a loop's body (or of a branch inside a loop) defines."""

    def __init__(self, program: Program, sources: Sequence[Block], params: Iterable[Value]) -> None:
        self.program, self.sources = program, sources
        self.items = [item for block in sources for item in block.items]
        self.definer: dict[Value, Item | None] = dict.fromkeys(params)
        self.parents: dict[int, If | None] = {}
        self.number: dict[int, int] = {}
        self.stores: list[Op] = []
        self.push: Op | None = None
        self.pop: Op | None = None
        self._collect(self.items, None)

    def _collect(self, items: Iterable[Item], parent: If | None) -> None:
        for item in items:
            self.number[id(item)] = len(self.number)
            self.parents[id(item)] = parent
            for value in defined(item):
                self.definer[value] = item
            if isinstance(item, Op):
                if item.kind == "store":
                    self.stores.append(item)
            elif is_simple(item):
                for block in blocks(item):
                    self._collect(block.items, item)  # type: ignore[arg-type]
            else:
                for inner in (i for block in blocks(item) for i in walk(block)):
                    self.number[id(inner)] = len(self.number)
                    if isinstance(inner, Op) and inner.kind == "store":
                        self.stores.append(inner)

    def resolve(self, backward: Block) -> None:
        """Put before `backward` what makes the values available that it reads, and after the body what keeps them."""
        self.kept: list[Value] = []
        self.again: set[int] = set()
        self.results: set[Value] = set()
        self._choose(sorted(used(backward) & self.definer.keys(), key=lambda v: v.name))
        self._keep(self.kept, backward)

    def _choose(self, needed: Iterable[Value]) -> None:
        stack, seen = list(needed), set[Value]()
        while stack:
            v = stack.pop()
            if v in seen or v not in self.definer:
                continue
            seen.add(v)
            item = self.definer[v]
            if item is None or not self._recomputable(item):
                self.kept.append(v)
                continue
            self.again.add(id(item))
            if isinstance(item, If):
                k = item.results.index(v)
                self.results.add(v)
                reads: Iterable[Operand | None] = (item.condition, item.then_yields[k], item.else_yields[k])
            else:
                reads = operands(item)
            stack += [x for x in (*reads, *self._conditions(item)) if isinstance(x, Value)]

    def _conditions(self, item: Item) -> Iterator[Operand]:
        """Of the branches that an operation stands in; they have to be entered again."""
        parent = self.parents[id(item)]
        while parent is not None:
            self.again.add(id(parent))
            yield parent.condition
            parent = self.parents[id(parent)]

    def _recomputable(self, item: Item) -> bool:
        if not is_simple(item):
            return False
        if isinstance(item, Op) and item.kind == "load":
            return id(item) not in self.program.added and not any(self._overwrites(s, item) for s in self.stores)
        return True

    def _overwrites(self, store: Op, load: Op) -> bool:
        """Whether the element may be changed between its load and the end of the iteration."""
        program = self.program
        later = self.number[id(store)] > self.number[id(load)]
        return later and program.memory.alias(store.args[0], load.args[0]) and not program.places.distinct(load, store)

    def _keep(self, kept: list[Value], backward: Block) -> None:
        new = {v: self._twin(v) for v in kept}
        prelude = self._slice(self.items, new)
        numbers, arrays = [v for v in kept if not is_array(v)], [v for v in kept if is_array(v)]
        back: list[Item] = [Op("take", (), new[a], {"value": a}) for a in arrays]
        end = self.sources[-1].items
        if numbers:
            self.pop = Op("pop", (), None, {"values": [new[v] for v in numbers]})
            back.insert(0, self.pop)
            inside = [v for v in numbers if (d := self.definer[v]) is not None and self.parents[id(d)] is not None]
            end[:0] = [Op("init", (), v) for v in inside]
            self.push = Op("push", tuple(numbers))
            end.append(self.push)
        end += [Op("keep", (a,), None, {"value": a}) for a in arrays]
        backward.items[:0] = [*back, *prelude]
        substitute(Block(backward.items[len(back) :]), new)

    def _twin(self, v: Value) -> Value:
        return Value(self.program.names.fresh(v.name), v.type, v.line)

    def _slice(self, items: Iterable[Item], new: dict[Value, Value]) -> list[Item]:
        """The chosen operations again, with values of their own."""
        found: list[Item] = []
        for item in items:
            if id(item) not in self.again:
                continue
            if isinstance(item, Op):
                assert item.out is not None
                if item.kind == "load":
                    self.program.reads.append((item, item.args[0]))  # type: ignore[arg-type]
                new[item.out] = self._twin(item.out)
                found.append(Op(item.kind, item.args, new[item.out], item.attrs, item.line))
                continue
            assert isinstance(item, If)
            then, orelse = (Block(self._slice(b.items, new)) for b in (item.then, item.orelse))
            again = If(item.condition, then, orelse, line=item.line)
            for a, c, r in zip(item.then_yields, item.else_yields, item.results, strict=True):
                if r in self.results:
                    new[r] = self._twin(r)
                    again.then_yields.append(a)
                    again.else_yields.append(c)
                    again.results.append(new[r])
            found.append(again)
        return found
