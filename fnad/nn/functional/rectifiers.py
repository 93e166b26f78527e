"""Nonlinearities made of pieces. At the points between two pieces the slope is PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, floating
from fnad.random import uniform
from fnad.typing import Array, ArrayLike

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def threshold(input: ArrayLike, threshold: float, value: float) -> Array:
    """x where x > threshold, value elsewhere.

    Args:
        input: Real array of any shape.
        threshold: Up to where x is replaced.
        value: What it is replaced by.

    Returns:
        An array of the same shape and dtype.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.threshold(np.array([-1.0, 0.5, 2.0]), 1.0, 9.0)
        array([9., 9., 2.])

    Reference: `torch.nn.functional.threshold`.
    """
    x = array(input)
    return np.where(np.less_equal(x, threshold), x.dtype.type(value), x)


def hardtanh(input: ArrayLike, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """x cut off at both ends; the slope at the ends is 0.

    Args:
        input: Real array of any shape.
        min_val: The lower end.
        max_val: The upper end.

    Returns:
        An array of the same shape and dtype.

    Raises:
        ArgumentError: the ends are in the wrong order.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.hardtanh(np.array([-2.0, 0.5, 2.0]))
        array([-1. ,  0.5,  1. ])

    Reference: `torch.nn.functional.hardtanh`.
    """
    if min_val > max_val:
        raise ArgumentError("hardtanh: min_val is at most max_val", got={"min_val": min_val, "max_val": max_val})
    x = array(input)
    low, high = x.dtype.type(min_val), x.dtype.type(max_val)
    return np.where(np.less_equal(x, low), low, np.where(np.greater_equal(x, high), high, x))


def relu6(input: ArrayLike) -> Array:
    """min(max(x, 0), 6) of each element; the slope at 0 and 6 is 0.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.relu6(np.array([-1.0, 3.0, 9.0]))
        array([0., 3., 6.])

    Reference: `torch.nn.functional.relu6`.
    """
    return hardtanh(input, 0, 6)


def leaky_relu(input: ArrayLike, negative_slope: float = 0.01) -> Array:
    """x where x > 0, negative_slope * x elsewhere.

    Args:
        input: Real array of any shape.
        negative_slope: The slope up to 0.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.leaky_relu(np.array([-1.0, 2.0]), 0.1)
        array([-0.1,  2. ])

    Reference: `torch.nn.functional.leaky_relu`.
    """
    x = floating(input, "leaky_relu")
    return np.where(np.greater(x, 0), x, x * negative_slope)


def prelu(input: ArrayLike, weight: ArrayLike) -> Array:
    """x where x > 0, weight * x elsewhere, with one weight for all entries or one for each channel.

    Args:
        input: Real array; its channels are axis 1 (the only axis, if it has but one).
        weight: (), (1,) or (channels,).

    Returns:
        An array of the input's shape.

    Raises:
        ShapeError: the weight has another shape.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.prelu(np.array([[-1.0, -1.0], [2.0, 2.0]]), np.array([0.1, 0.2]))
        array([[-0.1, -0.2],
               [ 2. ,  2. ]])

    Reference: He et al., Delving Deep into Rectifiers, 2015; `torch.nn.functional.prelu`.
    """
    x, w = floating(input, "prelu"), array(weight)
    shape, own = shape_of(x), shape_of(w)
    channels = shape[1] if len(shape) > 1 else shape[0] if shape else 1
    if own not in ((), (1,), (channels,)):
        raise ShapeError("prelu: one weight, or one per channel", got={"input": aval_of(x), "weight": aval_of(w)})
    if own == (channels,) and len(shape) > 2:
        w = np.reshape(w, (channels, *(1,) * (len(shape) - 2)))
    elif own == (1,) and not shape:
        w = np.reshape(w, ())
    return np.where(np.greater(x, 0), x, x * w)


def rrelu(input: ArrayLike, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, *, key: ArrayLike | None = None) -> Array:
    """x where x > 0; elsewhere a * x with a uniform a in [lower, upper) in training, their mean otherwise.

    Args:
        input: Real array of any shape.
        lower: The smallest slope.
        upper: The largest slope.
        training: Whether slopes are random.
        key: A key of `fnad.random`, needed in training.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Raises:
        ArgumentError: the slopes are in the wrong order, or there is no key in training.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.rrelu(np.array([-1.0, 2.0]), 0.1, 0.3)
        array([-0.2,  2. ])

    Reference: Xu et al., Empirical Evaluation of Rectified Activations, 2015; `torch.nn.functional.rrelu`.
    """
    if lower > upper:
        raise ArgumentError("rrelu: lower is at most upper", got={"lower": lower, "upper": upper})
    x = floating(input, "rrelu")
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    if key is None:
        raise ArgumentError("rrelu needs a key where it trains", got={"key": None}, fix="pass key=fnad.random.key(seed)")
    slopes = uniform(key, shape_of(x), x.dtype, lower, upper)
    return np.where(np.greater(x, 0), x, x * slopes)


def elu(input: ArrayLike, alpha: float = 1.0) -> Array:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        input: Real array of any shape.
        alpha: Minus the limit for x -> -inf.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.elu(np.array([-1.0, 2.0])).round(4)
        array([-0.6321,  2.    ])

    Reference: Clevert, Unterthiner & Hochreiter, Fast and Accurate Deep Network Learning by ELUs, 2015;
    `torch.nn.functional.elu`.
    """
    return _exponential_below(floating(input, "elu"), alpha, 1.0, 1.0)


