"""Draws of real numbers that are a function of a few uniform ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.primitives.random import orthonormal
from fnad.random._arguments import cast, centred, floating, open_unit, require, sizes, spread, spread_to, unit, working
from fnad.random.discrete import rademacher
from fnad.random.gammas import generalized_normal
from fnad.random.keys import split
from fnad.random.uniform import normal
from fnad.typing import Array, ArrayLike

Shape = int | tuple[int, ...]


def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Normal numbers given that they lie between two bounds.

    Args:
        key: A key, (2,).
        lower: The lower bound; the draw is differentiable by both bounds.
        upper: The upper bound.
        shape: The shape of the result, to which the bounds broadcast; None for theirs.
        dtype: float16, float32 or float64; None for that of the bounds, float64 for Python numbers.

    Returns:
        An array in [lower, upper]. Bounds far out in one tail keep their accuracy.

    Raises:
        ArgumentError: a lower bound is not below the upper one.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> x = random.truncated_normal(random.key(0), 2.0, 3.0, (1000,))
        >>> bool(np.all((2 <= x) & (x <= 3)))
        True

    Reference: `jax.random.truncated_normal`.
    """
    name = "random.truncated_normal"
    kind, size = floating(dtype, name, lower, upper), spread(name, shape, lower=lower, upper=upper)
    require(name, "lower is below upper", lambda a, b: np.less(a, b), lower=lower, upper=upper)
    wide, sp = working(kind), _scipy.special()
    low, high = spread_to(lower, size, wide), spread_to(upper, size, wide)
    sign = np.where(low > 0, wide.type(-1), wide.type(1))  # the lower tail is the one with all digits
    first, last = sp.ndtr(np.where(low > 0, -high, low)), sp.ndtr(np.where(low > 0, -low, high))
    out = sign * sp.ndtri(first + open_unit(key, size, wide) * (last - first))
    out = np.where(out < low, low, np.where(out > high, high, out))
    return cast(out, kind)


