"""Normalisation: values brought to a common mean and size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, floating
from fnad.nn.functional.pooling import avg_pool1d
from fnad.primitives.activation import standardize
from fnad.primitives.shape import stop
from fnad.typing import Array, ArrayLike


def layer_norm(
    input: ArrayLike,
    normalized_shape: int | tuple[int, ...] | ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    """(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over the last axes.

    Args:
        input: Real array whose last axes have the shape `normalized_shape`.
        normalized_shape: An integer or a tuple. It may be left out where there is a weight, which has this shape:
            `layer_norm(x, weight, bias)`.
        weight: Array of that shape, or None.
        bias: Array of that shape, or None.
        eps: Keeps a slice without variance from dividing by 0.

    Returns:
        An array of the input's shape (float64 for integers). The variance is that of the population.

    Raises:
        ShapeError: input, weight or bias do not end in `normalized_shape`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.layer_norm(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]), 3).round(3)
        array([[-1.225,  0.   ,  1.225],
               [ 0.   ,  0.   ,  0.   ]])

    Reference: Ba, Kiros & Hinton, Layer Normalization, 2016; `torch.nn.functional.layer_norm`.
    """
    if isinstance(normalized_shape, Tracer) or (isinstance(normalized_shape, np.ndarray) and normalized_shape.dtype.kind == "f"):
        if bias is not None:
            raise ArgumentError("layer_norm: after input come normalized_shape, weight and bias, or weight and bias alone")
        weight, bias, normalized_shape = normalized_shape, weight, shape_of(normalized_shape)
    x = floating(input, "layer_norm")
    axes = _last_axes("layer_norm", x, normalized_shape, weight=weight, bias=bias)
    out = standardize(x, axis=axes, eps=float(eps))[0]
    if weight is not None:
        out = out * array(weight)
    return out if bias is None else out + array(bias)


def _last_axes(name: str, x: Any, normalized_shape: Any, **params: Any) -> tuple[int, ...]:
    """The axes that normalized_shape stands for; parameters must have that shape."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int | np.integer) else tuple(normalized_shape)
    others = {key: aval_of(p) for key, p in params.items() if p is not None}
    if not shape or shape_of(x)[-len(shape) :] != shape or any(a.shape != shape for a in others.values()):
        rule = f"{name}: the input ends in normalized_shape, weight and bias have it"
        raise ShapeError(rule, got={"normalized_shape": shape, "input": aval_of(x), **others})
    rank = len(shape_of(x))
    return tuple(range(rank - len(shape), rank))


def rms_norm(input: ArrayLike, normalized_shape: int | tuple[int, ...], weight: ArrayLike | None = None, eps: float | None = None) -> Array:
    """x / sqrt(mean(x**2) + eps) * weight, with the mean over the last axes.

    Args:
        input: Real array whose last axes have the shape `normalized_shape`.
        normalized_shape: An integer or a tuple.
        weight: Array of that shape, or None.
        eps: Keeps zeros from dividing by 0; None for the machine's epsilon of the dtype.

    Returns:
        An array of the input's shape (float64 for integers).

    Raises:
        ShapeError: input or weight do not end in `normalized_shape`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.rms_norm(np.array([[3.0, 4.0], [0.0, 0.0]]), 2).round(4)
        array([[0.8485, 1.1314],
               [0.    , 0.    ]])

    Reference: Zhang & Sennrich, Root Mean Square Layer Normalization, 2019; `torch.nn.functional.rms_norm`.
    """
    x = floating(input, "rms_norm")
    axes = _last_axes("rms_norm", x, normalized_shape, weight=weight)
    small = np.finfo(x.dtype).eps if eps is None else eps
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    scale = np.reciprocal(np.sqrt(np.mean(wide * wide, axis=axes, keepdims=True) + float(small)))
    out = wide * scale
    out = out if out.dtype == x.dtype else out.astype(x.dtype)
    return out if weight is None else out * array(weight)


