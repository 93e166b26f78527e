"""Control flow as regions: branches, and loops whose names are followed until their types are stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.loops.builder import is_tuple
from fnad.loops.calling import Calling
from fnad.loops.ir import INT, Block, Const, For, Operand, Value, While
from fnad.loops.joins import Conflict, Undefined, adapt, fresh, leaves, measure, outline, types, unify
from fnad.loops.jumps import Loop, assigned

Thunk = Callable[[], None]
Head = Callable[[Thunk], None]


class Flow(Calling):
    """Branches and loops, and what names hold after them."""

    def branch(self, test: Operand, then: Callable[[], None], orelse: Callable[[], None], names: list[str]) -> None:
        """`if test: then() else: orelse()`, where they may bind `names`."""
        if isinstance(test, Const):
            (then if test.value else orelse)()
            return
        before = self.frame.env
        blocks, envs = [], []
        for side in (then, orelse):
            self.frame.env = dict(before)
            with self.inside(Block()) as block:
                side()
            blocks.append(block)
            envs.append(self.frame.env)
        self.frame.env = before
        shapes, found = [], []
        for name in names:
            sides = [env.get(name, Undefined(name)) for env in envs]
            if self._same_value(*sides):
                before[name] = sides[0]
                continue
            shape = unify(name, *[outline(self, x) for x in sides])
            if not types(shape):
                before[name] = shape
                continue
            shapes.append((name, shape))
            found.append(sides)
        joined = self._join_names(test, shapes, blocks, found)
        before.update(joined)

    def _same_value(self, x: Any, y: Any) -> bool:
        return x is y or (isinstance(x, Const) and isinstance(y, Const) and x.type == y.type and repr(x.value) == repr(y.value))

    def _join_names(self, test: Operand, shapes: list[tuple[str, Any]], blocks: list[Block], found: list[list[Any]]) -> dict[str, Any]:
        flags = {
            name: test if sides[0].value else self.scalar("not", test)
            for (name, _), sides in zip(shapes, found, strict=True)
            if all(isinstance(x, Const) and isinstance(x.value, bool) for x in sides)
        }
        kept = [(item, sides) for item, sides in zip(shapes, found, strict=True) if item[0] not in flags]
        whole = tuple(shape for (_, shape), _ in kept)
        sides = [tuple(pair[k] for _, pair in kept) for k in (0, 1)]
        values: dict[str, Any] = dict(flags)
        if any(block.items for block in blocks) or kept:
            named = [name for (name, _), _ in kept]
            values.update(zip(named, self._join_named(test, named, whole, blocks, sides), strict=True))
        return values

    def _join_named(
        self, test: Operand, names: list[str], whole: tuple[Any, ...], blocks: list[Block], sides: list[Any]
    ) -> tuple[Any, ...]:
        out = self.join(test, whole, blocks, sides, "t")
        for name, item in zip(names, out, strict=True):
            self._rename(item, name)
        return out

    def _rename(self, x: Any, name: str) -> None:
        if is_tuple(x):
            for item in x:
                self._rename(item, name)
        elif isinstance(x, Value) and x.name.startswith("t_"):
            x.name = name.strip(".") + x.name[1:]

    def _carry(self, s: Loop, loop: For | While, body: Thunk, head: Head | None = None) -> None:
        """Build a loop: again and again, until what its names hold at the start of an iteration is what they hold at its end."""
        names = sorted(assigned([s]) & (s.head | s.live))
        before = self.frame.env
        inits = tuple(before.get(name, Undefined(name)) for name in names)
        shape = tuple(outline(self, x) for x in inits)
        outer_pending = self.pending
        while True:
            self._start_pass()
            params = tuple(fresh(self, name, part) for name, part in zip(names, shape, strict=True))
            self.frame.env = {**before, **dict(zip(names, params, strict=True))}
            self.guessing += 1
            try:
                block, ends = self._iteration(body, head, names, shape, params)
            finally:
                self.guessing -= 1
            found = tuple(unify(n, a, outline(self, x)) for n, a, x in zip(names, shape, ends, strict=True))
            if found == shape:
                break
            settled = all(f == a or isinstance(f, Conflict) for f, a in zip(found, shape, strict=True))
            shape = (
                found if settled else tuple(outline(self, x) if isinstance(f, Conflict) else f for f, x in zip(found, inits, strict=True))
            )
        if self.pending and not self.guessing:
            name, self.node = self.pending
            self.fail(f"The name {name} is read before anything is assigned to it", fix="assign to it before the loop")
        self.pending = self.pending or outer_pending
        stop = self.frame.env.get(s.stop) if s.stop else None
        loop.stop = None if isinstance(stop, Const) and not stop.value else stop
        self.frame.env = before
        self._close(loop, shape, params, inits, ends, block)
        results = tuple(fresh(self, name, part) for name, part in zip(names, shape, strict=True))
        loop.results = leaves(shape, results)
        before.update(zip(names, results, strict=True))
        if isinstance(loop, For) and loop.stop is not None:
            loop.count = self.value(INT, "count")
        self.add(loop)
        measure(self, shape, results)

    def _start_pass(self) -> None:
        self.pending = None

    def _iteration(self, body: Thunk, head: Head | None, names: list[str], shape: Any, params: Any) -> tuple[Block, tuple[Any, ...]]:
        """One iteration from the given versions of the names: its body, and the versions at its end."""

        def start() -> None:
            measure(self, shape, params)

        if head is not None:
            head(start)
        with self.inside(Block()) as block:
            start()
            body()
        return block, tuple(self.frame.env.get(name, Undefined(name)) for name in names)

    def _close(self, loop: For | While, shape: Any, params: Any, inits: Any, ends: Any, block: Block) -> None:
        kinds = types(shape)
        loop.body = block
        loop.params = leaves(shape, params)
        loop.inits = [adapt(self, leaf, x) for leaf, x in zip(kinds, leaves(shape, inits), strict=True)]
        with self.inside(block):
            loop.yields = [adapt(self, leaf, x) for leaf, x in zip(kinds, leaves(shape, ends), strict=True)]
