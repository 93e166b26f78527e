"""What the functions make of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError
from fnad.numpy.elementwise import cast
from fnad.typing import Array, ArrayLike


def array(x: ArrayLike) -> Array:
    return x if isinstance(x, Tracer) else np.asarray(x)


def floating(x: ArrayLike, name: str) -> Array:
    """An array of real floating-point numbers; integers become float64."""
    x = array(x)
    if x.dtype.kind == "f":
        return x
    if x.dtype.kind in "iub":
        return cast(x, np.dtype(np.float64))
    raise DTypeError(f"{name} takes real numbers", got={"input": aval_of(x)})


def steps(x: Any, name: str, least: int, rank: int) -> tuple[int, ...]:
    """One integer for each of the last axes, or one for all of them."""
    out = tuple(x) if isinstance(x, tuple | list) else (x,)
    if len(out) == 1:
        out = out * rank
    if len(out) != rank or any(not isinstance(n, int | np.integer) or n < least for n in out):
        rule = f"{name} is an integer of at least {least}" + (f", or one each for the last {rank} axes" if rank > 1 else "")
        raise ArgumentError(rule, got={name: x})
    return tuple(map(int, out))
