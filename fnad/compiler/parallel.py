"""Which loops run on several cores, and what each part of them keeps to itself.

A loop is cut into parts whose number depends on its size alone. Each part accumulates into memory of its own, and the parts
are combined in order, so the bits of a result do not depend on how many threads took part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from fnad.compiler.epilogues import loops_of
from fnad.compiler.program import Branch, Buffer, Gemm, Host, Loop, Nest, Node, Store, While, effort, stores, straight, touched

GRAIN = 1 << 17  # operations that are worth a part of their own
PARTS = 32
_PRODUCT_GRAIN = 1 << 21  # multiplications that are worth a block of their own
_BLOCKS = 8
_ROW_UNIT, _COLUMN_UNIT = 8, 48  # blocks are multiples of what the kernel takes at a time
PRIVATE_BYTES = 1 << 16  # largest accumulator that each part gets a copy of


class Parts:
    """How a loop is cut: `count` parts of `length` iterations, and the buffers each part has its own copy of."""

    __slots__ = ("count", "length", "private", "size")

    def __init__(self, count: int, length: int) -> None:
        self.count, self.length = count, length
        self.size: Any = None  # length as an expression
        self.private: dict[Buffer, str | None] = {}  # how the copies are combined; None: only used within a part


def split(nodes: list[Node], fuser: Any) -> None:
    """Mark the loops and products of a program that are to run in parts. Loops of products that cannot leave them again."""
    outside: dict[Buffer, int] = {}
    once = [*straight(nodes)]
    for node in once:
        written, read = (set(), {node.chosen.root}) if isinstance(node, Branch) else touched(node)
        for b in written | read:
            outside[b] = outside.get(b, 0) + 1
    for node in once:
        if isinstance(node, Gemm):
            after = node.after
            _split_product(node, fuser, outside)
            if after and not node.after:
                nodes.insert(nodes.index(node) + 1, after)
                _split_loop(after, fuser, outside)
        if isinstance(node, Loop):
            _split_loop(node, fuser, outside)


def _split_loop(loop: Loop, fuser: Any, outside: dict[Buffer, int]) -> None:
    count = 0 if loop.sequential else min(PARTS, loop.extent, int(_work(loop)) // GRAIN)
    if count > 1:
        parts = Parts(count, -(-loop.extent // count))
        parts.count = -(-loop.extent // parts.length)
        if _separable(loop, fuser, outside, parts):
            loop.parts = parts


def _split_product(g: Gemm, fuser: Any, outside: dict[Buffer, int]) -> None:
    """A large product runs in blocks: of matrices, in a stack; else of columns or of rows, of what there is more.

    If its loops can only be cut the other way, so is the product; if not at all, it goes without them.
    """
    wide = g.batch == 1 and g.n > g.m
    if not _cut_product(g, wide, fuser, outside) and not (g.batch == 1 and _cut_product(g, not wide, fuser, outside)):
        g.after = None
        _cut_product(g, wide, fuser, outside)


def _cut_product(g: Gemm, by_columns: bool, fuser: Any, outside: dict[Buffer, int]) -> bool:
    length, unit = (g.batch, 1) if g.batch != 1 else (g.n, _COLUMN_UNIT) if by_columns else (g.m, _ROW_UNIT)
    worth = g.batch * g.m * g.n * g.k / _PRODUCT_GRAIN + (_work(g.after) / GRAIN if g.after else 0)
    count = min(_BLOCKS, length, int(worth))
    if count > 1:
        block = -(-length // (count * unit)) * unit
        parts = Parts(-(-length // block), block)
        loops = loops_of(g.after) if g.after else None
        cut = [] if not loops else loops[:-2] if g.batch != 1 else loops[-1:] if by_columns else loops[-2:-1]
        if not all(_separable(loop, fuser, outside, parts) for loop in cut):
            return False
        g.parts = parts
    g.by_columns = by_columns
    return True


def _work(node: Node) -> float:
    if isinstance(node, Loop):
        return node.extent * sum(_work(child) for child in node.body)
    return effort(node) if isinstance(node, Store) else math.inf


def _separable(loop: Loop, fuser: Any, outside: dict[Buffer, int], parts: Parts) -> bool:
    """Whether iterations only meet in accumulators; fills in what is private to a part."""
    if any(isinstance(child, Gemm | Host | While | Branch) or (isinstance(child, Loop) and child.sequential) for child in _inner(loop)):
        return False
    var = fuser.canonical(loop.var)
    written: dict[Buffer, list[Store]] = {}
    for s in stores(loop):
        written.setdefault(s.buffer.root, []).append(s)
    reads: dict[Buffer, list[Any]] = {}
    for s in stores(loop):
        for b, index in s.loads.values():
            reads.setdefault(b.root, []).append((b, index))
    for root, found in written.items():
        everywhere = [(s.buffer, s.index) for s in found] + reads.get(root, [])
        axes = {_own_axis(b, index, var, fuser) for b, index in everywhere}
        if root.kind == "temp" and outside[root] == 1:
            stored = {a for a in axes if a is not None} & set(root.axes)
            if not (len(axes) == 1 and stored):
                parts.private[root] = None
            continue
        if len(axes) == 1 and None not in axes:
            continue
        ways = {s.combine for s in found}
        if root in reads or len(ways) != 1 or None in ways or root.bytes > PRIVATE_BYTES:
            return False
        parts.private[root] = found[0].combine
    return True


def _inner(nest: Nest) -> Iterator[Node]:
    for child in itertools.chain(*nest.bodies):
        yield child
        if isinstance(child, Nest):
            yield from _inner(child)


def _own_axis(buffer: Buffer, index: Sequence[Any], var: Any, fuser: Any) -> int | None:
    """The axis of an access that is the loop's counter; None if there is no such axis, or the access goes through a view."""
    if buffer is not buffer.root:
        return None
    found = [k for k, e in enumerate(index) if fuser.canonical(e) is var]
    return found[0] if len(found) == 1 else None
