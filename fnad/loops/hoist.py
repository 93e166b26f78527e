"""What does not change in a loop, moved before it: the backward sweep then finds it there.

An element that all iterations read is loaded once, if there is an iteration; its adjoint is then summed up in a register.
"""

from __future__ import annotations

from collections.abc import Callable

from fnad.loops.emit import Builder, Names
from fnad.loops.ir import BOOL, Block, Const, For, If, Item, Op, Operand, Scalar, Value, blocks, defined, walk

_CHEAP = frozenset({"add", "sub", "mul", "neg", "dim", "cast"})


def hoist(block: Block, names: Names, alias: Callable[[Operand | None, Operand | None], bool]) -> None:
    """Move what is cheap and cannot fail out of every loop of the block, in place; `alias` says which arrays share memory."""
    items: list[Item] = []
    for item in block.items:
        for inner in blocks(item):
            hoist(inner, names, alias)
        if not isinstance(item, Op | If):
            for inner in blocks(item):
                items += _taken(item, inner)
            if isinstance(item, For):
                items += _loads(item, names, alias)
        items.append(item)
    block.items = items


def _loads(loop: For, names: Names, alias: Callable[[Operand | None, Operand | None], bool]) -> list[Item]:
    """The loads of elements that no iteration changes, in a branch that is taken if there is an iteration."""
    inside = _inside(loop, loop.body)
    stores = [i for i in walk(loop.body) if isinstance(i, Op) and i.kind == "store"]
    found = [
        i
        for i in loop.body.items
        if isinstance(i, Op)
        and i.kind == "load"
        and i.out is not None
        and inside.isdisjoint(i.args)
        and not any(alias(s.args[0], i.args[0]) for s in stores)
    ]
    if not found or not (isinstance(loop.step, Const) and loop.step.value):
        return []
    loop.body.items = [i for i in loop.body.items if not any(i is f for f in found)]
    b = Builder(names)
    some = b.op("lt" if loop.step.value > 0 else "gt", loop.lo, loop.hi, type=BOOL, name="some")
    then = Builder(names)
    results = [f.out for f in found if f.out is not None]
    yields: list[Operand] = [then.op("load", *f.args, type=f.out.type, name=f.out.name) for f in found if f.out is not None]
    for f, made in zip(found, then.block.items, strict=True):
        made.line = f.line
    zeros: list[Operand] = [Const(0, Scalar(r.type.dtype)) for r in results]
    b.block.items.append(If(some, then.block, Block(), yields, zeros, results, line=found[0].line))
    return b.block.items


def _taken(loop: Item, body: Block) -> list[Item]:
    """The operations of the body that read nothing which the loop defines; they are removed from it."""
    inside = _inside(loop, body)
    taken: list[Item] = []
    for item in body.items:
        if isinstance(item, Op) and item.kind in _CHEAP and item.out is not None and inside.isdisjoint(item.args):
            taken.append(item)
            inside.discard(item.out)
    body.items = [i for i in body.items if not any(i is t for t in taken)]
    return taken


def _inside(loop: Item, body: Block) -> set[Value]:
    """What the loop defines, all that its blocks define included."""
    inside: set[Value] = {v for i in walk(body) for v in defined(i)} | set(getattr(loop, "params", ()))
    for i in (loop, *walk(body)):
        inside.update(getattr(i, "params", ()))
        if isinstance(i, For):
            inside.add(i.iv)
    if not isinstance(loop, For):
        inside.update(v for b in blocks(loop) for i in walk(b) for v in defined(i))
    return inside
