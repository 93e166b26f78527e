"""Operations that are not compiled: NumPy computes them on the memory of the program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fnad.compiler.program import Buffer, Called, Host, Nest, Node, stands_alone
from fnad.core.graph import Literal


def calls(nodes: Sequence[Node]) -> Iterator[Host]:
    """The operations that native code calls: those inside of loops and branches, where others stand between native parts."""
    for node in nodes:
        if isinstance(node, Called):
            yield node
        if isinstance(node, Nest):
            for body in node.bodies:
                yield from (n for n in body if stands_alone(n))
                yield from calls(body)


def run(node: Host, array: Callable[[Buffer], Any]) -> None:
    """Compute the results of an operation; `array` answers where a buffer lies."""
    e = node.equation
    inputs = [
        v.value if isinstance(v, Literal) else array(b).item() if v.aval.weak else array(b)
        for v, b in zip(e.inputs, node.inputs, strict=True)
    ]
    try:
        found = e.primitive.impl(*inputs, **e.params)
    except Exception as error:
        error.add_note(f"in a compiled function, at {e.line}")
        raise
    for b, value in zip(node.outputs, found if e.primitive.multiple else (found,), strict=True):
        array(b)[...] = value


def run_at(node: Host, addresses: int) -> None:
    """The same for buffers whose addresses lie one after the other in memory."""
    where = dict(zip(node.buffers, (ctypes.c_int64 * len(node.buffers)).from_address(addresses), strict=True))

    def array(b: Buffer) -> Any:
        size = b.dtype.itemsize
        for n in b.shape:
            size *= n
        return np.ndarray(b.shape, b.dtype, (ctypes.c_char * max(1, size)).from_address(where[b]))

    run(node, array)
