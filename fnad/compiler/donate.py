"""Results that take the memory of arguments which the caller gives up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad.compiler.program import Buffer, Host, Loop, Node, Store, accesses, stores, touched


def donate(nodes: Sequence[Node], buffers: Sequence[Buffer], donated: frozenset[int], fuser: Any) -> None:
    """Let results live where donated arguments lie, if no argument is read after its memory has changed."""
    viewed = {b.root for b in buffers if b.root is not b}
    free = [b for b in buffers if b.kind == "input" and b.position in donated and b.code and b.shape and b not in viewed]
    alike: dict[Any, tuple[list[Buffer], list[Buffer]]] = {}
    for b in buffers:
        if b in free or (b.kind == "output" and b.root is b):
            alike.setdefault((b.shape, b.dtype), ([], []))[b.kind == "output"].append(b)
    for sources, outs in alike.values():
        # Updated leaves come in the order of the old ones: each gets the memory of its own, if it can.
        outs.sort(key=lambda b: b.position)
        pairs = [*zip(outs, sources, strict=False), *((out, b) for out in outs for b in sources)]
        taken: set[Buffer] = set()
        for out, b in pairs:
            if out.root is out and b not in taken and _fits(nodes, out, b, fuser):
                out.root = b
                taken.add(b)


def _fits(nodes: Sequence[Node], out: Buffer, source: Buffer, fuser: Any) -> bool:
    writers = [k for k, node in enumerate(nodes) if out in touched(node)[0]]
    readers = [k for k, node in enumerate(nodes) if source in touched(node)[1]]
    if len(writers) != 1 or (readers and readers[-1] > writers[0]):
        return False
    writer = nodes[writers[0]]
    if isinstance(writer, Host):
        return False
    if not readers or readers[-1] < writers[0]:
        return True
    return isinstance(writer, Loop | Store) and entry_by_entry(writer, out, source, fuser)


def entry_by_entry(node: Node, out: Buffer, source: Buffer, fuser: Any) -> bool:
    """Whether each entry is read for the last time in the iteration that writes it, and not after."""

    def where(index: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(fuser.canonical(e) for e in index)

    written = {where(index) for _, index in accesses(node, out)}
    read = {where(index) for _, index in accesses(node, source)}
    if written != read or len(written) != 1 or len(set(*written)) != len(out.shape):
        return False
    seen = False
    for s in stores(node):
        if seen and any(b is source for b, _ in s.loads.values()):
            return False
        if s.buffer is out:
            if s.combine or seen:
                return False
            seen = True
    return True
