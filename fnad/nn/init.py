"""Initial weights under the names of `torch.nn.init`, as functions of a key and a shape.

A weight is (outputs, inputs, *kernel). There is nothing to fill in place, so the names have no underscore at the end.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad import random
from fnad.errors import ArgumentError, ShapeError
from fnad.typing import Array, ArrayLike

Shape = int | tuple[int, ...]
_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2.0), "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what the standard deviation of weights is multiplied so that values keep their size behind a nonlinearity.

    Args:
        nonlinearity: "linear", "conv1d" and the like, "sigmoid", "tanh", "relu", "leaky_relu" or "selu".
        param: The negative slope of "leaky_relu"; None for 0.01.

    Returns:
        The factor.

    Raises:
        ArgumentError: an unknown nonlinearity.

    Example:
        >>> from fnad.nn import init
        >>> round(init.calculate_gain("relu"), 4)
        1.4142

    Reference: `torch.nn.init.calculate_gain`.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity.startswith("conv"):
        return 1.0
    if nonlinearity not in _GAINS:
        raise ArgumentError(
            "calculate_gain: an unknown nonlinearity", got={"nonlinearity": repr(nonlinearity)}, fix=f"one of {', '.join(_GAINS)}"
        )
    return _GAINS[nonlinearity]


def _fans(shape: Shape, name: str) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input."""
    if not isinstance(shape, tuple | list) or len(shape) < 2:
        raise ShapeError(f"{name}: the weight has at least two axes (outputs, inputs, *kernel)", got={"shape": shape})
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def uniform(key: ArrayLike, shape: Shape, a: float = 0.0, b: float = 1.0, *, dtype: Any = float) -> Array:
    """Uniform numbers in [a, b).

    Args:
        key: A key of `fnad.random`.
        shape: The shape of the weight.
        a: The lower end.
        b: The upper end.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.uniform(random.key(0), (3, 2), -0.1, 0.1)

    Reference: `torch.nn.init.uniform_`.
    """
    return random.uniform(key, shape, dtype, a, b)


def normal(key: ArrayLike, shape: Shape, mean: float = 0.0, std: float = 1.0, *, dtype: Any = float) -> Array:
    """Normal numbers.

    Args:
        key: A key of `fnad.random`.
        shape: The shape of the weight.
        mean: Their mean.
        std: Their standard deviation.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.normal(random.key(0), (3, 2), std=0.02)

    Reference: `torch.nn.init.normal_`.
    """
    return random.normal(key, shape, dtype) * std + mean


def trunc_normal(
    key: ArrayLike, shape: Shape, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, *, dtype: Any = float
) -> Array:
    """Normal numbers given that they lie in [a, b].

    Args:
        key: A key of `fnad.random`.
        shape: The shape of the weight.
        mean: The mean before the cut.
        std: The standard deviation before the cut.
        a: The smallest number.
        b: The largest number.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.trunc_normal(random.key(0), (3, 2), std=0.02)

    Reference: `torch.nn.init.trunc_normal_`.
    """
    return random.truncated_normal(key, (a - mean) / std, (b - mean) / std, shape, dtype) * std + mean


def constant(shape: Shape, val: float, *, dtype: Any = float) -> Array:
    """One number everywhere.

    Args:
        shape: The shape of the weight.
        val: The number.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Example:
        >>> from fnad.nn import init
        >>> init.constant(2, 0.5)
        array([0.5, 0.5])

    Reference: `torch.nn.init.constant_`.
    """
    return np.full(shape, val, dtype)


def ones(shape: Shape, *, dtype: Any = float) -> Array:
    """Ones.

    Args:
        shape: The shape of the weight.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Example:
        >>> from fnad.nn import init
        >>> init.ones(2)
        array([1., 1.])

    Reference: `torch.nn.init.ones_`.
    """
    return np.ones(shape, dtype)


def zeros(shape: Shape, *, dtype: Any = float) -> Array:
    """Zeros.

    Args:
        shape: The shape of the weight.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Example:
        >>> from fnad.nn import init
        >>> init.zeros(2)
        array([0., 0.])

    Reference: `torch.nn.init.zeros_`.
    """
    return np.zeros(shape, dtype)


def eye(shape: tuple[int, int], *, dtype: Any = float) -> Array:
    """The identity: as many inputs as possible are passed on.

    Args:
        shape: (outputs, inputs)
        dtype: The dtype of the weight.

    Returns:
        An array.

    Raises:
        ShapeError: the shape does not have two axes.

    Example:
        >>> from fnad.nn import init
        >>> init.eye((2, 3))
        array([[1., 0., 0.],
               [0., 1., 0.]])

    Reference: `torch.nn.init.eye_`.
    """
    if len(shape) != 2:
        raise ShapeError("eye: the weight is (outputs, inputs)", got={"shape": shape})
    return np.eye(*shape, dtype=dtype)


