"""Pooling: one number per window of the last axes; and the way back from the largest entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, DTypeError, ShapeError
from fnad.nn.functional._arguments import array, floating, steps
from fnad.numpy.at import at
from fnad.primitives.pool import max_pool
from fnad.primitives.windows import Padding, Steps, pad_edges, span, unfold, window_counts
from fnad.typing import Array, ArrayLike

Sizes = int | tuple[int, ...]


def max_pool1d(
    input: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest entry of each window of the last axis: (..., w) -> (..., ow). As `max_pool2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.max_pool1d(np.array([1.0, 3.0, 2.0, 0.0]), 2)
        array([3., 2.])

    Reference: `torch.nn.functional.max_pool1d`.
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest entry of each window of the last two axes.

    (..., h, w) -> (..., oh, ow); oh = (h + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1

    Args:
        input: Real array of at least two axes.
        kernel_size: Height and width of a window; this and the next three are one number, or one each.
        stride: Step between windows; None stands for `kernel_size`.
        padding: Width of the border of -inf; at most half of `kernel_size`.
        dilation: Step between the entries of a window.
        ceil_mode: Whether the last windows may reach over the border.
        return_indices: Whether it is also told where the largest entries were: int64 positions in the flattened last axes of the
            input, as `max_unpool2d` takes them.

    Returns:
        An array of the input's dtype; with `return_indices`, a pair of it and the positions. Of several largest entries the first one
        gets the gradient; nan wins.

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
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest entry of each window of the last three axes: (..., d, h, w) -> (..., od, oh, ow). As `max_pool2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.max_pool3d(np.arange(8.0).reshape(2, 2, 2), 2)
        array([[[7.]]])

    Reference: `torch.nn.functional.max_pool3d`.
    """
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _max_pool(
    name: str, rank: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Any:
    x = array(input)
    if x.dtype.kind not in "fiu":
        raise DTypeError(f"{name} takes real numbers", got={"input": aval_of(x)})
    kernel, strides, border, gaps = _pooling(name, rank, x, kernel_size, stride, padding, dilation, ceil_mode)
    out, place = largest(x, kernel[-2:], strides[-2:], border[-2:], gaps[-2:], indices)
    if rank == 3:
        # The windows of the first axis last: among the largest ones, the first of the first plane still wins.
        *lead, depth, high, wide = shape_of(out)
        planes = np.reshape(out, (*lead, depth, high * wide))
        out, where = largest(planes, (kernel[0], 1), (strides[0], 1), (border[0], (0, 0)), (gaps[0], 1), indices)
        shape = (*lead, shape_of(out)[-2], high, wide)
        if place is not None and where is not None:
            plane = where // (high * wide)
            inner = np.take_along_axis(np.reshape(place, shape_of(planes)), plane, -2)
            place = np.reshape(plane * math.prod(shape_of(x)[-2:]) + inner, shape)
        out = np.reshape(out, shape)
    return (out, place) if indices else out


def largest(x: Any, kernel: Steps, stride: Steps, padding: Padding, dilation: Steps, indices: bool = False) -> tuple[Any, Any]:
    """The largest entries of windows over one or two axes, and where in the flattened axes they are, if that is asked for."""
    if len(kernel) == 1:
        *lead, n = shape_of(x)
        out, place = largest(np.reshape(x, (*lead, 1, n)), (1, *kernel), (1, *stride), ((0, 0), *padding), (1, *dilation), indices)
        shape = (*lead, shape_of(out)[-1])
        return np.reshape(out, shape), None if place is None else np.reshape(place, shape)
    out, winner = max_pool(x, kernel=kernel, stride=stride, padding=padding, dilation=dilation)
    if not indices:
        return out, None
    number = winner.astype(np.int64)
    high, wide = shape_of(out)[-2:]
    row = number // kernel[1] * dilation[0] + (np.arange(high) * stride[0] - padding[0][0])[:, None]
    column = number % kernel[1] * dilation[1] + (np.arange(wide) * stride[1] - padding[1][0])
    return out, row * shape_of(x)[-1] + column


def max_unpool1d(
    input: ArrayLike, indices: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Array:
    """Entries put where `max_pool1d` found them: (..., ow) -> (..., w). As `max_unpool2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.max_unpool1d(np.array([5.0, 7.0]), np.array([1, 2]), 2)
        array([0., 5., 7., 0.])

    Reference: `torch.nn.functional.max_unpool1d`.
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: ArrayLike, indices: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Array:
    """Entries put where `max_pool2d` found them, and zeros elsewhere: (..., oh, ow) -> (..., h, w).

    Args:
        input: What `max_pool2d` gave, or another array of its shape.
        indices: What it gave with `return_indices`.
        kernel_size: Its option; so the next two.
        stride: None stands for `kernel_size`.
        padding: As it was.
        output_size: The sizes of the last axes; otherwise (oh - 1) stride - 2 padding + kernel_size.

    Returns:
        An array of the input's dtype. Where several entries have the same place, the last one is there.

    Raises:
        ShapeError: input and indices differ in shape.
        ArgumentError: an option does not fit.
        IndexError: a place lies outside.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> out, where = F.max_pool2d(np.array([[1.0, 3.0], [2.0, 0.0]]), 2, return_indices=True)
        >>> F.max_unpool2d(out, where, 2)
        array([[0., 3.],
               [0., 0.]])

    Reference: `torch.nn.functional.max_unpool2d`.
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: ArrayLike, indices: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None
) -> Array:
    """Entries put where `max_pool3d` found them: (..., od, oh, ow) -> (..., d, h, w). As `max_unpool2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.max_unpool3d(np.full((1, 1, 1), 5.0), np.full((1, 1, 1), 7), 2).ravel()
        array([0., 0., 0., 0., 0., 0., 0., 5.])

    Reference: `torch.nn.functional.max_unpool3d`.
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _max_unpool(name: str, rank: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Array:
    x, where = array(input), array(indices)
    if shape_of(x) != shape_of(where) or len(shape_of(x)) < rank or where.dtype.kind not in "iu":
        raise ShapeError(f"{name}: one integer for each entry of the input", got={"input": aval_of(x), "indices": aval_of(where)})
    kernel, edge = steps(kernel_size, "kernel_size", 1, rank), steps(padding, "padding", 0, rank)
    strides = kernel if stride is None else steps(stride, "stride", 1, rank)
    *lead, sizes = (*shape_of(x)[:-rank], shape_of(x)[-rank:])
    usual = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(sizes, strides, edge, kernel, strict=True)]
    wanted = tuple(usual) if output_size is None else tuple(output_size)[-rank:]
    if len(wanted) != rank or any(abs(n - u) >= s for n, u, s in zip(wanted, usual, strides, strict=True)):
        raise ArgumentError(
            f"{name}: output_size differs from the usual size by less than a stride", got={"output_size": output_size, "usual": usual}
        )
    rows, n = math.prod(lead), math.prod(wanted)
    flat, place = (np.reshape(a, (rows, math.prod(sizes))) for a in (x, where))
    out = at(np.zeros((rows, n), x.dtype))[np.arange(rows)[:, None], place].set(flat)
    return np.reshape(out, (*lead, *wanted))


def avg_pool1d(
    input: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """The mean of each window of the last axis: (..., w) -> (..., ow). As `avg_pool2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.avg_pool1d(np.array([1.0, 3.0, 2.0, 0.0]), 2)
        array([2., 1.])

    Reference: `torch.nn.functional.avg_pool1d`.
    """
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
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
    return _avg_pool("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: ArrayLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """The mean of each window of the last three axes: (..., d, h, w) -> (..., od, oh, ow). As `avg_pool2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.avg_pool3d(np.arange(8.0).reshape(2, 2, 2), 2)
        array([[[3.5]]])

    Reference: `torch.nn.functional.avg_pool3d`.
    """
    return _avg_pool("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _avg_pool(
    name: str, rank: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, with_padding: bool, divisor: Any
) -> Array:
    x = array(input)
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{name} takes floating-point numbers", got={"input": aval_of(x)})
    if divisor == 0:
        raise ArgumentError(f"{name}: divisor_override is not 0")
    kernel, strides, border, gaps = _pooling(name, rank, x, kernel_size, stride, padding, 1, ceil_mode)
    axes = tuple(range(len(shape_of(x)) - rank, len(shape_of(x))))
    total = np.sum(unfold(pad_edges(x, border), kernel=kernel, stride=strides, dilation=gaps), axis=axes)
    if divisor is not None:
        return total / divisor
    edge = steps(padding, "padding", 0, rank)
    if not any(edge) and not ceil_mode:
        return total / math.prod(kernel)
    counts: Any = 1
    for n, k, s, p, m in zip(shape_of(x)[-rank:], kernel, strides, edge, shape_of(total)[-rank:], strict=True):
        counts = np.multiply.outer(counts, _counted(n, k, s, p, m, with_padding))
    return total / counts.astype(x.dtype)


def _counted(size: int, kernel: int, stride: int, padding: int, windows: int, with_padding: bool) -> Any:
    """How many entries of each window along one axis count."""
    start = np.arange(windows) * stride - padding
    stop = np.minimum(start + kernel, size + padding)
    return stop - start if with_padding else np.minimum(stop, size) - np.maximum(start, 0)


def _pooling(
    name: str, rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Steps, Steps, Padding, Steps]:
    """The options of pooling, checked; the padding with what the last windows reach over."""
    if len(shape_of(x)) < rank:
        words = {1: "one axis", 2: "two axes", 3: "three axes"}[rank]
        raise ShapeError(f"{name}: the input has at least {words}", got={"input": aval_of(x)})
    kernel, gaps = steps(kernel_size, "kernel_size", 1, rank), steps(dilation, "dilation", 1, rank)
    edge = steps(padding, "padding", 0, rank)
    strides = kernel if stride is None else steps(stride, "stride", 1, rank)
    spans = [span(k, d) for k, d in zip(kernel, gaps, strict=True)]
    if any(2 * p > k for p, k in zip(edge, kernel, strict=True)):
        raise ArgumentError(f"{name}: padding is at most half of kernel_size", got={"padding": edge, "kernel_size": kernel})
    size = shape_of(x)[-rank:]
    border = tuple((p, p) for p in edge)
    window_counts(name, size, kernel, strides, gaps, border)
    if ceil_mode:
        ends = [_end(n, reach, s, p) for n, reach, s, p in zip(size, spans, strides, edge, strict=True)]
        border = tuple(zip(edge, ends, strict=True))
    return kernel, strides, border, gaps


def _end(size: int, reach: int, stride: int, padding: int) -> int:
    """The padding after an axis whose last window may reach over the border but must begin before it."""
    last = -(-(size + 2 * padding - reach) // stride) * stride
    if last >= size + padding:
        last -= stride
    return max(padding, last + reach - size - padding)


def lp_pool1d(input: ArrayLike, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False) -> Array:
    """The p-norm of each window of the last axis: (..., w) -> (..., ow). As `lp_pool2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.lp_pool1d(np.array([3.0, 4.0, 5.0, 12.0]), 2, 2)
        array([ 5., 13.])

    Reference: `torch.nn.functional.lp_pool1d`.
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: ArrayLike, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Array:
    """The p-norm of each window of the last two axes: the p-th root of the sum of x**p.

    (..., h, w) -> (..., oh, ow)

    Args:
        input: Real array of at least two axes; of numbers that are not negative unless p is an even integer.
        norm_type: p.
        kernel_size: Height and width of a window; this and the next are one number, or one each.
        stride: Step between windows; None stands for `kernel_size`.
        ceil_mode: Whether the last windows may reach over the border; then the mean of what lies inside counts as well for
            what does not.

    Returns:
        An array of the input's dtype (float64 for integers). Where the sum is not positive it is 0, with gradient 0.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.lp_pool2d(np.array([[1.0, 2.0], [2.0, 4.0]]), 2, 2)
        array([[5.]])

    Reference: `torch.nn.functional.lp_pool2d`.
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: ArrayLike, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Array:
    """The p-norm of each window of the last three axes: (..., d, h, w) -> (..., od, oh, ow). As `lp_pool2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.lp_pool3d(np.ones((2, 2, 4)), 3, 2)
        array([[[2., 2.]]])

    Reference: `torch.nn.functional.lp_pool3d`.
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(name: str, rank: int, input: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool) -> Array:
    x = floating(input, name)
    mean = _avg_pool(name, rank, x**norm_type, kernel_size, stride, 0, ceil_mode, True, None)
    total = mean * math.prod(steps(kernel_size, "kernel_size", 1, rank))
    positive = total > 0
    return np.where(positive, np.where(positive, total, 1) ** (1 / norm_type), 0 * total)
