"""Reversing a long loop in bounded memory: its state is saved from time to time, and the iterations between are run again.

The forward sweep keeps no tape for the loop, only snapshots: what an iteration starts with. The backward sweep takes the
last snapshot, runs the iterations after it with a tape, reverses those, and goes on with the snapshot before. With a snapshot
every sqrt(n) iterations, the default, memory grows with sqrt(n) and the loop runs twice forwards (Griewank & Walther,
"Evaluating Derivatives", 2008, chapter 12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fnad.errors import UnsupportedError
from fnad.loops.analysis import is_array
from fnad.loops.emit import Builder
from fnad.loops.ir import BOOL, INT, Block, Const, For, If, Op, Operand, Scalar, Value, walk
from fnad.loops.unroll import Copier

if TYPE_CHECKING:
    from fnad.loops.adjoint import Program


class Segments(NamedTuple):
    """How a loop is cut: the number of pieces, the iterations of each, and what a snapshot holds."""

    pieces: Value
    length: Value
    params: list[Value]
    saved: list[Value]
    arrays: list[tuple[Value, Value]]
    """(array, its contents in the snapshot) for every array that the loop changes and that exists before it."""
    keeps: list[Op]
    """What puts the snapshot into its lists, in the order of `saved`."""


def _changed(program: Program, loop: For) -> list[Value]:
    """The arrays from before the loop that its iterations write to."""
    inside = {i.out for i in walk(loop.body) if isinstance(i, Op) and i.out is not None}
    roots = {r for i in walk(loop.body) if isinstance(i, Op) and i.kind == "store" for r in program.memory.roots[i.args[0]]}  # type: ignore[index]
    outside = sorted(roots - inside, key=lambda r: r.name)
    for root in outside:
        if program.places.home.get(root, ()):
            raise UnsupportedError(
                "a loop with checkpoints cannot change an array that an earlier loop has made",
                got={"array": root.name, "at": f"{program.fn.source[0]}:{loop.line}"},
                fix="copy the array before the loop, or leave out checkpoint=",
            )
    return outside


def _count(b: Builder, loop: For, snapshots: int) -> tuple[Value, Value]:
    """(number of pieces, iterations of a piece)."""
    trips = b.op("trips", loop.lo, loop.hi, loop.step, type=INT, name="trips")
    one = b.integer(1)
    if snapshots == 0:
        root = b.op("sqrt", b.op("cast", trips, type=Scalar(np.dtype(np.float64))), type=Scalar(np.dtype(np.float64)))
        length = b.op("add", b.op("cast", root, type=INT), one, type=INT, name="length")
    else:
        length = b.op("add", b.op("floordiv", trips, b.integer(snapshots), type=INT), one, type=INT, name="length")
    rounded = b.op("sub", b.op("add", trips, length, type=INT), one, type=INT)
    return b.op("floordiv", rounded, length, type=INT, name="pieces"), length


def save(program: Program, loop: For, snapshots: int) -> Segments:
    """Put in the place of a loop of the forward sweep one that takes snapshots; the loop itself is left to the backward sweep."""
    arrays = [p for p in loop.params if is_array(p)]
    shadows = set(program.shadow.values())
    b = Builder(program.names)
    pieces, length = _count(b, loop, snapshots)
    copier = Copier(program.names)
    plain = copier.apart(loop)
    program.copies.update({new: old for old, new in copier.new.items() if isinstance(new, Value)})
    plain.results = program.ends[id(loop)] = [*loop.results]
    loop.results = [Value(program.names.fresh(r.name), r.type, r.line) for r in loop.results]
    snapshot = Builder(program.names)
    kept: list[tuple[Value, Value]] = []
    for p, mine in zip(loop.params, plain.params, strict=True):
        kept.append((mine, Value(program.names.fresh(p.name), p.type)))
        program.copies[kept[-1][1]] = p
    contents: list[tuple[Value, Value]] = []
    for original, mine in [(p, plain.params[loop.params.index(p)]) for p in arrays if p not in shadows] + [
        (r, r) for r in _changed(program, loop)
    ]:
        copy = snapshot.op("copy", mine, type=mine.type, name=f"{original.name}_saved")
        contents.append((original, Value(program.names.fresh(copy.name), copy.type)))
        kept.append((copy, contents[-1][1]))
    keeps = [Op("keep", (value,), None, {"value": name}) for value, name in kept]
    snapshot.block.items += keeps
    _take_at_starts(program, plain, snapshot.block, length)
    items = program.forward.items
    at = next(k for k, item in enumerate(items) if item is loop)
    items[at : at + 1] = [*b.block.items, plain]
    return Segments(pieces, length, [n for _, n in kept[: len(loop.params)]], [n for _, n in kept], contents, keeps)


def _take_at_starts(program: Program, plain: For, snapshot: Block, length: Value) -> None:
    """Run `snapshot` at the start of every piece."""
    b = Builder(program.names)
    first, second = (plain.iv, plain.lo) if isinstance(plain.step, Const) and plain.step.value == 1 else (plain.lo, plain.iv)
    number = b.op("sub", first, second, type=INT)
    start = b.op("eq", b.op("mod", number, length, type=INT), b.integer(0), type=BOOL)
    b.block.items.append(If(start, snapshot, Block(), line=plain.line))
    plain.body.items[:0] = b.block.items


def pieces(program: Program, loop: For, cut: Segments, b: Builder) -> Builder:
    """Begin the loop over the pieces, last one first; answers the builder of its body, where the piece is run again.

    `loop` becomes the loop over one piece.
    """
    assert isinstance(loop.step, Const)
    k = Value(program.names.fresh("piece"), INT)
    inner = Builder(program.names)
    minus = b.integer(-1)
    last = b.op("sub", cut.pieces, b.integer(1), type=INT)
    around = For(k, last, minus, minus, inner.block, line=loop.line)
    b.block.items.append(around)
    taken = {name: Value(program.names.fresh(name.name), name.type) for name in cut.saved}
    for (name, value), keep in zip(taken.items(), cut.keeps, strict=True):
        program.copies[value] = program.copies.get(name, name)
        inner.block.items.append(Op("take", (), value, {"value": name, "from": keep}))
    for original, name in cut.arrays:
        target = taken[cut.params[loop.params.index(original)]] if original in loop.params else original
        inner.do("call", target, taken[name], name="restore")
    up = loop.step.value == 1
    start: Operand = inner.op("mul", k, cut.length, type=INT)
    lo = inner.op("add" if up else "sub", loop.lo, start, type=INT, name="start")
    far = inner.op("add" if up else "sub", lo, cut.length, type=INT)
    beyond = inner.op("gt" if up else "lt", far, loop.hi, type=BOOL)
    loop.lo, loop.hi = lo, inner.op("select", beyond, loop.hi, far, type=INT, name="stop")
    loop.inits = [taken[name] for name in cut.params]
    inner.block.items.append(loop)
    _hand_on(program, loop, around, inner)
    return inner


def _hand_on(program: Program, loop: For, around: For, inner: Builder) -> None:
    """The adjoints of the arrays with which the next piece begins are those of the arrays with which this one has ended.

    An array that the iterations make is another one when they are run again; then its adjoint is moved.
    """
    shadows = set(program.shadow.values())
    for k, p in enumerate(loop.params):
        if p in shadows:
            following = Value(program.names.fresh(p.name), p.type)
            around.params.append(following)
            around.inits.append(program.ends[id(loop)][k])
            around.yields.append(loop.inits[k])
            around.results.append(Value(program.names.fresh(p.name), p.type))
            inner.do("call", loop.results[k], following, name="hand_on")
