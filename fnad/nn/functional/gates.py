"""Smooth nonlinearities, gates, and functions along an axis made of the softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ShapeError
from fnad.nn.functional._arguments import floating
from fnad.nn.functional.activations import softmax, softplus
from fnad.numpy.metadata import normalise_axes
from fnad.primitives.activation import softplus as smooth_relu
from fnad.primitives.elementary import logistic
from fnad.primitives.shape import stop
from fnad.primitives.special import first_largest
from fnad.random import gumbel
from fnad.typing import Array, ArrayLike


def tanhshrink(input: ArrayLike) -> Array:
    """x - tanh(x) of each element.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.tanhshrink(np.array([0.0, 2.0])).round(4)
        array([0.   , 1.036])

    Reference: `torch.nn.functional.tanhshrink`.
    """
    x = floating(input, "tanhshrink")
    return x - np.tanh(x)


def softsign(input: ArrayLike) -> Array:
    """x / (1 + |x|) of each element.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.softsign(np.array([-1.0, 3.0]))
        array([-0.5 ,  0.75])

    Reference: `torch.nn.functional.softsign`.
    """
    x = floating(input, "softsign")
    return x / (1 + np.absolute(x))


def logsigmoid(input: ArrayLike) -> Array:
    """log(1 / (1 + exp(-x))) of each element, without overflow and accurate in both tails.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.logsigmoid(np.array([-1000.0, 0.0])).round(4)
        array([-1.000e+03, -6.931e-01])

    Reference: `torch.nn.functional.logsigmoid`.
    """
    return -smooth_relu(-floating(input, "logsigmoid"))


def mish(input: ArrayLike) -> Array:
    """x * tanh(softplus(x)) of each element.

    Args:
        input: Real array of any shape.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.mish(np.array([-1.0, 2.0])).round(4)
        array([-0.3034,  1.944 ])

    Reference: Misra, Mish: A Self Regularized Non-Monotonic Neural Activation Function, 2019; `torch.nn.functional.mish`.
    """
    x = floating(input, "mish")
    return x * np.tanh(softplus(x))


def glu(input: ArrayLike, dim: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second.

    Args:
        input: Real array.
        dim: An axis of even size.

    Returns:
        An array with half that axis (float64 for integers).

    Raises:
        ShapeError: the axis has an odd size.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.glu(np.array([1.0, 2.0, 0.0, 1000.0]))
        array([0.5, 2. ])

    Reference: Dauphin et al., Language Modeling with Gated Convolutional Networks, 2017; `torch.nn.functional.glu`.
    """
    x = floating(input, "glu")
    (axis,) = normalise_axes(dim, len(shape_of(x)))
    size = shape_of(x)[axis]
    if size % 2:
        raise ShapeError("glu: the axis has an even size", got={"input": aval_of(x), "dim": dim})
    lead = (slice(None),) * axis
    return x[(*lead, slice(0, size // 2))] * logistic(x[(*lead, slice(size // 2, size))])


def softmin(input: ArrayLike, dim: int, *, dtype: Any = None) -> Array:
    """The softmax of -x along an axis.

    Args:
        input: Real array of any shape.
        dim: The axis along which the result sums to 1.
        dtype: What the input is converted to first.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.softmin(np.array([0.0, np.log(3.0)]), 0)
        array([0.75, 0.25])

    Reference: `torch.nn.functional.softmin`.
    """
    return softmax(-floating(input, "softmin"), dim, dtype=dtype)


def gumbel_softmax(logits: ArrayLike, tau: float = 1.0, hard: bool = False, dim: int = -1, *, key: ArrayLike) -> Array:
    """A differentiable draw of one of several classes: the softmax of (logits + Gumbel noise) / tau.

    Args:
        logits: Real array of unnormalised logarithms of probabilities.
        tau: The temperature: the smaller, the closer to 0 and 1.
        hard: Whether the result is 1 for the largest and 0 elsewhere, with the gradient of the softmax.
        dim: The axis of the classes.
        key: A key of `fnad.random`.

    Returns:
        An array of the same shape and dtype (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import functional as F
        >>> F.gumbel_softmax(np.array([0.0, 10.0]), hard=True, key=random.key(0))
        array([0., 1.])

    Reference: Jang, Gu & Poole, Categorical Reparameterization with Gumbel-Softmax, 2016; `torch.nn.functional.gumbel_softmax`.
    """
    x = floating(logits, "gumbel_softmax")
    soft = softmax((x + gumbel(key, shape_of(x), x.dtype)) / tau, dim)
    if not hard:
        return soft
    axes = normalise_axes(dim, len(shape_of(x)))
    return first_largest(soft, axis=axes).astype(x.dtype) - stop(soft) + soft
