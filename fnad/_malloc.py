"""Memory for results: pages that glibc keeps for the next call, where it would give them back after each.

The kernel clears a page when it is first touched. For arrays that are made and dropped in every call that takes longer than the
arithmetic: three results of 1.6 MB cost 5 ms in fresh pages and 0.2 ms in kept ones.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_TRIM, _MMAP = -1, -3  # of mallopt
MAPPED = 32 << 20  # bytes from which an allocation has pages of its own: the most that glibc itself rises to
KEPT = 256 << 20  # bytes of free memory at the end of the heap that the process keeps
_CHOSEN = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


@functools.cache
def keep_pages() -> bool:
    """Whether the process now keeps them: on Linux with glibc, unless its environment says what malloc does."""
    if sys.platform != "linux" or any(name in os.environ for name in _CHOSEN):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_MMAP, MAPPED)) and bool(mallopt(_TRIM, KEPT))
