"""Tables of what calls become, and helpers that their entries share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from fnad.errors import ArgumentError, DTypeError
from fnad.loops.arrays import Lazy
from fnad.loops.builder import Builder, const, dtype_of, is_scalar, is_tuple
from fnad.loops.ir import Const, Operand
from fnad.loops.source import Static

Handler = Callable[..., Any]
"""`handler(builder, *args, **keywords)` emits a call and returns its value."""


class Table(dict[Any, Handler]):
    """A function of NumPy, math or Python -> its handler."""

    def of(self, *functions: Any) -> Callable[[Handler], Handler]:
        """Decorates the handler of functions."""

        def register(handler: Handler) -> Handler:
            self.update(dict.fromkeys(functions, handler))
            return handler

        return register


def is_none(x: Any) -> bool:
    """Whether an argument is None or was left out."""
    return x is None or (isinstance(x, Static) and x.object is None)


def axis_of(b: Builder, x: Lazy, axis: Any) -> int | None:
    """A static axis, counted from the front; None for all of them."""
    if is_none(axis):
        return None
    if not isinstance(axis, Const):
        b.fail("An axis must be known when the function is compiled", fix="write a literal number")
    number, rank = int(axis.value), x.type.ndim
    if not -rank <= number < rank:
        b.fail(f"Axis {number} of an array of rank {rank}", kind=ArgumentError)
    return number % rank if rank > 1 else None


def count(b: Builder, sizes: Sequence[Operand]) -> Operand:
    """The number of elements of a shape."""
    product: Operand = const(1)
    for size in sizes:
        product = b.scalar("mul", product, size, dtype=np.int64)
    return product


def sizes_of(b: Builder, shape: Any) -> list[Operand]:
    """A shape argument as sizes."""
    sizes = list(shape) if is_tuple(shape) else [shape]
    for size in sizes:
        if not is_scalar(size) or dtype_of(size).kind not in "iu":
            b.fail("A shape must be an integer or a tuple of integers", kind=DTypeError)
    return [b.cast(size, np.int64) for size in sizes]


def dtype_from(b: Builder, given: Any, default: Any) -> np.dtype[Any]:
    """A dtype argument."""
    dtype = np.dtype(default) if is_none(given) else None
    if isinstance(given, Static) and dtype is None:
        with suppress(TypeError):  # numba's types have the names of NumPy's
            dtype = np.dtype(getattr(given.object, "name", given.object))
    if dtype is None or dtype.kind not in "biufc":
        b.fail("A dtype must be a boolean, integer, float or complex one of NumPy's", got={"dtype": given}, kind=DTypeError)
    return dtype
