"""Draws of integers, truth values and positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, ShapeError
from fnad.primitives.indexing import gather
from fnad.primitives.random import KEY, binomial_draws, high_product, poisson_draws, random_bits
from fnad.random._arguments import cast, floating, open_unit, require, sizes, spread, spread_to, unit
from fnad.typing import Array, ArrayLike

Shape = int | tuple[int, ...]
_WIDE = np.dtype(np.float64)


def randint(key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: Any = int) -> Array:
    """Uniform integers in [minval, maxval).

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        minval: The smallest integer; it and `maxval` broadcast to the shape.
        maxval: One more than the largest integer.
        dtype: An integer dtype.

    Returns:
        An array of this shape and dtype. An integer's probability is off by 2**-64 at most.

    Raises:
        ArgumentError: maxval is not above minval, or the dtype does not hold the integers.
        DTypeError: a bound or the dtype is not of integers.

    Example:
        >>> from fnad import random
        >>> random.randint(random.key(0), (8,), 0, 6)
        array([0, 1, 0, 3, 3, 1, 5, 5])

    Reference: `jax.random.randint`.
    """
    name, kind = "random.randint", np.dtype(dtype)
    bounds = {"minval": minval, "maxval": maxval}
    if kind.kind not in "iu" or any(aval_of(v).dtype.kind not in "iu" for v in bounds.values()):
        raise DTypeError(f"{name}: bounds and dtype are of integers", got={"dtype": kind, **{k: aval_of(v) for k, v in bounds.items()}})
    size = spread(name, shape, **bounds)
    require(name, "maxval is above minval", lambda a, b: np.less(a, b), **bounds)
    info = np.iinfo(kind)

    def fits(a: Any, b: Any) -> Any:
        return np.all(np.greater_equal(a, info.min)) and np.all(np.less_equal(b, int(info.max) + 1))

    require(name, f"{kind} holds the integers", fits, **bounds)
    low, high = (v.astype(KEY) if isinstance(v, Tracer) else _modular(v) for v in bounds.values())
    span = high - low
    if any(isinstance(v, Tracer) for v in bounds.values()):
        span = np.where(np.less(minval, maxval), span, KEY.type(0))
    return cast(high_product(random_bits(key, shape=size, bits=64), span) + low, kind)


def _array(x: Any) -> Any:
    return x if isinstance(x, Tracer) else np.asarray(x)


def _modular(x: Any) -> Any:
    """Integers modulo 2**64."""
    x = np.asarray(x)
    return np.array(int(x) % 2**64, KEY) if x.ndim == 0 else x.astype(KEY)


def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None) -> Array:
    """True with probability p.

    Args:
        key: A key, (2,).
        p: The probability.
        shape: The shape of the result, to which `p` broadcasts; None for that of `p`.

    Returns:
        A boolean array.

    Raises:
        ArgumentError: `p` is not in [0, 1].

    Example:
        >>> from fnad import random
        >>> random.bernoulli(random.key(0), 0.3, (4,))
        array([ True,  True,  True, False])

    Reference: `jax.random.bernoulli`.
    """
    size = spread("random.bernoulli", shape, p=p)
    require("random.bernoulli", "p lies in [0, 1]", lambda p: np.greater_equal(p, 0) & np.less_equal(p, 1), p=p)
    kind = floating(None, "random.bernoulli", p)
    return np.less(unit(key, size, kind), spread_to(p, size, kind))


def rademacher(key: ArrayLike, shape: Shape = (), dtype: Any = int) -> Array:
    """1 or -1, each with probability 1/2.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: A dtype of signed numbers.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> random.rademacher(random.key(0), (4,))
        array([ 1,  1, -1,  1])

    Reference: `jax.random.rademacher`.
    """
    kind: np.dtype[Any] = np.dtype(dtype)
    found = random_bits(key, shape=sizes(shape, "random.rademacher"), bits=32)
    return cast(np.where(np.equal(found >> np.uint32(31), np.uint32(0)), kind.type(1), kind.type(-1)), kind)


def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: Any = int) -> Array:
    """How many trials it takes until one succeeds.

    Args:
        key: A key, (2,).
        p: The probability of success, in (0, 1].
        shape: The shape of the result; None for that of `p`.
        dtype: A dtype of numbers.

    Returns:
        An array of this shape and dtype, of numbers from 1 on.

    Raises:
        ArgumentError: `p` is not in (0, 1].

    Example:
        >>> from fnad import random
        >>> x = random.geometric(random.key(0), 0.25, (4,))

    Reference: `jax.random.geometric`.
    """
    size = spread("random.geometric", shape, p=p)
    require("random.geometric", "p lies in (0, 1]", lambda p: np.greater(p, 0) & np.less_equal(p, 1), p=p)
    with np.errstate(divide="ignore"):
        return (np.floor(np.log(open_unit(key, size, _WIDE)) / np.log1p(-spread_to(p, size, _WIDE))) + 1).astype(dtype)


def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None, dtype: Any = int) -> Array:
    """Numbers of the Poisson distribution.

    Args:
        key: A key, (2,).
        lam: The rate, which is the mean.
        shape: The shape of the result; None for that of `lam`.
        dtype: A dtype of numbers.

    Returns:
        An array of this shape and dtype. A compiled function gives -1 for a negative rate.

    Raises:
        ArgumentError: a negative rate.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> bool(abs(np.mean(random.poisson(random.key(0), 4.0, (10000,))) - 4) < 0.1)
        True

    Reference: `jax.random.poisson`; Hoermann, The transformed rejection method for generating Poisson random variables, 1993.
    """
    size = spread("random.poisson", shape, lam=lam)
    require("random.poisson", "lam is not negative", lambda x: np.greater_equal(x, 0), lam=lam)
    return cast(poisson_draws(key, spread_to(lam, size, _WIDE)), np.dtype(dtype))


def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None, dtype: Any = float) -> Array:
    """How many of n trials succeed.

    Args:
        key: A key, (2,).
        n: The number of trials.
        p: The probability of success.
        shape: The shape of the result; None for that of the parameters.
        dtype: A dtype of numbers.

    Returns:
        An array of this shape and dtype. A compiled function gives -1 where a parameter is out of its range.

    Raises:
        ArgumentError: `n` is negative or `p` is not in [0, 1].

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> bool(abs(np.mean(random.binomial(random.key(0), 10, 0.3, (10000,))) - 3) < 0.1)
        True

    Reference: `jax.random.binomial`; Hoermann, The generation of binomial random variates, 1993.
    """
    size = spread("random.binomial", shape, n=n, p=p)
    require("random.binomial", "n is not negative", lambda n: np.greater_equal(n, 0), n=n)
    require("random.binomial", "p lies in [0, 1]", lambda p: np.greater_equal(p, 0) & np.less_equal(p, 1), p=p)
    return cast(binomial_draws(key, spread_to(n, size, _WIDE), spread_to(p, size, _WIDE)), np.dtype(dtype))


def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Shape | None = None) -> Array:
    """Positions along an axis, with probabilities softmax(logits).

    Args:
        key: A key, (2,).
        logits: Logarithms of probabilities, which need not be normalised.
        axis: Their axis.
        shape: The shape of the result, to which that of `logits` without `axis` broadcasts; None for that.

    Returns:
        An int64 array.

    Raises:
        ShapeError: shape and logits do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> x = random.categorical(random.key(0), np.array([-2.0, -np.inf, 1.0]), shape=(1000,))
        >>> np.bincount(x) > 20
        array([ True, False,  True])

    Reference: `jax.random.categorical`: the largest of logits plus Gumbel noise.
    """
    rows: Any = np.moveaxis(_array(logits), axis, -1)
    *batch, n = shape_of(rows)
    size = spread("random.categorical", shape, logits=np.broadcast_to(np.zeros(()), tuple(batch)))
    kind = floating(None, "random.categorical", rows)
    noise = -np.log(-np.log(open_unit(key, (*size, n), kind)))
    return np.argmax(noise + rows, axis=-1)


def permutation(key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False) -> Array:
    """The entries of an array in random order, or a random order of the first integers.

    Args:
        key: A key, (2,).
        x: An array, or n for the integers below n.
        axis: Along which axis the order changes.
        independent: Whether each slice gets an order of its own.

    Returns:
        An array of the shape and dtype of `x`, by whose entries it is differentiable.

    Example:
        >>> from fnad import random
        >>> random.permutation(random.key(0), 5)
        array([0, 2, 1, 4, 3])

    Reference: `jax.random.permutation`.
    """
    values = _array(x)
    if values.ndim == 0:
        if values.dtype.kind not in "iu" or isinstance(values, Tracer):
            raise DTypeError("random.permutation: x is an array or an integer", got={"x": aval_of(values)})
        return np.argsort(random_bits(key, shape=sizes(int(values), "random.permutation"), bits=64), kind="stable")
    if independent:
        order = np.argsort(random_bits(key, shape=values.shape, bits=64), axis=axis, kind="stable")
        return np.take_along_axis(values, order, axis)
    order = np.argsort(random_bits(key, shape=(values.shape[axis],), bits=64), kind="stable")
    return gather(values, order, axis=range(values.ndim)[axis])


def choice(key: ArrayLike, a: int | ArrayLike, shape: Shape = (), replace: bool = True, p: ArrayLike | None = None, axis: int = 0) -> Array:
    """Entries of an array at random.

    Args:
        key: A key, (2,).
        a: An array, or n for the integers below n.
        shape: How many, as a shape.
        replace: Whether an entry may be drawn more than once.
        p: The probability of each entry; None if they are equal.
        axis: The axis of `a` whose slices are the entries.

    Returns:
        An array of the shape of `a` with `shape` in place of `axis`; differentiable by the entries.

    Raises:
        ArgumentError: there are fewer entries than are to be drawn without replacement, or none.
        ShapeError: `p` does not have one entry per entry of `a`.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> random.choice(random.key(0), np.array([10, 20, 30]), (3,), replace=False)
        array([10, 30, 20])

    Reference: `jax.random.choice`. Without replacement and with probabilities by the largest of Gumbel noise plus logarithms.
    """
    size, values = sizes(shape, "random.choice"), _array(a)
    n, many = int(values) if values.ndim == 0 else values.shape[axis], math.prod(size)
    if n < 1 or (many > n and not replace):
        raise ArgumentError("random.choice: there must be entries to draw", got={"entries": n, "draws": many, "replace": replace})
    if p is not None and shape_of(p) != (n,):
        raise ShapeError("random.choice: p has one probability per entry", got={"p": aval_of(p), "entries": n})
    if replace:
        where = randint(key, size, 0, n) if p is None else _by_chance(key, p, size)
    elif p is None:
        where = np.reshape(permutation(key, n)[:many], size)
    else:
        with np.errstate(divide="ignore"):
            score = np.log(p) - np.log(-np.log(open_unit(key, (n,), _WIDE)))
        where = np.reshape(np.argsort(-score, kind="stable")[:many], size)
    return where if values.ndim == 0 else gather(values, where, axis=range(values.ndim)[axis])


def _by_chance(key: Any, p: Any, size: tuple[int, ...]) -> Any:
    """Positions with probabilities proportional to p."""
    total = np.cumsum(spread_to(p, shape_of(p), _WIDE))
    found = np.searchsorted(total, unit(key, size, _WIDE) * total[-1], side="right")
    return np.minimum(found, len(total) - 1)
