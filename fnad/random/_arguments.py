"""What the functions make of their arguments, and the uniform numbers that they begin with."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, ShapeError
from fnad.primitives.random import random_bits
from fnad.typing import Array, Shape

_FLOAT = np.dtype(np.float64)


def sizes(shape: Any, name: str) -> Shape:
    """A shape as a tuple of integers."""
    out = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if any(not isinstance(n, int | np.integer) or n < 0 for n in out):
        raise ArgumentError(f"{name}: shape is an integer or a tuple of integers, none of them negative", got={"shape": shape})
    return tuple(map(int, out))


def floating(dtype: Any, name: str, *params: Any) -> np.dtype[Any]:
    """The dtype of a draw: as asked for; or the parameters' common one, and float64 where they do not decide."""
    if dtype is None:
        found = [aval_of(p) for p in params]
        strong = [a.dtype for a in found if a.dtype.kind == "f" and not a.weak]
        return np.result_type(*strong) if strong else _FLOAT
    out: np.dtype[Any] = np.dtype(dtype)
    if out.kind != "f" or out.itemsize > 8:
        raise DTypeError(f"{name}: dtype is float16, float32 or float64", got={"dtype": out})
    return out


def spread(name: str, shape: Any, **params: Any) -> Shape:
    """The shape of a draw: the given one, to which the parameters broadcast, or None for theirs."""
    shapes = [shape_of(p) for p in params.values()]
    try:
        common = np.broadcast_shapes(*shapes)
        if shape is None:
            return common
        out = sizes(shape, name)
        if np.broadcast_shapes(out, common) == out:
            return out
    except ValueError:
        pass
    raise ShapeError(
        f"{name}: the parameters broadcast to the shape of the draw", got={"shape": shape, **{k: aval_of(p) for k, p in params.items()}}
    )


def spread_to(x: Any, shape: Shape, dtype: Any) -> Any:
    """A parameter in the shape and dtype of the draw."""
    x = x.astype(dtype) if isinstance(x, Tracer) else np.asarray(x, dtype)
    return x if shape_of(x) == shape else np.broadcast_to(x, shape)


def require(name: str, rule: str, holds: Any, **params: Any) -> None:
    """Check parameters whose values are known."""
    if not any(isinstance(p, Tracer) for p in params.values()) and not np.all(holds(*params.values())):
        raise ArgumentError(f"{name}: {rule}", got=params)


def working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to compute with."""
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def cast(x: Any, dtype: np.dtype[Any]) -> Array:
    """A result in its dtype; a NumPy scalar if its shape is ()."""
    x = x if x.dtype == dtype else x.astype(dtype)
    return x[()] if x.__class__ is np.ndarray and x.ndim == 0 else x


def unit(key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Multiples of 2**-53 (2**-24 for float32, 2**-11 for float16) in [0, 1)."""
    width = 64 if dtype.itemsize == 8 else 32
    digits = {8: 53, 4: 24, 2: 11}[dtype.itemsize]
    found = random_bits(key, shape=shape, bits=width)
    return (found >> found.dtype.type(width - digits)).astype(dtype) * dtype.type(2.0**-digits)


def open_unit(key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Odd multiples of 2**-53 (2**-24 for float32) in (0, 1)."""
    width, digits = (64, 52) if dtype.itemsize == 8 else (32, 23)
    found = random_bits(key, shape=shape, bits=width)
    return ((found >> found.dtype.type(width - digits)).astype(dtype) + dtype.type(0.5)) * dtype.type(2.0**-digits)


def centred(key: Any, shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Odd multiples of 2**-53 (2**-24 for float32) in (-1, 1): symmetric, and neither end nor 0."""
    width, digits, signed = (64, 52, np.int64) if dtype.itemsize == 8 else (32, 23, np.int32)
    found = random_bits(key, shape=shape, bits=width).astype(signed)
    return ((found >> found.dtype.type(width - digits - 1)).astype(dtype) + dtype.type(0.5)) * dtype.type(2.0**-digits)
