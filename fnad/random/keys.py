"""Keys: making them, and making more of one."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError
from fnad.primitives.random import KEY, children, fold, random_bits
from fnad.random._arguments import sizes
from fnad.typing import Array, ArrayLike

_WORD = 1 << 64


def key(seed: int | ArrayLike) -> Array:
    """A key from a seed.

    Args:
        seed: An integer, also a negative one, of up to 128 bits; or a traced one of up to 64.

    Returns:
        A uint64 array of shape (2,): the words of the seed, the lower one first.

    Raises:
        DTypeError: the seed is no integer.

    Example:
        >>> from fnad import random
        >>> random.key(2**64 + 5)
        array([5, 1], dtype=uint64)

    Reference: `jax.random.key`; `np.random.Philox(key=seed)`.
    """
    if isinstance(seed, Tracer):
        if seed.dtype.kind not in "iu" or seed.shape != ():
            raise DTypeError("random.key: the seed is an integer", got={"seed": aval_of(seed)})
        word = seed.astype(KEY)
        return np.stack([word, np.where(np.less(seed, 0), word * KEY.type(0) + KEY.type(_WORD - 1), KEY.type(0))])
    try:
        value = operator.index(seed)
    except TypeError:
        raise DTypeError("random.key: the seed is an integer", got={"seed": seed}) from None
    return np.array([value % _WORD, value // _WORD % _WORD], KEY)


PRNGKey = key
"""The same under JAX's older name."""


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys from one, which is not used again itself.

    Args:
        key: A key, (2,).
        num: How many, or their shape.

    Returns:
        A uint64 array (*num, 2). Key i is the same whatever `num` is.

    Example:
        >>> from fnad import random
        >>> a, b = random.split(random.key(0))
        >>> bool(random.uniform(a) == random.uniform(b))
        False

    Reference: `jax.random.split`.
    """
    shape = sizes(num, "random.split")
    out = children(key, count=math.prod(shape))
    return out if len(shape) == 1 else np.reshape(out, (*out.shape[:-2], *shape, 2))


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Array:
    """A new key from a key and a number, such as the number of a step or of a worker.

    Args:
        key: A key, (2,).
        data: An integer; negative ones count from 2**64.

    Returns:
        A uint64 array (2,).

    Raises:
        DTypeError: `data` is no integer.

    Example:
        >>> from fnad import random
        >>> keys = [random.fold_in(random.key(0), step) for step in range(3)]

    Reference: `jax.random.fold_in`.
    """
    if isinstance(data, Tracer):
        if data.dtype.kind not in "iu":
            raise DTypeError("random.fold_in: data is an integer", got={"data": aval_of(data)})
        return fold(key, data.astype(KEY))
    try:
        return fold(key, KEY.type(operator.index(data) % _WORD))
    except TypeError:
        raise DTypeError("random.fold_in: data is an integer", got={"data": data}) from None


def bits(key: ArrayLike, shape: int | tuple[int, ...] = (), dtype: Any = np.uint64) -> Array:
    """Random bits as unsigned integers.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: uint8, uint16, uint32 or uint64.

    Returns:
        An array of this shape. uint64 and uint32 are those of `np.random.Philox(key=key)`.

    Raises:
        ArgumentError: another dtype.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> random.bits(random.key(3), 2) == np.random.Philox(key=3).random_raw(2)
        array([ True,  True])

    Reference: `jax.random.bits`; Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
    """
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind.kind != "u":
        raise ArgumentError("random.bits: dtype is uint8, uint16, uint32 or uint64", got={"dtype": kind})
    found = random_bits(key, shape=sizes(shape, "random.bits"), bits=64 if kind.itemsize == 8 else 32)
    return found if found.dtype == kind else found.astype(kind)
