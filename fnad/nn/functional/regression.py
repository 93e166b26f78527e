"""Losses of real numbers: how far predictions lie from targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, floating, reduced, two
from fnad.primitives.shape import stop
from fnad.typing import Array, ArrayLike


def mse_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", weight: ArrayLike | None = None) -> Array:
    """The squared difference of two arrays.

    Args:
        input: Real array.
        target: Array of the same shape.
        reduction: "mean", "sum", or "none" for the squared differences themselves.
        weight: A factor for each; the mean is then their sum over the sum of the weights.

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ArgumentError: `reduction` is something else.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.mse_loss(np.array([1.0, 2.0]), np.array([0.0, 4.0]))
        np.float64(2.5)

    Reference: `torch.nn.functional.mse_loss`; as there, shapes that differ are broadcast with a warning.
    """
    x, y = two("mse_loss", input, target)
    difference = x - y
    return reduced("mse_loss", difference * difference, reduction, weight)


def l1_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", weight: ArrayLike | None = None) -> Array:
    """The absolute difference of two arrays; its slope at 0 is 0.

    Args:
        input: Real array.
        target: Array of the same shape.
        reduction: "mean", "sum", or "none".
        weight: A factor for each; the mean is then their sum over the sum of the weights.

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ArgumentError: `reduction` is something else.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.l1_loss(np.array([1.0, 2.0]), np.array([0.0, 4.0]))
        np.float64(1.5)

    Reference: `torch.nn.functional.l1_loss`.
    """
    x, y = two("l1_loss", input, target)
    return reduced("l1_loss", np.absolute(x - y), reduction, weight)


def smooth_l1_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", beta: float = 1.0) -> Array:
    """d**2 / (2 beta) where the difference |d| < beta, |d| - beta / 2 elsewhere.

    Args:
        input: Real array.
        target: Array of the same shape.
        reduction: "mean", "sum", or "none".
        beta: Where the square ends, not negative.

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ArgumentError: `reduction` is something else, or beta is negative.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.smooth_l1_loss(np.array([1.0, 2.0]), np.array([0.5, 4.0]), reduction="none")
        array([0.125, 1.5  ])

    Reference: Girshick, Fast R-CNN, 2015; `torch.nn.functional.smooth_l1_loss`.
    """
    if beta < 0:
        raise ArgumentError("smooth_l1_loss: beta is not negative", got={"beta": beta})
    x, y = two("smooth_l1_loss", input, target)
    size = np.absolute(x - y)
    if beta:
        size = np.where(np.less(size, beta), size * size * (0.5 / beta), size - 0.5 * beta)
    return reduced("smooth_l1_loss", size, reduction)


def huber_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", delta: float = 1.0, weight: ArrayLike | None = None) -> Array:
    """d**2 / 2 where the difference |d| <= delta, delta * (|d| - delta / 2) elsewhere.

    Args:
        input: Real array.
        target: Array of the same shape.
        reduction: "mean", "sum", or "none".
        delta: Where the square ends, positive.
        weight: A factor for each; the mean is by their number all the same.

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ArgumentError: `reduction` is something else, or delta is not positive.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.huber_loss(np.array([1.0, 2.0]), np.array([0.5, 5.0]), reduction="none", delta=2.0)
        array([0.125, 4.   ])

    Reference: Huber, Robust Estimation of a Location Parameter, 1964; `torch.nn.functional.huber_loss`.
    """
    if delta <= 0:
        raise ArgumentError("huber_loss: delta is positive", got={"delta": delta})
    x, y = two("huber_loss", input, target)
    size = np.absolute(x - y)
    losses = np.where(np.less_equal(size, delta), 0.5 * size * size, delta * (size - 0.5 * delta))
    return reduced("huber_loss", losses if weight is None else losses * array(weight), reduction)


def poisson_nll_loss(
    input: ArrayLike, target: ArrayLike, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Array:
    """The negative log-likelihood of counts under a Poisson distribution.

    Args:
        input: The rate, or its logarithm.
        target: Counts, an array of the same shape.
        log_input: Whether `input` is the logarithm: exp(x) - y x; otherwise x - y log(x + eps).
        full: Whether Stirling's approximation of log(y!) is added where y > 1.
        eps: Keeps the logarithm from 0.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ArgumentError: `reduction` is something else.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.poisson_nll_loss(np.array([0.0, 1.0]), np.array([1.0, 2.0])).round(4)
        np.float64(0.8591)

    Reference: `torch.nn.functional.poisson_nll_loss`.
    """
    x, y = two("poisson_nll_loss", input, target)
    losses = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        many = np.greater(y, 1)
        count = np.where(many, y, y.dtype.type(1))
        stirling = count * np.log(count) - count + 0.5 * np.log(2 * math.pi * count)
        losses = losses + np.where(many, stirling, stirling.dtype.type(0))
    return reduced("poisson_nll_loss", losses, reduction)


def gaussian_nll_loss(
    input: ArrayLike, target: ArrayLike, var: ArrayLike | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """The negative log-likelihood of targets under normal distributions: (log(var) + (x - y)**2 / var) / 2.

    Args:
        input: The means.
        target: Array of the same shape, or one that broadcasts with it.
        var: The variances: a number, of the input's shape, or with 1 for its last axis, or without that.
        full: Whether log(2 pi) / 2 is added.
        eps: The smallest variance; below, the gradient is that at `eps`.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ArgumentError: `reduction` is something else, or a variance that is known is negative.
        ShapeError: `var` has another shape.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.gaussian_nll_loss(np.array([1.0, 2.0]), np.array([0.0, 4.0]), np.ones(2))
        np.float64(1.25)

    Reference: Nix & Weigend, Estimating the mean and variance of the target probability distribution, 1994;
    `torch.nn.functional.gaussian_nll_loss`.
    """
    x, y = floating(input, "gaussian_nll_loss"), floating(target, "gaussian_nll_loss")
    v: Any = array(var)
    v = v.astype(x.dtype) if shape_of(v) == () and v.dtype != x.dtype else floating(v, "gaussian_nll_loss")
    size, own = shape_of(x), shape_of(v)
    if own == size[:-1] and own != size and own:
        v = v[..., None]
    elif own not in ((), size, (*size[:-1], 1)):
        raise ShapeError(
            "gaussian_nll_loss: var is a number, has the input's shape, or 1 for its last axis, or no last axis",
            got={"input": aval_of(x), "var": aval_of(v)},
        )
    if not isinstance(v, Tracer) and np.any(v < 0):
        raise ArgumentError("gaussian_nll_loss: variances are not negative", got={"smallest": np.min(v)})
    still = stop(v)
    v = v + np.where(np.less(still, eps), x.dtype.type(eps) - still, x.dtype.type(0))
    difference = x - y
    losses = 0.5 * (np.log(v) + difference * difference / v)
    return reduced("gaussian_nll_loss", losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
