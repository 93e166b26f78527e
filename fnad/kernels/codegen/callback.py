"""Calls from a native program back into Python, for operations that are not compiled and stand inside of a loop or branch.

A program calls `fnad_host(work, number, addresses)`. The header of its workspace names who answers; `number` says which
operation it is, `addresses` where the first entries of its operands and results lie. Before, it sets a mark in its workspace; if the
mark is still there afterwards, the program ends. So it also ends at an error that Python raises before it can be caught, as Ctrl-C does.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from typing import Any, Protocol

from fnad import _llvm

OWNER, ENDED = 16, 24  # where a workspace holds the number of who answers, and whether the program has ended early, in bytes
_numbers = itertools.count(1)
_known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


class Answering(Protocol):
    """Who answers the calls of a program."""

    def answer(self, work: int, number: int, addresses: int) -> bool:
        """Run an operation; whether the program can go on."""
        ...


def ended(work: int) -> bool:
    """Whether a program has ended early."""
    return ctypes.c_int64.from_address(work + ENDED).value != 0


def register(owner: Answering) -> int:
    """The number by which workspaces name an owner."""
    number = next(_numbers)
    _known[number] = owner
    return number


@functools.cache
def callback() -> Any:
    """The C function; it takes the GIL while it runs."""
    word = ctypes.c_int64

    def host(work: int, number: int, addresses: int) -> None:
        if _known[word.from_address(work + OWNER).value].answer(work, number, addresses):
            word.from_address(work + ENDED).value = 0

    return ctypes.CFUNCTYPE(None, word, word, word)(host)


def name_callback() -> None:
    """Let native code find it."""
    address = ctypes.cast(callback(), ctypes.c_void_p).value
    assert address is not None
    _llvm.name_symbol("fnad_host", address)
