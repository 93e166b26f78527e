"""Merge loop nests that run over the same index space, and shrink temporaries that live inside one nest."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from fnad.compiler.program import Access, Branch, Buffer, Gemm, Host, Loop, Nest, Node, Store, While, accesses, touched

_LARGE = 1000  # operations of a loop from which memory is not what takes time, and LLVM more than twice as long for twice as many
_STREAMS = 6  # arrays that memory delivers at full speed at the same time


class Fuser:
    """Collects nodes; each new loop nest joins an earlier one where no dependence is broken."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._begin = 0  # nodes before it are settled
        self.same: dict[Any, Any] = {}  # a loop variable -> the one it was merged into

    def canonical(self, e: Any) -> Any:
        while e in self.same:
            e = self.same[e]
        return e

    def merged(self) -> list[Any]:
        """Variables of loops that were merged into others."""
        return list(self.same)

    def add(self, node: Node) -> None:
        self._insert(self.nodes, node, self._begin)

    def settle(self) -> None:
        """Let what is added from now on stay behind what is there."""
        self._begin = len(self.nodes)

    def append(self, node: Node) -> None:
        """Add a node that is not to be merged."""
        self.nodes.append(node)

    def _insert(self, body: list[Node], node: Node, begin: int = 0) -> None:
        written, read = touched(node)
        if (
            not read and not isinstance(node, Host) and not any(written & side for other in body for side in touched(other))
        ):  # start values: out of the way
            body.insert(begin, node)
            return
        if isinstance(node, Loop):
            for k in range(len(body) - 1, begin - 1, -1):
                other = body[k]
                if isinstance(other, Loop) and other.extent == node.extent and not other.sequential and self._mergeable(other, node):
                    self.same[node.var] = other.var
                    other.absorb(node)
                    for child in node.body:
                        self._insert(other.body, child)
                    return
                if self._depends(node, other):
                    break
        elif isinstance(node, Store):  # as early as it can be, so that it does not stand between loops
            at = max((k + 1 for k, other in enumerate(body) if k >= begin and self._depends(node, other)), default=begin)
            while at < len(body) and isinstance(body[at], Store):
                at += 1
            body.insert(at, node)
            return
        body.append(node)

    def _depends(self, later: Node, earlier: Node) -> bool:
        written, read = touched(earlier)
        new_written, new_read = touched(later)
        return bool(written & new_read or read & new_written or written & new_written)

    def _mergeable(self, a: Loop, b: Loop) -> bool:
        """Whether each iteration of b needs of a only what a's iteration of the same number has finished."""
        if a.size_of_code + b.size_of_code > _LARGE:
            return False
        written, read = touched(a)
        new_written, new_read = touched(b)
        shared = (written & new_read) | (read & new_written) | (written & new_written)
        if not shared:
            return not _crowded(a, b)
        for buffer in shared:
            mine = [self._axis_of(access, a) for access in accesses(a, buffer)]
            theirs = [self._axis_of(access, b) for access in accesses(b, buffer)]
            if len({*mine, *theirs}) != 1 or mine[0] is None:
                return False
        return True

    def _axis_of(self, access: Access, loop: Loop) -> int | None:
        """The one axis of an access that is the loop's variable itself."""
        buffer, index = access
        if buffer is not buffer.root:
            return None
        found = [k for k, e in enumerate(index) if self.canonical(e) is self.canonical(loop.var)]
        return found[0] if len(found) == 1 else None

    def contract(self, buffers: Sequence[Buffer]) -> None:
        """Drop stored axes of temporaries that are loops around every access."""
        uses: dict[Buffer, list[tuple[tuple[Loop, ...], Sequence[Any]]]] = {}
        fixed: set[Buffer] = set()
        for node in self.nodes:
            _collect(node, (), uses, fixed)
        fixed |= {b.root for b in uses if b.root is not b}
        for buffer in buffers:
            if buffer.kind != "temp" or buffer.root in fixed or buffer not in uses:
                continue
            around = set(uses[buffer][0][0])
            for path, _ in uses[buffer]:
                around &= set(path)
            variables = {self.canonical(loop.var) for loop in around}
            keep = []
            for axis in range(len(buffer.shape)):
                where = {self.canonical(index[axis]) for _, index in uses[buffer]}
                if not (len(where) == 1 and next(iter(where)) in variables):
                    keep.append(axis)
            buffer.axes = tuple(keep)


def _crowded(a: Node, b: Node) -> bool:
    """Whether two nodes that have no array in common would read and write too many of them together."""
    mine, theirs = ({buffer for side in touched(n) for buffer in side if buffer.shape} for n in (a, b))
    return not mine & theirs and len(mine) + len(theirs) > _STREAMS


def _collect(node: Node, path: tuple[Loop, ...], uses: dict[Buffer, list[Any]], fixed: set[Buffer]) -> None:
    """Where buffers are accessed, and which ones as a whole."""
    if isinstance(node, Nest):
        for child in itertools.chain(*node.bodies):
            _collect(child, (*path, node) if isinstance(node, Loop) else path, uses, fixed)
        if isinstance(node, While | Branch):
            decides = node.going if isinstance(node, While) else node.chosen
            uses.setdefault(decides, []).append((path, ()))
    elif isinstance(node, Gemm | Host):
        fixed |= touched(node)[0] | touched(node)[1]
    elif isinstance(node, Store):
        for buffer, index in ((node.buffer, node.index), *node.loads.values()):
            uses.setdefault(buffer, []).append((path, index))
