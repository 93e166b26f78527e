"""The finished function: without what nobody uses, and with the arguments that it writes."""

from __future__ import annotations

from collections.abc import Iterable

from fnad.loops.ir import Array, Block, For, Function, If, Item, Op, Operand, Value, While, blocks, walk

EFFECTS = frozenset({"store", "raise"})


def clean(function: Function) -> None:
    """Resolve names that a loop hands on unchanged, and remove what has no effect and is not used."""
    while _resolve(function) | _sweep(function):
        pass


def _replace(function: Function, known: dict[Value, Operand]) -> None:
    def new(x: Operand) -> Operand:
        while isinstance(x, Value) and x in known:
            x = known[x]
        return x

    def maybe(x: Operand | None) -> Operand | None:
        return None if x is None else new(x)

    for item in walk(function.body):
        if isinstance(item, Op):
            item.args = tuple(map(maybe, item.args))
            continue
        if isinstance(item, If):
            item.condition = new(item.condition)
            item.then_yields, item.else_yields = list(map(new, item.then_yields)), list(map(new, item.else_yields))
            continue
        item.inits, item.yields, item.stop = list(map(new, item.inits)), list(map(new, item.yields)), maybe(item.stop)
        if isinstance(item, For):
            item.lo, item.hi, item.step = new(item.lo), new(item.hi), new(item.step)
        else:
            item.condition = new(item.condition)
    function.returns = list(map(new, function.returns))


def _resolve(function: Function) -> bool:
    """A param that every iteration hands on unchanged is its init; a result that is the same in both branches is that."""
    known: dict[Value, Operand] = {}
    for item in walk(function.body):
        if isinstance(item, For | While):
            for k in range(len(item.params) - 1, -1, -1):
                if item.yields[k] is item.params[k]:
                    known[item.params[k]] = known[item.results[k]] = item.inits[k]
                    for part in (item.params, item.inits, item.yields, item.results):
                        del part[k]
        elif isinstance(item, If):
            for k in range(len(item.results) - 1, -1, -1):
                if item.then_yields[k] == item.else_yields[k]:
                    known[item.results[k]] = item.then_yields[k]
                    for part in (item.then_yields, item.else_yields, item.results):
                        del part[k]
    if known:
        _replace(function, known)
    return bool(known)


def _sweep(function: Function) -> bool:
    """Remove what has no effect and is not used; whether anything was."""
    used: set[Value] = {x for x in function.returns if isinstance(x, Value)}
    _mark(function.body, used)
    return _drop(function.body, used)


def _use(operands: Iterable[Operand | None], used: set[Value]) -> None:
    used.update(x for x in operands if isinstance(x, Value))


def _mark(block: Block, used: set[Value]) -> bool:
    """Mark what the block needs, from its end; whether it has an effect."""
    effect = False
    for item in reversed(block.items):
        if isinstance(item, Op):
            needed = item.kind in EFFECTS or item.out in used
            effect |= item.kind in EFFECTS
            if needed:
                _use(item.args, used)
        elif isinstance(item, If):
            effect |= _mark_if(item, used)
        else:
            effect |= _mark_loop(item, used)
    return effect


def _mark_if(item: If, used: set[Value]) -> bool:
    for k, result in enumerate(item.results):
        if result in used:
            _use((item.then_yields[k], item.else_yields[k]), used)
    effects = [_mark(block, used) for block in (item.then, item.orelse)]
    if any(effects) or any(r in used for r in item.results):
        _use([item.condition], used)
    return any(effects)


def _mark_loop(item: For | While, used: set[Value]) -> bool:
    """A loop that may run forever is kept: its end is something that the user can see."""
    while True:
        size = len(used)
        for k, (param, result) in enumerate(zip(item.params, item.results, strict=True)):
            if param in used or result in used:
                _use((item.inits[k], item.yields[k]), used)
        effect = bool([block for block in reversed(blocks(item)) if _mark(block, used)])
        needed = effect or isinstance(item, While) or any(r in used for r in item.results) or item.count in used
        if needed:
            _use([item.stop, *([item.condition] if isinstance(item, While) else [item.lo, item.hi, item.step])], used)
        if len(used) == size:
            return effect or isinstance(item, While)


def _drop(block: Block, used: set[Value]) -> bool:
    changed, kept = False, list[Item]()
    for item in block.items:
        if isinstance(item, Op):
            if item.kind in EFFECTS or item.out in used:
                kept.append(item)
            else:
                changed = True
            continue
        for inner in blocks(item):
            changed |= _drop(inner, used)
        changed |= _drop_versions(item, used)
        if item.results or isinstance(item, While) or any(inner.items for inner in blocks(item)) or getattr(item, "count", None) in used:
            kept.append(item)
        else:
            changed = True
    block.items = kept
    return changed


def _drop_versions(item: For | While | If, used: set[Value]) -> bool:
    before = len(item.results)
    if isinstance(item, If):
        keep = [k for k, r in enumerate(item.results) if r in used]
        item.then_yields, item.else_yields = [item.then_yields[k] for k in keep], [item.else_yields[k] for k in keep]
    else:
        keep = [k for k, (p, r) in enumerate(zip(item.params, item.results, strict=True)) if p in used or r in used]
        item.params, item.inits, item.yields = ([part[k] for k in keep] for part in (item.params, item.inits, item.yields))  # type: ignore[assignment]
    item.results = [item.results[k] for k in keep]
    return len(keep) < before


def written(function: Function) -> frozenset[Value]:
    """The arguments whose contents may change: a store reaches them through views and versions of names."""
    origins: dict[Value, set[Value]] = {a: {a} for a in function.args if isinstance(a.type, Array)}
    while True:
        size = sum(map(len, origins.values()))
        for item in walk(function.body):
            _flow(item, origins)
        if sum(map(len, origins.values())) == size:
            break
    stores = (item.args[0] for item in walk(function.body) if isinstance(item, Op) and item.kind == "store")
    return frozenset(origin for target in stores if isinstance(target, Value) for origin in origins.get(target, ()))


def _flow(item: Item, origins: dict[Value, set[Value]]) -> None:
    pairs: list[tuple[Value, Operand | None]] = []
    if isinstance(item, Op):
        if item.kind in ("view", "transpose", "reshape") and item.out is not None:
            pairs.append((item.out, item.args[0]))
    elif isinstance(item, If):
        pairs += [*zip(item.results, item.then_yields, strict=True), *zip(item.results, item.else_yields, strict=True)]
    else:
        pairs += [*zip(item.params, item.inits, strict=True), *zip(item.params, item.yields, strict=True)]
        pairs += zip(item.results, item.params, strict=True)
        pairs += zip(item.results, item.yields, strict=True)
    for target, origin in pairs:
        if isinstance(origin, Value) and isinstance(target.type, Array):
            origins.setdefault(target, set()).update(origins.get(origin, ()))
