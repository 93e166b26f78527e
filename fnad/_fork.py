"""Locks that a fork waits for, so that none is locked for ever in the child by a thread that the child does not have."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from typing import Any

_NUMBA = 3  # where numba's own lock, which it holds while it compiles, stands in the order
_locks: list[tuple[int, Any]] = []
_held: list[Any] = []


def lock(order: int) -> Any:
    """A reentrant lock that is free in a forked child.

    Args:
        order: Locks of a lower order are never waited for while one of a higher order is held: 0 for recordings that are compiled,
            1 and 2 for native code, 3 is numba's, 4 for LLVM, 5 for what guards a table for a moment.
    """
    made = threading.RLock()
    _locks.append((order, made))
    _locks.sort(key=lambda pair: pair[0])
    return made


def _hold() -> None:
    numba = sys.modules.get("numba.core.compiler_lock")
    numbas = [(_NUMBA, numba.global_compiler_lock)] if numba is not None else []
    for _, each in sorted([*_locks, *numbas], key=lambda pair: pair[0]):
        each.acquire()
        _held.append(each)


def _give_back() -> None:
    while _held:
        _held.pop().release()


@functools.cache
def prepare() -> None:
    """Make forks wait; called before the first compilation.

    Such hooks run in the reverse order of their registration. Compiling needs the lock of `logging`, so that has to have its hook
    first, or a fork would hold that lock while it waits for the compilation.
    """
    importlib.import_module("logging")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold, after_in_parent=_give_back, after_in_child=_give_back)
