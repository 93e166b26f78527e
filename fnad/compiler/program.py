"""The loop IR: buffers, loop nests over index spaces, stores of scalar expressions, calls of kernels.

Index expressions and values are `kernels.codegen.expr` expressions. Sizes, strides and offsets are the variables s0, s1, ...
of the program's argument vector, literals l0, l1, ... of another: the text of a program does not depend on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.kernels.codegen import expr as ex
from fnad.kernels.codegen.graph import ordered
from fnad.typing import Shape

CODES = {
    np.dtype(np.float32): "f32", np.dtype(np.float64): "f64", np.dtype(bool): "bool", np.dtype(np.int64): "i64",
    np.dtype(np.int32): "i32", np.dtype(np.int16): "i16", np.dtype(np.int8): "i8", np.dtype(np.uint64): "u64",
    np.dtype(np.uint32): "u32", np.dtype(np.uint16): "u16", np.dtype(np.uint8): "u8",
}  # fmt: skip


class Numbers:
    """The argument vectors of a program, filled while it is planned."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.literals: list[float] = []
        self.closed = False  # once a program's text is known, its numbers are

    def size(self, n: int) -> Any:
        """An index expression for a size or offset; 0 and +-1 are written into the code."""
        if n in (0, 1, -1):
            return ex.const(n, "i64")
        assert not self.closed
        self.sizes.append(int(n))
        return ex.var(f"s{len(self.sizes) - 1}", "i64")

    def literal(self, value: Any, code: str) -> Any:
        """A scalar operand; 0, +-1, nan and what is no real number are written into the code.

        Infinities are not: LLVM would make branches of a maximum over `where(mask, x, -inf)`.
        """
        if code not in ("f32", "f64") or value in (0, 1, -1) or np.isnan(value):
            return ex.const(value, code)
        self.literals.append(float(value))
        wide = ex.var(f"l{len(self.literals) - 1}", "f64")
        return wide if code == "f64" else ex.cast(wide, code)


class Buffer:
    """Memory of a program: an argument, a result, or a temporary. Entries lie in C order.

    `axes` are the axes that are stored; a temporary whose other axes are loops around all its uses needs only these.
    """

    __slots__ = ("axes", "code", "dtype", "kind", "name", "offset", "place", "position", "root", "shape", "shift", "spacing", "strides")

    def __init__(self, name: str, shape: Shape, dtype: Any, kind: str, position: int = -1, root: Buffer | None = None) -> None:
        self.name, self.shape, self.dtype, self.kind, self.position = name, shape, np.dtype(dtype), kind, position
        self.code = CODES.get(self.dtype, "")  # no code: only the host computes with it
        self.axes = tuple(range(len(shape)))
        self.strides: list[Any] | None = None
        self.offset: Any = None  # where it begins in the workspace, as an expression and as a number
        self.place = 0
        self.shift: Any = None  # of a part of another buffer: where it begins there, in entries
        self.spacing: Any = None  # bytes between the copies of the parts of a loop
        self.root: Buffer = root.root if root is not None else self  # the memory that a reshape shares

    @property
    def bytes(self) -> int:
        n = self.dtype.itemsize
        for a in self.axes:
            n *= self.shape[a]
        return n

    @property
    def is_register(self) -> bool:
        """A temporary of one entry that only loops use."""
        return self.kind == "temp" and not self.axes and self.offset is None

    def __repr__(self) -> str:
        return f"{self.name}:{self.dtype}[{','.join(str(self.shape[a]) for a in self.axes)}]"


Index: TypeAlias = tuple[Any, ...]
Access: TypeAlias = tuple[Buffer, Index]


class Store:
    """`buffer[index] = value`, or `buffer[index] = combine(buffer[index], value)`; `loads` names what value reads.

    `equations` are what it computes, for people.
    """

    __slots__ = ("buffer", "combine", "equations", "index", "loads", "size_of_code", "value")

    def __init__(self, buffer: Buffer, index: Index, value: Any, loads: dict[str, Access], combine: str | None = None) -> None:
        self.buffer, self.index, self.value, self.loads, self.combine = buffer, index, value, loads, combine
        self.equations: tuple[Any, ...] = ()
        self.size_of_code = len(ordered([value]))

    def accesses(self) -> Iterator[Access]:
        yield from self.loads.values()
        if self.combine:
            yield self.buffer, self.index