def dirac(shape: tuple[int, ...], groups: int = 1, *, dtype: Any = float) -> Array:
    """A convolution that passes on as many channels as possible of each group.

    Args:
        shape: (outputs, inputs / groups, *kernel) with one to three axes of the kernel.
        groups: In how many groups the outputs are divided.
        dtype: The dtype of the weight.

    Returns:
        An array with ones in the middle of the kernel.

    Raises:
        ShapeError: another number of axes, or the groups do not divide the outputs.

    Example:
        >>> from fnad.nn import init
        >>> init.dirac((1, 2, 3))
        array([[[0., 1., 0.],
                [0., 0., 0.]]])

    Reference: `torch.nn.init.dirac_`.
    """
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        raise ShapeError(
            "dirac: (outputs, inputs, *kernel) with up to three last axes, groups divide outputs", got={"shape": shape, "groups": groups}
        )
    out = np.zeros(shape, dtype)
    each = shape[0] // groups
    middle = tuple(n // 2 for n in shape[2:])
    for g in range(groups):
        for d in range(min(each, shape[1])):
            out[(g * each + d, d, *middle)] = 1
    return out


def xavier_uniform(key: ArrayLike, shape: Shape, gain: float = 1.0, *, dtype: Any = float) -> Array:
    """Uniform numbers in [-b, b), b = gain * sqrt(6 / (inputs + outputs)).

    Args:
        key: A key of `fnad.random`.
        shape: (outputs, inputs, *kernel)
        gain: See `calculate_gain`.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Raises:
        ShapeError: the shape has fewer than two axes.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.xavier_uniform(random.key(0), (3, 2))

    Reference: Glorot & Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010;
    `torch.nn.init.xavier_uniform_`.
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(shape, "xavier_uniform")))
    return random.uniform(key, shape, dtype, -bound, bound)


def xavier_normal(key: ArrayLike, shape: Shape, gain: float = 1.0, *, dtype: Any = float) -> Array:
    """Normal numbers with the standard deviation gain * sqrt(2 / (inputs + outputs)).

    Args:
        key: A key of `fnad.random`.
        shape: (outputs, inputs, *kernel)
        gain: See `calculate_gain`.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Raises:
        ShapeError: the shape has fewer than two axes.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.xavier_normal(random.key(0), (3, 2))

    Reference: Glorot & Bengio, 2010; `torch.nn.init.xavier_normal_`.
    """
    return normal(key, shape, 0.0, gain * math.sqrt(2.0 / sum(_fans(shape, "xavier_normal"))), dtype=dtype)


def kaiming_uniform(
    key: ArrayLike, shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, dtype: Any = float
) -> Array:
    """Uniform numbers in [-b, b), b = gain * sqrt(3 / fan).

    Args:
        key: A key of `fnad.random`.
        shape: (outputs, inputs, *kernel)
        a: The negative slope of "leaky_relu".
        mode: "fan_in" for the number of inputs of an output, "fan_out" for that of outputs of an input.
        nonlinearity: Which gain; see `calculate_gain`.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Raises:
        ShapeError: the shape has fewer than two axes.
        ArgumentError: an unknown mode or nonlinearity.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.kaiming_uniform(random.key(0), (3, 2), nonlinearity="relu")

    Reference: He et al., Delving Deep into Rectifiers, 2015; `torch.nn.init.kaiming_uniform_`.
    """
    bound = math.sqrt(3.0) * _kaiming("kaiming_uniform", shape, a, mode, nonlinearity)
    return random.uniform(key, shape, dtype, -bound, bound)


def kaiming_normal(
    key: ArrayLike, shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, dtype: Any = float
) -> Array:
    """Normal numbers with the standard deviation gain / sqrt(fan). Arguments are those of `kaiming_uniform`.

    Example:
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.kaiming_normal(random.key(0), (3, 2), nonlinearity="relu")

    Reference: He et al., 2015; `torch.nn.init.kaiming_normal_`.
    """
    return normal(key, shape, 0.0, _kaiming("kaiming_normal", shape, a, mode, nonlinearity), dtype=dtype)


def _kaiming(name: str, shape: Shape, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"{name}: mode is 'fan_in' or 'fan_out'", got={"mode": repr(mode)})
    fan = _fans(shape, name)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal(key: ArrayLike, shape: Shape, gain: float = 1.0, *, dtype: Any = float) -> Array:
    """A matrix whose rows or columns, whichever are fewer, are orthogonal and have the length `gain`.

    Args:
        key: A key of `fnad.random`.
        shape: (outputs, inputs, *kernel), where all but the first axis count as columns.
        gain: The length.
        dtype: float32 or float64.

    Returns:
        An array.

    Raises:
        ShapeError: the shape has fewer than two axes.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> w = init.orthogonal(random.key(0), (2, 3))
        >>> bool(np.allclose(w @ w.T, np.eye(2)))
        True

    Reference: Saxe, McClelland & Ganguli, Exact solutions to the nonlinear dynamics of learning in deep linear neural networks, 2013;
    `torch.nn.init.orthogonal_`.
    """
    _fans(shape, "orthogonal")
    rows, *columns = shape  # type: ignore[misc]
    return np.reshape(random.orthogonal(key, rows, dtype=dtype, m=math.prod(columns)), shape) * gain


def sparse(key: ArrayLike, shape: tuple[int, int], sparsity: float, std: float = 0.01, *, dtype: Any = float) -> Array:
    """Normal numbers, of which in each column the share `sparsity` is 0.

    Args:
        key: A key of `fnad.random`.
        shape: (outputs, inputs)
        sparsity: The share, rounded up to a number of rows.
        std: The standard deviation of the others.
        dtype: The dtype of the weight.

    Returns:
        An array.

    Raises:
        ShapeError: the shape does not have two axes.

    Example:
        >>> import numpy as np
        >>> from fnad import random
        >>> from fnad.nn import init
        >>> np.sum(init.sparse(random.key(0), (10, 3), 0.2) == 0, axis=0)
        array([2, 2, 2])

    Reference: Martens, Deep learning via Hessian-free optimization, 2010; `torch.nn.init.sparse_`.
    """
    if len(shape) != 2:
        raise ShapeError("sparse: the weight is (outputs, inputs)", got={"shape": shape})
    first, second = random.split(key)
    rank = np.argsort(random.bits(first, shape), axis=0)
    return np.where(rank < math.ceil(sparsity * shape[0]), 0, normal(second, shape, 0.0, std, dtype=dtype))
