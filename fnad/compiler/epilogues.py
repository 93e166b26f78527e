"""Loops over the result of a matrix product become part of it: each piece of the result is worked on while it is in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad.compiler.donate import entry_by_entry
from fnad.compiler.program import Access, Buffer, Gemm, Loop, Node, Store, accesses, effort, touched

_LIGHT = 24  # operations for an entry: where there are more, memory is not what takes the time


def attach(nodes: list[Node], fuser: Any) -> None:
    """Give each product the loops that can follow each of its pieces. They leave the place where they stood."""
    uses: dict[Buffer, int] = {}
    for node in nodes:
        for b in set().union(*touched(node)):
            uses[b] = uses.get(b, 0) + 1
    for g in [node for node in nodes if isinstance(node, Gemm)]:
        loop = _follower(g, nodes[nodes.index(g) + 1 :])
        if loop is not None and _fits(g, loop, uses, fuser):
            nodes.remove(loop)
            g.after = loop


def share_memory(nodes: Sequence[Node], buffers: Sequence[Buffer], fuser: Any) -> None:
    """A product that only its loops read lies where they write, if they go from entry to entry."""
    viewed = {b.root for b in buffers if b.root is not b}
    for g in nodes:
        if not isinstance(g, Gemm) or g.after is None or g.out.kind != "temp" or g.out in viewed:
            continue
        if any(g.out in side for node in nodes if node is not g for side in touched(node)):
            continue
        inputs = {b.root for b in g.inputs}
        for b in sorted(g.after.written - inputs, key=lambda b: int(b.name[1:])):
            alike = b.root is b and (b.shape, b.dtype, b.axes) == (g.out.shape, g.out.dtype, g.out.axes)
            if alike and entry_by_entry(g.after, b, g.out, fuser):
                g.out.root = b
                break


def loops_of(loop: Loop) -> list[Loop] | None:
    """A loop and the loops inside of it, if each is all that is in the one around it."""
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(found[-1].body[0], Loop):
        found.append(found[-1].body[0])
    plain = all(isinstance(node, Store) for node in found[-1].body) and not any(one.sequential for one in found)
    return found if plain else None


def _follower(g: Gemm, later: Sequence[Node]) -> Loop | None:
    """The first node that needs the product, if it is a loop that could as well stand right behind the product."""
    written: set[Buffer] = set()
    read: set[Buffer] = set()
    for node in later:
        new_written, new_read = touched(node)
        if g.out in new_written | new_read:
            free = not (new_written & (written | read) or new_read & written)
            return node if isinstance(node, Loop) and free else None
        written |= new_written
        read |= new_read
    return None


def _fits(g: Gemm, loop: Loop, uses: dict[Buffer, int], fuser: Any) -> bool:
    """Whether the iterations of a loop can come in the order of the pieces, each of some rows and some columns."""
    found = loops_of(loop)
    if found is None or g.out.root is not g.out or tuple(one.extent for one in found) != g.out.shape:
        return False
    if sum(map(effort, found[-1].body)) > _LIGHT or loop.written & {g.out, *(b.root for b in g.inputs)}:
        return False
    here = tuple(fuser.canonical(one.var) for one in found)

    def own(access: Access) -> bool:
        buffer, index = access
        return buffer is buffer.root and tuple(map(fuser.canonical, index)) == here

    if not all(map(own, accesses(loop, g.out))):
        return False
    return all(all(map(own, accesses(loop, b))) or _order_is_free(b, found[-1].body, uses[b]) for b in loop.written)


def _order_is_free(b: Buffer, body: Sequence[Any], uses: int) -> bool:
    """Whether a buffer only adds up (or the like), or holds what one iteration needs."""
    reads = [k for k, s in enumerate(body) if any(x.root is b for x, _ in s.loads.values())]
    writes = [k for k, s in enumerate(body) if s.buffer.root is b]
    if not reads and len({body[k].combine for k in writes}) == 1 and body[writes[0]].combine is not None:
        return True
    begins = body[writes[0]].combine is None and not (reads and reads[0] <= writes[0])
    return b.kind == "temp" and not b.axes and uses == 1 and begins
