"""`torch.nn.init`: initial values of parameters, in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.errors import ArgumentError
from fnad.torch._mode import no_grad


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By which factor weights in front of a nonlinearity are larger, so that variances stay."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor: Any) -> tuple[int, int]:
    shape = tensor._data.shape
    if len(shape) < 2:
        raise ArgumentError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions", got={"shape": shape})
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform numbers in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None) -> Any:
    """Normal numbers, drawn again until they lie in [a, b]."""
    with no_grad():
        tensor.normal_(mean, std, generator=generator)
        while True:
            outside = (tensor._data < a) | (tensor._data > b)
            count = int(np.count_nonzero(outside))
            if not count:
                return tensor
            again = tensor.new_empty(count).normal_(mean, std, generator=generator)
            tensor._data[outside] = again._data


def constant_(tensor: Any, val: float) -> Any:
    """One number everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """The identity matrix."""
    with no_grad():
        return tensor.copy_(np.eye(*tensor._data.shape))


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform, of variance gain**2 * 2 / (fan in + fan out). Reference: Glorot & Bengio, 2010."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal, of variance gain**2 * 2 / (fan in + fan out). Reference: Glorot & Bengio, 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return calculate_gain(nonlinearity, a) / math.sqrt(_fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None) -> Any:
    """Uniform, of variance gain**2 / fan. Reference: He et al., 2015."""
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None) -> Any:
    """Normal, of variance gain**2 / fan. Reference: He et al., 2015."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Orthogonal rows or columns. Reference: Saxe et al., 2013."""
    rows = tensor._data.shape[0]
    columns = tensor._data.size // rows
    wide = tensor.new_empty(max(rows, columns), min(rows, columns)).normal_(generator=generator)._data
    q, r = np.linalg.qr(wide)
    q = q * np.sign(np.diag(r))
    with no_grad():
        return tensor.copy_((gain * (q.T if rows < columns else q)).reshape(tensor._data.shape))