class Nest:
    """A node around the nodes of one or more bodies. Knows which buffers they touch, and how much they are to compile."""

    __slots__ = ("bodies", "read", "size_of_code", "written")

    def __init__(self, *bodies: list[Any]) -> None:
        self.bodies = bodies
        self.size_of_code = 0
        self.written: set[Buffer] = set()
        self.read: set[Buffer] = set()
        for body in bodies:
            for child in body:
                self.absorb(child)

    def absorb(self, node: Any) -> None:
        written, read = touched(node)
        self.written |= written
        self.read |= read
        self.size_of_code += node.size_of_code if isinstance(node, Nest | Store) else 1


class Loop(Nest):
    """`for var in range(extent)` over a body; `size` is the extent as an expression.

    `pause`: after how many steps it looks for signals; None if it does not.
    """

    __slots__ = ("extent", "parts", "pause", "sequential", "size", "var")

    def __init__(self, var: Any, extent: int, size: Any, body: list[Any], sequential: bool = False) -> None:
        super().__init__(body)
        self.sequential = sequential  # iterations depend on each other and stay together
        self.parts: Any = None
        self.pause: Any = None
        self.var, self.extent, self.size = var, extent, size

    @property
    def body(self) -> list[Any]:
        return self.bodies[0]


class While(Nest):
    """The nodes of `test`, then those of `body`, again and again, while `going` holds after `test`. `pause` is that of `Loop`."""

    __slots__ = ("going", "pause")

    def __init__(self, test: list[Any], going: Buffer, body: list[Any]) -> None:
        super().__init__(test, body)
        self.going = going
        self.pause: Any = None
        self.read.add(going.root)


class Branch(Nest):
    """The nodes of one body, chosen by a scalar: a bool (False is body 0) or the number of a body."""

    __slots__ = ("chosen",)

    def __init__(self, chosen: Buffer, bodies: Sequence[list[Any]]) -> None:
        super().__init__(*bodies)
        self.chosen = chosen
        self.read.add(chosen.root)


class Gemm:
    """`out[b] = left[b] @ right[b]` for all b; a flag says that an operand is stored transposed.

    `guard` is that of `Call`. The loops `after` go over `out`, one per axis; they run for each piece of it as soon as it is computed.
    """

    __slots__ = ("after", "batch", "by_columns", "equation", "guard", "inputs", "k", "left", "m", "n", "numbers", "out", "parts", "right")

    def __init__(
        self,
        out: Buffer,
        left: tuple[Buffer, bool, bool],
        right: tuple[Buffer, bool, bool],
        dims: tuple[int, ...],
        numbers: Any,
        guard: tuple[bool, bool],
        equation: Any,
    ) -> None:
        self.equation = equation
        self.out, self.left, self.right, self.numbers = out, left, right, numbers
        self.batch, self.m, self.n, self.k = dims
        self.guard = guard
        self.parts: Any = None
        self.by_columns = False  # how it is cut into parts
        self.after: Loop | None = None
        self.inputs = (left[0], right[0])


class Host:
    """A primitive that is not compiled: its `impl` is called, between native parts or out of a loop or branch in one.

    `number` is that of a call out of native code.
    """

    __slots__ = ("equation", "inputs", "number", "outputs")

    def __init__(self, equation: Any, inputs: tuple[Any, ...], outputs: tuple[Buffer, ...]) -> None:
        self.equation, self.inputs, self.outputs = equation, inputs, outputs
        self.number = -1

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """What it reads and writes, each once."""
        return tuple(dict.fromkeys(b for b in (*self.inputs, *self.outputs) if isinstance(b, Buffer)))


