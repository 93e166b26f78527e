"""Looking into functions while they run compiled, under the names of `jax.debug`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from fnad.control._staging import check_function
from fnad.control.callback import run_effect
from fnad.errors import ArgumentError


def callback(callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Call a function with the values of arguments each time the program runs.

    Args:
        callback: A function for what it does: to print, to store, to draw, to raise. Its result is dropped.
        args: Its arguments: pytrees of arrays, traced or not; what is no array is passed as it is.
        kwargs: Its arguments by name.

    It sees plain values under every transform: those of the forward pass under `grad` and `jvp`, one example at a time under `vmap`.
    In a function that is differentiated it may be called again where the backward pass computes something again (`checkpoint`, `cond`,
    loops). Calls are made in the order of the program. Semantics as `jax.debug.callback` with `ordered=True`.

    Example:
        >>> import numpy as np, fnad
        >>> seen = []
        >>> f = fnad.jit(lambda x: fnad.debug.callback(seen.append, x * 2) or np.sin(x))
        >>> _ = f(1.0), f(2.0)
        >>> seen
        [2.0, 4.0]
    """
    check_function(callback, "debug.callback", "the callback")
    run_effect(callback, args, kwargs)


def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Print values each time a compiled function runs.

    Args:
        fmt: A format string, as for `str.format`: `"loss = {}"`, `"{x:.3f}"`.
        args: What it shows: pytrees of arrays, traced or not.
        kwargs: The same by name.

    Raises:
        ArgumentError: the first argument is no string.

    Under transforms it does what `callback` does. Semantics as `jax.debug.print` with `ordered=True`.

    Example:
        >>> import numpy as np, fnad
        >>> @fnad.jit
        ... def f(x):
        ...     y = np.sum(x)
        ...     fnad.debug.print("y = {y:.2f}", y=y)
        ...     return y**2
        >>> _ = f(np.ones(3)), f(np.zeros(3))
        y = 3.00
        y = 0.00
    """
    if not isinstance(fmt, str):
        raise ArgumentError("debug.print takes a format string first", got={"fmt": type(fmt).__name__}, fix='fnad.debug.print("x = {}", x)')
    run_effect(lambda *a, **k: builtins.print(fmt.format(*a, **k)), args, kwargs)
