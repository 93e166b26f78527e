"""Memory for the temporaries of programs that need much of it: a piece that is not in use serves whichever program runs next."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad import _fork

LARGE = 1 << 16
"""Bytes from which on a program does not keep its workspace between calls."""
_SPARE = 2
"""How many pieces are kept."""

ALIGN = 64

_lock = _fork.lock(5)
_spare: list[tuple[int, Any, int]] = []  # size, array, address; the smallest first


def make(size: int) -> tuple[Any, int]:
    """An array, and an aligned address in it from which on it has so many bytes."""
    piece = np.empty(size + ALIGN, np.uint8)
    return piece, -(-piece.ctypes.data // ALIGN) * ALIGN


def take(size: int) -> tuple[Any, int]:
    """As `make`, from what is at hand."""
    with _lock:
        for k, (found, piece, base) in enumerate(_spare):
            if found >= size:
                del _spare[k]
                return piece, base
        if _spare:  # the new piece will take the place of the largest
            del _spare[-1]
    return make(size)


def give_back(piece: Any, base: int) -> None:
    """Let others use an array."""
    with _lock:
        _spare.append((piece.nbytes - ALIGN, piece, base))
        _spare.sort(key=_size)
        if len(_spare) > _SPARE:
            del _spare[0]


def _size(entry: tuple[int, Any, int]) -> int:
    return entry[0]
