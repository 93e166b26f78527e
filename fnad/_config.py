"""Options that change how fnad runs, not what it computes: for the whole process, or for the `with` block of one thread."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterator
from contextvars import ContextVar, Token
from typing import Any

from fnad import _fork
from fnad._blas import one_thread
from fnad.errors import ArgumentError, DTypeError

DEFAULTS: dict[str, Any] = {"debug_nans": False, "deterministic": False}
_process: dict[str, Any] = {}
CHANGED: ContextVar[dict[str, Any]] = ContextVar("options", default=_process)
"""Options that may differ from their defaults. Almost always empty: what has to look at an option at every call asks this first."""

_lock = _fork.lock(5)
_quiet = contextlib.ExitStack()  # what holds BLAS to one thread for the whole process


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return ""


START = _here()
"""Where the process was when fnad was imported: relative paths in the environment begin there."""


def option(name: str) -> Any:
    """The value of an option, here and now."""
    changed = CHANGED.get()
    return changed[name] if name in changed else _process.get(name, DEFAULTS.get(name))


@contextlib.contextmanager
def scoped(**options: Any) -> Iterator[None]:
    """Options for a block, in this thread or task only."""
    mine = CHANGED.get()
    token = CHANGED.set({**(mine if mine is not _process else {}), **options})
    try:
        yield
    finally:
        CHANGED.reset(token)


def _set(options: dict[str, Any]) -> None:
    """Options for the process; defaults are not kept, so that nothing has to be looked up while there are none."""
    with _lock:
        for name, value in options.items():
            before = _process.get(name, DEFAULTS[name])
            if name == "deterministic" and value and not before:
                _quiet.enter_context(one_thread())
            if name == "deterministic" and before and not value:
                _quiet.close()
            if value == DEFAULTS[name]:
                _process.pop(name, None)
            else:
                _process[name] = value


class config:
    """Set options: for the whole process when called, for a `with` block of the current thread when used as one.

    Args:
        debug_nans: Look at the result of every operation, and raise where the first nan or inf is made: eagerly at the operation
            itself, in a backward pass with the line of the forward operation it belongs to; of compiled functions the results
            are looked at, and only if one of them is not finite the program is run again one operation at a time.
        deterministic: Run BLAS and LAPACK on one thread, so that results have the same bits for any number of threads. fnad's own
            loops always do. The number of threads of BLAS belongs to the process: while one `with` block asks for one thread,
            all threads of the process get it.

    Returns:
        An object for `with`. At the end of the block the options are what they were before the call.

    Raises:
        ArgumentError: there is no such option.
        DTypeError: a value is not a bool.
        UnsupportedError: (`deterministic`) the number of threads of this BLAS cannot be set.

    Example:
        >>> import numpy as np, fnad
        >>> with fnad.config(debug_nans=True):
        ...     try:
        ...         fnad.grad(lambda x: np.sum(np.sqrt(x)))(np.array([1.0, 0.0]))
        ...     except FloatingPointError as error:
        ...         print(str(error).splitlines()[0])
        the backward pass of sqrt made an inf from finite numbers
    """

    def __init__(self, *, debug_nans: bool | None = None, deterministic: bool | None = None, **unknown: Any) -> None:
        for name in unknown:
            close = difflib.get_close_matches(name, DEFAULTS, 1)
            meant = f"config({close[0]}=...); " if close else ""
            raise ArgumentError("config: there is no such option", got={"option": name}, fix=f"{meant}options are: {', '.join(DEFAULTS)}")
        given = {"debug_nans": debug_nans, "deterministic": deterministic}
        self._options = {name: value for name, value in given.items() if value is not None}
        for name, value in self._options.items():
            if not isinstance(value, bool):
                raise DTypeError(f"config: {name} must be True or False", got={name: f"{value!r} ({type(value).__name__})"})
        self._before: dict[str, Any] | None = {name: _process.get(name, DEFAULTS[name]) for name in self._options}
        self._entered: list[tuple[Token[dict[str, Any]], contextlib.ExitStack]] = []
        _set(self._options)

    def __enter__(self) -> None:
        stack = contextlib.ExitStack()
        if self._options.get("deterministic"):
            stack.enter_context(one_thread())
        if self._before is not None:  # the call has set them for the process: from here on they are this block's
            _set(self._before)
            self._before = None
        mine = CHANGED.get()
        token = CHANGED.set({**(mine if mine is not _process else {}), **self._options})
        self._entered.append((token, stack))

    def __exit__(self, *_: Any) -> None:
        token, stack = self._entered.pop()
        CHANGED.reset(token)
        stack.close()
