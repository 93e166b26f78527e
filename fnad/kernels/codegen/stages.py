"""Loops over rows that do much for each row besides what they do for its entries: `sum(x * w)`, `exp` of it, `g += x * exp`.

Row by row, the mathematics in the middle is computed on one number at a time. In stages, a few rows at a time, it is computed on vectors,
while the rows stay in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

_HEAVY = 40  # operations that are worth a stage of their own


class Stages(NamedTuple):
    """The body of a loop cut into parts that may run one after the other for several iterations at once."""

    bodies: list[list[Any]]
    kept: list[Any]
    """Registers that later parts read: there is one for each iteration."""


def stages(program: Any, loop: Any) -> Stages | None:
    """How to cut a loop; None if it is not worth it, or iterations would meet."""
    bodies = _cut(loop.body)
    if len(bodies) < 2 or loop.sequential or not all(_plain(node) for node in loop.body):
        return None
    variables = set(program.variables(loop))
    where: dict[Any, set[int]] = {}
    for k, body in enumerate(bodies):
        for s in _stores(body):
            for b, _ in _accesses(s):
                where.setdefault(b.root, set()).add(k)
    written = {s.buffer.root for s in _stores(loop.body)}
    kept = []
    for root in written:
        if len(where[root]) == 1 or root.kind == "flag":
            continue
        if root.is_register:
            if not _within(program, loop, root):
                return None
            kept.append(root)
        else:
            axes = [_own(b, index, variables) for s in _stores(loop.body) for b, index in _accesses(s) if b.root is root]
            if not set.intersection(*axes):
                return None
    return Stages(bodies, sorted(kept, key=lambda b: int(b.name[1:])))


def _cut(body: Sequence[Any]) -> list[list[Any]]:
    """Loops apart from heavy scalar mathematics; other stores stay with what is before them."""
    out: list[list[Any]] = []
    last = ""
    for node in body:
        kind = "loops" if type(node).__name__ != "Store" else "heavy" if node.size_of_code >= _HEAVY else last
        if not out or (kind != last and last):
            out.append([])
        out[-1].append(node)
        last = kind
    return out


def _plain(node: Any) -> bool:
    """Whether a node consists of stores and loops that may be repeated anywhere."""
    if type(node).__name__ == "Store":
        return True
    plain = type(node).__name__ == "Loop" and not node.sequential and node.parts is None and node.pause is None
    return plain and all(map(_plain, node.body))


def _stores(nodes: Sequence[Any]) -> list[Any]:
    out = []
    for node in nodes:
        if type(node).__name__ == "Store":
            out.append(node)
        else:
            for body in getattr(node, "bodies", ()):
                out += _stores(body)
            if getattr(node, "after", None) is not None:
                out += _stores([node.after])
    return out


def _accesses(s: Any) -> list[tuple[Any, Any]]:
    return [(s.buffer, s.index), *s.loads.values()]


def _own(buffer: Any, index: Sequence[Any], variables: set[str]) -> set[int]:
    """The axes of an access that the iteration alone says."""
    if buffer is not buffer.root:
        return set()
    return {a for a in buffer.axes if index[a].op == "var" and index[a].attr in variables}


def _within(program: Any, loop: Any, register: Any) -> bool:
    """Whether a register is set at the beginning of each iteration and not used elsewhere."""

    def uses(nodes: Sequence[Any]) -> int:
        return sum(b.root is register for s in _stores(nodes) for b, _ in _accesses(s))

    first = next(node for node in loop.body if uses([node]))
    begins = type(first).__name__ == "Store" and first.combine is None and not any(b.root is register for b, _ in first.loads.values())
    return begins and uses(loop.body) == uses(program.nodes)