class Called(Host):
    """An operation that native code computes by a function behind an address; where that fails, `impl` is called, which raises."""

    __slots__ = ()


class Lapack(Called):
    """An operation of LAPACK.

    `kernel` names the function, `numbers` are its sizes: how many matrices, rows, right-hand sides, and two steps in entries.
    """

    __slots__ = ("kernel", "numbers")

    def __init__(self, equation: Any, inputs: tuple[Any, ...], outputs: tuple[Buffer, ...], kernel: str, numbers: tuple[Any, ...]) -> None:
        super().__init__(equation, inputs, outputs)
        self.kernel, self.numbers = kernel, numbers


class Foreign(Called):
    """A function that somebody else compiled (`lowering.Native`): its address and the sizes of operands and results, as expressions."""

    __slots__ = ("address", "numbers")

    def __init__(
        self, equation: Any, inputs: tuple[Buffer, ...], outputs: tuple[Buffer, ...], address: Any, numbers: tuple[Any, ...]
    ) -> None:
        super().__init__(equation, inputs, outputs)
        self.address, self.numbers = address, numbers


Node: TypeAlias = Loop | While | Branch | Store | Gemm | Host


def stands_alone(node: Node) -> bool:
    """Whether Python runs a node between native parts."""
    return isinstance(node, Host) and not isinstance(node, Called)


SHORT = 4
_BRIEF = 256  # steps


def write_short_extents(nodes: Iterable[Node], nested: bool = False) -> None:
    """Innermost loops of two to four iterations inside of others: their extent goes into the code, so that they are unrolled."""
    for node in nodes:
        if isinstance(node, Nest):
            inner = [child for child in itertools.chain(*node.bodies) if isinstance(child, Loop | While | Branch)]
            if isinstance(node, Loop) and nested and not inner and not node.sequential and 2 <= node.extent <= SHORT:
                node.size = ex.const(node.extent, "i64")
            write_short_extents(inner, nested or not isinstance(node, Branch))


def endless(nodes: Iterable[Node]) -> bool:
    """Whether there are loops of many steps, or of nobody knows how many."""
    return any(
        isinstance(node, While | Foreign)
        or (isinstance(node, Loop) and node.sequential and node.extent > _BRIEF)
        or (isinstance(node, Nest) and endless(itertools.chain(*node.bodies)))
        for node in nodes
    )


def touched(node: Node) -> tuple[set[Buffer], set[Buffer]]:
    """Buffers a node writes, and buffers it reads."""
    if isinstance(node, Nest):
        return node.written, node.read
    if isinstance(node, Store):
        read = {b.root for b, _ in node.loads.values()}
        return {node.buffer.root}, read | {node.buffer.root} if node.combine else read
    if isinstance(node, Gemm):
        written, read = touched(node.after) if node.after else (set(), set())
        return written | {node.out.root}, read | {b.root for b in node.inputs}
    return {b.root for b in node.outputs}, {b.root for b in node.inputs if isinstance(b, Buffer)}


def accesses(node: Node, root: Buffer) -> list[Access]:
    """Every access to a buffer or a view of it in a node."""
    out = []
    for s in stores(node):
        if s.buffer.root is root:
            out.append((s.buffer, s.index))
        out += [(b, index) for b, index in s.loads.values() if b.root is root]
    return out


def stores(node: Node) -> Iterator[Store]:
    """All stores in a node, in order."""
    if isinstance(node, Store):
        yield node
    elif isinstance(node, Gemm) and node.after:
        yield from stores(node.after)
    elif isinstance(node, Nest):
        for child in itertools.chain(*node.bodies):
            yield from stores(child)


def effort(s: Store) -> int:
    """About how many operations a store takes."""
    return sum(8 if e.op in ("div", "sqrt", "call") else 1 for e in ordered([s.value])) + len(s.loads)


def straight(nodes: Sequence[Node]) -> Iterator[Node]:
    """Nodes that run at most once; those inside of a branch follow it."""
    for node in nodes:
        yield node
        if isinstance(node, Branch):
            yield from straight([*itertools.chain(*node.bodies)])
