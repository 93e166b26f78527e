"""Plain arrays that a pullback reads later, guarded against being overwritten in between.

A function may reuse a buffer (`mask[:] = 0; mask[i] = 1; y = y + x * mask`). The tape would then read the last contents for
every iteration: a silent wrong gradient. Small arrays are copied; of large ones, whose copy would double the memory, a
signature is compared before the backward pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fnad.errors import InPlaceError, describe_function, user_line

BY_REFERENCE: ContextVar[Any] = ContextVar("by reference", default=None)
"""The recording of a graph that reads the arrays it refers to at each evaluation, so that none may be copied."""

COPY_BYTES = 1 << 16
_SHARE_BYTES = 1 << 12
_PERIODS = 251, 257  # without a common factor: one alone would miss an entry that moves by a multiple of it
_BLOCK = _PERIODS[0] * _PERIODS[1]


class Keeper:
    """The plain arrays that one tape refers to."""

    __slots__ = ("copies", "watched")

    def __init__(self) -> None:
        self.copies: dict[int, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
        self.watched: dict[int, tuple[np.ndarray[Any, Any], bytes, str]] = {}

    def keep(self, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array with the contents of `a` as they are now."""
        if BY_REFERENCE.get() is not None:
            return a
        size = a.size * a.itemsize
        if size <= _SHARE_BYTES or a.dtype.hasobject:
            return a.copy()
        if size <= COPY_BYTES:
            have = self.copies.get(id(a))
            if have is None or signature(have[0]) != signature(have[1]):
                self.copies[id(a)] = have = a, a.copy()
            return have[1]
        if id(a) in self.watched:
            self._check(*self.watched[id(a)])
        else:
            self.watched[id(a)] = a, signature(a), user_line()
        return a

    def check(self) -> None:
        """Raise if a large array has changed since it was used."""
        for watched in self.watched.values():
            self._check(*watched)

    def _check(self, a: np.ndarray[Any, Any], before: bytes, line: str) -> None:
        if signature(a) != before:
            raise InPlaceError(
                "an array was changed in place after a traced operation used it, so the gradient would be wrong",
                got={"array": f"{a.dtype}{list(a.shape)}", "used at": line},
                fix="make a new array instead of writing into it, or copy it before the operation: x * mask.copy()",
            )


class Referred:
    """The plain arrays that a recording refers to: what they held when it met them, in case that changes while it lasts."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        self.met: dict[int, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None, bytes, str]] = {}

    def meet(self, a: np.ndarray[Any, Any]) -> None:
        if a.flags.writeable and not a.dtype.hasobject:
            copy = a.copy() if a.nbytes <= COPY_BYTES else None
            self.met[id(a)] = a, copy, contents(a), "" if copy is not None else user_line()

    def changed(self, a: np.ndarray[Any, Any]) -> bool:
        """Whether it holds something else now."""
        return id(a) in self.met and contents(a) != self.met[id(a)][2]

    def before(self, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What it held."""
        _, copy, _, line = self.met[id(a)]
        if copy is None:
            raise InPlaceError(
                "an array was changed in place after an operation used it, while the function was recorded",
                got={"array": f"{a.dtype}{list(a.shape)}", "used at": line},
                fix="make a new array instead of writing into it, or copy it before the operation: x * mask.copy()",
            )
        return copy


def contents(a: np.ndarray[Any, Any]) -> bytes:
    """Changes when entries of an array change; above 1 MiB, when some of them do."""
    if a.nbytes <= COPY_BYTES:
        return a.tobytes()
    return signature(a) if a.nbytes <= COPY_BYTES << 4 else a.flat[:: a.size // 4096].tobytes()


def signature(a: np.ndarray[Any, Any]) -> bytes:
    """Changes when entries of an array change: words combined by xor over two periods, block by block.

    The blocks fit a cache, so the array is read from memory once.
    """
    single = tuple(slice(1) if step == 0 and n else slice(None) for n, step in zip(a.shape, a.strides, strict=True))
    octets = np.ascontiguousarray(a[single]).reshape(-1).view(np.uint8)
    whole = octets.size // 8
    words = octets[: 8 * whole].view(np.uint64)
    parts = [octets[8 * whole :].tobytes()]
    for start in range(0, whole, _BLOCK):
        block = words[start : start + _BLOCK]
        for period in _PERIODS:
            rows = block.size // period
            parts.append(np.bitwise_xor.reduce(block[: rows * period].reshape(rows, period), axis=0).tobytes())
            parts.append(block[rows * period :].tobytes())
    return b"".join(parts)


@contextlib.contextmanager
def unchanged(args: Iterable[Any], function: Any) -> Iterator[None]:
    """Raise if a user's function, run on plain values that others refer to, changes one of them in place."""
    args = list(args)
    before = [signature(x) if x.__class__ is np.ndarray and x.flags.writeable else None for x in args]
    yield
    for x, was in zip(args, before, strict=True):
        if was is not None and signature(x) != was:
            raise InPlaceError(
                "a function under custom_vjp, custom_jvp or checkpoint changed its argument in place",
                got={"function": describe_function(function), "array": f"{x.dtype}{list(x.shape)}"},
                fix="write a = a - a.mean() (a new array) instead of a -= a.mean()",
            )
