"""Nonlinearities, and functions along one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.errors import ArgumentError
from fnad.nn.functional._arguments import array, floating
from fnad.numpy.metadata import normalise_axes
from fnad.primitives import special as prims
from fnad.primitives._families import expand
from fnad.primitives.activation import normal_cdf
from fnad.primitives.activation import relu as relu_primitive
from fnad.primitives.activation import softplus as softplus_primitive
from fnad.primitives.elementary import logistic
from fnad.typing import Array, ArrayLike

_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)


def relu(input: ArrayLike) -> Array:
    """max(x, 0) of each element.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype. The slope at 0 is 0, and entries that are cut off get the gradient 0 whatever
        comes back to them; nan stays nan.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.nn import functional as F
        >>> x = np.array([-1.0, 0.0, 2.0])
        >>> F.relu(x), fnad.grad(lambda x: np.sum(F.relu(x)))(x)
        (array([0., 0., 2.]), array([0., 0., 1.]))

    Reference: `torch.nn.functional.relu` (`np.maximum(x, 0)` has the slope 1/2 at 0).
    """
    return relu_primitive(array(input))


def sigmoid(input: ArrayLike) -> Array:
    """1 / (1 + exp(-x)) of each element, accurate in both tails.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers). The slope keeps its digits in both tails as well.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.sigmoid(np.array([-1000.0, 0.0, 1000.0]))
        array([0. , 0.5, 1. ])

    Reference: `torch.nn.functional.sigmoid`.
    """
    return logistic(floating(input, "sigmoid"))


def tanh(input: ArrayLike) -> Array:
    """The hyperbolic tangent of each element: `np.tanh`.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.tanh(np.array([0.0, 1000.0]))
        array([0., 1.])

    Reference: `torch.nn.functional.tanh`.
    """
    return np.tanh(floating(input, "tanh"))


def gelu(input: ArrayLike, approximate: str = "none") -> Array:
    """The Gaussian error linear unit: x times the probability that a normal variable is less than x.

    Args:
        input: Real array of any shape.
        approximate: "none" for x * Phi(x) itself, or "tanh" for
            x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x**3))).

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Raises:
        ArgumentError: `approximate` is neither.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.gelu(np.array([-1.0, 0.0, 1.0])).round(4), F.gelu(np.array([-1.0, 0.0, 1.0]), "tanh").round(4)
        (array([-0.1587,  0.    ,  0.8413]), array([-0.1588,  0.    ,  0.8412]))

    Reference: Hendrycks & Gimpel, Gaussian Error Linear Units, 2016; `torch.nn.functional.gelu` (which loses the digits of
    Phi in the lower tail).
    """
    x = floating(input, "gelu")
    if approximate == "none":
        return x * normal_cdf(x)
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(_ROOT_TWO_OVER_PI * (x + 0.044715 * (x * x * x))))
    raise ArgumentError("gelu: approximate is 'none' or 'tanh'", got={"approximate": repr(approximate)})


def silu(input: ArrayLike) -> Array:
    """x * sigmoid(x) of each element, also called swish.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.silu(np.array([-1.0, 0.0, 1.0])).round(4)
        array([-0.2689,  0.    ,  0.7311])

    Reference: `torch.nn.functional.silu`; Elfwing et al., Sigmoid-weighted linear units, 2017.
    """
    x = floating(input, "silu")
    return x * logistic(x)


def softplus(input: ArrayLike, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta * x)) / beta of each element: a smooth relu.

    Args:
        input: Real array of any shape.
        beta: How sharp the bend is.
        threshold: Where beta * x is larger than this, the result is x.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.softplus(np.array([-1.0, 0.0, 1000.0])).round(4)
        array([3.133e-01, 6.931e-01, 1.000e+03])

    Reference: `torch.nn.functional.softplus`.
    """
    x = floating(input, "softplus")
    scaled = x if beta.__class__ in (int, float) and beta == 1 else x * beta
    large = scaled > threshold
    smooth = softplus_primitive(scaled)
    return np.where(large, x, smooth if scaled is x else smooth / beta)


def softmax(input: ArrayLike, dim: int, *, dtype: Any = None) -> Array:
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    Args:
        input: Real array of any shape.
        dim: The axis along which the result sums to 1.
        dtype: What the input is converted to first.

    Returns:
        An array of the same shape and dtype (float64 for integers). A slice that is -inf throughout gives nan.

    Raises:
        numpy.exceptions.AxisError: (an IndexError) `dim` is out of range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.softmax(np.array([[0.0, np.log(3.0)], [1000.0, 1000.0]]), -1)
        array([[0.25, 0.75],
               [0.5 , 0.5 ]])

    Reference: `torch.nn.functional.softmax`.
    """
    x, axes = _along(input, dim, dtype, "softmax")
    return prims.softmax(x, axis=axes)


def log_softmax(input: ArrayLike, dim: int, *, dtype: Any = None) -> Array:
    """The logarithm of the softmax along an axis, x - log(sum(exp(x))), without overflow.

    Args:
        input: Real array of any shape.
        dim: The axis along which the exponentials of the result sum to 1.
        dtype: What the input is converted to first.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Raises:
        numpy.exceptions.AxisError: (an IndexError) `dim` is out of range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.log_softmax(np.array([0.0, 1000.0]), 0)
        array([-1000.,     0.])

    Reference: `torch.nn.functional.log_softmax`.
    """
    x, axes = _along(input, dim, dtype, "log_softmax")
    return prims.log_softmax(x, axis=axes)


def logsumexp(input: ArrayLike, dim: int | tuple[int, ...], keepdim: bool = False) -> Array:
    """The logarithm of the sum of exponentials along axes, without overflow.

    Args:
        input: Real array of any shape.
        dim: The axis or the axes to sum over.
        keepdim: Whether they stay, with size 1.

    Returns:
        An array without the axes `dim`, of the same dtype (float64 for integers). Where all entries are -inf it is -inf,
        with gradient 0.

    Raises:
        numpy.exceptions.AxisError: (an IndexError) `dim` is out of range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.logsumexp(np.array([[0.0, 0.0], [1000.0, -np.inf]]), 1).round(4)
        array([6.931e-01, 1.000e+03])

    Reference: `torch.logsumexp`.
    """
    x, axes = _along(input, dim, None, "logsumexp")
    out = prims.logsumexp(x, axis=axes)
    return expand(out, axes) if keepdim else out


def _along(input: ArrayLike, dim: Any, dtype: Any, name: str) -> tuple[Array, tuple[int, ...]]:
    if dim is None:
        raise ArgumentError(f"{name} needs an axis", got={"dim": None}, fix=f"write {name}(x, -1)")
    x = floating(input, name)
    if dtype is not None:
        x = x.astype(dtype)
    rank = len(shape_of(x))
    return x, () if rank == 0 and dim in (0, -1) else normalise_axes(dim, rank)
