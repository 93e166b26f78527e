"""Draws made of gamma draws: differentiable by their parameters at fixed quantiles of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ShapeError
from fnad.primitives.random import gamma_draws
from fnad.primitives.special import softmax
from fnad.random._arguments import cast, floating, require, sizes, spread, spread_to
from fnad.random.discrete import rademacher
from fnad.random.keys import split
from fnad.random.uniform import normal
from fnad.typing import Array, ArrayLike

Shape = int | tuple[int, ...]
_WIDE = np.dtype(np.float64)


def _positive(name: str, **params: Any) -> None:
    require(name, f"{' and '.join(params)} must not be negative", lambda *p: np.all([np.all(np.greater_equal(x, 0)) for x in p]), **params)


def _gamma(key: Any, a: Any, size: tuple[int, ...], log: bool) -> Any:
    return gamma_draws(key, spread_to(a, size, _WIDE), log=log)


def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Numbers of the gamma distribution: density x**(a - 1) exp(-x) / gamma(a).

    Args:
        key: A key, (2,).
        a: The shape parameter; the draw is differentiable by it once.
        shape: The shape of the result; None for that of `a`.
        dtype: float16, float32 or float64; None for that of `a`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Raises:
        ArgumentError: a negative `a`.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad import random
        >>> mean = lambda a: np.mean(random.gamma(random.key(0), a, (20000,)))
        >>> bool(abs(mean(3.0) - 3) < 0.05), bool(abs(fnad.grad(mean)(3.0) - 1) < 0.05)
        (True, True)

    Reference: `jax.random.gamma`; Marsaglia & Tsang, A Simple Method for Generating Gamma Variables, 2000; Figurnov, Mohamed &
    Mnih, Implicit Reparameterization Gradients, 2018.
    """
    kind, size = floating(dtype, "random.gamma", a), spread("random.gamma", shape, a=a)
    _positive("random.gamma", a=a)
    return cast(_gamma(key, a, size, False), kind)


def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Logarithms of numbers of the gamma distribution, which for small `a` are too small for numbers themselves.

    Args:
        key: A key, (2,).
        a: The shape parameter; the draw is differentiable by it once.
        shape: The shape of the result; None for that of `a`.
        dtype: float16, float32 or float64; None for that of `a`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype: the logarithms of what `gamma` gives.

    Raises:
        ArgumentError: a negative `a`.

    Example:
        >>> from fnad import random
        >>> bool(random.loggamma(random.key(0), 1e-4) < -500)
        True

    Reference: `jax.random.loggamma`.
    """
    kind, size = floating(dtype, "random.loggamma", a), spread("random.loggamma", shape, a=a)
    _positive("random.loggamma", a=a)
    return cast(_gamma(key, a, size, True), kind)


def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Numbers of the beta distribution: density proportional to x**(a - 1) (1 - x)**(b - 1).

    Args:
        key: A key, (2,).
        a: The first parameter; the draw is differentiable by both once.
        b: The second parameter.
        shape: The shape of the result; None for that of the parameters.
        dtype: float16, float32 or float64; None for that of the parameters, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Raises:
        ArgumentError: a negative parameter.

    Example:
        >>> from fnad import random
        >>> x = random.beta(random.key(0), 2.0, 3.0, (4,))

    Reference: `jax.random.beta`.
    """
    kind, size = floating(dtype, "random.beta", a, b), spread("random.beta", shape, a=a, b=b)
    _positive("random.beta", a=a, b=b)
    first, second = split(key)
    x, y = _gamma(first, a, size, True), _gamma(second, b, size, True)
    return cast(np.exp(x - np.logaddexp(x, y)), kind)


