"""Plain arrays that a pullback reads later, guarded against being overwritten in between.

A function may reuse a buffer (`mask[:] = 0; mask[i] = 1; y = y + x * mask`). The tape would then read the last contents for
every iteration: a silent wrong gradient. Small arrays are copied; of large ones, whose copy would double the memory, a
signature is compared before the backward pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import InPlaceError, user_line

COPY_BYTES = 1 << 16
_PERIODS = 1009, 1013


class Keeper:
    """The plain arrays that one tape refers to."""

    __slots__ = ("watched",)

    def __init__(self) -> None:
        self.watched: dict[int, tuple[np.ndarray[Any, Any], bytes, str]] = {}

    def keep(self, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array with the contents of `a` as they are now."""
        if a.size * a.itemsize <= COPY_BYTES or a.dtype.hasobject:
            return a.copy()
        if id(a) not in self.watched:
            self.watched[id(a)] = a, signature(a), user_line()
        return a

    def check(self) -> None:
        """Raise if a large array has changed since it was used."""
        for a, before, line in self.watched.values():
            if signature(a) != before:
                raise InPlaceError(
                    "an array was changed in place after a traced operation used it, so the gradient would be wrong",
                    got={"array": f"{a.dtype}{list(a.shape)}", "used at": line},
                    fix="make a new array instead of writing into it, or copy it before the operation: x * mask.copy()",
                )


def signature(a: np.ndarray[Any, Any]) -> bytes:
    """Changes when entries of an array change: its words combined by xor over two periods that have no common factor.

    One period alone would miss an entry that moves by a multiple of it. It reads the array twice, at the speed of memory.
    """
    single = tuple(slice(1) if step == 0 and n else slice(None) for n, step in zip(a.shape, a.strides, strict=True))
    octets = np.ascontiguousarray(a[single]).reshape(-1).view(np.uint8)
    whole = octets.size // 8
    words = octets[: 8 * whole].view(np.uint64)
    parts = [octets[8 * whole :].tobytes()]
    for period in _PERIODS:
        rows = whole // period
        parts.append(np.bitwise_xor.reduce(words[: rows * period].reshape(rows, period), axis=0).tobytes())
        parts.append(words[rows * period :].tobytes())
    return b"".join(parts)
