"""Plain arrays that a pullback reads later, guarded against being overwritten in between.

A function may reuse a buffer (`mask[:] = 0; mask[i] = 1; y = y + x * mask`). The tape would then read the last contents for
every iteration: a silent wrong gradient. Small arrays are copied; a copy of a large one would cost more than the operation
itself, so a sample of its entries is compared before the backward pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import InPlaceError, user_line

COPY_BYTES = 1 << 16
_SAMPLES = 1024


class Keeper:
    """The plain arrays that one tape refers to."""

    __slots__ = ("watched",)

    def __init__(self) -> None:
        self.watched: dict[int, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], str]] = {}

    def keep(self, a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array with the contents of `a` as they are now."""
        if a.size * a.itemsize <= COPY_BYTES:
            return a.copy()
        if id(a) not in self.watched:
            self.watched[id(a)] = a, _sample(a), user_line()
        return a

    def check(self) -> None:
        """Raise if a large array is seen to have changed since it was used."""
        for a, before, line in self.watched.values():
            if _sample(a).tobytes() != before.tobytes():
                raise InPlaceError(
                    "an array was changed in place after a traced operation used it, so the gradient would be wrong",
                    got={"array": f"{a.dtype}{list(a.shape)}", "used at": line},
                    fix="make a new array instead of writing into it, or copy it before the operation: x * mask.copy()",
                )


def _sample(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    per_axis = max(2, int(_SAMPLES ** (1 / max(a.ndim, 1))))
    return a[tuple(slice(None, None, -(-n // per_axis) if n else None) for n in a.shape)].copy()