def selu(input: ArrayLike) -> Array:
    """scale * elu(x, alpha) with the constants for which mean 0 and variance 1 are a fixed point.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.selu(np.array([-1.0, 2.0])).round(4)
        array([-1.1113,  2.1014])

    Reference: Klambauer et al., Self-Normalizing Neural Networks, 2017; `torch.nn.functional.selu`.
    """
    return _exponential_below(floating(input, "selu"), _SELU_SCALE * _SELU_ALPHA, 1.0, _SELU_SCALE)


def celu(input: ArrayLike, alpha: float = 1.0) -> Array:
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.

    Args:
        input: Real array of any shape.
        alpha: Minus the limit for x -> -inf.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Raises:
        ArgumentError: alpha is 0.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.celu(np.array([-1.0, 2.0]), 2.0).round(4)
        array([-0.7869,  2.    ])

    Reference: Barron, Continuously Differentiable Exponential Linear Units, 2017; `torch.nn.functional.celu`.
    """
    if alpha == 0:
        raise ArgumentError("celu: alpha is not 0")
    return _exponential_below(floating(input, "celu"), alpha, 1 / alpha, 1.0)


def _exponential_below(x: Any, factor: float, inner: float, slope: float) -> Array:
    """slope * x where x > 0, factor * (exp(inner * x) - 1) elsewhere."""
    above = np.greater(x, 0)
    below = np.where(above, 0, x)  # where it is not wanted, the exponential would overflow
    return np.where(above, x if slope == 1 else x * slope, np.expm1(below if inner == 1 else below * inner) * factor)


def hardsigmoid(input: ArrayLike) -> Array:
    """min(max(x / 6 + 1 / 2, 0), 1) of each element; the slope at -3 and 3 is 0.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.hardsigmoid(np.array([-4.0, 0.0, 4.0]))
        array([0. , 0.5, 1. ])

    Reference: `torch.nn.functional.hardsigmoid`.
    """
    x = floating(input, "hardsigmoid")
    one = x.dtype.type(1)
    return np.where(np.less_equal(x, -3), 0 * one, np.where(np.greater_equal(x, 3), one, x / 6 + 0.5))


def hardswish(input: ArrayLike) -> Array:
    """x * hardsigmoid(x).

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.hardswish(np.array([-4.0, 1.5, 4.0]))
        array([0.   , 1.125, 4.   ])

    Reference: Howard et al., Searching for MobileNetV3, 2019; `torch.nn.functional.hardswish`.
    """
    x = floating(input, "hardswish")
    return np.where(np.less_equal(x, -3), x.dtype.type(0), np.where(np.greater_equal(x, 3), x, x * (x + 3) / 6))


def hardshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """x where |x| > lambd, 0 elsewhere.

    Args:
        input: Real array of any shape.
        lambd: The bound.

    Returns:
        An array of the same shape and dtype.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.hardshrink(np.array([-1.0, 0.3, 2.0]))
        array([-1.,  0.,  2.])

    Reference: `torch.nn.functional.hardshrink`.
    """
    x = array(input)
    return np.where(np.less_equal(np.absolute(x), lambd), x.dtype.type(0), x)


def softshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """x moved towards 0 by lambd, and 0 where |x| <= lambd.

    Args:
        input: Real array of any shape.
        lambd: The bound, not negative.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Raises:
        ArgumentError: lambd is negative.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.softshrink(np.array([-1.0, 0.3, 2.0]))
        array([-0.5,  0. ,  1.5])

    Reference: `torch.nn.functional.softshrink`.
    """
    if lambd < 0:
        raise ArgumentError("softshrink: lambd is not negative", got={"lambd": lambd})
    x = floating(input, "softshrink")
    return np.where(np.greater(x, lambd), x - lambd, np.where(np.less(x, -lambd), x + lambd, 0 * x))