def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Probability vectors with a density proportional to the product of x[k]**(alpha[k] - 1).

    Args:
        key: A key, (2,).
        alpha: (..., k); the draw is differentiable by it once.
        shape: The shape of the result without its last axis; None for that of `alpha`.
        dtype: float16, float32 or float64; None for that of `alpha`, float64 for Python numbers.

    Returns:
        An array (*shape, k) whose last axis sums to 1.

    Raises:
        ShapeError: `alpha` has no axis.
        ArgumentError: a negative entry of `alpha`.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> float(np.sum(random.dirichlet(random.key(0), np.ones(3))).round(12))
        1.0

    Reference: `jax.random.dirichlet`.
    """
    name = "random.dirichlet"
    if not shape_of(alpha):
        raise ShapeError(f"{name}: alpha has at least one axis", got={"alpha": aval_of(alpha)})
    kind = floating(dtype, name, alpha)
    _positive(name, alpha=alpha)
    size = shape_of(alpha) if shape is None else (*sizes(shape, name), shape_of(alpha)[-1])
    spread(name, size, alpha=alpha)
    return cast(softmax(_gamma(key, alpha, size, True), axis=(len(size) - 1,)), kind)


def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """The sum of the squares of `df` normal numbers.

    Args:
        key: A key, (2,).
        df: Degrees of freedom; the draw is differentiable by them once.
        shape: The shape of the result; None for that of `df`.
        dtype: float16, float32 or float64; None for that of `df`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Raises:
        ArgumentError: negative `df`.

    Example:
        >>> from fnad import random
        >>> x = random.chisquare(random.key(0), 4.0, (2,))

    Reference: `jax.random.chisquare`.
    """
    kind, size = floating(dtype, "random.chisquare", df), spread("random.chisquare", shape, df=df)
    _positive("random.chisquare", df=df)
    return cast(2 * _gamma(key, spread_to(df, size, _WIDE) / 2, size, False), kind)


def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Numbers of Student's t distribution.

    Args:
        key: A key, (2,).
        df: Degrees of freedom; the draw is differentiable by them once.
        shape: The shape of the result; None for that of `df`.
        dtype: float16, float32 or float64; None for that of `df`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Raises:
        ArgumentError: negative `df`.

    Example:
        >>> from fnad import random
        >>> x = random.t(random.key(0), 4.0, (2,))

    Reference: `jax.random.t`.
    """
    kind, size = floating(dtype, "random.t", df), spread("random.t", shape, df=df)
    _positive("random.t", df=df)
    first, second = split(key)
    half = spread_to(df, size, _WIDE) / 2
    return cast(normal(first, size) * np.exp(0.5 * (np.log(half) - _gamma(second, half, size, True))), kind)


def f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """The ratio of two chi-square numbers, each divided by its degrees of freedom.

    Args:
        key: A key, (2,).
        dfnum: Degrees of freedom of the numerator; the draw is differentiable by both once.
        dfden: Degrees of freedom of the denominator.
        shape: The shape of the result; None for that of the parameters.
        dtype: float16, float32 or float64; None for that of the parameters, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Raises:
        ArgumentError: a negative parameter.

    Example:
        >>> from fnad import random
        >>> x = random.f(random.key(0), 4.0, 6.0, (2,))

    Reference: `jax.random.f`.
    """
    kind, size = floating(dtype, "random.f", dfnum, dfden), spread("random.f", shape, dfnum=dfnum, dfden=dfden)
    _positive("random.f", dfnum=dfnum, dfden=dfden)
    first, second = split(key)
    top, below = (spread_to(d, size, _WIDE) / 2 for d in (dfnum, dfden))
    ratio = _gamma(first, top, size, True) - _gamma(second, below, size, True)
    return cast(np.exp(ratio) * (below / top), kind)


def generalized_normal(key: ArrayLike, p: float, shape: Shape = (), dtype: Any = float) -> Array:
    """Numbers with a density proportional to exp(-|x|**p).

    Args:
        key: A key, (2,).
        p: The exponent.
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.generalized_normal(random.key(0), 1.5, (2,))

    Reference: `jax.random.generalized_normal`.
    """
    kind, size = floating(dtype, "random.generalized_normal"), sizes(shape, "random.generalized_normal")
    require("random.generalized_normal", "p is positive", lambda p: np.greater(p, 0), p=p)
    first, second = split(key)
    size_of = np.exp(_gamma(first, 1 / p, size, True) / p)
    return cast(size_of * rademacher(second, size, _WIDE), kind)
