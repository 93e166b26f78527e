"""Functions that take weights or windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, ShapeError
from fnad.nn.functional._arguments import array, floating, pair
from fnad.primitives.activation import standardize
from fnad.primitives.conv import conv2d as convolve
from fnad.primitives.pool import max_pool
from fnad.primitives.windows import Padding, Pair, pad_plane, span, unfold, window_counts
from fnad.typing import Array, ArrayLike


def linear(input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """x @ weight.T + bias.

    (..., n), (m, n), (m,) -> (..., m); a weight of shape (n,) gives (...).

    Args:
        input: Array whose last axis has the size n.
        weight: One row per output.
        bias: Added to the result, or None.

    Returns:
        An array of the operands' common dtype.

    Raises:
        ShapeError: the last axes of input and weight differ.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.linear(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]), np.ones(3))
        array([2., 4., 7.])

    Reference: `torch.nn.functional.linear`.
    """
    x, w = array(input), array(weight)
    if len(shape_of(w)) not in (1, 2) or not shape_of(x) or shape_of(x)[-1] != shape_of(w)[-1]:
        raise ShapeError("linear: input (..., n) and weight (m, n) or (n,)", got={"input": aval_of(x), "weight": aval_of(w)})
    out = np.matmul(x, w.T)
    return out if bias is None else out + array(bias)


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
    shape = (normalized_shape,) if isinstance(normalized_shape, int | np.integer) else tuple(normalized_shape)
    x = floating(input, "layer_norm")
    others = {name: aval_of(p) for name, p in (("weight", weight), ("bias", bias)) if p is not None}
    if not shape or shape_of(x)[-len(shape) :] != shape or any(a.shape != shape for a in others.values()):
        rule = "layer_norm: the input ends in normalized_shape, weight and bias have it"
        raise ShapeError(rule, got={"normalized_shape": shape, "input": aval_of(x), **others})
    rank = len(shape_of(x))
    out = standardize(x, axis=tuple(range(rank - len(shape), rank)), eps=float(eps))[0]
    if weight is not None:
        out = out * array(weight)
    return out if bias is None else out + array(bias)


def conv2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
) -> Array:
    """Two-dimensional convolution (a correlation) of images with filters.

    (n, c, h, w), (o, c / groups, kh, kw), (o,) -> (n, o, oh, ow), without n for a single image;
    oh = (h + 2 padding - dilation (kh - 1) - 1) // stride + 1

    Args:
        input: Images.
        weight: One filter per output channel.
        bias: Added to each output channel, or None.
        stride: Step between windows; this and the next two are one number, or one each for height and width.
        padding: Zeros around the images; or "valid" for none, or "same" for an output of the input's size (stride 1).
        dilation: Step between the entries of a window.
        groups: In how many parts the channels are cut that have nothing to do with each other.

    Returns:
        An array of the operands' common dtype.

    Raises:
        ShapeError: input and weight do not fit, or a window is larger than a padded image.
        ArgumentError: an option is outside its range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.conv2d(np.arange(9.0).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2)))
        array([[[[ 8., 12.],
                 [20., 24.]]]])

    Reference: `torch.nn.functional.conv2d`.
    """
    x, w = array(input), array(weight)
    single = len(shape_of(x)) == 3
    if single:
        x = np.reshape(x, (1, *shape_of(x)))
    steps, gaps = pair(stride, "stride", 1), pair(dilation, "dilation", 1)
    if not isinstance(groups, int | np.integer) or groups < 1:
        raise ArgumentError("conv2d: groups is a positive integer", got={"groups": groups})
    if len(shape_of(x)) != 4 or len(shape_of(w)) != 4:
        raise ShapeError("conv2d: input (n, c, h, w) and weight (o, c / groups, kh, kw)", got={"input": aval_of(x), "weight": aval_of(w)})
    out = convolve(x, w, stride=steps, padding=_padding(padding, shape_of(w)[2:], steps, gaps), dilation=gaps, groups=int(groups))
    if bias is not None:
        if shape_of(bias) != shape_of(w)[:1]:
            raise ShapeError("conv2d: bias has one entry per output channel", got={"bias": aval_of(bias), "weight": aval_of(w)})
        out = out + np.reshape(array(bias), (-1, 1, 1))
    return np.reshape(out, shape_of(out)[1:]) if single else out


def _padding(padding: Any, kernel: tuple[int, ...], stride: Pair, dilation: Pair) -> Padding:
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        if stride != (1, 1):
            raise ArgumentError("conv2d: padding 'same' is for stride 1", got={"stride": stride})
        high, wide = (span(k, d) - 1 for k, d in zip(kernel, dilation, strict=True))
        return (high // 2, high - high // 2), (wide // 2, wide - wide // 2)
    if isinstance(padding, str):
        raise ArgumentError("conv2d: padding is a number, 'valid' or 'same'", got={"padding": repr(padding)})
    high, wide = pair(padding, "padding", 0)
    return (high, high), (wide, wide)


def max_pool2d(
    input: ArrayLike,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest entry of each window of the last two axes.

    (..., h, w) -> (..., oh, ow); oh = (h + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1

    Args:
        input: Real array of at least two axes.
        kernel_size: Height and width of a window; this and the next three are one number, or one each.
        stride: Step between windows; None stands for `kernel_size`.
        padding: Width of the border of -inf; at most half of `kernel_size`.
        dilation: Step between the entries of a window.
        ceil_mode: Whether the last windows may reach over the border.

    Returns:
        An array of the input's dtype. Of several largest entries the first one gets the gradient; nan wins.

    Raises:
        ShapeError: a window is larger than the padded input.
        ArgumentError: an option is outside its range.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.nn import functional as F
        >>> x = np.array([[1.0, 1.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0]])
        >>> F.max_pool2d(x, 2)
        array([[1., 2.]])
        >>> fnad.grad(lambda x: np.sum(F.max_pool2d(x, 2)))(x)
        array([[1., 0., 0., 1.],
               [0., 0., 0., 0.]])

    Reference: `torch.nn.functional.max_pool2d` (`np.max` of the windows would share the gradient among ties).
    """
    x = array(input)
    if x.dtype.kind not in "fiu":
        raise DTypeError("max_pool2d takes real numbers", got={"input": aval_of(x)})
    kernel, steps, border, gaps = _pooling("max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool(x, kernel=kernel, stride=steps, padding=border, dilation=gaps)[0]


def avg_pool2d(
    input: ArrayLike,
    kernel_size: int | tuple[int, int],
    stride: int | tuple[int, int] | None = None,
    padding: int | tuple[int, int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of the last two axes.

    (..., h, w) -> (..., oh, ow); oh = (h + 2 padding - kernel_size) // stride + 1

    Args:
        input: Real or complex array of at least two axes.
        kernel_size: Height and width of a window; this and the next two are one number, or one each.
        stride: Step between windows; None stands for `kernel_size`.
        padding: Width of the border of zeros; at most half of `kernel_size`.
        ceil_mode: Whether the last windows may reach over the border; what lies beyond does not count.
        count_include_pad: Whether the border counts.
        divisor_override: What the sum of a window is divided by instead.

    Returns:
        An array of the input's dtype.

    Raises:
        ShapeError: a window is larger than the padded input.
        ArgumentError: an option is outside its range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.avg_pool2d(np.arange(8.0).reshape(2, 4), 2)
        array([[2.5, 4.5]])

    Reference: `torch.nn.functional.avg_pool2d`.
    """
    x = array(input)
    if x.dtype.kind not in "fc":
        raise DTypeError("avg_pool2d takes floating-point numbers", got={"input": aval_of(x)})
    if divisor_override == 0:
        raise ArgumentError("avg_pool2d: divisor_override is not 0")
    kernel, steps, border, gaps = _pooling("avg_pool2d", x, kernel_size, stride, padding, 1, ceil_mode)
    rank = len(shape_of(x))
    windows = unfold(pad_plane(x, border), kernel=kernel, stride=steps, dilation=gaps)
    total = np.sum(windows, axis=(rank - 2, rank - 1))
    if divisor_override is not None:
        return total / divisor_override
    edge = pair(padding, "padding", 0)
    if not any(edge) and not ceil_mode:
        return total / math.prod(kernel)
    counts = [
        _counted(n, k, s, p, m, count_include_pad)
        for n, k, s, p, m in zip(shape_of(x)[-2:], kernel, steps, edge, shape_of(total)[-2:], strict=True)
    ]
    return total / np.outer(*counts).astype(x.dtype)


def _counted(size: int, kernel: int, stride: int, padding: int, windows: int, with_padding: bool) -> Any:
    """How many entries of each window along one axis count."""
    start = np.arange(windows) * stride - padding
    stop = np.minimum(start + kernel, size + padding)
    return stop - start if with_padding else np.minimum(stop, size) - np.maximum(start, 0)


def _pooling(
    name: str, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Pair, Pair, Padding, Pair]:
    """The options of pooling, checked; the padding with what the last windows reach over."""
    if len(shape_of(x)) < 2:
        raise ShapeError(f"{name}: the input has at least two axes", got={"input": aval_of(x)})
    kernel, gaps, edge = pair(kernel_size, "kernel_size", 1), pair(dilation, "dilation", 1), pair(padding, "padding", 0)
    steps = kernel if stride is None else pair(stride, "stride", 1)
    spans = span(kernel[0], gaps[0]), span(kernel[1], gaps[1])
    if any(2 * p > k for p, k in zip(edge, kernel, strict=True)):
        raise ArgumentError(f"{name}: padding is at most half of kernel_size", got={"padding": edge, "kernel_size": kernel})
    size = shape_of(x)[-2:]
    border = (edge[0], edge[0]), (edge[1], edge[1])
    window_counts(name, size, kernel, steps, gaps, border)
    if ceil_mode:
        ends = [_end(n, reach, s, p) for n, reach, s, p in zip(size, spans, steps, edge, strict=True)]
        border = (edge[0], ends[0]), (edge[1], ends[1])
    return kernel, steps, border, gaps


def _end(size: int, reach: int, stride: int, padding: int) -> int:
    """The padding after an axis whose last window may reach over the border but must begin before it."""
    last = -(-(size + 2 * padding - reach) // stride) * stride
    if last >= size + padding:
        last -= stride
    return max(padding, last + reach - size - padding)
