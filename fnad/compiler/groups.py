"""What a program consists of, for people: each group is a loop nest, a matrix product, or an operation on the host."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fnad.compiler.program import Branch, Buffer, Foreign, Gemm, Host, Loop, Nest, Node, Store, While, stands_alone, stores
from fnad.core.graph import Equation
from fnad.kernels.codegen.graph import ordered, split_rare

_FLOPS = {"add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "neg": 1, "mad": 2, "fma": 2, "call": 1}
_WIDTH = 60  # of what is said of a group


class Group(NamedTuple):
    """One part of a compiled program."""

    name: str
    """g0, g1, ... in the order in which they run."""
    kind: str
    """"loop", "scan" (a loop with a carry), "while", "branch", "product", "lapack", "call" (a loop function)
    or "host" (Python calls NumPy or SciPy)."""
    what: str
    """The operations it computes."""
    line: str
    """The user's line that the first of them comes from."""
    bytes: int
    """Bytes of the arrays it reads and writes, each counted once (in a scan once per step; of a while one step, of a branch the most)."""
    flops: int
    """Additions, multiplications, divisions and roots of real numbers, as compiled: an `exp` is about 20. 0 for "lapack",
    "call" and "host"."""


def parts(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes of each group: scalar stores belong to the loop they stand before. The host stands alone."""
    out: list[list[Node]] = []
    waiting: list[Node] = []
    for node in nodes:
        if stands_alone(node) and waiting:
            out.append(waiting)
            waiting = []
        waiting.append(node)
        if not isinstance(node, Store):
            out.append(waiting)
            waiting = []
    if waiting and out and not stands_alone(out[-1][-1]):
        out[-1] += waiting
    elif waiting:
        out.append(waiting)
    return out


def groups(nodes: Sequence[Node]) -> list[Group]:
    """The groups of a program."""
    return [_group(f"g{k}", part) for k, part in enumerate(parts(nodes))]


def _group(name: str, part: Sequence[Node]) -> Group:
    found = list({id(e): e for node in part for e in _equations(node)}.values())
    names: dict[str, int] = {}
    for e in found:
        names[e.primitive.name] = names.get(e.primitive.name, 0) + 1
    line = next((e.where for e in found if e.where is not None), None)
    kind = "loop"
    for node in part:
        if isinstance(node, Gemm):
            kind = "product"
        elif isinstance(node, Host):
            kind = "host" if stands_alone(node) else "call" if isinstance(node, Foreign) else "lapack"
        elif isinstance(node, While | Branch):
            kind = type(node).__name__.lower()
        elif isinstance(node, Loop) and _sequential(node):
            kind = "scan"
    return Group(name, kind, _joined(names) or _plain(part), _place(line), sum(map(traffic, part)), sum(map(flops, part)))


def _plain(part: Sequence[Node]) -> str:
    """What a group without operations does."""
    return "copy" if any(s.loads for node in part for s in stores(node)) else "fill"


def _place(place: Any) -> str:
    return "" if place is None else f"{place.code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{place.line}"


def _joined(names: dict[str, int]) -> str:
    shown = [name if n == 1 else f"{name} x{n}" for name, n in names.items()]
    text = ", ".join(shown)
    while len(text) > _WIDTH and len(shown) > 1:
        shown.pop()
        text = f"{', '.join(shown)}, {len(names) - len(shown)} more"
    return text


def _equations(node: Node) -> Iterator[Equation]:
    if isinstance(node, Gemm | Host):
        yield node.equation
        if isinstance(node, Gemm) and node.after:
            yield from _equations(node.after)
    elif isinstance(node, Store):
        yield from node.equations
    else:
        for child in itertools.chain(*node.bodies):
            yield from _equations(child)


def _sequential(loop: Loop) -> bool:
    return loop.sequential or any(isinstance(child, Loop) and _sequential(child) for child in loop.body)


def _inside(nest: Nest, count: Callable[[Node], int]) -> int:
    """What the bodies of a node amount to: the largest of a branch, one step of a loop."""
    found = [sum(map(count, body)) for body in nest.bodies]
    return max(found) if isinstance(nest, Branch) else sum(found)


def traffic(node: Node) -> int:
    """Bytes of the arrays that a node reads and writes, each counted once."""
    if isinstance(node, Loop) and _sequential(node):
        return node.extent * _inside(node, traffic)
    if isinstance(node, While | Branch):
        return _inside(node, traffic)
    if isinstance(node, Host):
        return sum(b.bytes for b in (*node.inputs, *node.outputs) if isinstance(b, Buffer))
    touched: dict[tuple[str, Buffer], int] = {}
    _touch(node, 1, touched)
    if isinstance(node, Gemm):
        touched["read", node.out.root] = 0  # its loops find it in the cache
        touched["written", node.out.root] = node.out.bytes
        touched.update({("read", b.root): b.bytes for b in node.inputs})
    return sum(touched.values())


def _touch(node: Node, times: int, touched: dict[tuple[str, Buffer], int]) -> None:
    """Add up the entries that stores read and write; never more than the array has."""
    if isinstance(node, Loop):
        for child in node.body:
            _touch(child, times * node.extent, touched)
    elif isinstance(node, Gemm) and node.after:
        _touch(node.after, times, touched)
    elif isinstance(node, Store):
        for way, b in (("written", node.buffer), *(("read", b) for b, _ in node.loads.values())):
            if not b.root.is_register and b.kind != "flag":
                key = way, b.root
                touched[key] = min(b.bytes, touched.get(key, 0) + times * b.dtype.itemsize)


def flops(node: Node) -> int:
    """Floating-point operations of a node."""
    if isinstance(node, Nest):
        return _inside(node, flops) * (node.extent if isinstance(node, Loop) else 1)
    if isinstance(node, Gemm):
        return 2 * node.batch * node.m * node.n * node.k + (flops(node.after) if node.after else 0)
    if isinstance(node, Host):
        return 0
    usual = split_rare([node.value])[0]
    count = sum(_FLOPS.get(e.op, 0) for e in ordered(usual) if e.dtype in ("f32", "f64"))
    return count + (node.combine in ("add", "multiply") and node.buffer.code in ("f32", "f64"))


def table(found: Sequence[Group]) -> str:
    """The groups as a table."""
    rows = [(g.name, g.kind, quantity(g.bytes, "B"), quantity(g.flops, "flop"), g.line, g.what) for g in found]
    return aligned([("", "kind", "memory", "work", "line", "what"), *rows], right=(2, 3))


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows of text in columns; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [x.rjust(w) if k in right else x.ljust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


_PREFIXES = ("", "k", "M", "G", "T", "P")


def quantity(x: float, unit: str) -> str:
    """A number with a unit, three digits of it: `1.23 MB`."""
    power = 0 if x < 1000 else min(int(math.log10(x) // 3), len(_PREFIXES) - 1)
    value = x / 1000**power
    text = f"{value:.3g}" if power or x != int(x) else f"{int(x)}"
    return f"{text} {_PREFIXES[power]}{unit}"
