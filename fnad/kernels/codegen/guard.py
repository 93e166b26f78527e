"""Whether arguments are what a program was compiled for, answered natively in nanoseconds per array.

Reads the fields of ndarray objects (data, nd, dimensions, strides, base, descr, flags: NumPy's C ABI) behind a tuple's items.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from fnad import _numba
from fnad.kernels.codegen.load import compiled, llvm_printer

_WORD = 8
ITEMS = tuple.__basicsize__
HEAD = object.__basicsize__
TYPE = HEAD - _WORD
_ND, _DIMS, _DESCR, _FLAGS = HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
_BASE = HEAD + 32
_WANTED = 0x101  # C_CONTIGUOUS and ALIGNED
_OWN = 0x505  # and OWNDATA and WRITEABLE


def expected(shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype[Any]], given: Collection[int] = ()) -> np.ndarray[Any, Any]:
    """What `guard` compares with: count, type, then rank, flags, dtype object and sizes of each array.

    The memory of arrays at the positions `given` will be written to: it must be their own, and of no other argument.
    """
    out = [len(shapes), id(np.ndarray)]
    for k, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        out += [len(shape), _OWN if k in given else _WANTED, id(dtype), *shape]
    return np.array(out, np.int64)


_SOURCE = """\"\"\"Whether arrays are what a program was compiled for.\"\"\"

from fnad.kernels.codegen.guard import peek_intrinsic

peek = peek_intrinsic()


def guard(arrays, wanted):
    n, kind = peek(wanted), peek(wanted + 8)
    p = wanted + 16
    for i in range(n):
        a = peek(arrays + {ITEMS} + 8 * i)
        if peek(a + {TYPE}) != kind:
            return 0
        nd = peek(p)
        flags = peek(p + 8)
        if (peek(a + {ND}) & 0xFFFFFFFF) != nd or peek(a + {DESCR}) != peek(p + 16) or peek(a + {FLAGS}) & flags != flags:
            return 0
        dims = peek(a + {DIMS})
        for k in range(nd):
            if peek(dims + 8 * k) != peek(p + 24 + 8 * k):
                return 0
        p += 24 + 8 * nd
        if flags == {OWN}:
            for j in range(n):
                other = peek(arrays + {ITEMS} + 8 * j)
                if peek(other + {TYPE}) != kind or (j != i and other == a) or peek(other + {BASE}) == a:
                    return 0
    return 1
"""


def peek_intrinsic() -> Any:
    """An intrinsic that reads the word at an address."""

    return _numba.word_intrinsic(1, lambda builder, arguments: llvm_printer().print_read(builder, arguments))


def _never(arrays: int, wanted: int) -> int:
    return 0


@functools.cache
def guard() -> Callable[[int, int], int]:
    """`guard(id(tuple), address of expected) -> 1 if its first arrays are as expected, C-contiguous and aligned`."""
    places = {"ITEMS": ITEMS, "TYPE": TYPE, "ND": _ND, "DIMS": _DIMS, "DESCR": _DESCR, "FLAGS": _FLAGS, "BASE": _BASE, "OWN": _OWN}
    entry = compiled("guard", _SOURCE.format(**places), "int64(int64,int64)")
    return entry if _works(entry) else _never


def _works(entry: Callable[[int, int], int]) -> bool:
    """Whether this interpreter and NumPy lay out their objects as assumed."""
    want = expected([(2, 3)], [np.dtype(np.float32)])

    def accepts(x: Any) -> bool:
        arrays = (x,)
        return bool(entry(id(arrays), want.ctypes.data))

    wrong = [np.zeros((2, 4), np.float32), np.zeros((2, 3)), np.zeros((3, 2), np.float32).T, np.zeros(6, np.float32)]
    return accepts(np.zeros((2, 3), np.float32)) and not any(map(accepts, wrong))
