"""Convolutions over one, two and three axes, their transposes, and windows as columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, steps
from fnad.primitives.conv import convolution, convolution_input
from fnad.primitives.windows import Padding, Steps, crop_edges, pad_edges, padded_size, span, window_counts
from fnad.primitives.windows import fold as add_windows
from fnad.primitives.windows import unfold as take_windows
from fnad.typing import Array, ArrayLike

Sizes = int | tuple[int, ...]


def conv1d(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """One-dimensional convolution (a correlation) of sequences with filters.

    (n, c, w), (o, c / groups, kw), (o,) -> (n, o, ow), without n for a single sequence; otherwise as `conv2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.conv1d(np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2)))
        array([[[1., 3., 5., 7.]]])

    Reference: `torch.nn.functional.conv1d`.
    """
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
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
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: Sizes = 1, padding: Sizes | str = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Array:  # fmt: skip
    """Three-dimensional convolution (a correlation) of volumes with filters.

    (n, c, d, h, w), (o, c / groups, kd, kh, kw), (o,) -> (n, o, od, oh, ow), without n for a single volume; otherwise as `conv2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.conv3d(np.ones((1, 2, 3, 3, 3)), np.ones((4, 2, 2, 2, 2))).shape
        (1, 4, 2, 2, 2)

    Reference: `torch.nn.functional.conv3d`.
    """
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _convolution(name: str, rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> Array:
    x, w, single = _operands(name, rank, input, weight, groups)
    strides, gaps = steps(stride, "stride", 1, rank), steps(dilation, "dilation", 1, rank)
    edges = _padding(name, padding, shape_of(w)[2:], strides, gaps)
    out = convolution(x, w, stride=strides, padding=edges, dilation=gaps, groups=int(groups))
    return _finished(name, out, bias, shape_of(w)[0], rank, single)


def _operands(name: str, rank: int, input: Any, weight: Any, groups: Any) -> tuple[Any, Any, bool]:
    """Input with a batch axis, weight, and whether that axis has been added."""
    x, w = array(input), array(weight)
    if not isinstance(groups, int | np.integer) or groups < 1:
        raise ArgumentError(f"{name}: groups is a positive integer", got={"groups": groups})
    single = len(shape_of(x)) == rank + 1
    if single:
        x = np.reshape(x, (1, *shape_of(x)))
    if len(shape_of(x)) != rank + 2 or len(shape_of(w)) != rank + 2:
        raise ShapeError(
            f"{name}: input (n, channels, *size) and weight (channels, channels, *kernel) with {rank} last axes",
            got={"input": aval_of(input), "weight": aval_of(w)},
        )
    return x, w, single


def _finished(name: str, out: Any, bias: Any, channels: int, rank: int, single: bool) -> Array:
    if bias is not None:
        if shape_of(bias) != (channels,):
            raise ShapeError(f"{name}: bias has one entry per output channel", got={"bias": aval_of(bias), "channels": channels})
        out = out + np.reshape(array(bias), (-1, *(1,) * rank))
    return np.reshape(out, shape_of(out)[1:]) if single else out


def _padding(name: str, padding: Any, kernel: tuple[int, ...], stride: Steps, dilation: Steps) -> Padding:
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if set(stride) != {1}:
            raise ArgumentError(f"{name}: padding 'same' is for stride 1", got={"stride": stride})
        total = [span(k, d) - 1 for k, d in zip(kernel, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in total)
    if isinstance(padding, str):
        raise ArgumentError(f"{name}: padding is a number, 'valid' or 'same'", got={"padding": repr(padding)})
    return tuple((n, n) for n in steps(padding, "padding", 0, len(kernel)))


def conv_transpose1d(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Array:  # fmt: skip
    """The transpose of `conv1d` as a map of its input: (n, c, w), (c, o / groups, kw), (o,) -> (n, o, ow).

    As `conv_transpose2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.conv_transpose1d(np.array([[[1.0, 2.0]]]), np.array([[[1.0, 10.0]]]), stride=2)
        array([[[ 1., 10.,  2., 20.]]])

    Reference: `torch.nn.functional.conv_transpose1d`.
    """
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Array:  # fmt: skip
    """The transpose of `conv2d` as a map of its input: each entry adds its filter to the output.

    (n, c, h, w), (c, o / groups, kh, kw), (o,) -> (n, o, oh, ow), without n for a single image;
    oh = (h - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1

    Args:
        input: Images.
        weight: The weight of the convolution that is transposed: one filter per input channel.
        bias: Added to each output channel, or None.
        stride: Step between filters; this and the next two are one number, or one each for height and width.
        padding: What is cut off around the output.
        output_padding: Rows and columns added at the end; less than stride or dilation.
        groups: In how many parts the channels are cut that have nothing to do with each other.
        dilation: Step between the entries of a filter.

    Returns:
        An array of the operands' common dtype.

    Raises:
        ShapeError: input and weight do not fit, or nothing is left of the output.
        ArgumentError: an option is outside its range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.conv_transpose2d(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)))
        array([[[[1., 2., 1.],
                 [2., 4., 2.],
                 [1., 2., 1.]]]])

    Reference: `torch.nn.functional.conv_transpose2d`.
    """
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Array:  # fmt: skip
    """The transpose of `conv3d` as a map of its input: (n, c, d, h, w), (c, o / groups, kd, kh, kw), (o,) -> (n, o, od, oh, ow).

    As `conv_transpose2d` with three axes.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.conv_transpose3d(np.ones((1, 4, 2, 2, 2)), np.ones((4, 3, 2, 2, 2)), stride=2).shape
        (1, 3, 4, 4, 4)

    Reference: `torch.nn.functional.conv_transpose3d`.
    """
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _transposed(
    name: str, rank: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any
) -> Array:
    x, w, single = _operands(name, rank, input, weight, groups)
    strides, gaps = steps(stride, "stride", 1, rank), steps(dilation, "dilation", 1, rank)
    edges, more = steps(padding, "padding", 0, rank), steps(output_padding, "output_padding", 0, rank)
    if any(m >= max(s, d) for m, s, d in zip(more, strides, gaps, strict=True)):
        raise ArgumentError(f"{name}: output_padding is less than stride or dilation", got={"output_padding": more, "stride": strides})
    if shape_of(x)[1] != shape_of(w)[0] or shape_of(w)[0] % groups:
        raise ShapeError(
            f"{name}: input (n, c, *size) and weight (c, o / groups, *kernel), where groups divides c",
            got={"input": aval_of(x), "weight": aval_of(w), "groups": groups},
        )
    # Beyond the last filter there are zeros: of these, what is less than a step belongs to the convolution's own input.
    own = [min(m, s - 1) for m, s in zip(more, strides, strict=True)]
    size = tuple(
        (n - 1) * s - 2 * p + span(k, d) + m
        for n, s, p, k, d, m in zip(shape_of(x)[2:], strides, edges, shape_of(w)[2:], gaps, own, strict=True)
    )
    if any(n + m - o < 1 for n, m, o in zip(size, more, own, strict=True)) or min(size) < 1:
        raise ShapeError(f"{name}: something must be left of the output", got={"output size": size})
    both = tuple((p, p) for p in edges)
    out = convolution_input(x, w, size=size, stride=strides, padding=both, dilation=gaps, groups=int(groups))
    out = pad_edges(out, tuple((0, m - o) for m, o in zip(more, own, strict=True)))
    return _finished(name, out, bias, shape_of(w)[1] * int(groups), rank, single)


def unfold(input: ArrayLike, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Array:
    """The windows of images as columns: (n, c, h, w) -> (n, c kh kw, windows), without n for a single image.

    Args:
        input: Images.
        kernel_size: Height and width of a window; all options are one number, or one each.
        dilation: Step between the entries of a window.
        padding: Zeros around the images.
        stride: Step between windows.

    Returns:
        An array of the input's dtype.

    Raises:
        ShapeError: the input has another number of axes, or a window is larger than a padded image.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.unfold(np.arange(6.0).reshape(1, 2, 3), 2)
        array([[0., 1.],
               [1., 2.],
               [3., 4.],
               [4., 5.]])

    Reference: `torch.nn.functional.unfold`.
    """
    x = array(input)
    if len(shape_of(x)) not in (3, 4):
        raise ShapeError("unfold: input (n, c, h, w) or (c, h, w)", got={"input": aval_of(x)})
    kernel, gaps = steps(kernel_size, "kernel_size", 1, 2), steps(dilation, "dilation", 1, 2)
    strides, edges = steps(stride, "stride", 1, 2), tuple((p, p) for p in steps(padding, "padding", 0, 2))
    found = take_windows(pad_edges(x, edges), kernel=kernel, stride=strides, dilation=gaps)
    *lead, channels, _, _, rows, columns = shape_of(found)
    return np.reshape(found, (*lead, channels * math.prod(kernel), rows * columns))


def fold(input: ArrayLike, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Array:
    """Images into which columns are added as windows: (n, c kh kw, windows) -> (n, c, h, w), the transpose of `unfold`.

    Args:
        input: Columns.
        output_size: Height and width of the images.
        kernel_size: Height and width of a window; these options are one number, or one each.
        dilation: Step between the entries of a window.
        padding: What is cut off around the images.
        stride: Step between windows.

    Returns:
        An array of the input's dtype.

    Raises:
        ShapeError: the columns are not those of images of this size.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.fold(np.ones((4, 2)), (2, 3), 2)
        array([[[1., 2., 1.],
                [1., 2., 1.]]])

    Reference: `torch.nn.functional.fold`.
    """
    x = array(input)
    kernel, gaps = steps(kernel_size, "kernel_size", 1, 2), steps(dilation, "dilation", 1, 2)
    strides, edges = steps(stride, "stride", 1, 2), tuple((p, p) for p in steps(padding, "padding", 0, 2))
    size = steps(output_size, "output_size", 1, 2)
    counts = window_counts("fold", size, kernel, strides, gaps, edges)
    shape = shape_of(x)
    if len(shape) not in (2, 3) or shape[-2] % math.prod(kernel) or shape[-1] != math.prod(counts):
        raise ShapeError(
            "fold: input (n, c kh kw, windows) or (c kh kw, windows) with the windows of the output's size",
            got={"input": aval_of(x), "windows": math.prod(counts), "kernel_size": kernel},
        )
    windows = np.reshape(x, (*shape[:-2], shape[-2] // math.prod(kernel), *kernel, *counts))
    return crop_edges(add_windows(windows, size=padded_size(size, edges), stride=strides, dilation=gaps), edges)