def exponential(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """Exponential numbers with mean 1.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> bool(abs(np.mean(random.exponential(random.key(0), (10000,))) - 1) < 0.03)
        True

    Reference: `jax.random.exponential`.
    """
    kind, size = floating(dtype, "random.exponential"), sizes(shape, "random.exponential")
    return cast(-np.log1p(-unit(key, size, working(kind))), kind)


def laplace(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """Numbers with the density exp(-|x|) / 2.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.laplace(random.key(0), (3,))

    Reference: `jax.random.laplace`.
    """
    kind, size = floating(dtype, "random.laplace"), sizes(shape, "random.laplace")
    x = centred(key, size, working(kind))
    return cast(np.where(x < 0, np.log1p(-np.absolute(x)), -np.log1p(-np.absolute(x))), kind)


def gumbel(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """Numbers with the distribution function exp(-exp(-x)): the largest of `gumbel + logits` is a categorical draw.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.gumbel(random.key(0), (3,))

    Reference: `jax.random.gumbel`.
    """
    kind, size = floating(dtype, "random.gumbel"), sizes(shape, "random.gumbel")
    return cast(-np.log(-np.log(open_unit(key, size, working(kind)))), kind)


def logistic(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """Numbers with the distribution function 1 / (1 + exp(-x)).

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.logistic(random.key(0), (3,))

    Reference: `jax.random.logistic`.
    """
    kind, size = floating(dtype, "random.logistic"), sizes(shape, "random.logistic")
    u = open_unit(key, size, working(kind))
    return cast(np.log(u) - np.log1p(-u), kind)


def cauchy(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """Numbers with the density 1 / (pi (1 + x**2)).

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.cauchy(random.key(0), (3,))

    Reference: `jax.random.cauchy`.
    """
    kind, size = floating(dtype, "random.cauchy"), sizes(shape, "random.cauchy")
    wide = working(kind)
    return cast(np.tan(wide.type(math.pi / 2) * centred(key, size, wide)), kind)


def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Numbers with the density b / x**(b + 1) for x >= 1.

    Args:
        key: A key, (2,).
        b: The exponent; the draw is differentiable by it.
        shape: The shape of the result; None for that of `b`.
        dtype: float16, float32 or float64; None for that of `b`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.pareto(random.key(0), 3.0, (2,))

    Reference: `jax.random.pareto`.
    """
    kind, size = floating(dtype, "random.pareto", b), spread("random.pareto", shape, b=b)
    require("random.pareto", "b is positive", lambda b: np.greater(b, 0), b=b)
    wide = working(kind)
    return cast(np.exp(exponential(key, size, wide) / spread_to(b, size, wide)), kind)


def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Numbers with the distribution function 1 - exp(-(x / scale)**concentration).

    Args:
        key: A key, (2,).
        scale: The scale; the draw is differentiable by both parameters.
        concentration: The exponent.
        shape: The shape of the result; None for that of the parameters.
        dtype: float16, float32 or float64; None for that of the parameters, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.weibull_min(random.key(0), 1.0, 2.0, (2,))

    Reference: `jax.random.weibull_min`.
    """
    name = "random.weibull_min"
    kind, size = floating(dtype, name, scale, concentration), spread(name, shape, scale=scale, concentration=concentration)
    wide = working(kind)
    power = np.power(exponential(key, size, wide), 1 / spread_to(concentration, size, wide))
    return cast(power * spread_to(scale, size, wide), kind)


def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """The length of a vector of two normal numbers with this standard deviation.

    Args:
        key: A key, (2,).
        scale: The standard deviation; the draw is differentiable by it.
        shape: The shape of the result; None for that of `scale`.
        dtype: float16, float32 or float64; None for that of `scale`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.rayleigh(random.key(0), 1.0, (2,))

    Reference: `jax.random.rayleigh`.
    """
    kind, size = floating(dtype, "random.rayleigh", scale), spread("random.rayleigh", shape, scale=scale)
    wide = working(kind)
    return cast(np.sqrt(exponential(key, size, wide) * wide.type(2)) * spread_to(scale, size, wide), kind)


def maxwell(key: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """The length of a vector of three normal numbers.

    Args:
        key: A key, (2,).
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.maxwell(random.key(0), (2,))

    Reference: `jax.random.maxwell`.
    """
    kind, size = floating(dtype, "random.maxwell"), sizes(shape, "random.maxwell")
    x = normal(key, (*size, 3), working(kind))
    return cast(np.sqrt(np.sum(x * x, axis=-1)), kind)


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: Any = float) -> Array:
    """loc + scale * maxwell, with a random sign.

    Args:
        key: A key, (2,).
        loc: The centre; the draw is differentiable by both parameters, which broadcast to the shape.
        scale: The scale.
        shape: The shape of the result.
        dtype: float16, float32 or float64.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.double_sided_maxwell(random.key(0), 0.0, 1.0, (2,))

    Reference: `jax.random.double_sided_maxwell`.
    """
    kind = floating(dtype, "random.double_sided_maxwell")
    size = spread("random.double_sided_maxwell", shape, loc=loc, scale=scale)
    first, second = split(key)
    x = maxwell(first, size, kind) * rademacher(second, size, kind)
    return spread_to(loc, size, kind) + spread_to(scale, size, kind) * x


def lognormal(key: ArrayLike, sigma: ArrayLike = 1.0, shape: Shape | None = None, dtype: Any = None) -> Array:
    """The exponential of normal numbers with mean 0 and standard deviation sigma.

    Args:
        key: A key, (2,).
        sigma: The standard deviation; the draw is differentiable by it.
        shape: The shape of the result; None for that of `sigma`.
        dtype: float16, float32 or float64; None for that of `sigma`, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Example:
        >>> from fnad import random
        >>> x = random.lognormal(random.key(0), 0.5, (2,))

    Reference: `jax.random.lognormal`.
    """
    kind, size = floating(dtype, "random.lognormal", sigma), spread("random.lognormal", shape, sigma=sigma)
    wide = working(kind)
    return cast(np.exp(normal(key, size, wide) * spread_to(sigma, size, wide)), kind)


def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Numbers whose density is a triangle with its top at the mode.

    Args:
        key: A key, (2,).
        left: The lower end; the draw is differentiable by all three parameters.
        mode: The place of the largest density.
        right: The upper end.
        shape: The shape of the result; None for that of the parameters.
        dtype: float16, float32 or float64; None for that of the parameters, float64 for Python numbers.

    Returns:
        An array of this shape and dtype.

    Raises:
        ArgumentError: not left <= mode <= right, left < right.

    Example:
        >>> from fnad import random
        >>> x = random.triangular(random.key(0), 0.0, 0.5, 2.0, (2,))

    Reference: `jax.random.triangular`.
    """
    name = "random.triangular"
    kind, size = floating(dtype, name, left, mode, right), spread(name, shape, left=left, mode=mode, right=right)
    require(
        name, "left <= mode <= right and left < right", lambda a, b, c: (np.less_equal(a, b) & np.less_equal(b, c) & np.less(a, c)),
        left=left, mode=mode, right=right,
    )  # fmt: skip
    wide = working(kind)
    a, b, c = (spread_to(v, size, wide) for v in (left, mode, right))
    u = open_unit(key, size, wide)
    out = np.where(u < (b - a) / (c - a), a + np.sqrt(u * (c - a) * (b - a)), c - np.sqrt((1 - u) * (c - a) * (c - b)))
    return cast(out, kind)


def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Normal vectors with a mean and a covariance matrix.

    Args:
        key: A key, (2,).
        mean: (..., n); the draw is differentiable by both parameters.
        cov: (..., n, n), symmetric and positive definite.
        shape: The shape of the result without its last axis; None for that of the parameters.
        dtype: float32 or float64; None for that of the parameters, float64 for Python numbers.

    Returns:
        An array (*shape, n).

    Raises:
        ShapeError: mean and cov do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> x = random.multivariate_normal(random.key(0), np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]]), (1000,))
        >>> bool(abs(np.corrcoef(x.T)[0, 1] - 0.5) < 0.1)
        True

    Reference: `jax.random.multivariate_normal` (its method "cholesky").
    """
    name = "random.multivariate_normal"
    kind = floating(dtype, name, mean, cov)
    n = shape_of(mean)[-1:]
    if not n or shape_of(cov)[-2:] != n * 2:
        raise ShapeError(f"{name}: mean (..., n) and cov (..., n, n)", got={"mean": aval_of(mean), "cov": aval_of(cov)})
    batch = np.broadcast_shapes(shape_of(mean)[:-1], shape_of(cov)[:-2])
    size = batch if shape is None else sizes(shape, name)
    root = np.linalg.cholesky(spread_to(cov, shape_of(cov), kind))
    x = normal(key, (*size, *n, 1), kind)
    return spread_to(mean, shape_of(mean), kind) + np.matmul(root, x)[..., 0]


def orthogonal(key: ArrayLike, n: int, shape: Shape = (), dtype: Any = float, m: int | None = None) -> Array:
    """Orthogonal matrices, each as likely as any other (the Haar measure).

    Args:
        key: A key, (2,).
        n: The number of rows.
        shape: How many, as a shape.
        dtype: float32 or float64.
        m: The number of columns if it is not n; then the rows or the columns are orthonormal, whichever are fewer.

    Returns:
        An array (*shape, n, m).

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> q = random.orthogonal(random.key(0), 3)
        >>> bool(np.allclose(q @ q.T, np.eye(3)))
        True

    Reference: `jax.random.orthogonal`; Mezzadri, How to generate random matrices from the classical compact groups, 2007.
    """
    kind = floating(dtype, "random.orthogonal")
    columns = n if m is None else m
    if n < 1 or columns < 1:
        raise ArgumentError("random.orthogonal: n and m are positive", got={"n": n, "m": m})
    tall = (max(n, columns), min(n, columns))
    q = orthonormal(normal(key, (*sizes(shape, "random.orthogonal"), *tall), kind))
    return q if n >= columns else np.swapaxes(q, -1, -2)


def ball(key: ArrayLike, d: int, p: float = 2.0, shape: Shape = (), dtype: Any = float) -> Array:
    """Vectors whose p-norm is at most 1, uniform over that ball.

    Args:
        key: A key, (2,).
        d: The number of entries of a vector.
        p: Which norm.
        shape: How many, as a shape.
        dtype: float16, float32 or float64.

    Returns:
        An array (*shape, d).

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> x = random.ball(random.key(0), 3, shape=(100,))
        >>> bool(np.all(np.linalg.norm(x, axis=1) <= 1))
        True

    Reference: `jax.random.ball`; Barthe et al., A probabilistic approach to the geometry of the l_p^n-ball, 2005.
    """
    kind, size = floating(dtype, "random.ball"), sizes(shape, "random.ball")
    wide = working(kind)
    first, second = split(key)
    x = generalized_normal(first, p, (*size, d), wide)
    total = np.sum(np.absolute(x) ** p, axis=-1) + exponential(second, size, wide)
    return cast(x / (total ** (1 / p))[..., None], kind)
