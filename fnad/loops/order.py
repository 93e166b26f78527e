"""Whether the iterations of a loop may be reversed in any order."""

from __future__ import annotations

from collections import Counter

from fnad.loops.analysis import Memory, Places, is_float
from fnad.loops.ir import For, If, Op, Operand, Value, While, walk
from fnad.loops.resolve import is_simple, operands


def independent(loop: For, memory: Memory, places: Places) -> bool:
    """Whether no iteration reads what another one writes, apart from sums that all of them add to.

    Then the adjoint may visit the iterations upwards, as the processor likes it best: adjoints of what iterations share are
    sums, and everything else belongs to one iteration.
    """
    if loop.stop is not None or not all(map(is_simple, loop.body.items)):
        return False
    return _sums(loop) and _own_elements(loop, memory, places)


def _sums(loop: For) -> bool:
    """Whether every number that the iterations hand on is a sum which nothing else reads."""
    makers: dict[Value, Op | If] = {}
    uses: Counter[Value] = Counter(y for y in loop.yields if isinstance(y, Value))
    for item in walk(loop.body):
        if isinstance(item, For | While):
            return False
        uses.update(x for x in operands(item) if isinstance(x, Value))
        for v in [item.out] if isinstance(item, Op) else item.results:
            if v is not None:
                makers[v] = item

    def leads(x: Operand, param: Value, budget: int) -> bool:
        """Whether x is param plus or minus something."""
        if x is param:
            return True
        item = makers.get(x) if isinstance(x, Value) else None
        if item is None or (uses[x] != 1 and budget):  # type: ignore[index]
            return False
        if isinstance(item, If):
            k = item.results.index(x)  # type: ignore[arg-type]
            return leads(item.then_yields[k], param, 1) and leads(item.else_yields[k], param, 1)
        if item.kind == "add":
            first, second = item.args
            return leads(first, param, 1) != leads(second, param, 1)  # type: ignore[arg-type]
        return item.kind == "sub" and leads(item.args[0], param, 1)  # type: ignore[arg-type]

    def alone(param: Value) -> bool:
        """Whether the param is read by sums and branches only."""
        for item in walk(loop.body):
            if isinstance(item, Op) and param in item.args and item.kind not in ("add", "sub"):
                return False
            if isinstance(item, If) and item.condition is param:
                return False
        return True

    return all(not is_float(p) or (alone(p) and uses[p] <= 2 and leads(y, p, 0)) for p, y in zip(loop.params, loop.yields, strict=True))


def _own_elements(loop: For, memory: Memory, places: Places) -> bool:
    """Whether every array that is written is touched at elements that belong to the iteration only."""
    operations = [i for i in walk(loop.body) if isinstance(i, Op)]
    touched = [op for op in operations if op.kind in ("load", "store")]
    inside = {op.out for op in operations}
    for store in touched:
        if store.kind != "store":
            continue
        if store.args[0] in inside:  # a view that each iteration may place elsewhere: equal indices are not equal elements
            return False
        axes = [
            axis
            for axis, x in enumerate(store.args[1:-1])
            if (found := places.affine(x)) is not None and found[0] is loop.iv and places.not_negative(found)
        ]
        near = [op for op in touched if memory.alias(op.args[0], store.args[0])]
        if not any(all(_same(op, store, axis, places) for op in near) for axis in axes):
            return False
    return True


def _same(a: Op, b: Op, axis: int, places: Places) -> bool:
    return a.args[0] is b.args[0] and places.affine(a.args[1 + axis]) == places.affine(b.args[1 + axis])
