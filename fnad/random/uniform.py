"""Uniform and normal numbers, which other draws are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.random._arguments import cast, centred, floating, sizes, spread, spread_to, unit, working
from fnad.typing import Array, ArrayLike

Shape = int | tuple[int, ...]


def uniform(key: ArrayLike, shape: Shape = (), dtype: Any = float, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0) -> Array:
    """Uniform numbers in [minval, maxval).

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.
        minval: The lower end; the draw is differentiable by both ends, which broadcast to the shape.
        maxval: The upper end.

    Returns:
        An array of this shape and dtype. From 0 to 1, float64 and float32 are those of
        `np.random.Generator(np.random.Philox(key=key)).random`.

    Example:
        >>> from fnad import random
        >>> random.uniform(random.key(0), (2,), minval=-1.0).round(3)
        array([-0.977, -0.517])

    Reference: `jax.random.uniform`.
    """
    kind, size = floating(dtype, "random.uniform"), sizes(shape, "random.uniform")
    u = unit(key, size, kind)
    if minval.__class__ in (int, float) and maxval.__class__ in (int, float) and (minval, maxval) == (0, 1):
        return u
    spread("random.uniform", size, minval=minval, maxval=maxval)
    low, high = (spread_to(v, size, kind) for v in (minval, maxval))
    out = low + u * (high - low)
    return cast(np.where(out < high, out, low), kind)  # rounding may reach the upper end


def normal(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """Normal numbers with mean 0 and variance 1.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64; or complex64 or complex128, whose two parts have variance 1/2 each.

    Returns:
        An array of this shape and dtype: the quantiles of uniform numbers.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> x = random.normal(random.key(0), (10000,))
        >>> bool(abs(np.mean(x)) < 0.03), bool(abs(np.std(x) - 1) < 0.03)
        (True, True)

    Reference: `jax.random.normal`.
    """
    kind: np.dtype[Any] = np.dtype(dtype)
    size = sizes(shape, "random.normal")
    if kind.kind == "c":
        part = np.dtype(f"f{kind.itemsize // 2}")
        parts = normal(key, (2, *size), part) * part.type(math.sqrt(0.5))
        return parts[0] + parts[1] * kind.type(1j)
    kind = floating(dtype, "random.normal")
    wide = working(kind)
    return cast(_scipy.special().erfinv(centred(key, size, wide)) * wide.type(math.sqrt(2)), kind)
