"""Arithmetic that does not change in a loop, moved before it: the backward sweep then finds it there."""

from __future__ import annotations

from fnad.loops.ir import Block, For, If, Item, Op, Value, blocks, defined, walk

_CHEAP = frozenset({"add", "sub", "mul", "neg", "dim", "cast"})


def hoist(block: Block) -> None:
    """Move what is cheap and cannot fail out of every loop of the block, in place."""
    items: list[Item] = []
    for item in block.items:
        for inner in blocks(item):
            hoist(inner)
        if not isinstance(item, Op | If):
            for inner in blocks(item):
                items += _taken(item, inner)
        items.append(item)
    block.items = items


def _taken(loop: Item, body: Block) -> list[Item]:
    """The operations of the body that read nothing which the loop defines; they are removed from it."""
    inside: set[Value] = {v for i in walk(body) for v in defined(i)} | set(getattr(loop, "params", ()))
    for i in (loop, *walk(body)):
        inside.update(getattr(i, "params", ()))
        if isinstance(i, For):
            inside.add(i.iv)
    if not isinstance(loop, For):
        inside.update(v for b in blocks(loop) for i in walk(b) for v in defined(i))
    taken: list[Item] = []
    for item in body.items:
        if isinstance(item, Op) and item.kind in _CHEAP and item.out is not None and inside.isdisjoint(item.args):
            taken.append(item)
            inside.discard(item.out)
    body.items = [i for i in body.items if not any(i is t for t in taken)]
    return taken