def batch_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None,
    running_var: ArrayLike | None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel, over the examples and all axes behind the channels.

    Args:
        input: (n, c) or (n, c, ...), real.
        running_mean: (c,), or None.
        running_var: (c,), or None.
        weight: (c,), or None.
        bias: (c,), or None.
        training: Whether mean and variance are those of the input, or the running ones.
        momentum: How much of the running statistics is replaced.
        eps: Keeps a channel without variance from dividing by 0.

    Returns:
        An array of the input's shape (float64 for integers). In training with running statistics, a tuple: that array and the
        new running mean and variance, (1 - momentum) * old + momentum * found, which have no gradient; the variance found is the unbiased
        one there.

    Raises:
        ShapeError: the arguments do not fit, or there is only one value per channel in training.
        ArgumentError: no running statistics where they are needed.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> x = np.array([[1.0, 5.0], [3.0, 5.0]])
        >>> out, mean, var = F.batch_norm(x, np.zeros(2), np.ones(2), training=True)
        >>> out.round(3), mean, var
        (array([[-1.,  0.],
               [ 1.,  0.]]), array([0.2, 0.5]), array([1.1, 0.9]))

    Reference: Ioffe & Szegedy, Batch Normalization, 2015; `torch.nn.functional.batch_norm`, which changes the running statistics in
    place where this returns them.
    """
    x = floating(input, "batch_norm")
    if len(shape_of(x)) < 2:
        raise ShapeError("batch_norm: input (n, c, ...)", got={"input": aval_of(x)})
    _per_channel("batch_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if (running_mean is None) != (running_var is None) or (running_mean is None and not training):
        raise ArgumentError("batch_norm: running mean and variance come together, and are needed where it does not train")
    if not training:
        mean, variance = (p if p.dtype == x.dtype else p.astype(x.dtype) for p in (array(running_mean), array(running_var)))
        scale = np.reciprocal(np.sqrt(variance + float(eps)))
        scale = scale if weight is None else scale * array(weight)
        shift = -mean * scale
        shift = shift if bias is None else shift + array(bias)
        return x * _as_channels(scale, x) + _as_channels(shift, x)
    out, mean, variance, count = _with_statistics("batch_norm", x, (0, *range(2, len(shape_of(x)))), eps)
    out = _affine(out, weight, bias)
    if running_mean is None:
        return out
    return out, *_moved(running_mean, running_var, mean, variance * (count / (count - 1)), momentum)


def _with_statistics(name: str, x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any, int]:
    """The standardised input; mean and variance over the axes, without gradient; and of how many values."""
    count = math.prod(shape_of(x)[a] for a in axes)
    if count == 1:
        raise ShapeError(f"{name}: in training there is more than one value per channel", got={"input": aval_of(x)})
    out, scale = standardize(x, axis=axes, eps=float(eps))
    scale = stop(scale)
    return out, np.mean(stop(x), axis=axes), np.squeeze(np.reciprocal(scale * scale), axes) - float(eps), count


def _moved(running_mean: Any, running_var: Any, mean: Any, variance: Any, momentum: float) -> tuple[Array, Array]:
    return (1 - momentum) * array(running_mean) + momentum * mean, (1 - momentum) * array(running_var) + momentum * variance


def _per_channel(name: str, x: Any, **params: Any) -> None:
    channels = shape_of(x)[1:2]
    others = {key: aval_of(p) for key, p in params.items() if p is not None}
    if any(a.shape != channels for a in others.values()):
        raise ShapeError(f"{name}: one entry per channel, which is axis 1 of the input", got={"input": aval_of(x), **others})


def _as_channels(p: Any, x: Any) -> Any:
    return np.reshape(array(p), (-1, *(1,) * (len(shape_of(x)) - 2)))


def _affine(out: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        out = out * _as_channels(weight, out)
    return out if bias is None else out + _as_channels(bias, out)


def instance_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each channel of each example, over the axes behind the channels.

    Args:
        input: (n, c, ...), real.
        running_mean: (c,), or None.
        running_var: (c,), or None.
        weight: (c,), or None.
        bias: (c,), or None.
        use_input_stats: Whether mean and variance are those of the input, or the running ones.
        momentum: How much of the running statistics is replaced.
        eps: Keeps a channel without variance from dividing by 0.

    Returns:
        As `batch_norm`; the running statistics move by the mean of those of the examples.

    Raises:
        ShapeError: the arguments do not fit, or there is only one value per channel.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.instance_norm(np.array([[[1.0, 3.0], [10.0, 10.0]]])).round(3)
        array([[[-1.,  1.],
                [ 0.,  0.]]])

    Reference: Ulyanov, Vedaldi & Lempitsky, Instance Normalization, 2016; `torch.nn.functional.instance_norm`.
    """
    x = floating(input, "instance_norm")
    if len(shape_of(x)) < 3:
        raise ShapeError("instance_norm: input (n, c, ...) with an axis behind the channels", got={"input": aval_of(x)})
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    _per_channel("instance_norm", x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    out, mean, variance, count = _with_statistics("instance_norm", x, tuple(range(2, len(shape_of(x)))), eps)
    out = _affine(out, weight, bias)
    if running_mean is None or running_var is None:
        return out
    return out, *_moved(running_mean, running_var, np.mean(mean, axis=0), np.mean(variance, axis=0) * (count / (count - 1)), momentum)


def group_norm(
    input: ArrayLike, num_groups: int, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(variance + eps) * weight + bias for each group of channels of each example.

    Args:
        input: (n, c, ...), real.
        num_groups: In how many groups the channels are divided.
        weight: (c,), or None.
        bias: (c,), or None.
        eps: Keeps a group without variance from dividing by 0.

    Returns:
        An array of the input's shape (float64 for integers).

    Raises:
        ShapeError: the arguments do not fit, or the groups do not divide the channels.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.group_norm(np.array([[1.0, 3.0, 10.0, 20.0]]), 2).round(3)
        array([[-1.,  1., -1.,  1.]])

    Reference: Wu & He, Group Normalization, 2018; `torch.nn.functional.group_norm`.
    """
    x = floating(input, "group_norm")
    shape = shape_of(x)
    if len(shape) < 2 or num_groups < 1 or shape[1] % num_groups:
        raise ShapeError("group_norm: input (n, c, ...) where num_groups divides c", got={"input": aval_of(x), "num_groups": num_groups})
    _per_channel("group_norm", x, weight=weight, bias=bias)
    rows = np.reshape(x, (shape[0], num_groups, math.prod(shape[1:]) // num_groups))
    return _affine(np.reshape(standardize(rows, axis=(2,), eps=float(eps))[0], shape), weight, bias)


def local_response_norm(input: ArrayLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    """x / (k + alpha * mean of x**2 over the `size` channels around)**beta, where channels beyond the ends are 0.

    Args:
        input: (n, c, ...), real.
        size: How many channels.
        alpha: Weight of the mean.
        beta: The exponent.
        k: What is added.

    Returns:
        An array of the input's shape (float64 for integers).

    Raises:
        ShapeError: the input has fewer than three axes.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.local_response_norm(np.ones((1, 2, 1)), 2, alpha=2.0, beta=1.0)
        array([[[0.5       ],
                [0.33333333]]])

    Reference: Krizhevsky, Sutskever & Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012;
    `torch.nn.functional.local_response_norm`.
    """
    x = floating(input, "local_response_norm")
    if len(shape_of(x)) < 3:
        raise ShapeError("local_response_norm: the input has at least three axes", got={"input": aval_of(x)})
    ends = [(0, 0)] * (len(shape_of(x)) - 1) + [(size // 2, (size - 1) // 2)]
    mean = np.moveaxis(avg_pool1d(np.pad(np.moveaxis(x * x, 1, -1), ends), size, 1), -1, 1)
    return x / (k + alpha * mean) ** beta


def normalize(input: ArrayLike, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12) -> Array:
    """x / max(norm(x), eps) along an axis.

    Args:
        input: Real array.
        p: Which norm.
        dim: The axis, or the axes.
        eps: Keeps a vector of zeros from dividing by 0.

    Returns:
        An array of the input's shape (float64 for integers).

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
        array([[0.6, 0.8],
               [0. , 0. ]])

    Reference: `torch.nn.functional.normalize`.
    """
    x = floating(input, "normalize")
    size = p_norm(x, p, dim, keepdims=True)
    return x / np.where(size < eps, x.dtype.type(eps), size)


def p_norm(x: Any, p: float, axis: Any, keepdims: bool = False) -> Any:
    """The p-norm along axes, whose gradient is 0 at 0."""
    if p == math.inf:
        return np.max(np.absolute(x), axis=axis, keepdims=keepdims)
    if p == 1:
        return np.sum(np.absolute(x), axis=axis, keepdims=keepdims)
    total = np.sum(x * x if p == 2 else np.absolute(x) ** p, axis=axis, keepdims=keepdims)
    positive = total > 0
    safe = np.where(positive, total, 1)
    return np.where(positive, np.sqrt(safe) if p == 2 else safe ** (1 / p), 0 * total)
